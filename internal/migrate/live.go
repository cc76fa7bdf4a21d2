package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/client"
)

// Source is a running server of Redis or Valkey, followed as its replica would. Its methods may be called while Run runs.
type Source struct {
	Addr           string // host:port
	User, Password string
	// Dial connects; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	offset, commands atomic.Int64
	resumed          atomic.Int64
}

// Status tells how far the source has been followed: its replication offset up to which everything is applied, and how many
// commands that were since the base. Resumed counts the times the connection was lost and taken up again.
func (s *Source) Status() (offset, commands, resumed int64) {
	return s.offset.Load(), s.commands.Load(), s.resumed.Load()
}

// ErrLost is the class of a source that can't be followed any more: it has not kept what comes next, or its history is another one.
var ErrLost = errors.New("the server can't go on from where the import is")

const (
	// replyLimit bounds a reply of the handshake; silence how long the source may say nothing: it pings every 10 s.
	replyLimit = 10 * time.Second
	silence    = 60 * time.Second
	ackEvery   = time.Second
	firstPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
	markBytes  = 40
)

// live follows a source.
type live struct {
	o      *Options
	src    *Source
	r      *Result
	to     *dir
	s      stream
	replid string
	done   int64 // offset at which it is enough, -1: not known yet
}

func runLive(ctx context.Context, o *Options, r *Result) error {
	if o.To == "" || o.DryRun {
		return errors.New("a running server is imported into a new directory (--to)")
	}
	to, err := newDir(o)
	if err != nil {
		return err
	}
	l := &live{o: o, src: o.From, r: r, to: to, done: -1, s: stream{to: to, db: o.DB, chosen: o.Chosen}}
	nc, in, err := l.base(ctx)
	if err == nil {
		stop := (&acker{nc: nc, src: l.src}).run() // or it is taken for dead meanwhile
		err = to.based(o.Follow)
		stop()
	}
	if err != nil {
		if nc != nil {
			_ = nc.Close()
		}
		return errors.Join(fmt.Errorf("%s: %w", o.From.Addr, err), to.abandon())
	}
	r.Replid, r.Offset = l.replid, l.src.offset.Load()
	if o.Based != nil {
		o.Based(r)
	}
	err = l.follow(ctx, nc, in)
	if ctx.Err() != nil && o.Follow {
		err = nil
	}
	r.Replid, r.Offset = l.replid, l.src.offset.Load()
	r.Commands, r.Skipped = l.s.applied, l.s.skipped
	if err != nil {
		if !o.Follow {
			return errors.Join(fmt.Errorf("%s: %w", o.From.Addr, err), to.abandon())
		}
		err = fmt.Errorf("%s: %w; %s is as the server was at its offset %d", o.From.Addr, err, o.To, r.Offset)
	}
	return errors.Join(err, to.finish(r))
}

// patient is a connection that fails when nothing comes for long.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// connect asks for the stream: what follows the offset, or everything if replid is "?". It returns the words of the answer.
func (l *live) connect(ctx context.Context, replid string, offset int64) (net.Conn, *bufio.Reader, []string, error) {
	c, err := l.src.client(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	nc, in, err := c.Detach()
	var words []string
	if err == nil {
		words, err = psync(c, in, replid, offset)
	}
	if err != nil {
		c.Close()
		return nil, nil, nil, err
	}
	return nc, in, words, nil
}

func psync(c *client.Conn, in *bufio.Reader, replid string, offset int64) ([]string, error) {
	for _, cmd := range [][]string{
		{"PING"}, {"REPLCONF", "listening-port", "0"}, {"REPLCONF", "capa", "eof", "capa", "psync2"},
	} {
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
	if !ok {
		return nil, fmt.Errorf("PSYNC: %.200q", line)
	}
	return strings.Fields(text), nil
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

// client connects and logs in.
func (s *Source) client(ctx context.Context) (*client.Conn, error) {
	dial := s.Dial
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: replyLimit}).DialContext(ctx, "tcp", addr)
		}
	}
	nc, err := dial(ctx, s.Addr)
	if err != nil {
		return nil, err
	}
	c := client.New(patient{nc})
	if err := c.Login(replyLimit, s.User, s.Password); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// base makes a full copy and returns the connection on which the commands since then follow.
func (l *live) base(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	nc, in, words, err := l.connect(ctx, "?", -1)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	if len(words) != 3 || words[0] != "FULLRESYNC" {
		return nc, in, fmt.Errorf("PSYNC: %q", words)
	}
	offset, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return nc, in, fmt.Errorf("PSYNC: %q", words)
	}
	l.replid = words[1]
	size, mark, err := announced(in)
	if err != nil {
		return nc, in, err
	}
	l.o.Meter.Begin("copying", uint64(size)) //nolint:gosec // not negative
	p := &reading{ctx: ctx, o: l.o, r: l.r, to: l.to}
	n, err := p.rdb(in)
	switch {
	case err != nil:
	case mark != "":
		end := make([]byte, markBytes)
		if _, err = io.ReadFull(in, end); err == nil && string(end) != mark {
			err = fmt.Errorf("the copy does not end with its mark after %d bytes", n)
		}
	case n != size:
		err = fmt.Errorf("the copy has %d bytes, %d were announced", n, size)
	}
	if err == nil && len(l.r.Others) > 0 && !l.o.Chosen {
		for name := range l.r.Others {
			err = fmt.Errorf("there are %d keys in database %s: kevy has one database; --db N chooses which one is taken", l.r.Others[name], name)
		}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	l.src.offset.Store(offset)
	return nc, in, err
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

// follow applies the commands, over as many connections as it takes.
func (l *live) follow(ctx context.Context, nc net.Conn, in *bufio.Reader) error {
	pause := firstPause
	for {
		if nc != nil {
			at := l.src.offset.Load()
			err := l.commands(ctx, nc, in)
			_ = nc.Close()
			switch {
			case err == nil || ctx.Err() != nil:
				return err
			case !errors.As(err, new(net.Error)) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
				return err
			}
			l.o.Logger.Warn("the connection is lost", "server", l.src.Addr, "offset", l.src.offset.Load(), "error", err)
			l.s.rewind()
			if l.src.offset.Load() > at {
				pause = firstPause
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // jitter
		}
		pause = min(2*pause, longPause)
		var err error
		if nc, in, err = l.resume(ctx); errors.Is(err, ErrLost) {
			return err
		} else if err != nil {
			l.o.Logger.Warn("no connection", "server", l.src.Addr, "error", err)
			nc = nil
		}
	}
}

// resume takes the stream up where it ended.
func (l *live) resume(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	at := l.src.offset.Load()
	nc, in, words, err := l.connect(ctx, l.replid, at+1)
	if err != nil {
		return nil, nil, err
	}
	if len(words) == 0 || words[0] != "CONTINUE" {
		_ = nc.Close()
		return nil, nil, fmt.Errorf("%w: PSYNC %s %d is answered with %q (a larger repl-backlog-size keeps more)", ErrLost, l.replid, at+1, words)
	}
	if len(words) > 1 {
		l.replid = words[1]
	}
	l.src.resumed.Add(1)
	return nc, in, nil
}

// commands applies what comes on one connection until it is enough, which is no error.
func (l *live) commands(ctx context.Context, nc net.Conn, in *bufio.Reader) error {
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	a := &acker{nc: nc, src: l.src}
	defer a.run()()
	q := newRequests(in)
	began := l.src.offset.Load()
	applied := began
	settle := func() error {
		if err := l.to.settle(); err != nil {
			return err
		}
		l.src.offset.Store(applied)
		l.src.commands.Store(int64(l.s.applied)) //nolint:gosec // a count
		return nil
	}
	rest := func() error {
		if err := settle(); err != nil {
			return err
		}
		return l.enough(ctx, applied)
	}
	q.idle = rest
	for n := 1; ; n++ {
		args, err := q.next()
		ack := err == nil && len(args) > 1 && strings.EqualFold(string(args[0]), "REPLCONF") && strings.EqualFold(string(args[1]), "GETACK")
		if err == nil {
			if err = l.s.take(args); err != nil {
				err = fmt.Errorf("offset %d: the command that follows: %w", applied, err)
			}
		}
		if err == nil && l.s.atRest() {
			applied = began + q.at()
		}
		if err == nil && (ack || n%settleEvery == 0) {
			err = rest()
		}
		if err == nil && ack {
			err = a.send()
		}
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return errors.Join(err, settle())
		}
	}
}

var errEnough = errors.New("enough")

// enough ends an import that does not follow, once it is where the source was when the base was complete.
func (l *live) enough(ctx context.Context, applied int64) error {
	if l.o.Follow {
		return nil
	}
	if l.done < 0 {
		var err error
		if l.done, err = l.src.Tail(ctx); err != nil {
			return err
		}
	}
	if applied >= l.done {
		return errEnough
	}
	return nil
}

// Tail asks the source for its replication offset.
func (s *Source) Tail(ctx context.Context) (int64, error) {
	c, err := s.client(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	v, err := c.Do(replyLimit, "INFO", "replication")
	if err != nil {
		return 0, err
	}
	text, _ := v.(string)
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "master_repl_offset:"); ok {
			return strconv.ParseInt(n, 10, 64)
		}
	}
	return 0, errors.New("INFO replication has no master_repl_offset")
}

// acker tells the source how far the import is.
type acker struct {
	mu  sync.Mutex
	nc  net.Conn
	src *Source
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
	at := strconv.FormatInt(a.src.offset.Load(), 10)
	if err := a.nc.SetWriteDeadline(time.Now().Add(replyLimit)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.nc, "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$%d\r\n%s\r\n", len(at), at)
	return err
}
