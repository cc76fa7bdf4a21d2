package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// maxReply bounds what one bulk string of a server may make this client hold.
const maxReply = 640 << 20

// replyError is an error reply of the server.
type replyError string

func (e replyError) Error() string { return string(e) }

// respConn is a connection to a server that speaks RESP2.
type respConn struct {
	nc net.Conn
	in *bufio.Reader
}

func dialRESP(addr string) (*respConn, error) {
	nc, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &respConn{nc: nc, in: bufio.NewReaderSize(nc, 64<<10)}, nil
}

func (c *respConn) close() { _ = c.nc.Close() }

// do sends one command and reads its reply: string, int64, nil or []any. An error reply is
// returned as replyError. A reply that takes longer than the limit is an error; 0 is no limit.
func (c *respConn) do(limit time.Duration, args ...string) (any, error) {
	deadline := time.Time{}
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	if err := c.nc.SetDeadline(deadline); err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.nc.Write(out); err != nil {
		return nil, err
	}
	v, err := c.read(0)
	if err != nil {
		return nil, err
	}
	if e, ok := v.(replyError); ok {
		return nil, e
	}
	return v, nil
}

func (c *respConn) read(depth int) (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || depth > 8 {
		return nil, fmt.Errorf("unreadable reply %q", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return text, nil
	case '-':
		return replyError(text), nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > maxReply {
		return nil, fmt.Errorf("unreadable reply %q", line)
	}
	switch {
	case n < 0:
		return nil, nil
	case kind == '$':
		return c.bulk(n)
	case kind != '*':
		return nil, fmt.Errorf("unreadable reply %q", line)
	}
	var out []any // grows with what arrives, not with what is announced
	for range n {
		v, err := c.read(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (c *respConn) bulk(n int) (any, error) {
	b := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return nil, err
	}
	if string(b[n:]) != "\r\n" {
		return nil, errors.New("unreadable reply: a string of the wrong length")
	}
	return string(b[:n]), nil
}
