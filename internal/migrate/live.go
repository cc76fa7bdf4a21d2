package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
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
	silence    = 60 * time.Second // how long the source may say nothing: it pings every 10 s
	firstPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
)

// live follows a source.
type live struct {
	o      *Options
	src    *Source
	r      *Result
	to     *dir
	s      stream
	replid string
	// applied is the offset up to which everything is in to, safe or not.
	applied int64
	done    int64 // offset at which it is enough, -1: not known yet
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
	k, err := l.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", o.From.Addr, err)
	}
	r.Replid, r.Offset = l.replid, l.src.offset.Load()
	if o.Based != nil {
		o.Based(r)
	}
	err = l.follow(ctx, k)
	if ctx.Err() != nil && o.Follow {
		err = nil
	}
	r.Replid, r.Offset = l.replid, l.applied
	r.Commands, r.Skipped = l.s.applied, l.s.skipped
	if err != nil {
		if !o.Follow {
			return errors.Join(fmt.Errorf("%s: %w", o.From.Addr, err), to.abandon())
		}
		err = fmt.Errorf("%s: %w; %s is as the server was at its offset %d", o.From.Addr, err, o.To, r.Offset)
	}
	var at position
	if o.Follow {
		at = position{Replid: l.replid, Offset: r.Offset, Taken: o.DB, DB: l.s.rested}
	}
	return errors.Join(err, to.finish(r, at))
}

// begin brings the directory to a place in the stream: by a copy, which leaves nothing behind when it fails, or it is at one already. Then there is no
// link yet.
func (l *live) begin(ctx context.Context) (*link, error) {
	if p := &l.to.from; p.Replid != "" {
		l.replid, l.s.current, l.s.rested = p.Replid, p.DB, p.DB
		l.src.offset.Store(p.Offset)
		l.applied = p.Offset
		l.to.follow()
		return nil, nil //nolint:nilnil // follow makes one
	}
	k, err := l.base(ctx)
	if err == nil {
		stop := (&acker{nc: k.nc, offset: &l.src.offset}).run() // or it is taken for dead meanwhile
		if err = l.to.based(); err == nil && l.o.Follow {
			l.to.follow()
		}
		stop()
	}
	if err != nil && k != nil {
		_ = k.nc.Close()
	}
	if err != nil {
		err = errors.Join(err, l.to.abandon())
	}
	return k, err
}

// connect asks for the stream: what follows the offset, or everything if replid is "?".
func (l *live) connect(ctx context.Context, replid string, offset int64) (*link, error) {
	c, err := l.src.client(ctx)
	if err != nil {
		return nil, err
	}
	k, err := openLink(c, silence, "", "0", replid, offset)
	if err != nil {
		c.Close()
	}
	return k, err
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
	c := client.New(nc)
	if err := c.Login(replyLimit, s.User, s.Password); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// base makes a full copy and returns the link on which the commands since then follow.
func (l *live) base(ctx context.Context) (*link, error) {
	k, err := l.connect(ctx, "?", -1)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = k.nc.Close() })
	defer stop()
	replid, offset, err := k.copy(&reading{ctx: ctx, o: l.o, r: l.r, to: l.to})
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	l.replid, l.applied = replid, offset
	l.src.offset.Store(offset)
	return k, err
}

// follow applies the commands, over as many connections as it takes.
func (l *live) follow(ctx context.Context, k *link) error {
	pause := firstPause
	for {
		if k != nil {
			at := l.src.offset.Load()
			err := l.commands(ctx, k)
			_ = k.nc.Close()
			if err == nil || ctx.Err() != nil || !isLost(err) {
				return err
			}
			l.o.Logger.Warn("the connection is lost", "server", l.src.Addr, "offset", l.src.offset.Load(), "error", err)
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
		if k, err = l.resume(ctx); errors.Is(err, ErrLost) {
			return err
		} else if err != nil {
			l.o.Logger.Warn("no connection", "server", l.src.Addr, "error", err)
			k = nil
		}
	}
}

// resume takes the stream up where it ended.
func (l *live) resume(ctx context.Context) (*link, error) {
	at := l.src.offset.Load()
	k, err := l.connect(ctx, l.replid, at+1)
	if err != nil {
		return nil, err
	}
	if k.words[0] != "CONTINUE" {
		_ = k.nc.Close()
		return nil, fmt.Errorf("%w: PSYNC %s %d is answered with %q (a larger repl-backlog-size keeps more)", ErrLost, l.replid, at+1, k.words)
	}
	if len(k.words) > 1 {
		l.replid = k.words[1]
	}
	l.src.resumed.Add(1)
	return k, nil
}

// commands applies what comes on one link until it is enough, which is no error.
func (l *live) commands(ctx context.Context, k *link) error {
	t := &tracker{
		link: k, s: &l.s, to: l.to, offset: &l.src.offset,
		settled: func() { l.src.commands.Store(int64(l.s.applied)) }, //nolint:gosec // a count
		rest:    func(applied int64) error { return l.enough(ctx, applied) },
	}
	err := t.run(ctx)
	l.applied = t.applied
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
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
