package engine

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
)

// Update runs fn with all shards locked. Every call of run executes row c.Cmd with c.Args inside
// one group; what they changed is logged as that group when fn returns nil, and undone when it
// returns an error or panics. local runs rows without a planner.
func (e *Engine) Update(c *command.Ctx, t *Ticket, local func(*command.Ctx) error, fn func(run func() error) error) error {
	return e.UpdateAs(log.ByClient, c, t, local, fn)
}

// UpdateAs is Update for frames of another cause than client.
func (e *Engine) UpdateAs(
	cause log.FrameCause, c *command.Ctx, t *Ticket, local func(*command.Ctx) error, fn func(run func() error) error,
) error {
	return e.update(c, t, local, fn, func(g *group) { g.cause = cause })
}

// Replay is Update for the commands of the server that the store follows, where that is no kevy: they are planned, logged and folded
// while those of clients are refused.
func (e *Engine) Replay(c *command.Ctx, t *Ticket, local func(*command.Ctx) error, fn func(run func() error) error) error {
	return e.update(c, t, local, fn, func(g *group) { g.foreign = true })
}

func (e *Engine) update(
	c *command.Ctx, t *Ticket, local func(*command.Ctx) error, fn func(run func() error) error, with func(*group),
) error {
	e.lock(e.all())
	c.Now, c.Seed = e.now(), e.Seed()
	defer e.finish(e.all(), c.Now)
	return e.inGroup(c, t, func(g *group) error {
		with(g)
		return fn(func() error { return g.run(c, local) })
	})
}
