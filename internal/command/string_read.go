package command

import (
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// isString replies WRONGTYPE unless e is a string.
func isString(c *Ctx, e state.Entry) bool {
	if e.Type() == state.TypeString {
		return true
	}
	c.W.Error(msgWrongType)
	return false
}

// replyString replies a string value, or null without one. It reports false when it replied an error.
func replyString(c *Ctx, e state.Entry, ok bool) bool {
	switch {
	case !ok:
		c.W.Null()
	case !isString(c, e):
		return false
	default:
		c.W.Bulk(e.Value())
	}
	return true
}

func planGet(c *Ctx) {
	e, ok := c.Lookup(c.Args[1])
	replyString(c, e, ok)
}

func planMGet(c *Ctx) {
	c.W.Array(len(c.Args) - 1)
	for _, key := range c.Args[1:] {
		e, ok := c.Lookup(key)
		if ok && e.Type() == state.TypeString {
			c.W.Bulk(e.Value())
		} else {
			c.W.Null()
		}
	}
}

func planGetDel(c *Ctx) {
	e, ok := c.Lookup(c.Args[1])
	if replyString(c, e, ok) && ok {
		c.Emit(effect.Del, c.Args[1])
	}
}

// getExOptions are what GETEX asks for.
type getExOptions struct {
	persist bool
	expiry  expiry
}

// parseGetEx reads GETEX key [EX|PX|EXAT|PXAT n | PERSIST].
func parseGetEx(args [][]byte) (o getExOptions, bad errorText) {
	for i := 2; i < len(args); i++ {
		switch {
		case isWord(args[i], "persist") && !o.expiry.set:
			o.persist = true
		case !o.persist && o.expiry.parseWord(args, i):
			i++
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

func planGetEx(c *Ctx) {
	o, bad := parseGetEx(c.Args)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	key := c.Args[1]
	e, ok := c.Lookup(key)
	switch {
	case !ok:
		c.W.Null()
		return
	case !isString(c, e):
		return
	}
	deadline := state.NoDeadline
	if o.expiry.set {
		if deadline, bad = o.expiry.resolve(c); bad != "" {
			c.W.Error(bad)
			return
		}
	}
	c.W.Bulk(e.Value())
	switch {
	case o.expiry.set:
		emitDeadline(c, key, deadline)
	case o.persist:
		emitPersist(c, key, e)
	}
}

func planStrLen(c *Ctx) {
	e, ok := c.Lookup(c.Args[1])
	switch {
	case !ok:
		c.W.Int(0)
	case isString(c, e):
		c.W.Int(int64(len(e.Value())))
	}
}
