package bench

import (
	"errors"
	"fmt"
	"io"
)

// ReplyError is an error reply of the server.
type ReplyError string

func (e ReplyError) Error() string { return "server: " + string(e) }

var errReply = errors.New("bench: unreadable reply")

// Bounds of what a server may make this client hold.
const (
	maxReplyBulk  = 640 << 20
	maxReplyDepth = 16
)

// replies reads RESP2 replies. Most are only skipped, so that the client costs little.
type replies struct {
	src    io.Reader
	buf    []byte
	lo, hi int   // unread: buf[lo:hi]
	total  int64 // bytes read from src
}

func newReplies(src io.Reader, size int) *replies { return &replies{src: src, buf: make([]byte, size)} }

// fill reads more; it moves or grows the buffer when that is full.
func (r *replies) fill() error {
	if r.lo == r.hi {
		r.lo, r.hi = 0, 0
	}
	if r.hi == len(r.buf) {
		if r.lo == 0 {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		r.hi = copy(r.buf, r.buf[r.lo:r.hi])
		r.lo = 0
	}
	n, err := r.src.Read(r.buf[r.hi:])
	r.hi += n
	r.total += int64(n)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// line returns the next line without its end; it is valid until the next call.
func (r *replies) line() ([]byte, error) {
	for at := r.lo; ; {
		for ; at < r.hi; at++ {
			if r.buf[at] != '\n' {
				continue
			}
			l := r.buf[r.lo:at]
			r.lo = at + 1
			if n := len(l); n > 1 && l[n-1] == '\r' {
				return l[:n-1], nil
			}
			return nil, fmt.Errorf("%w: line %.40q", errReply, l)
		}
		at -= r.lo
		if err := r.fill(); err != nil {
			return nil, err
		}
		at += r.lo
	}
}

// header reads a line of a kind and an integer: what all but simple strings and errors begin with.
// The text of those two is returned as text.
func (r *replies) header() (kind byte, n int64, text []byte, err error) {
	l, err := r.line()
	if err != nil {
		return 0, 0, nil, err
	}
	kind = l[0]
	if kind == '+' || kind == '-' {
		return kind, 0, l[1:], nil
	}
	i, negative := 1, false
	if len(l) > 1 && l[1] == '-' {
		i, negative = 2, true
	}
	if i == len(l) || len(l) > 20 {
		return 0, 0, nil, fmt.Errorf("%w: line %.40q", errReply, l)
	}
	for ; i < len(l); i++ {
		d := l[i] - '0'
		if d > 9 {
			return 0, 0, nil, fmt.Errorf("%w: line %.40q", errReply, l)
		}
		n = n*10 + int64(d)
	}
	if negative {
		n = -n
	}
	if (kind == '$' || kind == '*') && n > maxReplyBulk {
		return 0, 0, nil, fmt.Errorf("%w: length %d", errReply, n)
	}
	return kind, n, nil, nil
}

// discard skips n bytes.
func (r *replies) discard(n int) error {
	for n > r.hi-r.lo {
		n -= r.hi - r.lo
		r.lo = r.hi
		if err := r.fill(); err != nil {
			return err
		}
	}
	r.lo += n
	return nil
}

// take returns the next n bytes; they are valid until the next call.
func (r *replies) take(n int) ([]byte, error) {
	for r.hi-r.lo < n {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	b := r.buf[r.lo : r.lo+n]
	r.lo += n
	return b, nil
}

// skip passes over one reply; an error reply, also inside an array, is returned as ReplyError.
func (r *replies) skip() error {
	for left := int64(1); left > 0; left-- {
		kind, n, text, err := r.header()
		switch {
		case err != nil:
			return err
		case kind == '$' && n >= 0:
			err = r.discard(int(n) + 2)
		case kind == '*' && n > 0:
			left += n
		case kind == '-':
			err = ReplyError(text)
		case kind != '$' && kind != '*' && kind != ':' && kind != '+':
			err = fmt.Errorf("%w: kind %q", errReply, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value reads one reply: string, int64, nil or []any. An error reply is the error.
func (r *replies) value(depth int) (any, error) {
	kind, n, text, err := r.header()
	switch {
	case err != nil:
		return nil, err
	case depth > maxReplyDepth:
		return nil, fmt.Errorf("%w: too deep", errReply)
	case kind == '+':
		return string(text), nil
	case kind == '-':
		return nil, ReplyError(text)
	case kind == ':':
		return n, nil
	case kind != '$' && kind != '*':
		return nil, fmt.Errorf("%w: kind %q", errReply, kind)
	case n < 0:
		return nil, nil
	case kind == '$':
		b, err := r.take(int(n) + 2)
		if err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	}
	var out []any // grows with what arrives, not with what is announced
	for range n {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
