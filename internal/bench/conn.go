package bench

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// dialLimit bounds connecting, and ioLimit how long a server may be silent.
const (
	dialLimit = 5 * time.Second
	ioLimit   = 2 * time.Minute
)

// conn is a client's connection.
type conn struct {
	*replies
	nc  net.Conn
	out []byte // the request being built
}

func dial(addr string) (*conn, error) { return dialSize(addr, 16<<10) }

// dialSize connects with a read buffer of the given size.
func dialSize(addr string, size int) (*conn, error) {
	nc, err := net.DialTimeout("tcp", addr, dialLimit)
	if err != nil {
		return nil, err
	}
	return &conn{replies: newReplies(nc, size), nc: nc}, nil
}

func (c *conn) close() { _ = c.nc.Close() }

// send writes the request in c.out and empties it.
func (c *conn) send() error {
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

// do runs one command.
func (c *conn) do(args ...string) (any, error) {
	if err := c.nc.SetDeadline(time.Now().Add(ioLimit)); err != nil {
		return nil, err
	}
	c.out = appendCommand(c.out[:0], args...)
	if err := c.send(); err != nil {
		return nil, err
	}
	return c.value(0)
}

// Ask runs one command on a connection of its own.
func Ask(addr string, args ...string) (any, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.do(args...)
}

func appendCommand(out []byte, args ...string) []byte {
	out = append(out, '*')
	out = strconv.AppendInt(out, int64(len(args)), 10)
	out = append(out, '\r', '\n')
	for _, a := range args {
		out = append(out, '$')
		out = strconv.AppendInt(out, int64(len(a)), 10)
		out = append(out, '\r', '\n')
		out = append(out, a...)
		out = append(out, '\r', '\n')
	}
	return out
}

// info returns one value of INFO.
func (c *conn) info(section, field string) (string, error) {
	v, err := c.do("INFO", section)
	if err != nil {
		return "", err
	}
	text, _ := v.(string)
	for line := range strings.SplitSeq(text, "\r\n") {
		if s, ok := strings.CutPrefix(line, field+":"); ok {
			return s, nil
		}
	}
	return "", fmt.Errorf("bench: INFO %s has no %s", section, field)
}
