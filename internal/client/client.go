// Package client is a small RESP2 client: what kevy's own tools and the Mirror need to talk to a server.
package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

const (
	// maxBulk bounds what one string of a server may make this client hold: the largest payload of a frame.
	maxBulk = 2000 << 20
	// eagerBulk is how much is allocated because a server has announced it; more only as it arrives.
	eagerBulk   = 1 << 20
	maxDepth    = 8
	dialTimeout = 5 * time.Second
)

// Error is an error reply: the code first.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// ErrProtocol is the class of replies that cannot be read; the connection is of no use any more.
var ErrProtocol = errors.New("client: unreadable reply")

// Conn is a connection. It is not safe for concurrent use, except Close.
type Conn struct {
	nc  *patient
	in  *bufio.Reader
	out []byte
}

// patient is a connection whose reads fail when nothing comes for long; zero: they do not.
type patient struct {
	net.Conn
	silence time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	if p.silence > 0 {
		if err := p.SetReadDeadline(time.Now().Add(p.silence)); err != nil {
			return 0, err
		}
	}
	return p.Conn.Read(b)
}

// New returns a connection over nc.
func New(nc net.Conn) *Conn {
	p := &patient{Conn: nc}
	return &Conn{nc: p, in: bufio.NewReaderSize(p, 64<<10)}
}

// DialTCP connects to host:port.
func DialTCP(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "tcp", addr)
}

// DialFrom is DialTCP from an address of this machine; if from is empty or can't be had, from any.
func DialFrom(ctx context.Context, from, addr string) (net.Conn, error) {
	if from == "" {
		return DialTCP(ctx, addr)
	}
	local, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(from, "0"))
	if err != nil {
		return DialTCP(ctx, addr)
	}
	d := net.Dialer{Timeout: dialTimeout, LocalAddr: local}
	nc, err := d.DialContext(ctx, "tcp", addr)
	var at *os.SyscallError
	var ne net.Error
	if err == nil || errors.As(err, &at) && at.Syscall == "connect" || errors.As(err, &ne) && ne.Timeout() || ctx.Err() != nil {
		return nc, err
	}
	return DialTCP(ctx, addr)
}

// Dial connects to host:port.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	nc, err := DialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	return New(nc), nil
}

// Login logs a user in; without a password it does nothing. An empty name is the user "default".
func (c *Conn) Login(limit time.Duration, user, password string) error {
	if password == "" {
		return nil
	}
	if user == "" {
		user = "default"
	}
	_, err := c.Do(limit, "AUTH", user, password)
	return err
}

// Close closes the connection; a call that waits for a reply fails.
func (c *Conn) Close() { _ = c.nc.Close() }

// Do sends one command and reads its reply: string, int64, nil or []any. An error reply is
// returned as an Error. A reply that takes longer than the limit is an error; 0 is no limit.
func (c *Conn) Do(limit time.Duration, args ...string) (any, error) {
	argv := make([][]byte, len(args))
	for i, a := range args {
		argv[i] = []byte(a)
	}
	if err := c.Send(limit, argv...); err != nil {
		return nil, err
	}
	v, err := c.read(0)
	if err != nil {
		return nil, err
	}
	if e, ok := v.(Error); ok {
		return nil, e
	}
	return v, nil
}

// Send sends one command, whose reply must have been read within the limit (0: none): with Array, Uint and Bulk.
func (c *Conn) Send(limit time.Duration, args ...[]byte) error {
	c.Queue(args...)
	return c.Flush(limit)
}

// Flush sends what was queued; the replies must have been read within the limit (0: none), one for each with Skip or the like.
func (c *Conn) Flush(limit time.Duration) error {
	deadline := time.Time{}
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	if err := c.nc.SetDeadline(deadline); err != nil {
		return err
	}
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Queue adds a command to what the next Flush sends. Arguments are not kept.
func (c *Conn) Queue(args ...[]byte) {
	c.out = fmt.Appendf(c.out, "*%d\r\n", len(args))
	for _, a := range args {
		c.out = fmt.Appendf(c.out, "$%d\r\n", len(a))
		c.out = append(append(c.out, a...), "\r\n"...)
	}
}

// Detach gives the connection and what was read from it to the caller, for a protocol that goes on otherwise: a read fails when nothing comes for
// as long as silence; no other deadline is set.
func (c *Conn) Detach(silence time.Duration) (net.Conn, *bufio.Reader, error) {
	c.nc.silence = silence
	return c.nc, c.in, c.nc.SetDeadline(time.Time{})
}

// line reads a line: its first byte, and the rest, valid until the next read.
func (c *Conn) line() (kind byte, text []byte, err error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && (len(line) < 3 || line[len(line)-2] != '\r'):
		return 0, nil, fmt.Errorf("%w: %.40q", ErrProtocol, line)
	case err != nil:
		return 0, nil, unexpected(err)
	}
	return line[0], line[1 : len(line)-2], nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// number reads a line of the given kind; an error reply in its place is returned as an Error.
func (c *Conn) number(want byte) (int64, error) {
	kind, text, err := c.line()
	switch {
	case err != nil:
		return 0, err
	case kind == '-':
		return 0, Error(text)
	case kind != want:
		return 0, fmt.Errorf("%w: %q where %q should be", ErrProtocol, kind, want)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: number %.40q", ErrProtocol, text)
	}
	return n, nil
}

// Array reads the beginning of an array and returns how many elements follow.
func (c *Conn) Array() (int, error) {
	n, err := c.number('*')
	if err == nil && (n < 0 || n > 1<<31) {
		err = fmt.Errorf("%w: an array of %d", ErrProtocol, n)
	}
	return int(n), err
}

// Tuple reads the beginning of an array of n elements.
func (c *Conn) Tuple(n int) error {
	got, err := c.Array()
	if err == nil && got != n {
		err = fmt.Errorf("%w: an array of %d where one of %d should be", ErrProtocol, got, n)
	}
	return err
}

// Uint reads a number that is not negative.
func (c *Conn) Uint() (uint64, error) {
	n, err := c.number(':')
	if err == nil && n < 0 {
		err = fmt.Errorf("%w: number %d", ErrProtocol, n)
	}
	return uint64(n), err //nolint:gosec // not negative
}

// Bulk reads a string. It belongs to the caller.
func (c *Conn) Bulk() ([]byte, error) { return c.BulkInto(nil) }

// BulkInto is Bulk, into the memory of b if that has room.
func (c *Conn) BulkInto(b []byte) ([]byte, error) {
	n, err := c.number('$')
	if err != nil {
		return nil, err
	}
	return c.bulk(n, b)
}

func (c *Conn) bulk(n int64, b []byte) ([]byte, error) {
	if n < 0 || n > maxBulk {
		return nil, fmt.Errorf("%w: a string of %d", ErrProtocol, n)
	}
	if b = b[:0]; int64(cap(b)) < n+2 {
		b = make([]byte, 0, min(n, eagerBulk)+2)
	}
	for want := int(n) + 2; len(b) < want; {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		m, err := io.ReadFull(c.in, b[len(b):min(cap(b), want)])
		if b = b[:len(b)+m]; err != nil {
			return nil, unexpected(err)
		}
	}
	if string(b[n:]) != "\r\n" {
		return nil, fmt.Errorf("%w: a string of the wrong length", ErrProtocol)
	}
	return b[:n], nil
}

// Skip reads any reply and returns it; see Do.
func (c *Conn) Skip() (any, error) { return c.read(0) }

// read reads any reply; an error reply is an Error among the values.
func (c *Conn) read(depth int) (any, error) {
	kind, text, err := c.line()
	if err != nil {
		return nil, err
	}
	switch kind {
	case '+':
		return string(text), nil
	case '-':
		return Error(text), nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil || depth > maxDepth:
		return nil, fmt.Errorf("%w: %.40q", ErrProtocol, text)
	case kind == ':':
		return n, nil
	case n == -1:
		return nil, nil
	case kind == '$':
		b, err := c.bulk(n, nil)
		return string(b), err
	case kind != '*' || n < 0:
		return nil, fmt.Errorf("%w: %q", ErrProtocol, kind)
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
