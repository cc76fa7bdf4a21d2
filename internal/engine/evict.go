package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Eviction says which keys go when memory is short: maxmemory-policy and its settings.
type Eviction struct {
	Volatile bool // only keys with a deadline
	By       EvictBy
	Samples  int           // keys looked at for each that goes
	Slice    time.Duration // how long one Evict may take; 0: no bound
	// LogFactor and DecayTime are those of the access counters, which are kept with EvictFrequency.
	LogFactor, DecayTime int
}

// EvictBy is what makes a key go before others.
type EvictBy int

// What keys are chosen by.
const (
	EvictNothing   EvictBy = iota
	EvictIdle              // the one not accessed for longest
	EvictFrequency         // the one accessed least
	EvictRandom
	EvictDeadline // the one that is due first
)

// settings are what a fresh keyspace is told.
type settings struct {
	limits state.Limits
	evict  Eviction
	now    uint32 // unix seconds; 0: none
}

func (s settings) give(ks *state.Keyspace) {
	ks.Limits = s.limits
	ks.SetLFU(s.evict.By == EvictFrequency, s.evict.LogFactor, s.evict.DecayTime)
	ks.SetAccessClock(s.now)
}

func (e *Engine) settings() settings {
	s := settings{limits: *e.limits.Load(), now: uint32(e.now() / 1000)} //nolint:gosec // Redis's clock has 32 bits too
	if p := e.evictor.by.Load(); p != nil {
		s.evict = *p
	}
	return s
}

// SetEviction changes which keys go.
func (e *Engine) SetEviction(p Eviction) {
	e.lock(e.all())
	defer e.unlock(e.all())
	e.evictor.by.Store(&p)
	for _, sh := range e.shards {
		sh.ks.SetLFU(p.By == EvictFrequency, p.LogFactor, p.DecayTime)
	}
	e.evictor.mu.Lock()
	defer e.evictor.mu.Unlock()
	e.evictor.pool = e.evictor.pool[:0]
}

// MeasureMemory switches UsedNow on or off.
func (e *Engine) MeasureMemory(on bool) {
	e.lock(e.all())
	defer e.unlock(e.all())
	e.evictor.measured.Store(on)
	for _, sh := range e.shards {
		sh.used.Store(sh.ks.UsedBytes())
	}
}

// UsedNow returns what UsedBytes would, without locks. REQUIRES: MeasureMemory(true).
func (e *Engine) UsedNow() (n int64) {
	for _, sh := range e.shards {
		n += sh.used.Load()
	}
	return n
}

// measure brings UsedNow up to date after a change. REQUIRES: the locks of mask are held.
func (e *Engine) measure(mask uint64) {
	if !e.evictor.measured.Load() {
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		sh := e.shards[lowest(m)]
		sh.used.Store(sh.ks.UsedBytes())
	}
}

// Evicted returns how many keys have been evicted since the start or ResetStats.
func (e *Engine) Evicted() uint64 { return e.evictor.evicted.Load() }

// poolSize is how many candidates are remembered from one eviction to the next: the more, the closer the choice
// comes to the best of all keys.
const poolSize = 16

// victim is a key that may have to go: the higher its score, the sooner.
type victim struct {
	shard int
	key   []byte
	score int64
}

// Outcome of Evict.
type Outcome int

// What came of an eviction.
const (
	EvictDone    Outcome = iota
	EvictRunning         // the time was over before there was room
	EvictFailed          // nothing is left that may go
)

// evictor chooses keys. Lock order: mu, then shard locks; so nobody who holds a shard's lock evicts.
type evictor struct {
	mu   sync.Mutex
	pool []victim // ascending by score
	next int      // shard to be asked next

	by       atomic.Pointer[Eviction]
	measured atomic.Bool // UsedNow counts
	evicted  atomic.Uint64
}

// Evict deletes keys, each by its own DEL frame of cause "evicted", until over says that there is room. What is logged is added to t.
// REQUIRES: the caller holds no shard's lock; UsedNow counts.
func (e *Engine) Evict(t *Ticket, over func() bool) Outcome {
	p := e.evictor.by.Load()
	if p == nil || p.By == EvictNothing {
		return EvictFailed
	}
	v := &e.evictor
	v.mu.Lock()
	defer v.mu.Unlock()
	began := time.Now()
	for n := 1; over(); n++ {
		if n%16 == 0 && p.Slice > 0 && time.Since(began) > p.Slice {
			return EvictRunning
		}
		if e.Housekeep(evictHousekeep) {
			continue // what has gone already gives its memory back
		}
		if over() && !e.evictOne(p, t) {
			return EvictFailed
		}
	}
	return EvictDone
}

// evictHousekeep are the slices of large values freed between two looks at the memory.
const evictHousekeep = 32

// Housekeep frees up to n slices on each shard of large values that are gone, and reports whether it freed some.
func (e *Engine) Housekeep(n int) (some bool) {
	for _, sh := range e.shards {
		sh.mu.Lock()
		if before := sh.ks.Trash(); before > 0 {
			some = true
			sh.ks.Housekeep(n)
			sh.tidied += uint64(before - sh.ks.Trash()) //nolint:gosec // it only frees
			e.measure(1 << sh.id)
		}
		sh.mu.Unlock()
	}
	return some
}

// evictOne deletes one key and reports whether there was one. REQUIRES: evictor.mu held.
func (e *Engine) evictOne(p *Eviction, t *Ticket) bool {
	for range 2 * len(e.shards) {
		if p.By == EvictRandom || p.By == EvictDeadline {
			if v, ok := e.direct(p); ok && e.evictKey(v, p, t) {
				return true
			}
			continue
		}
		e.fill(p)
		for len(e.evictor.pool) > 0 {
			last := len(e.evictor.pool) - 1
			v := e.evictor.pool[last]
			e.evictor.pool = e.evictor.pool[:last]
			if e.evictKey(v, p, t) {
				return true
			}
		}
	}
	return false
}

// direct chooses a key without a pool: a random one of the next shard, or the one of all that is due first.
func (e *Engine) direct(p *Eviction) (v victim, ok bool) {
	if p.By == EvictRandom {
		sh := e.nextShard()
		sh.mu.Lock()
		defer sh.mu.Unlock()
		if entry, has := sample(sh, p); has {
			return victim{shard: sh.id, key: bytes.Clone(entry.Key())}, true
		}
		return v, false
	}
	for _, sh := range e.shards {
		sh.mu.Lock()
		if entry, has := sh.ks.Soonest(); has {
			if ms, _ := entry.Deadline(); !ok || ms < v.score {
				v, ok = victim{shard: sh.id, key: bytes.Clone(entry.Key()), score: ms}, true
			}
		}
		sh.mu.Unlock()
	}
	return v, ok
}

func (e *Engine) nextShard() *shard {
	e.evictor.next = (e.evictor.next + 1) % len(e.shards)
	return e.shards[e.evictor.next]
}

func sample(sh *shard, p *Eviction) (state.Entry, bool) {
	if p.Volatile {
		return sh.ks.RandomVolatile(rand.Uint64()) //nolint:gosec // a sample
	}
	return sh.ks.Random(rand.Uint64()) //nolint:gosec // a sample
}

// fill adds samples of the next shard to the pool.
func (e *Engine) fill(p *Eviction) {
	sh := e.nextShard()
	now := e.now() / 1000
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for range p.Samples {
		entry, ok := sample(sh, p)
		if !ok {
			return
		}
		score := max(0, now-int64(entry.Access()))
		if p.By == EvictFrequency {
			score = 255 - int64(sh.ks.Freq(entry, uint32(now))) //nolint:gosec // a clock of 32 bits
		}
		e.evictor.add(sh.id, entry.Key(), score)
	}
}

// add puts a candidate into the pool, unless it is full of better ones.
func (v *evictor) add(shard int, key []byte, score int64) {
	at, _ := slices.BinarySearchFunc(v.pool, score, func(x victim, s int64) int { return int(x.score - s) })
	for i := range v.pool {
		if v.pool[i].shard == shard && bytes.Equal(v.pool[i].key, key) {
			return
		}
	}
	if len(v.pool) == poolSize {
		if at == 0 {
			return
		}
		v.pool = slices.Delete(v.pool, 0, 1)
		at--
	}
	v.pool = slices.Insert(v.pool, at, victim{shard: shard, key: bytes.Clone(key), score: score})
}

// evictKey deletes a key if it is still there and may go.
func (e *Engine) evictKey(v victim, p *Eviction, t *Ticket) bool {
	sh := e.shards[v.shard]
	now := e.now()
	locked := e.lockWide(1 << sh.id)
	defer e.finish(locked, now)
	entry, ok := sh.ks.Lookup(v.key)
	if !ok {
		return false
	}
	if _, has := entry.Deadline(); p.Volatile && !has {
		return false
	}
	planned := [1]command.Planned{{Shard: sh.id, Effect: effect.Effect{Op: effect.Del, Args: [][]byte{v.key}}}}
	if e.commit(planned[:], now, log.ByEviction, t) != nil {
		return false
	}
	e.evictor.evicted.Add(1)
	return true
}
