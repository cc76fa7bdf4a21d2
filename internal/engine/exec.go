package engine

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// Queued is a command of a transaction. Args are owned by the queue.
type Queued struct {
	Cmd  *command.Command
	Args [][]byte
}

// Exec runs queue as one group: all locks are held throughout, one clock, all effects durable
// together or not at all. It appends the whole EXEC reply to c.W: an array, a null array (and
// returns false) if w is dirty, or an error if the log refused. local runs the rows without a
// planner and appends their replies.
func (e *Engine) Exec(c *command.Ctx, queue []Queued, w *Watch, t *Ticket, local func(*command.Ctx)) bool {
	mask := uint64(0)
	_, locked := e.lockFor(c, true, func() uint64 {
		mask = e.execMask(c, queue)
		if w == nil {
			return mask
		}
		return mask | w.mask()
	})
	c.Now = e.now()
	defer e.finish(locked, c.Now)
	if w != nil && w.dirtyAt(c.Now) {
		c.W.NullArray()
		return false
	}
	start := len(c.W.Buf)
	c.W.Array(len(queue))
	err := e.inGroup(c, t, func(g *group) error {
		watch := stopwatch{took: c.Took}
		watch.start()
		for i := range queue {
			c.Cmd, c.Args = queue[i].Cmd, queue[i].Args
			if c.Permit != nil {
				if bad := c.Permit(c.Cmd, c.Args); bad != "" {
					c.W.Error(bad)
					continue
				}
			}
			if err := g.run(c, func(c *command.Ctx) error { local(c); return nil }); err != nil {
				return err
			}
			watch.lap(&queue[i])
		}
		return nil
	})
	if err != nil {
		e.refuse(c, start, err)
		return true
	}
	e.noteRead(mask, t)
	return true
}

// stopwatch measures the commands of a transaction: each reading ends one and begins the next.
type stopwatch struct {
	took func(*command.Command, [][]byte, int64) // nil: nobody asks
	at   time.Time
}

func (s *stopwatch) start() {
	if s.took != nil {
		s.at = time.Now()
	}
}

func (s *stopwatch) lap(q *Queued) {
	if s.took == nil {
		return
	}
	before := s.at
	s.at = time.Now()
	if q.Cmd.Plan != nil {
		s.took(q.Cmd, q.Args, int64(s.at.Sub(before)))
	}
}

// inGroup runs fn with a group whose clock is c.Now and commits it; the group is undone if fn or
// the commit fails, or fn panics. REQUIRES: the locks of all shards that fn may touch are held.
func (e *Engine) inGroup(c *command.Ctx, t *Ticket, fn func(g *group) error) error {
	g := takeGroup()
	g.e, g.now, g.cause, g.ticket, g.notes, g.before = e, c.Now, log.ByClient, t, e.newNotes(t.Client), c.Before
	done := false
	c.Pending, c.Nested = g.hooks.pending, g.hooks.nested
	defer func() {
		c.Pending, c.Nested, c.Flushed = nil, nil, false
		if !done {
			g.rollback()
		}
	}()
	if err := fn(g); err != nil {
		return err
	}
	if err := g.commit(); err != nil {
		return err
	}
	done = true
	g.leave()
	return nil
}

func (e *Engine) execMask(c *command.Ctx, queue []Queued) (mask uint64) {
	for i := range queue {
		c.Cmd, c.Args = queue[i].Cmd, queue[i].Args
		mask |= e.maskOf(c)
	}
	return mask
}

// group is a run of commands whose effects become one group of frames. Each command's effects are
// folded at once, so that the next command sees them; the frames are appended at commit, before
// any lock is released. rollback folds the pre-images.
type group struct {
	e       *Engine
	now     int64
	cause   log.FrameCause
	foreign bool // of the server that is followed; see Replay
	ticket  *Ticket
	script  bool   // a script calls the commands
	notes   *notes // for listeners, nil if there are none
	before  func(*command.Command, [][]byte, bool)
	planned []command.Planned // own copies of the arguments
	head    []command.Planned // what comes before and the FLUSHALL, when there was one: planned is what follows it
	undo    undo
	hooks   groupHooks
}

// groupHooks are a group's methods for its Ctx, made once.
type groupHooks struct {
	pending func(shard int) uint64
	nested  func(c *command.Ctx, local func(*command.Ctx) error) error
}

// groups keeps groups that have ended: one is as much memory as most scripts need besides.
var groups sync.Pool

// takeGroup returns an empty group.
func takeGroup() *group {
	if g, ok := groups.Get().(*group); ok {
		return g
	}
	g := &group{}
	g.hooks = groupHooks{g.pending, g.nested}
	return g
}

// leave empties a group that has been committed, for another one to use.
func (g *group) leave() {
	*g = group{planned: g.planned[:0], undo: g.undo, hooks: g.hooks}
	groups.Put(g)
}

// pending counts the frames planned for a shard so far, up to a FLUSHALL: what follows that is in a generation that has
// not begun.
func (g *group) pending(shard int) (n uint64) {
	planned := g.planned
	if g.head != nil {
		planned = g.head
	}
	for i := range planned {
		if planned[i].Shard == shard || planned[i].Shard == command.AllShards {
			n++
		}
	}
	return n
}

// run executes one command inside the group.
func (g *group) run(c *command.Ctx, local func(*command.Ctx) error) error {
	c.Reset()
	c.Now, c.MaxBulk = g.now, g.e.maxBulk.Load()
	c.CanBlock, c.Waited = false, false
	if g.before != nil {
		g.before(c.Cmd, c.Args, g.script)
	}
	if c.Cmd.Plan == nil {
		return local(c)
	}
	g.expire(c)
	g.e.noteMisses(c)
	start := len(c.W.Buf)
	c.Cmd.Plan(c)
	g.notes.missed(c)
	planned := c.Planned()
	if len(planned) > 0 && g.refused() {
		g.e.refuse(c, start, ErrFollower)
		return nil
	}
	if tooLarge(planned) {
		g.e.refuse(c, start, errTooLarge)
		return nil
	}
	if len(planned) == 0 {
		if g.e.mayExpire(c) {
			for _, key := range c.Past() {
				g.expireKey(key)
			}
		}
		return nil
	}
	if planned[len(planned)-1].Effect.Op == effect.FlushAll {
		c.Flushed = true
		return g.flushAll(planned)
	}
	if err := g.e.brokenErr(); err != nil {
		return err
	}
	for i := range planned {
		g.fold(&planned[i])
	}
	g.notes.commandEnds()
	return nil
}

// refused reports whether the store takes nothing of the group, because it follows another one.
func (g *group) refused() bool { return g.e.following.Load() && !g.foreign }

// expire folds a DEL for each of the command's keys that is due.
func (g *group) expire(c *command.Ctx) {
	if !g.e.mayExpire(c) || !g.e.due(g.e.maskOf(c), g.now) {
		return
	}
	for _, i := range command.KeyPositions(c.Cmd, c.Args, nil) {
		g.expireKey(c.Args[i])
	}
}

// expireKey folds the removal of a key, or of fields of a hash, that are due.
func (g *group) expireKey(key []byte) {
	s := g.e.shardOf(key)
	entry, ok := g.e.shards[s].ks.Lookup(key)
	if !ok {
		return
	}
	if ms, has := entry.Deadline(); has && ms <= g.now {
		g.fold(&command.Planned{Shard: s, Effect: effect.Effect{Op: effect.Del, Args: [][]byte{key}}, Expired: true})
		g.e.shards[s].expired++
	} else if due, ok := dueFields(g.e.shards[s], entry, g.now); ok {
		g.fold(&due)
	}
}

// fold is tryFold for what a planner has planned: it folds, or the planner is wrong and the process ends.
func (g *group) fold(p *command.Planned) {
	if err := g.tryFold(p); err != nil {
		crash(err)
	}
}

// tryFold copies an effect into the group, keeps the pre-images of its keys and folds it.
func (g *group) tryFold(p *command.Planned) error {
	sh := g.e.shards[p.Shard]
	own := command.Planned{Shard: p.Shard, Effect: copyEffect(&p.Effect), Expired: p.Expired, Script: g.script, Cmd: p.Cmd, Event: p.Event, Whole: p.Whole}
	if own.Effect.Op == effect.Function {
		g.keepLibraries(sh)
	}
	own.Effect.EachKey(func(key []byte) { g.undo.keep(sh, key) })
	if err := g.foldOn(sh, &own); err != nil {
		return err
	}
	sh.setMarks(p.Marks, &own.Effect)
	g.planned = append(g.planned, own)
	return nil
}

// foldOn folds an effect of the group on a shard.
func (g *group) foldOn(sh *shard, p *command.Planned) (err error) {
	sh.ks.SetAccessClock(uint32(g.now / 1000)) //nolint:gosec // a clock of 32 bits
	fold := func() { err = sh.fold(&p.Effect) }
	if g.notes == nil {
		fold()
	} else {
		g.notes.around(sh, p, g.cause, fold)
	}
	return err
}

// commit appends the group's frames.
func (g *group) commit() error {
	if g.head != nil {
		return g.commitFlushed()
	}
	if len(g.planned) == 0 {
		g.notes.deliver(0)
		return nil
	}
	if g.refused() {
		return ErrFollower
	}
	e := g.e
	mask, size := e.extent(g.planned)
	if err := e.room(mask, size); err != nil {
		if !slices.ContainsFunc(g.planned, func(p command.Planned) bool { return !p.Expired }) {
			g.rollback() // reads have met keys past their deadline: those stay hidden
			return nil
		}
		return err
	}
	e.append(g.planned, mask, g.now, g.cause, false, nil)
	g.notes.deliver(mask)
	e.noteWrite(mask, g.ticket)
	g.planned = emptied(g.planned)
	g.undo.forget()
	return nil
}

// fewEffects are so many that a group keeps their memory for the next one.
const fewEffects = 64

// emptied returns p without its elements, for further ones unless there were many.
func emptied(p []command.Planned) []command.Planned {
	if len(p) > fewEffects {
		return nil
	}
	clear(p)
	return p[:0]
}

// flushAll folds a FLUSHALL. What the group has planned up to it is in its generation, what follows in the next.
func (g *group) flushAll(planned []command.Planned) error {
	if err := g.e.brokenErr(); err != nil {
		return err
	}
	g.undo.keepAll(g.e)
	for i := range planned[:len(planned)-1] {
		g.fold(&planned[i])
	}
	flush := planned[len(planned)-1]
	flush.Effect, flush.Script = copyEffect(&flush.Effect), g.script
	for _, sh := range g.e.shards {
		if err := g.foldOn(sh, &flush); err != nil {
			crash(err)
		}
	}
	if n := len(g.head); n > 0 {
		// Nothing of what lies between two of them is left but libraries.
		g.planned = slices.DeleteFunc(g.planned, func(p command.Planned) bool { return p.Effect.Op != effect.Function })
		g.planned = append(g.head[:n-1], g.planned...)
	}
	g.head, g.planned = append(g.planned, flush), nil
	g.notes.commandEnds()
	return nil
}

// commitFlushed appends the frames of a group with a FLUSHALL in it.
func (g *group) commitFlushed() error {
	e := g.e
	if err := e.appendFlush(g.head, g.planned, g.now, g.cause, false, nil); err != nil {
		return err
	}
	g.notes.deliver(e.all())
	e.noteWrite(e.all(), g.ticket)
	g.head, g.planned = nil, emptied(g.planned)
	g.undo.forget()
	return nil
}

// rollback restores the keys as they were before the group.
func (g *group) rollback() {
	g.undo.restore(g.e)
	g.head, g.planned = nil, nil
	g.notes.abandon()
}

func copyEffect(e *effect.Effect) effect.Effect {
	args := make([][]byte, len(e.Args))
	for i, a := range e.Args {
		args[i] = bytes.Clone(a)
		if args[i] == nil {
			args[i] = []byte{}
		}
	}
	return effect.Effect{Op: e.Op, Args: args}
}
