package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/internal/script"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
)

// Replica makes a store that is served follow a server of Redis or Valkey: what REPLICAOF does when the other side is no kevy. It belongs to one
// goroutine at a time.
type Replica struct {
	eng    *engine.Engine
	logger *slog.Logger
	to     *store
	s      stream
	at     position
	offset atomic.Int64 // of the link that is up

	recalled bool // what the last run has left
}

// NewReplica returns a Replica that knows nothing of a server yet.
func NewReplica(eng *engine.Engine, logger *slog.Logger) *Replica {
	r := &Replica{eng: eng, logger: discard(logger), to: newStore(eng)}
	r.to.replays = true
	r.s.to = r.to
	return r
}

// Follow follows over one connection, which is logged in, until something fails or ctx ends: from where the store is in the server's stream, if
// the server can go on from there, else with a full copy. REQUIRES: the store follows.
func (r *Replica) Follow(ctx context.Context, c *client.Conn, o *replica.Options, note func(func(*replica.Status))) error {
	if err := r.recall(); err != nil {
		return err
	}
	replid, next := "?", int64(-1)
	if r.at.at(r.to.tails()) {
		replid, next = r.at.Replid, r.at.Offset+1
	}
	host, port := o.Announce()
	l, err := openLink(c, o.Timeout(), host, port, replid, next)
	if err != nil {
		return err
	}
	if l.words[0] == "CONTINUE" && replid != "?" {
		if len(l.words) > 1 {
			r.at.Replid = l.words[1]
		}
	} else if err := r.copy(ctx, l, note); err != nil {
		return classed(err)
	}
	r.logger.Info("replication: following a server that is no kevy", "id", r.at.Replid, "offset", r.offset.Load())
	note(func(s *replica.Status) { s.Connects++ })
	return classed((&tracker{
		link: l, s: &r.s, to: r.to, offset: &r.offset,
		settled: func() { r.settled(note) },
		rest:    func(int64) error { return nil },
	}).run(ctx))
}

// classed marks what the server sends and kevy does not take: the next try will meet it again.
func classed(err error) error {
	if errors.As(err, new(*CommandError)) || errors.Is(err, errOtherDB) {
		return fmt.Errorf("%w: %w", replica.ErrRefused, err)
	}
	return err
}

// recall takes up what Remember has left, once.
func (r *Replica) recall() (err error) {
	if r.recalled {
		return nil
	}
	if r.at, err = takeRecord(r.eng.FS(), r.eng.Dir().Path()); err != nil {
		return err
	}
	if r.recalled = true; r.at.Taken != 0 {
		r.at = position{}
	}
	r.offset.Store(r.at.Offset)
	r.s.current, r.s.rested = r.at.DB, r.at.DB
	return nil
}

// Remember leaves on disk where the store is in the server's stream, for its next start. REQUIRES: Follow has returned; nothing is appended to the
// log any more before it is closed.
func (r *Replica) Remember() error {
	if !r.at.at(r.to.tails()) {
		return nil
	}
	return r.at.write(r.eng.FS(), r.eng.Dir().Path())
}

// settled takes note of where the store is.
func (r *Replica) settled(note func(func(*replica.Status))) {
	r.at.Tails, r.at.Offset, r.at.DB = r.to.tails(), r.offset.Load(), r.s.rested
	note(func(s *replica.Status) {
		s.Up, s.Err, s.LastIO, s.DownSince = true, "", time.Now(), time.Time{}
		s.Stock, s.SourceID, s.SourceOffset = true, r.at.Replid, r.at.Offset
		s.Frames = r.s.applied
	})
}

// copy takes everything the server has, and makes it the state of the store.
func (r *Replica) copy(ctx context.Context, l *link, note func(func(*replica.Status))) error {
	r.at = position{}
	r.s = stream{to: r.to}
	b, err := newBeside(ctx, r.eng)
	if err != nil {
		return err
	}
	note(func(s *replica.Status) { s.Stock, s.Syncing = true, true })
	found := &Result{Values: map[string]uint64{}, Others: map[string]uint64{}}
	replid, offset, err := l.copy(&reading{ctx: ctx, o: &Options{From: new(Source), Now: r.eng.Now}, r: found, to: b})
	if err != nil || ctx.Err() != nil {
		b.l.Abandon()
		return errors.Join(err, ctx.Err())
	}
	r.offset.Store(offset)
	stop := (&acker{nc: l.nc, offset: &r.offset}).run() // or it is taken for dead meanwhile
	err = b.l.Finish(foreign)
	stop()
	if err != nil {
		return err
	}
	r.at.Replid = replid
	note(func(s *replica.Status) { s.Syncing, s.FullCopies = false, s.FullCopies+1 })
	r.settled(note)
	return nil
}

// beside is the state that a store is to have from now on, as target.
type beside struct {
	l *engine.Loader
	c *command.Ctx
	w resp.Writer
}

// newBeside waits while a snapshot is being written.
func newBeside(ctx context.Context, e *engine.Engine) (*beside, error) {
	for {
		l, err := e.NewLoader()
		if err == nil {
			b := &beside{l: l, c: l.NewCtx()}
			b.c.KeepExpired, b.c.NoTouch = true, true
			return b, nil
		}
		if !errors.Is(err, engine.ErrSaving) && !errors.Is(err, engine.ErrRewriting) {
			return nil, err
		}
		select {
		case <-time.After(firstPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *beside) apply(_ log.FrameCause, cmds [][][]byte) error {
	for _, args := range cmds {
		if string(args[0]) == "FUNCTION" { // LOAD REPLACE code
			if err := b.function(args); err != nil {
				return err
			}
			continue
		}
		if err := runOne(b.c, &b.w, args, func() error { return b.l.Run(b.c) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *beside) function(args [][]byte) error {
	if bad := script.CheckLibrary(string(args[3])); bad != "" {
		return refused(args, bad)
	}
	return b.l.Fold(&command.Planned{Effect: effect.Effect{Op: effect.Function, Args: args[1:]}}, b.c.Now)
}

func (b *beside) settle() error { return nil }
