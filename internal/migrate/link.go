package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/client"
)

const (
	// replyLimit bounds a reply of the handshake.
	replyLimit = 10 * time.Second
	ackEvery   = time.Second
	markBytes  = 40
)

// link is a connection on which a server sends its data and its commands, as to a replica.
type link struct {
	nc    net.Conn
	in    *bufio.Reader
	words []string // the answer to PSYNC
}

// openLink asks for the stream over a connection that is logged in: what follows the offset, or everything if replid is "?". host and port are
// where this replica is reached; an empty host is the one it comes from. The connection counts as lost after a silence.
func openLink(c *client.Conn, silence time.Duration, host, port, replid string, offset int64) (*link, error) {
	nc, in, err := c.Detach(silence)
	if err != nil {
		return nil, err
	}
	hello := [][]string{{"PING"}, {"REPLCONF", "listening-port", port}}
	if host != "" {
		hello = append(hello, []string{"REPLCONF", "ip-address", host})
	}
	for _, cmd := range append(hello, []string{"REPLCONF", "capa", "eof", "capa", "psync2"}) {
		if _, err := c.Do(replyLimit, cmd...); err != nil {
			return nil, fmt.Errorf("%s: %w", cmd[0], err)
		}
	}
	if err := c.Send(replyLimit, []byte("PSYNC"), []byte(replid), strconv.AppendInt(nil, offset, 10)); err != nil {
		return nil, err
	}
	line, err := fullLine(in)
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(line, "+")
	words := strings.Fields(text)
	if !ok || len(words) == 0 {
		return nil, fmt.Errorf("PSYNC: %.200q", line)
	}
	return &link{nc, in, words}, nil
}

// fullLine reads a line, passing over empty ones: the source sends them while what it is to send is being made.
func fullLine(in *bufio.Reader) (string, error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			return line, nil
		}
	}
}

// copy takes the server's data with p, and returns where the commands that follow begin.
func (l *link) copy(p *reading) (replid string, offset int64, err error) {
	if len(l.words) != 3 || l.words[0] != "FULLRESYNC" {
		return "", 0, fmt.Errorf("PSYNC: %q", l.words)
	}
	if offset, err = strconv.ParseInt(l.words[2], 10, 64); err != nil {
		return "", 0, fmt.Errorf("PSYNC: %q", l.words)
	}
	size, mark, err := announced(l.in)
	if err != nil {
		return "", 0, err
	}
	p.o.Meter.Begin("copying", uint64(size)) //nolint:gosec // not negative
	n, err := p.rdb(l.in)
	switch {
	case err != nil:
	case mark != "":
		end := make([]byte, markBytes)
		if _, err = io.ReadFull(l.in, end); err == nil && string(end) != mark {
			err = fmt.Errorf("the copy does not end with its mark after %d bytes", n)
		}
	case n != size:
		err = fmt.Errorf("the copy has %d bytes, %d were announced", n, size)
	}
	return l.words[1], offset, err
}

// announced reads how a copy is sent: its length, or the mark at its end.
func announced(in *bufio.Reader) (size int64, mark string, err error) {
	line, err := fullLine(in)
	if err != nil {
		return 0, "", err
	}
	if m, ok := strings.CutPrefix(line, "$EOF:"); ok && len(m) == markBytes {
		return 0, m, nil
	}
	n, ok := strings.CutPrefix(line, "$")
	size, err = strconv.ParseInt(n, 10, 64)
	if !ok || err != nil || size < 0 {
		return 0, "", fmt.Errorf("no copy but %.100q", line)
	}
	return size, "", nil
}

// settleError is why what was applied is not safe: whether it will be, nobody knows, so nothing more is applied.
type settleError struct{ err error }

// Error implements error.
func (e *settleError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *settleError) Unwrap() error { return e.err }

// isLost reports whether an error is that of a connection alone, not of what came over it or became of that. (Errors of the system, a disk's too, are
// net.Errors.)
func isLost(err error) bool {
	if errors.As(err, new(*settleError)) {
		return false
	}
	return errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// tracker applies the commands that come over a link.
type tracker struct {
	*link
	s  *stream
	to target
	// offset is the server's up to which everything is applied and settled. It is what is acknowledged. When run has returned, applied is the one up to
	// which everything is applied.
	offset  *atomic.Int64
	applied int64
	// settled is called when that has moved, or would have; rest when nothing more has come, or much. An error of it ends the work.
	settled func()
	rest    func(applied int64) error
}

// run applies until something fails or ctx ends. What is half taken then is dropped.
func (t *tracker) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = t.nc.Close() })
	defer stop()
	a := &acker{nc: t.nc, offset: t.offset}
	defer a.run()()
	q := newRequests(t.in)
	began := t.offset.Load()
	t.applied = began
	settle := func() error {
		if err := t.to.settle(); err != nil {
			return &settleError{err}
		}
		t.offset.Store(t.applied)
		t.settled()
		return nil
	}
	rest := func() error {
		if err := settle(); err != nil {
			return err
		}
		return t.rest(t.applied)
	}
	q.idle = rest
	for n := 1; ; n++ {
		args, err := q.next()
		ack := err == nil && isGetAck(args)
		if err == nil {
			if err = t.s.take(args); err != nil {
				err = fmt.Errorf("offset %d: the command that follows: %w", t.applied, err)
			}
		}
		if err == nil && t.s.atRest() {
			t.applied = began + q.at()
		}
		if err == nil && (ack || n%settleEvery == 0) {
			err = rest()
		}
		if err == nil && ack {
			err = a.send()
		}
		if err != nil {
			t.s.rewind()
			return errors.Join(err, settle())
		}
	}
}

// isGetAck reports whether a command asks for an acknowledgement.
func isGetAck(args [][]byte) bool {
	return len(args) > 1 && strings.EqualFold(string(args[0]), "REPLCONF") && strings.EqualFold(string(args[1]), "GETACK")
}

// acker tells the source how far it is followed.
type acker struct {
	mu     sync.Mutex
	nc     net.Conn
	offset *atomic.Int64
}

// run acknowledges every second until stop is called.
func (a *acker) run() (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		every := time.NewTicker(ackEvery)
		defer every.Stop()
		for {
			_ = a.send() // the reader notices a lost connection
			select {
			case <-quit:
				return
			case <-every.C:
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

func (a *acker) send() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := strconv.FormatInt(a.offset.Load(), 10)
	if err := a.nc.SetWriteDeadline(time.Now().Add(replyLimit)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.nc, "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$%d\r\n%s\r\n", len(at), at)
	return err
}
