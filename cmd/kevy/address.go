package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/client"
)

// loginUsage is what the help of a tool says about servers.
const loginUsage = `A server is host:port or redis://[[user]:password@]host[:port], over TLS rediss://. The environment variable KEVY_REQUIREPASS has the password
where none is given. Over TLS the server's certificate must be signed by the authorities in the file that KEVY_TLS_CA_CERT_FILE names (default: the
system's), and KEVY_TLS_CERT_FILE and KEVY_TLS_KEY_FILE name what a server is shown that asks for a certificate.
`

// serverAddr is a server that a command line names, and how to log in there.
type serverAddr struct {
	addr           string // host:port
	user, password string
	dial           func(ctx context.Context, addr string) (net.Conn, error) // over TLS; nil: without
}

// parseServer reads redis://[[user]:password@]host[:port], or rediss:// for TLS. The password of who gives none is that of KEVY_REQUIREPASS.
func parseServer(text string) (a serverAddr, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		if bad, ok := errors.AsType[*url.Error](err); ok {
			err = bad.Err // without the password
		}
		return a, err
	case u.Hostname() == "" || strings.Trim(u.Path, "/0") != "" || u.RawQuery != "":
		return a, fmt.Errorf("%s: want redis://[[user]:password@]host[:port]", u.Redacted())
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	a = serverAddr{addr: net.JoinHostPort(u.Hostname(), port), user: u.User.Username(), password: os.Getenv("KEVY_REQUIREPASS")}
	if p, ok := u.User.Password(); ok {
		a.password = p
	}
	if u.Scheme == "rediss" {
		a.dial = dialTLS
	}
	return a, nil
}

// loginHint adds to the error of a server that wants a password where it is given.
func loginHint(err error) error {
	if strings.Contains(err.Error(), "NOAUTH ") {
		return fmt.Errorf("%w The password goes into the URL, or into the environment variable KEVY_REQUIREPASS", err)
	}
	return err
}

// dialTLS connects over TLS, with the files that the environment names for a server: KEVY_TLS_CERT_FILE and KEVY_TLS_KEY_FILE are shown to a server
// that asks for a certificate, KEVY_TLS_CA_CERT_FILE must have signed the server's, whatever name is in that. Without it the system's authorities must, for
// the name in addr.
func dialTLS(ctx context.Context, addr string) (net.Conn, error) {
	files := client.TLS{
		CACert: os.Getenv("KEVY_TLS_CA_CERT_FILE"), Cert: os.Getenv("KEVY_TLS_CERT_FILE"), Key: os.Getenv("KEVY_TLS_KEY_FILE"),
		Protocols: os.Getenv("KEVY_TLS_PROTOCOLS"),
	}
	if files.CACert != "" {
		return files.DialSource(ctx, addr)
	}
	common, err := files.Common()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: common}).DialContext(ctx, "tcp", addr)
}

// serverFlags are --addr and the flags of who logs in there.
type serverFlags struct{ addr, user, password string }

func (s *serverFlags) add(fs *pflag.FlagSet, addr, usage string) {
	fs.StringVar(&s.addr, "addr", addr, usage)
	fs.StringVar(&s.user, "user", "default", "user to log in as")
	fs.StringVar(&s.password, "password", os.Getenv("KEVY_REQUIREPASS"), "password; default: environment variable KEVY_REQUIREPASS")
	fs.Lookup("password").DefValue = ""
}

// server returns the server that the flags name. A user and a password of their own win over the URL's.
func (s *serverFlags) server(fs *pflag.FlagSet) (serverAddr, error) {
	a, err := parseHostPort(s.addr)
	if err != nil {
		return a, fmt.Errorf("--addr %w", err)
	}
	if a.user == "" || fs.Changed("user") {
		a.user = s.user
	}
	if fs.Changed("password") {
		a.password = s.password
	}
	return a, nil
}

// parseHostPort is parseServer that takes host:port as well.
func parseHostPort(text string) (serverAddr, error) {
	if !isServer(text) {
		if _, _, err := net.SplitHostPort(text); err != nil {
			return serverAddr{}, fmt.Errorf("%s: want host:port or redis://[[user]:password@]host[:port]", text)
		}
		text = "redis://" + text
	}
	return parseServer(text)
}

// connect connects and logs in.
func (a *serverAddr) connect(ctx context.Context) (c *client.Conn, err error) {
	if a.dial == nil {
		c, err = client.Dial(ctx, a.addr)
	} else if nc, derr := a.dial(ctx, a.addr); derr == nil {
		c = client.New(nc)
	} else {
		err = derr
	}
	if err != nil {
		return nil, err
	}
	if err := c.Login(replyLimit, a.user, a.password); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: logging in: %w", a.addr, err)
	}
	return c, nil
}
