package engine

import (
	"errors"
	"fmt"
	"math"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// commit logs the planned effects as one group and folds them. On an error nothing has changed.
// REQUIRES: the locks of all shards concerned are held (of every shard for command.AllShards).
func (e *Engine) commit(planned []command.Planned, now int64, cause log.FrameCause, t *Ticket) error {
	if e.following.Load() {
		return ErrFollower
	}
	if flush := planned[len(planned)-1].Effect.Op == effect.FlushAll; flush {
		return e.commitFlush(planned, now, cause, t)
	}
	mask, size := e.extent(planned)
	if size > state.MaxValue && tooLarge(planned) {
		return errTooLarge
	}
	if err := e.room(mask, size); err != nil {
		return err
	}
	n := e.newNotes(t.Client)
	e.append(planned, mask, now, cause, true, n)
	n.deliver(mask)
	e.noteWrite(mask, t)
	return nil
}

// noteWrite makes the reply wait for the group just appended.
func (e *Engine) noteWrite(mask uint64, t *Ticket) {
	t.writes++
	for m := mask; m != 0; m &= m - 1 {
		t.note(e.shards[lowest(m)])
	}
	e.wakeExpirer(mask)
}

// extent returns the shards of the planned effects and a bound on their frames' bytes.
func (e *Engine) extent(planned []command.Planned) (mask uint64, size int) {
	var bytes int64
	for i := range planned {
		p := &planned[i]
		if p.Shard == command.AllShards {
			mask = e.all()
		} else {
			mask |= 1 << p.Shard
		}
		bytes += log.Overhead
		for _, a := range p.Effect.Args {
			bytes += int64(len(a)) + 24
		}
	}
	return mask, int(min(bytes, math.MaxInt))
}

// errTooLarge refuses a command.
var errTooLarge = errors.New(command.MsgTooLong)

// A frame has room for what a rebuild puts into one at most.
const _ = uint(log.MaxPayload - 3*state.MaxValue - 1<<20)

// tooLarge reports whether a planned effect has an argument that no key may hold, or does not fit a frame. Requests of clients are
// bounded; those of programs are not, nor what scripts make.
func tooLarge(planned []command.Planned) bool {
	for i := range planned {
		var size int64
		for _, a := range planned[i].Effect.Args {
			if size += int64(len(a)) + 24; len(a) > state.MaxValue || size > log.MaxPayload-1<<10 {
				return true
			}
		}
	}
	return false
}

// room asks the logs of mask for room, before anything changes. One failed log refuses the writes of all:
// a store that has lost part of its log takes no more writes.
func (e *Engine) room(mask uint64, size int) error {
	if err := e.brokenErr(); err != nil {
		return err
	}
	for m := mask; m != 0; m &= m - 1 {
		if err := e.shards[lowest(m)].log().Reserve(size); err != nil {
			return err
		}
	}
	return nil
}

// append appends the planned effects to the logs as one group and, unless they are folded already,
// folds them, noting what they do in n, which may be nil. REQUIRES: room succeeded for mask, the shards of the effects.
func (e *Engine) append(planned []command.Planned, mask uint64, now int64, cause log.FrameCause, fold bool, n *notes) {
	var id uint64
	if mask&(mask-1) != 0 {
		id = e.txns.begin(0, mask)
	}
	for m := mask; m != 0; m &= m - 1 {
		sh := e.shards[lowest(m)]
		sh.ks.SetAccessClock(uint32(now / 1000)) //nolint:gosec // a clock of 32 bits
		sh.log().Begin(now, cause, id, mask)
	}
	for i := range planned {
		p := &planned[i]
		to := mask
		if p.Shard != command.AllShards {
			to = 1 << p.Shard
		}
		why := causeOf(p, cause)
		for m := to; m != 0; m &= m - 1 {
			sh := e.shards[lowest(m)]
			if n == nil {
				sh.apply(&p.Effect, why, fold)
			} else {
				n.around(sh, p, why, func() { sh.apply(&p.Effect, why, fold) })
			}
			if fold {
				sh.setMarks(p.Marks, &p.Effect)
			}
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		e.shards[lowest(m)].log().End()
	}
	if id != 0 {
		e.txns.finish(id)
	}
	e.measure(mask)
}

// setMarks sets what goes with an effect that has been folded. REQUIRES: sh.mu held.
func (sh *shard) setMarks(marks []command.Mark, ef *effect.Effect) {
	for _, m := range marks {
		m.Set(sh.ks, ef)
	}
}

// causeOf returns the cause of an effect in a group of the given cause.
func causeOf(p *command.Planned, cause log.FrameCause) log.FrameCause {
	switch {
	case p.Expired:
		return log.ByExpiry
	case p.Script:
		return log.ByScript
	}
	return cause
}

// apply appends one frame to the open group and folds it. An effect that does not fold is a bug in
// its planner: the process ends before the group can reach the file.
func (sh *shard) apply(ef *effect.Effect, cause log.FrameCause, fold bool) {
	sh.log().SetCause(cause)
	sh.log().Append(ef)
	if !fold {
		return
	}
	if err := sh.fold(ef); err != nil {
		crash(fmt.Errorf("engine: a planned effect does not fold: %s: %w", ef.Op, err))
	}
}

// commitFlush logs FLUSHALL, with what the same command planned before it, as the last group of
// every shard's generation, and begins a new one. REQUIRES: all shard locks are held.
func (e *Engine) commitFlush(planned []command.Planned, now int64, cause log.FrameCause, t *Ticket) error {
	n := e.newNotes(t.Client)
	if err := e.appendFlush(planned, nil, now, cause, true, n); err != nil {
		return err
	}
	n.deliver(e.all())
	e.noteWrite(e.all(), t)
	return nil
}

// appendFlush appends head, which ends with a FLUSHALL, as the last group of every shard's generation, begins a new
// generation and appends rest to it. After a crash all of it is there or none. fold and n are those of append; rest is folded
// already. REQUIRES: all shard locks are held.
func (e *Engine) appendFlush(head, rest []command.Planned, now int64, cause log.FrameCause, fold bool, n *notes) error {
	_, size := e.extent(head)
	mask, more := e.extent(rest)
	if err := e.room(e.all(), size+more); err != nil {
		return err
	}
	b := &log.Bridge{}
	if len(rest) > 0 {
		b.After = func(shard int, enc *log.Encoder) {
			if mask&(1<<shard) != 0 {
				e.encode(enc, rest, shard, mask, now, cause)
			}
		}
	}
	err := e.beginGeneration(func(d *log.Dir, appended func()) error {
		b.Before = func() {
			e.append(head, e.all(), now, cause, fold, n)
			appended()
		}
		return d.BridgeGeneration(log.CauseFlush, b)
	})
	if err == nil && len(rest) > 0 {
		e.append(rest, mask, now, cause, false, nil)
	}
	return err
}

// encode makes the frames that append would add to a shard's log, when it is called next for these effects.
func (e *Engine) encode(enc *log.Encoder, planned []command.Planned, shard int, mask uint64, now int64, cause log.FrameCause) {
	var id uint64
	if mask&(mask-1) != 0 {
		id = e.txns.last.Load() + 1
	}
	enc.Begin(now, cause, id, mask)
	for i := range planned {
		if p := &planned[i]; p.Shard == shard {
			enc.SetCause(causeOf(p, cause))
			enc.Append(&p.Effect)
		}
	}
	enc.End()
}

// beginGeneration has begin begin generations on every shard; it calls appended when it has appended to the old ones. After an error that is
// not one of the logs, a full disk for one, nothing has changed. REQUIRES: all shard locks are held.
func (e *Engine) beginGeneration(begin func(d *log.Dir, appended func()) error) error {
	grown := make([]int64, len(e.shards))
	note := func() {
		for i, sh := range e.shards {
			grown[i] = sh.grown()
		}
	}
	note()
	if err := begin(e.Dir(), note); err != nil {
		_ = e.brokenErr() // takes note of a log that has failed
		return err
	}
	for i, sh := range e.shards {
		sh.setGrown(grown[i])
	}
	e.txns.settle()
	return nil
}
