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

	"github.com/kevydb/kevy/internal/client"
)

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
		a.dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{}).DialContext(ctx, "tcp", addr)
		}
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
