package engine

import (
	"errors"
	"fmt"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// ErrFollower refuses what would add to the log of a store that follows another one: its log is the other's.
var ErrFollower = errors.New("engine: this store follows another one: its log takes nothing else")

// ReadOnly is the reply of a write to a store that follows another one.
const ReadOnly = "READONLY You can't write against a read only replica."

// Unblocked is the reply of a command that waits when the store changes its role, or its data as a whole.
const Unblocked = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"

// Following reports whether the store follows another one.
func (e *Engine) Following() bool { return e.following.Load() }

// Follow makes the store one that follows another: from now on an Applier alone adds to its log, nothing expires or is
// evicted on its own, and clients that wait are sent away.
func (e *Engine) Follow() error {
	e.lock(e.all())
	var done []*Waiter
	err := e.brokenErr()
	if err == nil {
		err = e.flush(e.all())
	}
	if err == nil && !e.following.Load() {
		err = e.removeCut() // of another time as a follower
	}
	if err == nil {
		e.txns.settle()
		if err = e.Dir().Follow(); err == nil {
			e.following.Store(true)
			done = e.dismissWaiters()
		}
	}
	e.unlock(e.all())
	unblock(done)
	return err
}

// Promote makes a store that follows another one follow none: a new generation of cause promotion begins on every
// shard. After an error it follows as before.
func (e *Engine) Promote() error {
	e.lock(e.all())
	defer e.unlock(e.all())
	if !e.following.Load() {
		return nil
	}
	if err := e.beginGeneration(func(d *log.Dir, _ func()) error { return d.Promote() }); err != nil {
		return err
	}
	e.txns.restart(e.Dir().LastTxn())
	e.following.Store(false)
	e.held.set(nil)
	e.nextExpiry.Store(0)
	e.expirer.awaken()
	return nil
}

// dismissWaiters takes all clients that wait out of their queues. REQUIRES: all shard locks are held; unblock follows.
func (e *Engine) dismissWaiters() (done []*Waiter) {
	for _, sh := range e.shards {
		for _, q := range sh.waits.queues {
			for p := q.first; p != nil; {
				next := p.next
				w := p.w
				w.mu.Lock()
				if !w.over {
					done = append(done, w)
				}
				w.end()
				w.mu.Unlock()
				w.leave()
				p = next
			}
		}
		sh.waits.ready = nil
	}
	return done
}

// unblock answers clients that were dismissed.
func unblock(done []*Waiter) {
	for _, w := range done {
		w.W.Error(Unblocked)
		w.Done(w)
	}
}

// replaceBase makes base the state of the store, and the keyspaces, which are that state. It takes the keyspaces over.
// REQUIRES: no snapshot is being written.
func (e *Engine) replaceBase(base *log.Base, fresh []*state.Keyspace) (aside []string, err error) {
	aside, err = e.replaceLog(func(d *log.Dir) (*log.Dir, []string, error) { return d.Replace(base) }, base.Set, fresh, make([]replayed, len(fresh)))
	if err == nil {
		err = e.fitCut(base.Cursors)
	}
	return aside, err
}

// replaceLog has the log replaced by another one, on the snapshot set with the given name, and makes the keyspaces, which are what that log leads to, the
// state of the store. It takes the keyspaces over. behind is the log behind the set. REQUIRES: as replaceBase.
func (e *Engine) replaceLog(replace func(*log.Dir) (*log.Dir, []string, error), set string, fresh []*state.Keyspace, behind []replayed) (aside []string, err error) {
	e.lock(e.all())
	e.replacing.Store(true)
	next, aside, err := replace(e.Dir())
	var done []*Waiter
	if err == nil {
		e.use(next, fresh, behind)
		done = e.dismissWaiters()
	} else {
		releaseAll(fresh)
	}
	e.replacing.Store(false)
	e.unlock(e.all())
	unblock(done)
	if errors.Is(err, log.ErrGone) {
		return aside, fmt.Errorf("%w: %w", ErrNoWayBack, err)
	}
	if err != nil {
		err = fmt.Errorf("engine: replacing the state: %w", err)
		e.markBroken(err)
		return aside, err
	}
	if name := e.opt.HoldFor; name != "" {
		if err := next.SetFloor(name, make([]log.Cursor, len(e.shards))); err != nil {
			e.logger.Error("the log behind a full copy is not held", "for", name, "error", err)
		}
	}
	next.Maintain()
	if e.opt.Log.Ephemeral { // nobody will load the set
		err = errors.Join(next.SetSnapshot("", nil), snapshot.Remove(e.fs, next.Path(), set))
	}
	return aside, err
}

// use makes next the directory and fresh its state, behind which is the log behind the newest set. REQUIRES: all shard locks are held.
func (e *Engine) use(next *log.Dir, fresh []*state.Keyspace, behind []replayed) {
	e.dir.Store(next)
	for i, sh := range e.shards {
		for _, list := range sh.watched {
			markDirty(list, "")
		}
		sh.ks.Release()
		sh.lg.Store(next.Log(i))
		sh.ks, e.keyspaces[i] = fresh[i], fresh[i]
		sh.dirty = behind[i].frames
		sh.setGrown(behind[i].bytes)
	}
	e.txns.restart(next.LastTxn())
	e.measure(e.all())
	if e.listener != nil && e.wanted.Load()&WantKeys != 0 {
		e.listener.Committed(&Changes{Flushed: true})
	}
}

// DirAfter returns the open log directory; given one that is closed, the one in its place, for which it waits. It is the
// same if the engine itself is closed.
func (e *Engine) DirAfter(closed *log.Dir) *log.Dir {
	if closed != nil && closed == e.Dir() {
		e.lock(1)
		defer e.unlock(1)
	}
	return e.Dir()
}

// replaced reports whether a log's error is no failure: another log has taken its place, or is about to.
func (e *Engine) replaced(shard int, l *log.Log) bool {
	return e.replacing.Load() || e.shards[shard].log() != l
}

// logErr returns why a shard's log takes no more, unless it has been replaced.
func (e *Engine) logErr(shard int, l *log.Log) error {
	err := l.Err()
	if err != nil && errors.Is(err, log.ErrClosed) && e.replaced(shard, l) {
		return nil
	}
	return err
}

// lockShardOf locks the shard of a key.
func (e *Engine) lockShardOf(key []byte) (int, *shard) {
	for {
		seed := e.Seed()
		i := e.shardOf(key)
		sh := e.shards[i]
		sh.mu.Lock()
		if e.Seed() == seed {
			return i, sh
		}
		sh.mu.Unlock()
	}
}
