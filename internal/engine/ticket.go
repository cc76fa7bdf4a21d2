package engine

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/log"
)

// MaxShards bounds the shard count of a directory: a SCAN cursor keeps the shard in 5 bits above
// the 48 of the hash position, to stay below 2^53.
const MaxShards = 32

// Ticket collects what must be safe before the replies built since its last Reset may leave. The
// zero value is an empty ticket. A Ticket belongs to one connection or loop.
type Ticket struct {
	mask   uint64
	txn    uint64
	writes int

	// Client is whose commands these are, for listeners; 0 nobody's. Reset keeps it.
	Client uint64

	marks [MaxShards]mark // last: with few shards all that is used lies in two cache lines
}

// mark is a position in a shard's log: every frame before off must be safe.
type mark struct{ gen, off uint64 }

// Reset empties t.
func (t *Ticket) Reset() { t.mask, t.txn, t.writes = 0, 0, 0 }

// Empty reports whether nothing has to be waited for.
func (t *Ticket) Empty() bool { return t.mask == 0 }

// Writes returns how many commands have logged something since Reset.
func (t *Ticket) Writes() int { return t.writes }

// Merge adds everything o waits for to t.
func (t *Ticket) Merge(o *Ticket) {
	for m := o.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		t.mark(i, o.marks[i])
	}
	t.txn = max(t.txn, o.txn)
	t.writes += o.writes
}

func (t *Ticket) mark(shard int, m mark) {
	bit := uint64(1) << shard
	have := t.marks[shard]
	// A later generation covers all of an earlier one: NewGeneration made that durable.
	if t.mask&bit == 0 || have.gen < m.gen || have.gen == m.gen && have.off < m.off {
		t.marks[shard] = m
	}
	t.mask |= bit
}

// note marks the shard's whole log up to now. REQUIRES: sh.mu held.
func (t *Ticket) note(sh *shard) {
	t.mark(sh.id, mark{gen: sh.log().Generation(), off: sh.log().Appended()})
	t.txn = max(t.txn, sh.lastTxn)
}

// Settle makes t safe if that needs no wait for the disk's write cache: under everysec and no it
// flushes the logs that t depends on and returns true. Under always it returns true only if
// everything is durable already; otherwise it starts the group commit, and OnSafe tells the end.
// An error means the writes of t did not reach the log and must not be acknowledged.
//
// Safe for concurrent use, each with its own ticket.
func (e *Engine) Settle(t *Ticket) (done bool, err error) {
	if t.mask == 0 {
		return true, nil
	}
	if e.Policy() == log.Always {
		done, err = e.settleDurable(t)
	} else {
		done, err = true, e.settleWritten(t)
	}
	if err != nil {
		return false, e.lost(err)
	}
	return done, nil
}

// lost passes on why a write failed, after a failure that lasts only when the keyspaces no longer
// show the write.
func (e *Engine) lost(err error) error {
	if errors.Is(err, log.ErrDiskFull) {
		return err
	}
	e.markBroken(err)
	<-e.repaired
	return err
}

func (e *Engine) settleWritten(t *Ticket) error {
	if err := e.flush(t.mask); err != nil {
		return err
	}
	if t.txn > e.txns.settled.Load() {
		if err := e.flush(e.txns.dependencies(t)); err != nil {
			return err
		}
	}
	e.txns.settle()
	return nil
}

// Flush writes what has been appended to the log of one shard, so that readers see it as far as
// the policy allows. It takes no shard lock.
func (e *Engine) Flush(shard int) error {
	if err := e.flush(1 << shard); err != nil {
		return err
	}
	if e.txns.last.Load() != e.txns.settled.Load() {
		if err := e.flush(e.all()); err != nil {
			return err
		}
		e.txns.settle()
	}
	return nil
}

// flush writes the logs of the shards in mask. The first failure is remembered for all shards.
func (e *Engine) flush(mask uint64) error {
	for m := mask; m != 0; m &= m - 1 {
		l := e.shards[lowest(m)].log()
		if err := l.Flush(); err != nil && !(errors.Is(err, log.ErrClosed) && e.replaced(lowest(m), l)) {
			return err
		}
	}
	return nil
}

func (e *Engine) settleDurable(t *Ticket) (bool, error) {
	mask := t.mask | e.txns.dependencies(t)
	late, quick, err := e.behind(t, mask)
	if err == nil && late != 0 && quick {
		e.syncQuickly(late)
		late, _, err = e.behind(t, mask)
	}
	if err != nil {
		return false, err
	}
	for m := late; m != 0; m &= m - 1 {
		e.shards[lowest(m)].log().SyncThrough(t.marks[lowest(m)].off)
	}
	e.txns.settle()
	return late == 0, nil
}

// behind returns the shards of mask whose logs are not yet durable as far as t needs it, whether syncs of them are short,
// and the error of one that has failed.
func (e *Engine) behind(t *Ticket, mask uint64) (late uint64, quick bool, err error) {
	quick = true
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		l := e.shards[i].log()
		if err := e.logErr(i, l); err != nil {
			return 0, false, err
		}
		if l.Generation() == t.marks[i].gen && l.Durable() < t.marks[i].off {
			late |= 1 << i
			quick = quick && l.SyncTime() < quickSync
		}
	}
	return late, quick, nil
}

// OnSafe calls fn exactly once, from any goroutine, when everything t depends on is safe (nil) or
// can no longer become so. fn must not block. t is copied.
func (e *Engine) OnSafe(t *Ticket, fn func(error)) {
	w := *t
	mask := w.mask | e.txns.dependencies(&w)
	var left atomic.Int32
	var once sync.Once
	left.Store(1)
	fire := func() {
		err := e.failed(mask)
		if left.Add(-1) > 0 && err == nil {
			return
		}
		once.Do(func() {
			e.txns.settle()
			if err == nil {
				fn(nil)
				return
			}
			go func() { fn(e.lost(err)) }() // this may be called with locks held that the repair needs
		})
	}
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		sh := e.shards[i]
		left.Add(1)
		sh.log().OnDurableTo(log.Cursor{Generation: w.marks[i].gen, Offset: w.marks[i].off}, fire)
		sh.log().SyncThrough(w.marks[i].off)
	}
	fire()
}

func (e *Engine) failed(mask uint64) error {
	for m := mask; m != 0; m &= m - 1 {
		if err := e.logErr(lowest(m), e.shards[lowest(m)].log()); err != nil {
			return err
		}
	}
	return nil
}
