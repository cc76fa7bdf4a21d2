package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/log"
)

func lowest(m uint64) int { return bits.TrailingZeros64(m) }

// txns tracks the groups over several shards that are not yet safe on all of them. It settles them
// in the order in which they are appended, which is stricter than needed and keeps the rule simple. That is the order of their ids, but for a
// store that follows another one: there a group may come after one with a greater id, on other shards.
//
// Invariant: a transaction is settled only when all its parts are safe and every one appended before it is
// settled. No reply that depends on a transaction leaves, and no reader sees a frame of it or after
// it, before it is settled. So recovery, which cuts a transaction that is not whole together with
// everything after it, never cuts what somebody has seen.
type txns struct {
	e       *Engine
	last    atomic.Uint64 // greatest id
	settled atomic.Uint64 // every id up to here is whole

	mu      sync.Mutex
	pending []txn // as they are appended
}

type txn struct {
	id    uint64
	parts []part
}

// part is a transaction's frames in one shard's log.
type part struct {
	shard      int
	gen        uint64
	first, end uint64 // offsets [first, end)
}

// begin registers a transaction over the shards in mask before its frames are appended, so that no
// reader gets ahead of it, and returns its id: a new one, unless there is one already. REQUIRES: the locks of all these shards are held
// until finish.
func (q *txns) begin(id, mask uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if id == 0 {
		id = q.last.Load() + 1
	} else if q.settled.Load() >= id {
		q.settled.Store(id - 1) // the last id that is known of the store that is followed may be of a group that is yet to come
	}
	q.last.Store(max(id, q.last.Load()))
	t := txn{id: id, parts: make([]part, 0, bits.OnesCount64(mask))}
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		l := q.e.shards[i].log()
		t.parts = append(t.parts, part{shard: i, gen: l.Generation(), first: l.Appended(), end: unfinished})
	}
	q.pending = append(q.pending, t)
	q.holdLocked()
	return id
}

// restart forgets all transactions: the logs are others, which are whole, and ids go on above last. REQUIRES: all
// shard locks are held.
func (q *txns) restart(last uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last = max(last, q.last.Load())
	q.pending = nil
	q.last.Store(last)
	q.settled.Store(last)
	for _, sh := range q.e.shards {
		sh.hold, sh.lastTxn = ^uint64(0), 0
	}
}

// finish tells that all frames of transaction id have been appended.
func (q *txns) finish(id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.pending {
		if q.pending[i].id != id {
			continue
		}
		for j := range q.pending[i].parts {
			p := &q.pending[i].parts[j]
			sh := q.e.shards[p.shard]
			p.end = sh.log().Appended()
			sh.lastTxn = id
		}
	}
}

// unfinished is the end of a part whose frames are still being appended. Whoever appends them holds
// the shard's lock, so nothing that has been appended depends on them.
const unfinished = ^uint64(0)

// dependencies adds to t the parts of all pending transactions up to t.txn and returns their
// shards.
func (q *txns) dependencies(t *Ticket) (mask uint64) {
	if t.txn <= q.settled.Load() {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.pending {
		if q.pending[i].id > t.txn {
			continue
		}
		for _, p := range q.pending[i].parts {
			if p.end == unfinished {
				continue
			}
			mask |= 1 << p.shard
			t.mark(p.shard, mark{gen: p.gen, off: p.end})
		}
	}
	return mask
}

// settle moves settled forward as far as the watermarks allow. Cheap when nothing is pending.
func (q *txns) settle() {
	if q.last.Load() == q.settled.Load() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.pending) && q.safeLocked(&q.pending[n]) {
		n++
	}
	if n == 0 {
		return
	}
	q.pending = append(q.pending[:0], q.pending[n:]...)
	settled := q.last.Load()
	for i := range q.pending {
		settled = min(settled, q.pending[i].id-1)
	}
	q.settled.Store(settled)
	q.holdLocked()
}

func (q *txns) safeLocked(t *txn) bool {
	always := q.e.Policy() == log.Always
	for _, p := range t.parts {
		l := q.e.shards[p.shard].log()
		if l.Generation() != p.gen {
			continue
		}
		safe := l.Written()
		if always {
			safe = l.Durable()
		}
		if safe < p.end {
			return false
		}
	}
	return true
}

// holdLocked caps every shard's visible watermark before its first pending transaction.
func (q *txns) holdLocked() {
	var hold [MaxShards]uint64
	for i := range hold {
		hold[i] = ^uint64(0)
	}
	for i := range q.pending {
		for _, p := range q.pending[i].parts {
			if q.e.shards[p.shard].log().Generation() == p.gen {
				hold[p.shard] = min(hold[p.shard], p.first)
			}
		}
	}
	for i, sh := range q.e.shards {
		if sh.hold != hold[i] {
			sh.hold = hold[i]
			sh.log().SetHold(hold[i])
		}
	}
}
