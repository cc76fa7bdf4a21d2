package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config of a Server. The zero value is usable. Copied by NewServer.
type Config struct {
	// Loops is the number of event loops; 0 means one for every two CPUs. More loops than are busy find fewer
	// connections ready at a time, and sleep and wake more often: CPU per command grows.
	Loops int
	// MaxClients is the most connections at a time; 0 means 10000.
	MaxClients int
	// MaxBulk and QueryBuffer set Limits; 0 means the default.
	MaxBulk, QueryBuffer int64
	// Output is how much of its replies a client may leave unread, until SetOutputBounds says otherwise; nil means
	// DefaultOutputHard.
	Output *OutputBounds
	// IdleTimeout closes connections without input; 0 means never.
	IdleTimeout time.Duration
	// KeepAlive is the TCP keepalive time; 0 means 300 s, negative none.
	KeepAlive time.Duration
	// Backlog of listening sockets; 0 means 511.
	Backlog int
	// ReadBuffer is the size of a loop's input buffer in bytes; 0 means 64 KiB.
	ReadBuffer int
	// Portable serves all connections with a goroutine each, as systems without epoll do.
	Portable bool
	// Logger; nil means slog.Default.
	Logger *slog.Logger
	// OnPanic, if set, is called after a panic in the handler was contained.
	OnPanic func(c *Conn, value any, stack []byte)
}

func (cfg *Config) ensureDefaults() {
	if cfg.Loops <= 0 {
		cfg.Loops = max(runtime.GOMAXPROCS(0)/2, 1)
	}
	if cfg.MaxClients <= 0 {
		cfg.MaxClients = 10000
	}
	if cfg.Output == nil {
		cfg.Output = &OutputBounds{}
		cfg.Output.Set(DefaultOutputHard, 0, 0)
	}
	if cfg.KeepAlive == 0 {
		cfg.KeepAlive = 300 * time.Second
	}
	if cfg.Backlog <= 0 {
		cfg.Backlog = 511
	}
	if cfg.ReadBuffer <= 0 {
		cfg.ReadBuffer = readBuffer
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
}

// backend carries connections. Loops exist from its start to its end.
type backend interface {
	// accept begins to take connections from l, until l.stop.
	accept(l *listener) error
	// each runs fn on every loop with its connections, and done when all have; any goroutine.
	each(fn func(conns []*Conn), done func())
	// drain lets running commands finish, sends what is finished and ends every loop. With now set,
	// connections are closed at once.
	drain(now bool)
	// wait returns when all loops have ended.
	wait()
}

// Server accepts connections and runs a Handler for them. Methods are for any goroutine, but those that
// wait must not be called on a loop.
type Server struct {
	h Handler
	// observer and previewer are h, if it is one.
	observer  OutputObserver
	previewer Previewer
	cfg       Config
	lim       Limits
	start     time.Time

	maxClients, idle        atomic.Int64
	alive                   atomic.Int64 // Config.KeepAlive
	nextID, total, rejected atomic.Uint64
	clients                 atomic.Int64
	bytesIn, bytesOut       atomic.Uint64

	mu        sync.Mutex
	listeners []*listener // guarded by mu
	serving   bool        // guarded by mu
	stopping  bool        // guarded by mu
	events    backend     // event loops; the same as each if there are none
	routines  *routines   // a goroutine per connection
	done      chan struct{}
}

// NewServer returns a server that does not listen yet.
func NewServer(h Handler, cfg Config) (*Server, error) {
	cfg.ensureDefaults()
	s := &Server{h: h, cfg: cfg, start: time.Now(), done: make(chan struct{})}
	s.observer, _ = h.(OutputObserver)
	s.previewer, _ = h.(Previewer)
	s.lim.MaxBulk.Store(cfg.MaxBulk)
	s.lim.QueryBuffer.Store(cfg.QueryBuffer)
	s.maxClients.Store(int64(cfg.MaxClients))
	s.idle.Store(int64(cfg.IdleTimeout))
	s.alive.Store(int64(cfg.KeepAlive))
	s.routines = newRoutines(s)
	s.events = s.routines
	if !cfg.Portable {
		b, err := newEvents(s)
		if err != nil {
			return nil, err
		}
		if b != nil {
			s.events = b
		}
	}
	return s, nil
}

// ListenOptions of one address. The zero value is plain TCP, or a unix socket with mode 0777 &^ umask.
type ListenOptions struct {
	// Mode of a unix socket's file.
	Mode uint32
	// TLS, if set, is spoken on this address.
	TLS *tls.Config
}

// ErrServerClosed is returned by Listen and Serve after Shutdown.
var ErrServerClosed = errors.New("resp: server closed")

// Listen binds an address ("tcp", "tcp4", "tcp6" or "unix"). Connections are served from Serve on, or
// at once if it runs. It may be called for several addresses, and on a loop.
func (s *Server) Listen(network, addr string, opt ListenOptions) (net.Addr, error) {
	l, err := s.bind(network, addr, opt)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		l.stop()
		return nil, ErrServerClosed
	}
	if s.serving {
		if err := s.acceptFrom(l); err != nil {
			l.stop()
			return nil, err
		}
	}
	s.listeners = append(s.listeners, l)
	return l.addr, nil
}

// Unlisten stops listening on an address, named by what Listen has returned; it does nothing if that is stopped already. Its
// connections stay, those that wait to be accepted do not. When it returns the address is free. It may be called on a loop.
func (s *Server) Unlisten(a net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.listeners {
		if l.addr == a {
			s.listeners = slices.Delete(s.listeners, i, i+1)
			l.stop()
			return
		}
	}
}

func (s *Server) acceptFrom(l *listener) error {
	if l.opt.TLS != nil {
		return s.routines.accept(l)
	}
	return s.events.accept(l)
}

// Serve accepts connections and returns when Shutdown has ended everything, with ErrServerClosed.
func (s *Server) Serve() error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.serving = true
	for _, l := range s.listeners {
		if err := s.acceptFrom(l); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	s.mu.Unlock()
	<-s.done
	return ErrServerClosed
}

// ServeConn serves a connection accepted elsewhere, with goroutines of its own. It returns at once.
func (s *Server) ServeConn(nc net.Conn) { s.routines.serve(nc) }

// Shutdown stops accepting, lets running commands finish, sends the replies of finished commands and
// closes all connections; connections parked by Park close at once. When ctx ends first, the rest is closed
// without regard and its error returned. Only the first call does this.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		<-s.done
		return nil
	}
	s.stopping = true
	for _, l := range s.listeners {
		l.stop()
	}
	s.mu.Unlock()
	backends := s.backends()
	for _, b := range backends {
		b.drain(false)
	}
	ended := make(chan struct{})
	go func() {
		for _, b := range backends {
			b.wait()
		}
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
		for _, b := range backends {
			b.drain(true)
		}
		<-ended
	}
	close(s.done)
	return err
}

func (s *Server) backends() []backend {
	if s.events == backend(s.routines) {
		return []backend{s.routines}
	}
	return []backend{s.events, s.routines}
}

// DoAsync runs fn once on every loop with the loop's connections, which it may inspect, Close, or have
// output appended to by Post; then it calls done, if not nil, on one of the loops or the caller's goroutine. It may be
// called on a loop. A loop without connections may be left out.
func (s *Server) DoAsync(fn func(conns []*Conn), done func()) {
	backends := s.backends()
	left := newCountdown(len(backends), done)
	for _, b := range backends {
		b.each(fn, left.one)
	}
}

// Do is DoAsync and waits. It must not be called on a loop.
func (s *Server) Do(fn func(conns []*Conn)) {
	done := make(chan struct{})
	s.DoAsync(fn, func() { close(done) })
	<-done
}

// Limits returns the protocol limits; they may be changed while the server runs.
func (s *Server) Limits() *Limits { return &s.lim }

// SetMaxClients changes Config.MaxClients.
func (s *Server) SetMaxClients(n int) { s.maxClients.Store(int64(n)) }

// SetKeepAlive changes Config.KeepAlive, for connections to come. It must not be 0. It may be called on a loop.
func (s *Server) SetKeepAlive(d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive.Store(int64(d))
	var err error
	for _, l := range s.listeners {
		err = errors.Join(err, l.prepare(s.keepAlive()))
	}
	return err
}

// maxKeepAlive is the longest time that Linux takes.
const maxKeepAlive = 32767 * time.Second

func (s *Server) keepAlive() time.Duration { return min(time.Duration(s.alive.Load()), maxKeepAlive) }

// SetIdleTimeout changes Config.IdleTimeout.
func (s *Server) SetIdleTimeout(d time.Duration) { s.idle.Store(int64(d)) }

// Loops returns the number of event loops.
func (s *Server) Loops() int { return s.cfg.Loops }

// Stats are counters since the server's start, but for Clients.
type Stats struct {
	Clients     int    // connections now
	Connections uint64 // accepted
	Rejected    uint64 // refused: for MaxClients, or by Conn.Refuse
	BytesIn     uint64
	BytesOut    uint64
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	return Stats{
		Clients:     int(s.clients.Load()),
		Connections: s.total.Load(),
		Rejected:    s.rejected.Load(),
		BytesIn:     s.bytesIn.Load(),
		BytesOut:    s.bytesOut.Load(),
	}
}

// tooMany is the reply to a connection beyond MaxClients.
const tooMany = "-ERR max number of clients reached\r\n"

// admit counts a new connection, or returns false if there are too many.
func (s *Server) admit() bool {
	if s.clients.Add(1) > s.maxClients.Load() {
		s.clients.Add(-1)
		s.rejected.Add(1)
		return false
	}
	s.total.Add(1)
	return true
}

// newConn returns an admitted connection, to be placed on the loop t.
func (s *Server) newConn(t *turn, fd int, remote, local string) *Conn {
	now := time.Now()
	return &Conn{
		srv: s, t: t, fd: fd, bounds: s.cfg.Output,
		rd:     Reader{lim: &s.lim, sc: t.sc},
		id:     s.nextID.Add(1),
		remote: remote, local: local,
		created: now, active: now.UnixNano(),
	}
}
