package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/log"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
	linkPause  = time.Second / 2 // at most, while the source has no link itself
	// refusedPause is the pause after ErrRefused.
	refusedPause = time.Minute
	// pullWait is how long the source may wait with an answer: so often there is a sign of life at least, each way.
	pullWait = time.Second
	// fullWait is the same while some shards are left out: they are to be asked for soon.
	fullWait = 20 * time.Millisecond
	// pullBytes is how many bytes of frames are asked for at a time.
	pullBytes = 4 << 20
	// pieceBytes is how many bytes of a snapshot are asked for at a time.
	pieceBytes = 2 << 20
)

// ErrRefused is the class of errors that the next try will meet again: what the source has is not taken here.
var ErrRefused = errors.New("not taken")

// ErrStopped is the error of who waits for a Follower that has been stopped.
var ErrStopped = errors.New("ERR replication has stopped")

// Options configure a Follower.
type Options struct {
	Engine *engine.Engine
	Host   string
	Port   string
	ID     string // of this store, 40 hex digits
	// Login tells how to log in at the source, Announce the address at which others reach this store (host empty: the one it
	// comes from), Timeout after what silence a connection counts as dead. They are asked at each connection.
	Login    func() (user, password string)
	Announce func() (host, port string)
	Timeout  func() time.Duration
	// Dial connects to host:port; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Stock, if set, follows a source that is no kevy, over a connection that is logged in, until something fails. It tells
	// note what becomes of the link.
	Stock  func(ctx context.Context, c *client.Conn, o *Options, note func(func(*Status))) error
	Logger *slog.Logger
	// TakeOver, if set, has the source take over before it is followed.
	TakeOver *TakeOver
	// OnChange, if set, is called when the link has come up or gone. It must not block.
	OnChange func()
}

// Status is what a Follower is doing.
type Status struct {
	Host, Port  string
	Up          bool      // frames come in, or nothing is to come
	Syncing     bool      // a full copy is on its way
	SyncBytes   int64     // of it that have come
	SyncTotal   int64     // of it
	Resumed     int64     // bytes of full copies that were there from an earlier start
	LastIO      time.Time // zero: never
	DownSince   time.Time // when the link went, zero: it has never been up
	SourceID    string    // replication id of the source; empty: not known yet
	Behind      uint64    // frames that the source had and this store did not, when it was last asked
	BehindSince time.Time // since when that is so; zero: it is not
	Frames      uint64    // applied
	Err         string    // why the link is down
	FullCopies  uint64    // that came to their end
	Rewinds     uint64
	Connects    uint64 // connections that came as far as frames
	Aside       []string

	Stock        bool  // the source is no kevy
	SourceOffset int64 // of such a source, up to which everything is applied here
}

// Follower makes an engine's log that of another store, until Stop.
type Follower struct {
	o      Options
	cancel context.CancelFunc
	done   chan struct{}

	asks chan *asked // digests that somebody wants

	boot  *fetch // a full copy that has begun; owned by the goroutine
	taken bool   // the source has taken over; owned by the goroutine

	mu     sync.Mutex
	status Status
	news   chan struct{} // closed, and forgotten, when status changes; nil: nobody waits for that
}

// Follow makes the engine follow. The engine refuses other writes when it returns; the rest happens in the background.
func Follow(o Options) (*Follower, error) {
	if err := o.Engine.Follow(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Dial == nil {
		o.Dial = client.DialTCP
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{o: o, cancel: cancel, done: make(chan struct{}), asks: make(chan *asked)}
	f.status.Host, f.status.Port, f.status.DownSince = o.Host, o.Port, time.Now()
	go f.run(ctx)
	return f, nil
}

// Stop ends the following; the engine stays as it is. It returns when nothing more is applied.
func (f *Follower) Stop() {
	f.cancel()
	<-f.done
}

// Stopped reports whether the following has ended.
func (f *Follower) Stopped() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// Status returns what the follower is doing.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Await waits until ok says so of what the follower is doing, the follower is stopped or ctx ends.
func (f *Follower) Await(ctx context.Context, ok func(*Status) bool) error {
	for {
		f.mu.Lock()
		if ok(&f.status) {
			f.mu.Unlock()
			return nil
		}
		if f.news == nil {
			f.news = make(chan struct{})
		}
		news, why := f.news, f.status.Err
		f.mu.Unlock()
		select {
		case <-news:
		case <-f.done:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), why)
		}
	}
}

func (f *Follower) note(change func(*Status)) {
	f.mu.Lock()
	was := f.status.Up
	change(&f.status)
	now := f.status.Up
	if f.news != nil {
		close(f.news)
		f.news = nil
	}
	f.mu.Unlock()
	if was != now && f.o.OnChange != nil {
		f.o.OnChange()
	}
}

// run connects again and again, after pauses that become longer while it comes to nothing.
func (f *Follower) run(ctx context.Context) {
	defer close(f.done)
	defer f.down(ErrStopped.Error())
	defer f.suspend()
	pause := firstPause
	for ctx.Err() == nil {
		was := f.Status()
		err := f.connect(ctx)
		if ctx.Err() != nil || errors.Is(err, errNotTaken) {
			return
		}
		now := f.Status()
		if now.Connects != was.Connects || f.boot != nil && now.SyncBytes > was.SyncBytes {
			pause = firstPause
		}
		f.down(err.Error())
		if errors.Is(err, ErrRefused) {
			pause = refusedPause
		}
		wait := pause/2 + rand.N(pause) //nolint:gosec // so that not all followers come at once
		f.o.Logger.Warn("replication: the link is down", "source", f.addr(), "error", err, "retry", wait.Round(time.Millisecond).String())
		pause = min(2*pause, longPause)
		if replied(err, "NOMASTERLINK ") { // it is there, and looks for its own source
			pause = min(pause, linkPause)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// down takes note of why there is no link.
func (f *Follower) down(why string) {
	f.note(func(s *Status) {
		if s.Up || s.DownSince.IsZero() {
			s.DownSince = time.Now()
		}
		s.Up, s.Syncing, s.Err = false, false, why
	})
}

// replied reports whether err is the source's error reply that begins with the words.
func replied(err error, words string) bool {
	var reply client.Error
	return errors.As(err, &reply) && strings.HasPrefix(string(reply), words)
}

// isUnknown reports whether err is the answer of a server that does not know a command.
func isUnknown(err error) bool { return replied(err, "ERR unknown command") }

func (f *Follower) addr() string { return net.JoinHostPort(f.o.Host, f.o.Port) }

// dial connects and logs in. The connection closes when ctx ends.
func (f *Follower) dial(ctx context.Context) (*client.Conn, error) {
	nc, err := f.o.Dial(ctx, f.addr())
	if err != nil {
		return nil, err
	}
	c := client.New(nc)
	context.AfterFunc(ctx, c.Close)
	user, password := f.o.Login()
	if err := c.Login(f.o.Timeout(), user, password); err != nil {
		c.Close()
		return nil, fmt.Errorf("logging in: %w", err)
	}
	return c, nil
}

// connect follows over one pair of connections, until something fails.
func (f *Follower) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := f.handOver(c); err != nil {
		return err
	}
	h, err := f.hello(c)
	if f.o.Stock != nil && isUnknown(err) {
		f.dropFetch() // of a kevy that was there before: it would be in the way of another copy
		return f.o.Stock(ctx, c, &f.o, f.note)
	}
	if err != nil {
		return err
	}
	f.note(func(s *Status) { s.LastIO, s.SourceID, s.Stock = time.Now(), h.ID, false })
	if err := f.agree(ctx, c, h); err != nil {
		return err
	}
	acks, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer acks.Close()
	err = f.stream(ctx, c, acks)
	if isNoFrames(err) && ctx.Err() == nil {
		f.o.Logger.Info("replication: frames are gone at the source", "error", err)
		if err = f.copyAll(ctx, c, nil); err == nil {
			err = f.stream(ctx, c, acks)
		}
	}
	return err
}

// isNoFrames reports whether err is REPL.PULL's answer for frames that are not there.
func isNoFrames(err error) bool { return replied(err, "NOFRAMES ") }

// agree brings the log to a point in the source's history.
func (f *Follower) agree(ctx context.Context, c *client.Conn, h *Hello) error {
	eng := f.o.Engine
	dir := eng.Dir()
	common := make([]log.Cursor, eng.Shards())
	diverged, strange := false, eng.Seed() != h.Seed
	for i := range common {
		l := dir.Log(i)
		tail := l.Tail()
		at, ok := compare(l.Lineage(), tail, h.Lineage[i], h.Tails[i])
		common[i] = at
		strange = strange || !ok
		diverged = diverged || at != tail
	}
	if !strange {
		others, err := f.differ(c, common)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			f.o.Logger.Error("replication: this log has other frames than the source's under the same cursors: taking a full copy",
				"source", f.addr(), "common", fmt.Sprint(common), "shards", fmt.Sprint(others))
			for _, i := range others {
				common[i].Offset = 0 // it is not known since when
			}
			return f.copyAll(ctx, c, common)
		}
	}
	switch {
	case strange:
		f.o.Logger.Info("replication: no history in common with the source: taking a full copy", "source", f.addr())
		return f.copyAll(ctx, c, nil)
	case !diverged:
		f.dropFetch()
		return nil
	}
	kept, err := eng.Rewind(common)
	if errors.Is(err, engine.ErrNoWayBack) {
		f.o.Logger.Warn("replication: this log has frames that the source's does not, and no way back: taking a full copy",
			"common", fmt.Sprint(common), "why", err)
		return f.copyAll(ctx, c, common)
	}
	if err != nil {
		return err
	}
	f.o.Logger.Warn("replication: this log had frames that the source's does not: they are no part of it any more", "common", fmt.Sprint(common), "kept", kept)
	f.note(func(s *Status) { s.Rewinds, s.Aside = s.Rewinds+1, append(s.Aside, kept...) })
	return nil
}
