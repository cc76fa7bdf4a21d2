package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/resp"
)

// ports are the server's ports, each on the addresses of bind. Guarded by Server.cfgMu.
type ports struct {
	srv               *Server
	tcp, tls, metrics openPort
}

// openPort is one port, and where it is open.
type openPort struct {
	srv    *Server
	flag   string // gives it
	of     func(*config.Config) int64
	listen func(network, addr string) (stop func(), err error)

	number int64
	open   []listener             // in the order of bind
	shown  atomic.Pointer[string] // the same as INFO shows it; nil: it never was open. For any goroutine
}

// listener is a port on one address.
type listener struct {
	host string // as bind has it
	stop func() // nil: it is not open
}

func (p *ports) all() []*openPort { return []*openPort{&p.tcp, &p.tls, &p.metrics} }

func (p *ports) init(srv *Server) {
	p.srv = srv
	p.tcp.init(srv, "--port", func(c *config.Config) int64 { return c.Port }, srv.listenTo(nil))
	p.tls.init(srv, "--tls-port", func(c *config.Config) int64 { return c.TLSPort }, srv.listenTo(srv.secured()))
	p.metrics.init(srv, "--metrics-port", func(c *config.Config) int64 { return c.MetricsPort }, srv.metrics.listen)
}

func (p *openPort) init(srv *Server, flag string, of func(*config.Config) int64, listen func(network, addr string) (func(), error)) {
	p.srv, p.flag, p.of, p.listen = srv, flag, of, listen
}

// listenTo returns what listens to clients, which speak TLS if secure says how.
func (srv *Server) listenTo(secure *tls.Config) func(network, addr string) (func(), error) {
	return func(network, addr string) (func(), error) {
		a, err := srv.rs.Listen(network, addr, resp.ListenOptions{TLS: secure})
		return func() { srv.rs.Unlisten(a) }, err
	}
}

// Listen binds the addresses of the configuration. Errors say what to do.
func (srv *Server) Listen() error {
	srv.cfgMu.Lock()
	defer srv.cfgMu.Unlock()
	cfg, p := srv.config(), &srv.ports
	for _, x := range p.all() {
		if x.of(cfg) == 0 {
			continue
		}
		if err := x.move(cfg); err != nil {
			return err
		}
	}
	if cfg.UnixSocket != "" {
		_, err := srv.ListenOn("unix", cfg.UnixSocket, uint32(cfg.UnixSocketPerm))
		return err
	}
	if len(p.tcp.open)+len(p.tls.open) == 0 {
		return errors.New("server: no address could be bound: check bind and port")
	}
	return nil
}

// ListenOn binds one more address.
func (srv *Server) ListenOn(network, addr string, mode uint32) (net.Addr, error) {
	a, err := srv.rs.Listen(network, addr, resp.ListenOptions{Mode: mode})
	if err != nil {
		return nil, listenError(addr, "--port", err)
	}
	return a, nil
}

// apply listens where cfg says, as far as keys concern that. The error is CONFIG SET's reply: what had to be closed for the
// new addresses is closed then, until apply of the former configuration opens it again.
func (p *ports) apply(cfg *config.Config, keys []*config.Key) error {
	for _, k := range keys {
		var err error
		why := "Unable to listen on this port. Check server logs."
		switch k.Name {
		case "bind":
			why = "Failed to bind to specified addresses."
			for _, x := range p.all() {
				if err == nil {
					err = x.move(cfg)
				}
			}
		case "port":
			err = p.tcp.move(cfg)
		case "tls-port":
			if err := p.srv.applyTLS(cfg, k.Name); err != nil {
				return err
			}
			err = p.tls.move(cfg)
		case "metrics-port":
			err = p.metrics.move(cfg)
		}
		if err != nil {
			p.srv.log.Warn("CONFIG SET "+k.Name+" failed", "error", err)
			return config.SetFailed(k.Name, errors.New(why))
		}
	}
	return nil
}

// move has the port open where cfg says, and nowhere else. What is open there already stays, and nothing is closed before the rest is
// open, but what is in its way.
func (p *openPort) move(cfg *config.Config) error {
	number, hosts := p.of(cfg), cfg.Bind
	if number == 0 {
		hosts = nil
	}
	leave := slices.Clone(p.open)
	next := make([]listener, 0, len(hosts))
	for _, host := range hosts {
		l := listener{host: host}
		i := slices.IndexFunc(leave, func(is listener) bool { return p.number == number && bare(is.host) == bare(host) })
		if i >= 0 {
			l.stop = leave[i].stop
			leave = slices.Delete(leave, i, i+1)
		}
		next = append(next, l)
	}
	err := p.fill(next, number)
	if err != nil && (len(leave) == 0 || !errors.Is(err, syscall.EADDRINUSE)) {
		return err
	}
	for _, l := range leave {
		l.stop()
	}
	if err != nil {
		err = p.fill(next, number)
	}
	p.open = slices.DeleteFunc(next, func(l listener) bool { return l.stop == nil })
	p.number = number
	p.show()
	return err
}

// fill opens those of next that are not open: after an error none of them, and without one all but those that may be missing.
func (p *openPort) fill(next []listener, number int64) error {
	var opened []*listener
	for i := range next {
		l := &next[i]
		if l.stop != nil {
			continue
		}
		network, addr := address(bare(l.host), number)
		stop, err := p.listen(network, addr)
		switch {
		case err == nil:
			l.stop = stop
			opened = append(opened, l)
		case l.host != bare(l.host) && errors.Is(err, syscall.EADDRNOTAVAIL), noFamily(err):
			p.srv.log.Warn("address not bound", "address", addr, "error", err)
		default:
			for _, l := range opened {
				l.stop()
				l.stop = nil
			}
			return listenError(addr, p.flag, err)
		}
	}
	return nil
}

func (p *openPort) show() {
	var b strings.Builder
	for _, l := range p.open {
		b.WriteString(",bind=" + l.host)
	}
	if p.number != 0 {
		fmt.Fprintf(&b, ",port=%d", p.number)
	}
	text := b.String()
	p.shown.Store(&text)
}

// bare is an address of bind without the - that lets it be missing.
func bare(host string) string { return strings.TrimPrefix(host, "-") }

// noFamily reports whether err says that the machine does not speak the protocol, IPv6 above all.
func noFamily(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.EAFNOSUPPORT, syscall.EPFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ESOCKTNOSUPPORT, syscall.ENOPROTOOPT,
	}, func(is error) bool { return errors.Is(err, is) })
}

// address is an address of bind with a port, as package net has it; * stands for every address of IPv4, ::* for every one of IPv6.
func address(host string, number int64) (network, addr string) {
	network = "tcp4"
	if strings.Contains(host, ":") {
		network = "tcp6"
	}
	if host == "*" || host == "::*" {
		host = ""
	}
	return network, net.JoinHostPort(host, strconv.FormatInt(number, 10))
}

// listenError says why an address could not be bound, and what to do; flag chooses another port.
func listenError(addr, flag string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: another process does. Stop it (ss -ltnp shows it) "+
			"or choose another port with %s: %w", addr, flag, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("cannot listen on %s: not permitted. Ports below 1024 need root or "+
			"CAP_NET_BIND_SERVICE: %w", addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("cannot listen on %s: this machine does not have that address; "+
			"correct bind: %w", addr, err)
	}
	return fmt.Errorf("cannot listen on %s: %w", addr, err)
}
