package engine

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
)

// Update runs fn with all shards locked. Every call of run executes row c.Cmd with c.Args inside
// one group; what they changed is logged as that group when fn returns nil, and undone when it
// returns an error or panics. local runs rows without a planner.
func (e *Engine) Update(c *command.Ctx, t *Ticket, local func(*command.Ctx) error, fn func(run func() error) error) (err error) {
	e.lock(e.all())
	defer e.unlock(e.all())
	g := group{e: e, now: e.now(), cause: log.ByClient, ticket: t}
	c.Pending = g.pending
	done := false
	defer func() {
		c.Pending = nil
		if !done {
			g.rollback()
		}
	}()
	if err := fn(func() error { return g.run(c, local) }); err != nil {
		return err
	}
	if err := g.commit(); err != nil {
		return err
	}
	done = true
	return nil
}
