package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// ErrProtocol is the class of replies that no server may send.
var ErrProtocol = errors.New("wire: protocol error")

// Conn is one client connection. It is not safe for concurrent use.
type Conn struct {
	// Timeout bounds each reply; 10 seconds if zero.
	Timeout time.Duration

	nc  net.Conn
	in  *bufio.Reader
	out []byte
}

// Dial connects to addr over TCP, or over a unix socket if addr begins with "/".
func Dial(addr string) (*Conn, error) {
	network := "tcp"
	if addr != "" && addr[0] == '/' {
		network = "unix"
	}
	nc, err := net.DialTimeout(network, addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{nc: nc, in: bufio.NewReaderSize(nc, 64<<10)}, nil
}

// IsConnError reports whether err is the connection's end, or a reply that did not come in time.
func IsConnError(err error) bool {
	var ne net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &ne)
}

// Close closes the connection.
func (c *Conn) Close() { _ = c.nc.Close() }

// AppendCommand appends args as a RESP request to dst.
func AppendCommand(dst []byte, args [][]byte) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n", len(a))
		dst = append(dst, a...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// Bytes turns strings into the argument form.
func Bytes(args ...string) [][]byte {
	out := make([][]byte, len(args))
	for i, a := range args {
		out[i] = []byte(a)
	}
	return out
}

// Queue adds a command to what the next Flush sends.
func (c *Conn) Queue(args [][]byte) { c.out = AppendCommand(c.out, args) }

// QueueRaw adds bytes to what the next Flush sends.
func (c *Conn) QueueRaw(b []byte) { c.out = append(c.out, b...) }

// Flush sends what was queued, in one write.
func (c *Conn) Flush() error {
	out := c.out
	c.out = c.out[:0]
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.timeout())); err != nil {
		return err
	}
	_, err := c.nc.Write(out)
	return err
}

// Do sends one command and returns its reply. Error replies are replies, not errors.
func (c *Conn) Do(args ...string) (Reply, error) { return c.DoBytes(Bytes(args...)) }

// DoBytes is Do for byte arguments.
func (c *Conn) DoBytes(args [][]byte) (Reply, error) {
	c.Queue(args)
	if err := c.Flush(); err != nil {
		return Reply{}, err
	}
	return c.Read()
}

// Must is Do where an error reply is an error too.
func (c *Conn) Must(args ...string) (Reply, error) {
	r, err := c.Do(args...)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", QuoteArgs(Bytes(args...)), err)
	}
	return r, nil
}

// Pipeline sends the commands in one write and reads one reply for each.
func (c *Conn) Pipeline(cmds [][][]byte) ([]Reply, error) {
	for _, cmd := range cmds {
		c.Queue(cmd)
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	replies := make([]Reply, 0, len(cmds))
	for range cmds {
		r, err := c.Read()
		if err != nil {
			return replies, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

// ReadAll reads until the server closes the connection or nothing comes for the given time; closed
// says which.
func (c *Conn) ReadAll(quiet time.Duration) (data []byte, closed bool, err error) {
	var buf [4096]byte
	for {
		if err := c.nc.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return data, false, err
		}
		n, err := c.in.Read(buf[:])
		data = append(data, buf[:n]...)
		var ne net.Error
		switch {
		case err == nil:
		case errors.As(err, &ne) && ne.Timeout():
			return data, false, nil
		default: // io.EOF, or a reset where the server had unread bytes
			return data, true, nil
		}
	}
}

func (c *Conn) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return 10 * time.Second
}

// Read reads one reply.
func (c *Conn) Read() (Reply, error) {
	if err := c.nc.SetReadDeadline(time.Now().Add(c.timeout())); err != nil {
		return Reply{}, err
	}
	return ReadReply(c.in)
}

// Parse reads every reply in b.
func Parse(b []byte) ([]Reply, error) {
	in := bufio.NewReader(bytes.NewReader(b))
	var out []Reply
	for {
		if _, err := in.Peek(1); err != nil {
			return out, nil
		}
		r, err := ReadReply(in)
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
}

// ReadReply reads one reply from in.
func ReadReply(in *bufio.Reader) (Reply, error) {
	line, err := readLine(in)
	if err != nil {
		return Reply{}, err
	}
	r := Reply{Kind: line[0], Raw: line, Str: line[1 : len(line)-2]}
	switch r.Kind {
	case '+', '-', ':', ',', '#', '(':
		return r, nil
	case '_':
		r.Null = true
		return r, nil
	case '$', '=', '!':
		return readBulk(in, r)
	case '*', '~', '>', '%':
		return readAggregate(in, r)
	}
	return r, fmt.Errorf("%w: reply begins with %q", ErrProtocol, line)
}

func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: line %q", ErrProtocol, line)
	}
	return line, nil
}

func readBulk(in *bufio.Reader, r Reply) (Reply, error) {
	n, err := strconv.Atoi(string(r.Str))
	if err != nil || n < -1 || n > 1<<30 {
		return r, fmt.Errorf("%w: length %q", ErrProtocol, r.Str)
	}
	if n == -1 {
		r.Null, r.Str = true, nil
		return r, nil
	}
	head := len(r.Raw)
	r.Raw = append(r.Raw, make([]byte, n+2)...)
	if _, err := io.ReadFull(in, r.Raw[head:]); err != nil {
		return r, err
	}
	if string(r.Raw[head+n:]) != "\r\n" {
		return r, fmt.Errorf("%w: bulk string does not end where it should", ErrProtocol)
	}
	r.Str = r.Raw[head : head+n]
	if r.Kind == '=' && n >= 4 {
		r.Str = r.Str[4:]
	}
	return r, nil
}

func readAggregate(in *bufio.Reader, r Reply) (Reply, error) {
	n, err := strconv.Atoi(string(r.Str))
	if err != nil || n < -1 || n > 1<<28 {
		return r, fmt.Errorf("%w: length %q", ErrProtocol, r.Str)
	}
	r.Str = nil
	if n == -1 {
		r.Null = true
		return r, nil
	}
	if r.Kind == '%' {
		n *= 2
	}
	for range n {
		e, err := ReadReply(in)
		if err != nil {
			return r, err
		}
		r.Elems = append(r.Elems, e)
		r.Raw = append(r.Raw, e.Raw...)
	}
	return r, nil
}
