package replica

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/log"
)

// pulled is one reply of REPL.PULL.
type pulled struct {
	nowMS int64
	tails []log.Cursor
	cut   []log.Cursor
	parts []engine.Foreign
	stop  *asked // somebody wants the state here, or not far behind; nil: nobody
}

// stream applies frames from where the logs end on, until something fails. It asks for more while it applies.
func (f *Follower) stream(ctx context.Context, c, acks *client.Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	eng := f.o.Engine
	at := make([]log.Cursor, eng.Shards())
	for i := range at {
		at[i] = eng.Dir().Log(i).Tail()
	}
	a := eng.NewApplier()
	replies := make(chan *pulled, 1)
	go func() {
		defer close(replies)
		for wait := time.Duration(0); ctx.Err() == nil; wait = pullWait { // the first one tells that the link is up
			p, err := f.next(c, at, a, wait)
			if err != nil {
				cancel(err)
				return
			}
			select {
			case replies <- p:
			case <-ctx.Done():
				p.drop(context.Cause(ctx))
			}
		}
	}()
	kick := make(chan struct{}, 1)
	acked := make(chan struct{})
	go func() {
		defer close(acked)
		if err := f.acknowledge(ctx, acks, kick); err != nil {
			cancel(err)
		}
	}()
	err := f.applyAll(ctx, a, replies, kick)
	cancel(err)
	if ctx.Err() != nil && !isNoFrames(context.Cause(ctx)) {
		c.Close()
		acks.Close()
	}
	for p := range replies { // until the puller has ended: the connection is ours again
		p.drop(err)
	}
	a.Close(fmt.Errorf("ERR the link to the source has ended: %w", err))
	<-acked
	return context.Cause(ctx)
}

// applyAll applies replies as they come.
func (f *Follower) applyAll(ctx context.Context, a *engine.Applier, replies <-chan *pulled, kick chan<- struct{}) error {
	begun, counted := false, uint64(0)
	var cuts pendingCuts
	for {
		var p *pulled
		var ok bool
		select {
		case p, ok = <-replies:
		case <-ctx.Done():
		}
		if !ok {
			return context.Cause(ctx)
		}
		if q := p.stop; q != nil {
			a.FreezeAt(q.at, q.answer)
		}
		if err := a.Apply(p.parts); err != nil {
			return fmt.Errorf("applying: %w", err)
		}
		if err := cuts.hold(f.o.Engine, p.cut); err != nil {
			return fmt.Errorf("keeping the cut that is held: %w", err)
		}
		f.progress(p, a.Frames()-counted, !begun)
		begun, counted = true, a.Frames()
		select {
		case kick <- struct{}{}:
		default:
		}
	}
}

// pendingCuts are cuts that the source has told of and the logs do not hold, the oldest first.
type pendingCuts [][]log.Cursor

// maxPending is how many cuts may be pending; when there are more the second newest goes.
const maxPending = 64

// hold adds a cut, and has the engine hold the newest of those that its logs have come to.
func (p *pendingCuts) hold(eng *engine.Engine, cut []log.Cursor) error {
	if n := len(*p); n == maxPending {
		(*p)[n-1] = cut
	} else {
		*p = append(*p, cut)
	}
	for i, c := range slices.Backward(*p) {
		held, err := eng.HoldCut(c)
		if err != nil {
			return err
		}
		if held {
			*p = slices.Delete(*p, 0, i+1)
			break
		}
	}
	return nil
}

// progress takes note of frames that have been applied.
func (f *Follower) progress(p *pulled, frames uint64, first bool) {
	dir := f.o.Engine.Dir()
	behind := uint64(0)
	for i, t := range p.tails {
		have := dir.Log(i).Tail()
		switch {
		case have.Generation != t.Generation:
			behind += t.Offset + 1
		case have.Offset < t.Offset:
			behind += t.Offset - have.Offset
		}
	}
	now := time.Now()
	f.note(func(s *Status) {
		if first {
			s.Connects++
		}
		s.Frames += frames
		s.Up, s.Err, s.LastIO, s.DownSince, s.Behind = true, "", now, time.Time{}, behind
		switch {
		case behind == 0:
			s.BehindSince = time.Time{}
		case s.BehindSince.IsZero():
			s.BehindSince = now
		}
	})
}

// drop ends what was pulled and is not applied.
func (p *pulled) drop(err error) {
	if p.stop != nil {
		p.stop.answer(nil, fmt.Errorf("ERR the link to the source has ended: %w", err))
	}
}

// next asks for the cursors that somebody waits for, and for frames.
func (f *Follower) next(c *client.Conn, at []log.Cursor, a *engine.Applier, wait time.Duration) (*pulled, error) {
	q, err := f.freeze(c)
	if err != nil {
		return nil, err
	}
	if q != nil {
		wait = 0
	}
	p, err := f.pull(c, at, a, wait)
	if err != nil {
		p = &pulled{stop: q}
		p.drop(err)
		return nil, err
	}
	p.stop = q
	return p, nil
}

// pull asks for what comes behind the cursors, which it moves, of the shards that are not full.
func (f *Follower) pull(c *client.Conn, at []log.Cursor, a *engine.Applier, wait time.Duration) (*pulled, error) {
	ask := slices.Clone(at)
	for i := range ask {
		if a.Full(i) {
			ask[i], wait = log.Cursor{}, min(wait, fullWait)
		}
	}
	args := [][]byte{[]byte("REPL.PULL"), strconv.AppendInt(nil, pullBytes, 10), strconv.AppendInt(nil, wait.Milliseconds(), 10)}
	for _, cur := range ask {
		args = append(args, strconv.AppendUint(nil, cur.Generation, 10), strconv.AppendUint(nil, cur.Offset, 10))
	}
	if err := c.Send(wait+f.o.Timeout(), args...); err != nil {
		return nil, err
	}
	if err := c.Tuple(2); err != nil {
		return nil, err
	}
	if err := c.Tuple(1 + 4*len(at)); err != nil {
		return nil, err
	}
	p := &pulled{tails: make([]log.Cursor, len(at)), cut: make([]log.Cursor, len(at))}
	r := reader{c: c}
	p.nowMS = int64(r.uint()) //nolint:gosec // a time
	for _, to := range [][]log.Cursor{p.tails, p.cut} {
		for i := range to {
			to[i] = log.Cursor{Generation: r.uint(), Offset: r.uint()}
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	n, err := c.Array()
	if err != nil {
		return nil, err
	}
	for range n {
		part, next, err := readPart(c, len(at), a.Spare())
		if err != nil {
			return nil, err
		}
		at[part.Shard] = log.Cursor{Generation: part.Generation.Generation, Offset: next}
		p.parts = append(p.parts, part)
	}
	return p, nil
}

// reader reads numbers until one fails.
type reader struct {
	c   *client.Conn
	err error
}

func (r *reader) uint() (n uint64) {
	if r.err == nil {
		n, r.err = r.c.Uint()
	}
	return n
}

// readPart reads a part, its frames into the memory of raw if it has room.
func readPart(c *client.Conn, shards int, raw []byte) (p engine.Foreign, next uint64, err error) {
	if err := c.Tuple(9); err != nil {
		return p, 0, err
	}
	r := reader{c: c}
	shard := r.uint()
	p.Generation = log.Lineage{
		Generation: r.uint(), Cause: log.Cause(r.uint()), Parent: r.uint(), ParentOffset: r.uint(), //nolint:gosec // checked where it is used
		TimeMS: int64(r.uint()), //nolint:gosec // a time
	}
	p.Offset, next = r.uint(), r.uint()
	if r.err != nil {
		return p, 0, r.err
	}
	if shard >= uint64(shards) { //nolint:gosec // a count
		return p, 0, fmt.Errorf("a part of shard %d of %d", shard, shards)
	}
	p.Shard = int(shard) //nolint:gosec // bounded
	p.Raw, err = c.BulkInto(raw)
	return p, next, err
}

// acknowledge tells the source how far the logs are, at each kick and when more of them has become durable.
func (f *Follower) acknowledge(ctx context.Context, c *client.Conn, kick chan struct{}) error {
	eng := f.o.Engine
	armed := make([]chan struct{}, eng.Shards()) // of shards whose next sync is waited for
	for {
		select {
		case <-kick:
		case <-ctx.Done():
			return nil
		}
		args := [][]byte{[]byte("REPL.ACK"), []byte(f.o.ID)}
		dir := eng.Dir()
		held, _ := eng.HeldCut() // before what is applied: it is within that
		if held == nil {
			held = make([]log.Cursor, eng.Shards())
		}
		for i := range armed {
			l := dir.Log(i)
			durable := l.DurableTail() // before the other: it is not greater
			applied := l.WrittenTail()
			if durable.Generation != applied.Generation {
				durable.Offset = 0
			}
			for _, n := range [ackNumbers]uint64{applied.Generation, applied.Offset, durable.Offset, held[i].Generation, held[i].Offset} {
				args = append(args, strconv.AppendUint(nil, n, 10))
			}
			if durable != applied {
				armed[i] = arm(l, applied, armed[i], kick)
			}
		}
		if err := c.Send(f.o.Timeout(), args...); err != nil {
			return err
		}
		if v, err := c.Skip(); err != nil {
			return err
		} else if e, bad := v.(client.Error); bad {
			return fmt.Errorf("acknowledging: %w", e)
		}
	}
}

// arm has the log kick when everything before to is durable, unless it is about to do that for something earlier.
func arm(l *log.Log, to log.Cursor, before chan struct{}, kick chan<- struct{}) chan struct{} {
	if before != nil {
		select {
		case <-before:
		default:
			return before
		}
	}
	done := make(chan struct{})
	l.OnDurableTo(to, func() {
		close(done)
		select {
		case kick <- struct{}{}:
		default:
		}
	})
	return done
}
