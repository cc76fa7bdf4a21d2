package engine

import (
	"errors"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// Run executes row c.Cmd with c.Args and appends the reply to c.W. It locks the shards of the
// command's keys, removes those that are due, plans, logs and folds. What must be safe before the
// reply leaves is added to t. Errors are replies.
//
// Safe for concurrent use, each goroutine with its own Ctx and Ticket.
func (e *Engine) Run(c *command.Ctx, t *Ticket) {
	mask, locked := e.begin(c)
	defer e.finish(locked, c.Now)
	e.plan(c, mask, t)
}

// begin prepares c for its command, and returns the shards it touches and those it has locked: finish releases them.
func (e *Engine) begin(c *command.Ctx) (mask, locked uint64) {
	c.Reset()
	c.Now, c.MaxBulk = c.Turn, e.maxBulk.Load()
	if c.Now == 0 {
		c.Now = e.now()
	}
	c.CanBlock, c.Waited = false, false
	wide := c.Cmd.Flags&command.Write != 0
	return e.lockFor(c, wide, func() uint64 { return e.maskOf(c) })
}

// lockFor locks the shards of mask, wide: as lockWide does. Which shard a key is on can change until they are locked.
func (e *Engine) lockFor(c *command.Ctx, wide bool, shards func() uint64) (mask, locked uint64) {
	for {
		c.Seed = e.Seed()
		mask = shards()
		locked = mask
		if wide {
			locked = e.lockWide(mask)
		} else {
			e.lock(mask)
		}
		if c.Seed == e.Seed() {
			return mask, locked
		}
		e.unlock(locked)
	}
}

// plan runs a command whose locks are held.
func (e *Engine) plan(c *command.Ctx, mask uint64, t *Ticket) {
	if err := e.expireKeys(c, mask, t); err != nil {
		e.refuse(c, len(c.W.Buf), err)
		return
	}
	start := len(c.W.Buf)
	e.noteMisses(c)
	c.Cmd.Plan(c)
	e.missed(c, t)
	if len(c.Planned()) == 0 {
		e.dropPast(c, t)
		e.noteRead(mask, t)
		return
	}
	if err := e.commit(c.Planned(), c.Now, log.ByClient, t); err != nil {
		e.refuse(c, start, err)
	}
}

// maskOf returns the shards that c's command may touch.
func (e *Engine) maskOf(c *command.Ctx) uint64 {
	n := len(e.shards)
	switch {
	case c.Cmd.Scope == command.ScopeNone:
		return 0
	case c.Cmd.Scope == command.ScopeAll:
		return 1<<n - 1
	case n == 1:
		return 1
	}
	if c.Cmd.Keys == nil && c.Cmd.FirstKey > 0 && c.Cmd.LastKey == c.Cmd.FirstKey && c.Cmd.FirstKey < len(c.Args) {
		return 1 << c.ShardOf(c.Args[c.Cmd.FirstKey])
	}
	return e.keyMask(c, command.KeyPositions(c.Cmd, c.Args, nil))
}

func (e *Engine) keyMask(c *command.Ctx, positions []int) (mask uint64) {
	for _, i := range positions {
		mask |= 1 << c.ShardOf(c.Args[i])
	}
	return mask
}

func (e *Engine) lock(mask uint64) {
	for m := mask; m != 0; m &= m - 1 {
		e.shards[lowest(m)].mu.Lock()
	}
}

func (e *Engine) unlock(mask uint64) {
	for m := mask; m != 0; m &= m - 1 {
		e.shards[lowest(m)].mu.Unlock()
	}
}

// noteRead makes the reply of a read wait, under always, for what it may have seen: nothing is
// visible to a client before it is durable. After a failure the keyspaces show what is not until they are repaired.
func (e *Engine) noteRead(mask uint64, t *Ticket) {
	if e.Policy() != log.Always || e.broken.Load() != nil && e.isRepaired() {
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		sh := e.shards[lowest(m)]
		if sh.log().Durable() < sh.log().Appended() || sh.lastTxn > e.txns.settled.Load() {
			t.note(sh)
		}
	}
}

// expireKeys logs and folds a DEL for each key of the command that is past its deadline. A key
// that cannot be logged away just stays hidden. REQUIRES: the locks of mask are held.
func (e *Engine) expireKeys(c *command.Ctx, mask uint64, t *Ticket) error {
	if !e.mayExpire(c) {
		return nil
	}
	if !e.due(mask, c.Now) {
		return nil
	}
	for _, i := range command.KeyPositions(c.Cmd, c.Args, nil) {
		if err := e.expireKey(c.Args[i], c.Now, t); err != nil && c.Cmd.Flags&command.Write != 0 {
			return err
		}
	}
	return nil
}

// due reports whether something is due on one of the shards of mask. REQUIRES: their locks are held.
func (e *Engine) due(mask uint64, now int64) bool {
	for m := mask; m != 0; m &= m - 1 {
		if ms, ok := e.shards[lowest(m)].ks.NextDeadline(); ok && ms <= now {
			return true
		}
	}
	return false
}

// dropPast deletes the keys past their deadline that a read has come across. REQUIRES: their shards' locks are held.
func (e *Engine) dropPast(c *command.Ctx, t *Ticket) {
	if len(c.Past()) == 0 || !e.mayExpire(c) {
		return
	}
	for _, key := range c.Past() {
		if e.expireKey(key, c.Now, t) != nil {
			return // the log refuses: they stay hidden
		}
	}
}

// mayExpire reports whether a command deletes those of its keys that are due before it runs.
func (e *Engine) mayExpire(c *command.Ctx) bool {
	if e.following.Load() {
		return false // that comes from the store that is followed
	}
	return !c.KeepExpired && (c.Cmd.Flags&command.Write != 0 || !e.expiryHeld.Load())
}

// expireKey removes key if it is due, or due fields of a hash. REQUIRES: its shard's lock is held.
func (e *Engine) expireKey(key []byte, now int64, t *Ticket) error {
	i := e.shardOf(key)
	sh := e.shards[i]
	entry, ok := sh.ks.Lookup(key)
	if !ok {
		return nil
	}
	if ms, has := entry.Deadline(); !has || ms > now {
		return e.expireFieldsOf(sh, entry, now, t)
	}
	planned := [1]command.Planned{{
		Shard:  i,
		Effect: effect.Effect{Op: effect.Del, Args: [][]byte{key}},
	}}
	if err := e.commit(planned[:], now, log.ByExpiry, t); err != nil {
		return err
	}
	sh.expired++
	return nil
}

// refuse replaces the reply from start on by the error of a commit.
func (e *Engine) refuse(c *command.Ctx, start int, err error) {
	c.W.Buf = c.W.Buf[:start]
	c.DropPlanned()
	c.W.Error(Misconf(err))
}

// Misconf words the reply of a write that the log refused.
func Misconf(err error) string {
	if errors.Is(err, ErrFollower) {
		return ReadOnly
	}
	if errors.Is(err, errTooLarge) {
		return err.Error()
	}
	if errors.Is(err, log.ErrDiskFull) {
		return "MISCONF The log's disk is full: writes are refused until there is space again. " + err.Error()
	}
	return "MISCONF Errors writing to the log: writes are refused, reads go on. Check the disk and restart kevy. Cause: " + err.Error()
}
