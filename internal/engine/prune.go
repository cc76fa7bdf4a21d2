package engine

import (
	"errors"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

func (p *SnapshotPolicy) keep() snapshot.Keep {
	return snapshot.Keep{Count: p.Keep, Time: p.KeepTime, LogTime: p.LogKeepTime, LogBytes: p.LogKeepBytes}
}

// candidates returns the sets of a directory in the order of their ids. A set that cannot be read is left out of
// it, and so is never removed; unreadable tells which, and why.
func candidates(fsys vfs.FS, dir *log.Dir) (sets []snapshot.Candidate, unreadable, err error) {
	ids, err := snapshot.List(fsys, dir.Path())
	if err != nil {
		return nil, nil, err
	}
	inUse, _ := dir.Snapshot()
	for _, id := range ids {
		set, err := snapshot.ReadSet(fsys, dir.Path(), id)
		if err != nil {
			unreadable = errors.Join(unreadable, err)
			continue
		}
		c := snapshot.Candidate{Set: set, InUse: id == inUse, Reachable: len(set.Shards) == dir.Shards()}
		for i, from := range set.Cursors() {
			if !c.Reachable {
				break
			}
			bytes, ok := dir.Log(i).BytesFrom(from)
			if i == 0 || bytes < c.LogBytes {
				c.LogBytes = bytes
			}
			c.Reachable = ok
		}
		sets = append(sets, c)
	}
	return sets, unreadable, nil
}

// PlanPrune decides which snapshot sets of a directory stay, for an open directory or one opened for reading only.
// hold are the cursors from which the log is needed for its window, nil: there is none.
func PlanPrune(fsys vfs.FS, dir *log.Dir, p SnapshotPolicy, nowMS int64) (plan []snapshot.Decision, hold []log.Cursor, unreadable, err error) {
	sets, unreadable, err := candidates(fsys, dir)
	if err != nil {
		return nil, nil, unreadable, err
	}
	plan, window, short := snapshot.Plan(sets, p.keep(), nowMS)
	if window >= 0 {
		hold = sets[window].Cursors()
	}
	if first := beginning(dir); short && first != nil {
		hold = first
	}
	return plan, hold, unreadable, nil
}

// beginning returns the cursors of the very first frames, from which every point can be restored without a set; nil
// if they are not on disk any more.
func beginning(dir *log.Dir) (first []log.Cursor) {
	for i := range dir.Shards() {
		c, err := startOf(dir.Log(i), nil)
		if err != nil {
			return nil
		}
		first = append(first, c)
	}
	return first
}

// CarryOut removes the sets that a plan does not keep, oldest first.
func CarryOut(fsys vfs.FS, data string, plan []snapshot.Decision) (err error) {
	for _, d := range plan {
		if !d.Keep {
			err = errors.Join(err, snapshot.Remove(fsys, data, d.ID))
		}
	}
	return err
}

// Prune decides which sets stay and, unless dry, removes the others and the log that nobody needs any more. keep
// changes the policy for this time; it may be nil. ErrSaving or ErrRewriting: a set is being written.
func (e *Engine) Prune(dry bool, keep func(*SnapshotPolicy)) ([]snapshot.Decision, error) {
	c := &e.checkpoint
	if e.opt.Log.Ephemeral {
		return nil, ErrNoDirectory
	}
	if dry {
		plan, _, unreadable, err := PlanPrune(e.fs, e.Dir(), c.with(keep), e.now())
		return plan, errors.Join(unreadable, err)
	}
	if err := c.beginPrune(); err != nil {
		return nil, err
	}
	defer c.endPrune()
	return c.prune(c.with(keep))
}

// beginPrune takes the right to remove sets.
func (c *checkpointer) beginPrune() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.prunes && !c.closed {
		c.idle.Wait()
	}
	if err := c.refusal(); err != nil {
		return err
	}
	c.prunes = true
	return nil
}

func (c *checkpointer) endPrune() {
	sets, bytes := c.onDisk()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prunes, c.status.Sets, c.status.SetBytes = false, sets, bytes
	c.idle.Broadcast()
}

// with returns the policy, changed by keep.
func (c *checkpointer) with(keep func(*SnapshotPolicy)) SnapshotPolicy {
	c.mu.Lock()
	p := c.policy
	c.mu.Unlock()
	if keep != nil {
		keep(&p)
	}
	return p
}

// prune removes the sets that p does not keep and the segments that nobody needs any more. REQUIRES: the right that
// begin or beginPrune gives.
func (c *checkpointer) prune(p SnapshotPolicy) ([]snapshot.Decision, error) {
	e := c.e
	plan, from, unreadable, err := PlanPrune(e.fs, e.Dir(), p, e.now())
	if err = errors.Join(err, c.holdFrom(p, from)); err != nil {
		return nil, errors.Join(unreadable, err)
	}
	_, dropErr := e.Dir().DropUnneeded()
	return plan, errors.Join(unreadable, dropErr, CarryOut(e.fs, e.Dir().Path(), plan))
}

// tidy is prune with the policy in force. What goes wrong is logged and shown, and tried again the next time.
func (c *checkpointer) tidy() {
	_, err := c.prune(c.with(nil))
	if err != nil && !errors.Is(err, log.ErrClosed) {
		c.e.logger.Error("old snapshots or log segments could not be removed", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.PruneError = err
}

// age removes what has only grown too old, when the policy goes by time.
func (c *checkpointer) age() {
	if p := c.with(nil); p.KeepTime == 0 && p.LogKeepTime == 0 {
		return
	}
	if c.beginPrune() != nil {
		return
	}
	defer c.endPrune()
	c.tidy()
}
