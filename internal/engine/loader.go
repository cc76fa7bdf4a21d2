package engine

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/state"
)

// Loader makes another state for a store that follows, beside the one that it has, which is served meanwhile: what a server has that is no kevy and so
// has no history to share. It belongs to one goroutine, and ends with Finish or Abandon. While there is one, no snapshots are written.
type Loader struct {
	e     *Engine
	fresh []*state.Keyspace
}

// NewLoader begins with an empty state. ErrSaving or ErrRewriting: a snapshot is being written. REQUIRES: the store follows.
func (e *Engine) NewLoader() (*Loader, error) {
	if err := e.checkpoint.beginPrune(); err != nil {
		return nil, err
	}
	l := &Loader{e: e, fresh: make([]*state.Keyspace, len(e.shards))}
	for i := range l.fresh {
		l.fresh[i] = state.New(e.Seed())
		e.settings().give(l.fresh[i])
		l.fresh[i].BeginBulk()
	}
	return l, nil
}

// NewCtx returns a context for Run.
func (l *Loader) NewCtx() *command.Ctx { return &command.Ctx{Shards: l.fresh, Seed: l.e.Seed()} }

// Run plans row c.Cmd with c.Args on the new state, folds what it plans and appends the reply to c.W. The row must have a planner that only looks
// up keys by name.
func (l *Loader) Run(c *command.Ctx) error {
	c.Reset()
	c.Now = l.e.now()
	c.Cmd.Plan(c)
	planned := c.Planned()
	for i := range planned {
		if err := l.Fold(&planned[i], c.Now); err != nil {
			return err
		}
	}
	return nil
}

// Fold folds an effect on a shard of the new state, at a time (unix ms).
func (l *Loader) Fold(p *command.Planned, now int64) error {
	ks := l.fresh[p.Shard]
	ks.SetAccessClock(uint32(now / 1000)) //nolint:gosec // a clock of 32 bits
	if _, err := ks.Fold(&p.Effect); err != nil {
		return err
	}
	for _, m := range p.Marks {
		m.Set(ks, &p.Effect)
	}
	return nil
}

// Finish makes the new state that of the store: its first snapshot set, from which a generation of cause restore begins on every shard, with
// the cursor from, of no history of kevy's, as its parent. A crash leaves the one state or the other.
func (l *Loader) Finish(from log.Cursor) error {
	e := l.e
	defer e.checkpoint.endPrune()
	lineage := e.Dir().Restored(from)
	at := make([]log.Cursor, len(l.fresh))
	for i, ks := range l.fresh {
		ks.EndBulk()
		at[i].Generation = lineage[i][0].Generation
	}
	set, err := e.writeStates(l.fresh, at)
	if err != nil {
		releaseAll(l.fresh)
		return err
	}
	_, err = e.replaceBase(baseOf(&set, Origin{HashSeed: e.Seed(), LastTxn: e.Dir().LastTxn(), Lineage: lineage}, nil), l.fresh)
	return err
}

// Abandon gives the new state up.
func (l *Loader) Abandon() {
	releaseAll(l.fresh)
	l.e.checkpoint.endPrune()
}
