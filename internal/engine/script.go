package engine

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Script runs fn with all shards locked: what it plans through c.Nested is one group, whatever
// it does. fn appends the reply to c.W; when it returns an error everything is undone and the error is returned. A log
// that refuses the group replaces the reply and undoes everything as well. c.Turn, if set, is the group's clock.
func (e *Engine) Script(c *command.Ctx, t *Ticket, fn func() error) error {
	e.lock(e.all())
	c.Now, c.Seed = c.Turn, e.Seed()
	if c.Now == 0 {
		c.Now = e.now()
	}
	defer e.finish(e.all(), c.Now)
	start, w := len(c.W.Buf), c.W
	var failure error
	err := e.inGroup(c, t, func(*group) error {
		failure = fn()
		return failure
	})
	if failure != nil {
		return failure
	}
	if err != nil {
		c.W = w
		e.refuse(c, start, err)
		return nil
	}
	e.noteRead(e.all(), t)
	return nil
}

// nested runs a command of a script; see command.Ctx.Nested.
func (g *group) nested(c *command.Ctx, local func(*command.Ctx) error) error {
	outer := g.script
	g.script, c.InScript = local != nil, local != nil
	defer func() { g.script, c.InScript = outer, outer }()
	return g.run(c, local)
}

// Libraries returns the libraries of functions. REQUIRES: inside a group that holds the locks of all shards.
func (e *Engine) Libraries() *state.Libraries { return e.shards[0].ks.Libraries() }

// keepLibraries saves what makes the libraries as they are now.
func (g *group) keepLibraries(sh *shard) {
	at := len(g.undo.effects)
	sh.ks.Libraries().RebuildLibraries(func(ef *effect.Effect) bool {
		g.undo.effects = append(g.undo.effects, command.Planned{Shard: sh.id, Effect: copyEffect(ef)})
		return true
	})
	reverse(g.undo.effects[at:])
	g.undo.effects = append(g.undo.effects, command.Planned{
		Shard:  sh.id,
		Effect: effect.Effect{Op: effect.Function, Args: [][]byte{[]byte("FLUSH")}},
	})
}
