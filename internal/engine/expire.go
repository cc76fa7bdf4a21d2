package engine

import (
	"bytes"
	"math"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// expirer deletes keys at their deadlines. It is exact, not sampled: it sleeps until the next
// deadline of any shard, and a write that sets an earlier one wakes it. Each key goes by its own
// DEL frame of cause "expired", so prefix filters apply; the due fields of a hash go by an HDEL. It
// also frees large values that are gone.
type expirer struct {
	e    *Engine
	wake chan struct{}
	stop chan struct{}
	done chan struct{}
}

const (
	// expireBatch bounds the keys deleted under one hold of a shard's lock.
	expireBatch = 128
	// fieldBatch bounds the fields of one hash that a command on it deletes first.
	fieldBatch = 512
	// expireIdle is how long the expirer sleeps when no deadline is near: a bound for clock jumps.
	expireIdle = time.Second
	// tidySlices are the slices of large values that are gone which are freed on each shard at a time, under
	// its lock; tidyPause comes between two such times.
	tidySlices = 256
	tidyPause  = 20 * time.Millisecond
)

func newExpirer(e *Engine) *expirer {
	return &expirer{
		e:    e,
		wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
}

// wakeExpirer wakes the expirer if a shard in mask has a deadline before its next round.
// REQUIRES: the locks of mask are held.
func (e *Engine) wakeExpirer(mask uint64) {
	for m := mask; m != 0; m &= m - 1 {
		ms, ok := e.shards[lowest(m)].ks.NextDeadline()
		if !ok || ms >= e.nextExpiry.Load() {
			continue
		}
		e.nextExpiry.Store(ms)
		e.expirer.awaken()
	}
}

// awaken makes the expirer look for what is due.
func (x *expirer) awaken() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *expirer) run() {
	defer close(x.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-x.stop:
			return
		case <-x.wake:
		case <-timer.C:
		}
		timer.Reset(min(x.round(), x.tidy()))
	}
}

// tidy frees a part of the large values that are gone and returns when there may be more to free.
func (x *expirer) tidy() time.Duration {
	if x.e.Housekeep(tidySlices) {
		return tidyPause
	}
	return expireIdle
}

// round deletes what is due and returns how long to sleep. It may wait long for a shard's lock: meanwhile every
// deadline wakes the expirer, and how long to sleep is reckoned when it is over.
func (x *expirer) round() time.Duration {
	e := x.e
	now := e.now()
	e.nextExpiry.Store(math.MaxInt64)
	next := int64(math.MaxInt64)
	for _, sh := range e.shards {
		if e.activeExpiryOff.Load() || e.expiryHeld.Load() || e.following.Load() {
			break
		}
		ms, more, err := x.sweep(sh, now)
		switch {
		case err != nil:
			// Refused: the keys stay hidden; try again later.
		case more:
			next = now
		default:
			next = min(next, ms)
		}
	}
	now = e.now()
	next = min(next, now+expireIdle.Milliseconds())
	e.nextExpiry.Store(next) // who has set an earlier one meanwhile has also woken the expirer
	return time.Duration(max(1, next-now)) * time.Millisecond
}

// sweep deletes up to a batch of due keys of one shard. It returns the shard's next deadline, the end of time if
// there is none, and whether more is due now.
func (x *expirer) sweep(sh *shard, now int64) (next int64, more bool, err error) {
	next = math.MaxInt64
	var t Ticket
	locked := x.e.lockWide(1 << sh.id)
	var keys [][]byte
	sh.ks.Due(now, expireBatch, func(key []byte) { keys = append(keys, bytes.Clone(key)) })
	for _, key := range keys {
		if err = x.e.expireKey(key, now, &t); err != nil {
			break
		}
	}
	fields := 0
	if err == nil {
		fields, err = x.e.expireFields(sh, now, &t)
	}
	if ms, ok := sh.ks.NextDeadline(); ok {
		next = min(next, ms)
	}
	x.e.finish(locked, now)
	if _, serr := x.e.Settle(&t); err == nil {
		err = serr
	}
	return next, len(keys) == expireBatch || fields == expireBatch, err
}

// expireFields deletes up to a batch of due fields of one shard's hashes and returns how many it was.
// REQUIRES: the shard's lock is held.
func (e *Engine) expireFields(sh *shard, now int64, t *Ticket) (n int, err error) {
	var due []command.Planned
	sh.ks.DueFields(now, expireBatch, func(key []byte, names [][]byte) {
		n += len(names)
		due = append(due, hdel(sh, key, names))
	})
	for i := range due {
		if err = e.commit(due[i:i+1], now, log.ByExpiry, t); err != nil {
			return n, err
		}
	}
	return n, nil
}

// expireFieldsOf deletes due fields of one hash, at most a batch: what a command on the key must wait for
// is bounded, planners hide the rest. REQUIRES: the shard's lock is held.
func (e *Engine) expireFieldsOf(sh *shard, entry state.Entry, now int64, t *Ticket) error {
	due, ok := dueFields(sh, entry, now)
	if !ok {
		return nil
	}
	return e.commit([]command.Planned{due}, now, log.ByExpiry, t)
}

// dueFields returns the removal of due fields of a hash, if it has some.
func dueFields(sh *shard, entry state.Entry, now int64) (p command.Planned, ok bool) {
	if ms, has := entry.FieldDeadline(); !has || ms > now {
		return p, false
	}
	h := sh.ks.Fields(entry)
	return hdel(sh, entry.Key(), h.Due(now, fieldBatch)), true
}

// hdel plans the removal of expired fields; it owns its arguments.
func hdel(sh *shard, key []byte, names [][]byte) command.Planned {
	e := effect.Effect{Op: effect.HDel, Args: append([][]byte{key}, names...)}
	return command.Planned{Shard: sh.id, Effect: copyEffect(&e), Expired: true}
}

func (x *expirer) close() {
	close(x.stop)
	<-x.done
}
