package engine

import (
	"errors"
	"time"

	"github.com/kevydb/kevy/log"
)

// SnapshotPolicy says when snapshots are taken without being asked for, and which stay. The zero value
// takes none, and keeps the newest only.
type SnapshotPolicy struct {
	// Rules take a snapshot when one of them is met.
	Rules []SaveRule
	// GrowthPercent takes one when the log since the newest set has grown by that much of the set's
	// frames, and both together are more than GrowthMin bytes, or by more than 256 generations; 0: never.
	// While writers are faster than that the next one waits four times as long as the last one took, unless
	// the log grows by four times as much.
	GrowthPercent, GrowthMin int64
	// Keep is how many sets stay, the newest included; less than 1 means 1.
	Keep int
	// KeepTime is the age up to which all sets stay.
	KeepTime time.Duration
	// LogKeepTime and LogKeepBytes (per shard) are the window of the log that stays. The sets from which every
	// point of it can be restored stay with it.
	LogKeepTime  time.Duration
	LogKeepBytes int64
}

// SaveRule is met when so many effects were logged since the newest set and so many seconds have passed.
type SaveRule struct{ Seconds, Changes int64 }

const (
	autoPeriod = 200 * time.Millisecond
	// After a failed snapshot the next automatic one waits for retryFirst, and twice as long after each further
	// failure, but not longer than retryMost.
	retryFirst = 5 * time.Second
	retryMost  = 5 * time.Minute
	// ageEvery is how often sets and log are looked at that only grow old.
	ageEvery = time.Minute
	// manyGenerations is how many may begin after the newest set until another one is due, however little they hold: each is a file
	// in every shard, and a line of the manifest, which is written anew at each FLUSHALL.
	manyGenerations = 256
	// restTimes is how many times as long as a set took no other one is taken for the log's growth, so that those take a fifth of
	// the time at most, until the log has grown by restGrowth times what asks for one.
	restTimes  = 4
	restGrowth = 4
)

func backoff(failures int) time.Duration {
	d := retryFirst
	for i := 1; i < failures && d < retryMost; i++ {
		d *= 2
	}
	return min(d, retryMost)
}

// SetSnapshotPolicy changes when snapshots are taken and which stay.
func (e *Engine) SetSnapshotPolicy(p SnapshotPolicy) {
	c := &e.checkpoint
	c.mu.Lock()
	c.policy = p
	c.mu.Unlock()
	c.hold()
	c.poke()
}

// hold tells the log how much of it the policy keeps.
func (c *checkpointer) hold() {
	p := c.with(nil)
	if c.e.opt.Log.Ephemeral {
		return
	}
	_, from, unreadable, err := PlanPrune(c.e.fs, c.e.Dir(), p, c.e.now())
	if err = errors.Join(unreadable, err); err == nil {
		err = c.holdFrom(p, from)
	}
	if err != nil {
		c.e.logger.Error("what snapshot sets need of the log stays as it was", "error", err)
	}
}

// windowFloor is the name under which the log is kept from the set on with which its window begins.
const windowFloor = "snapshots"

func (c *checkpointer) holdFrom(p SnapshotPolicy, from []log.Cursor) error {
	c.e.Dir().SetKeep(p.LogKeepBytes, p.LogKeepTime)
	if from == nil {
		return c.e.Dir().ClearFloor(windowFloor)
	}
	return c.e.Dir().SetFloor(windowFloor, from)
}

// ScheduleSave takes a snapshot as soon as none is being written. It returns at once, and may be called
// with shard locks held.
func (e *Engine) ScheduleSave(kind SaveKind) {
	c := &e.checkpoint
	c.mu.Lock()
	c.status.ByKind[kind].Scheduled = true
	c.mu.Unlock()
	c.poke()
}

func (c *checkpointer) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// auto takes the snapshots that are scheduled or due.
func (c *checkpointer) auto() {
	defer close(c.done)
	t := time.NewTicker(autoPeriod)
	defer t.Stop()
	aged := time.Now()
	for {
		select {
		case <-c.quit:
			return
		case <-t.C:
		case <-c.wake:
		}
		c.round()
		if time.Since(aged) >= ageEvery {
			aged = time.Now()
			c.age()
		}
	}
}

// round starts at most one snapshot.
func (c *checkpointer) round() {
	kind, ok := c.scheduled()
	if !ok {
		if kind, ok = c.due(); !ok {
			return
		}
	}
	err := c.e.BGSave(kind)
	if err != nil && !errors.Is(err, ErrSaving) && !errors.Is(err, ErrRewriting) && !errors.Is(err, ErrClosed) {
		c.e.logger.Error("snapshot could not be started", "error", err)
	}
}

// scheduled returns a kind that waits for the running snapshot to end, when none runs.
func (c *checkpointer) scheduled() (kind SaveKind, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.Running {
		return 0, false
	}
	for kind = range saveKinds {
		if c.status.ByKind[kind].Scheduled {
			return kind, true
		}
	}
	return 0, false
}

// due reports whether a rule or the log's growth wants a snapshot.
func (c *checkpointer) due() (kind SaveKind, ok bool) {
	c.mu.Lock()
	p, s, many, rest := c.policy, c.status, c.many, c.restMS
	c.mu.Unlock()
	now := c.e.now()
	if s.Running || now < s.RetryMS || len(p.Rules) == 0 && p.GrowthPercent == 0 || c.e.broken.Load() != nil {
		return 0, false
	}
	dirty, grown := c.e.sinceSnapshot()
	for _, r := range p.Rules {
		if dirty >= uint64(max(r.Changes, 1)) && now-s.LastMS > r.Seconds*1000 {
			return SaveData, true
		}
	}
	enough := float64(s.BaseBytes) * float64(p.GrowthPercent) / 100
	if now < rest {
		enough *= restGrowth
	}
	large := grown > 0 && s.BaseBytes+grown > p.GrowthMin && float64(grown) >= enough
	if p.GrowthPercent > 0 && (large || c.e.generationsSince() > many) {
		return RewriteLog, true
	}
	return 0, false
}

// generationsSince returns how many generations have begun since the newest set was frozen; all shards begin them together.
func (e *Engine) generationsSince() (n int) {
	_, at := e.Dir().Snapshot()
	for _, g := range e.Dir().Lineage(0) {
		if at == nil || g.Generation > at[0].Generation {
			n++
		}
	}
	return n
}

// sinceSnapshot returns the effects logged since the newest set was frozen, and the bytes of their frames.
func (e *Engine) sinceSnapshot() (dirty uint64, bytes int64) {
	for _, sh := range e.shards {
		sh.mu.Lock()
		dirty += sh.dirty
		bytes += sh.grown()
		sh.mu.Unlock()
	}
	return dirty, bytes
}

// grown returns the bytes of log since the newest snapshot. REQUIRES: sh.mu held.
func (sh *shard) grown() int64 { return sh.grownBefore + sh.log().Bytes() - sh.grownMark }

// setGrown makes grown return n, from now on growing with the log. REQUIRES: sh.mu held.
func (sh *shard) setGrown(n int64) { sh.grownBefore, sh.grownMark = n, sh.log().Bytes() }
