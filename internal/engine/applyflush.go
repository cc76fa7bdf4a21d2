package engine

import (
	"fmt"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// A FLUSHALL ends a generation, and what the same transaction does behind it begins the next one. Readers must not see the one without the
// other, so a FLUSHALL waits until the next generation is there on all shards; the source does not show that without what belongs to it
// (replica.Link.begins). Which frames those are is in no log: they are the first group, if it has the FLUSHALL's time. A command of its own in the same
// millisecond is then shown at once with it, which is a state that there was. A generation of another cause, a crash for one, begins with nothing that belongs
// to what was before.

// flushes reports whether the group ends with a FLUSHALL.
func (g *foreignGroup) flushes() bool { return g.effects[g.n-1].Op == effect.FlushAll }

// flush applies the FLUSHALLs that are at the heads of all shards, the generations behind them and what belongs to them, under one hold of all
// locks. After a crash all of it is there or none. It reports whether all that has come.
func (a *Applier) flush() (done bool, err error) {
	for i := range a.shards {
		if in := &a.shards[i]; len(in.queue) < 2 || in.read < int64(len(in.queue[0].Raw)) {
			return false, nil
		}
	}
	rest, whole, err := a.behindFlush()
	if err != nil || !whole {
		return false, err
	}
	e := a.e
	e.lock(e.all())
	now := e.now()
	defer func() { e.finish(e.all(), now) }()
	if err := a.bridge(&rest); err != nil {
		return false, err
	}
	for i := range a.shards {
		in := &a.shards[i]
		a.fold(e.shards[i], &in.head, now)
		in.queue, in.st, in.read, in.ready = in.queue[1:], nil, 0, false
	}
	if rest.txn != 0 {
		e.txns.begin(rest.txn, rest.wide)
		defer e.txns.finish(rest.txn)
	}
	for m := rest.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		g, p := &rest.parts[i], &a.shards[i].queue[0]
		if err := a.append(e.shards[i], g, now); err != nil {
			return true, err
		}
		p.Offset, p.Raw = p.Offset+uint64(g.n), p.Raw[len(g.raw):] //nolint:gosec // a count
	}
	return true, nil
}

// bridge appends the heads of all shards, which are one group, to the logs, and begins the generations behind them, with rest in their segments. rest is
// then to be appended. REQUIRES: all shard locks are held.
func (a *Applier) bridge(rest *behind) error {
	e, txn := a.e, a.shards[0].head.txn
	lineage := make([]log.Lineage, len(a.shards))
	for i := range a.shards {
		in := &a.shards[i]
		end := in.head.start
		if tail := e.shards[i].log().Tail(); tail != end {
			return fmt.Errorf("engine: shard %d: a FLUSHALL at %s, the log ends at %s", i, end, tail)
		}
		end.Offset += uint64(in.head.n) //nolint:gosec // a count
		if err := forksAt(i, &in.queue[1].Generation, end); err != nil {
			return err
		}
		lineage[i] = in.queue[1].Generation
		if err := e.room(1<<i, len(in.head.raw)+len(rest.parts[i].raw)+2*log.Overhead); err != nil {
			return err
		}
	}
	b := &log.Bridge{}
	if rest.mask != 0 {
		b.After = func(shard int, enc *log.Encoder) {
			if rest.mask&(1<<shard) != 0 {
				if err := enc.AppendRaw(rest.parts[shard].raw); err != nil {
					crash(fmt.Errorf("engine: shard %d: what belongs to a FLUSHALL: %w", shard, err)) // it has been decoded
				}
			}
		}
	}
	return e.beginGeneration(func(d *log.Dir, appended func()) error {
		b.Before = func() {
			if txn != 0 {
				e.txns.begin(txn, e.all())
				defer e.txns.finish(txn)
			}
			for i := range a.shards {
				g := &a.shards[i].head
				if _, err := e.shards[i].log().AppendRaw(g.start, g.raw); err != nil {
					crash(fmt.Errorf("engine: a FLUSHALL of the store that is followed: %w", err)) // its place and its frames are checked
				}
			}
			appended()
		}
		return d.FollowGenerations(lineage, b)
	})
}

// behind are the groups that generations begin with, as far as they belong to a FLUSHALL.
type behind struct {
	parts []foreignGroup // by shard
	mask  uint64         // the shards that have one
	txn   uint64         // of the one that lies on several shards, 0: there is none
	wide  uint64         // the shards that it lies on
}

// behindFlush returns what belongs to the FLUSHALL at the heads, and false when it may not be there as a whole.
func (a *Applier) behindFlush() (b behind, whole bool, err error) {
	b.parts = make([]foreignGroup, len(a.shards))
	for i := range a.shards {
		p, g := &a.shards[i].queue[1], &b.parts[i]
		begin := log.Cursor{Generation: p.Generation.Generation}
		if p.Generation.Cause != log.CauseFlush || len(p.Raw) == 0 || p.Offset != 0 || len(a.stops) > 0 && a.stops[0].at[i] == begin {
			continue
		}
		st := log.NewRawStream(p.Raw, "frames of the store that is followed", i, begin)
		whole, err := a.group(i, st, g)
		switch {
		case err != nil:
			return b, false, err
		case g.timeMS != a.shards[i].head.timeMS:
			continue
		case !whole:
			return b, false, nil
		case g.flushes():
			continue
		}
		g.raw = p.Raw[:st.Position()]
		b.mask |= 1 << i
		if g.txn != 0 && (b.txn == 0 || g.txn < b.txn) {
			b.txn, b.wide = g.txn, g.mask
		}
	}
	for m := b.wide; m != 0; m &= m - 1 {
		if b.mask&(1<<lowest(m)) == 0 || b.parts[lowest(m)].txn != b.txn {
			b.wide, b.txn = 0, 0 // a later one, of which not all is here
			break
		}
	}
	for m := b.mask &^ b.wide; m != 0; m &= m - 1 {
		if b.parts[lowest(m)].txn != 0 {
			b.mask &^= 1 << lowest(m)
		}
	}
	return b, true, nil
}
