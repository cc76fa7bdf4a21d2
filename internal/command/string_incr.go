package command

import "math"

func planIncr(c *Ctx) { incrBy(c, 1) }

func planDecr(c *Ctx) { incrBy(c, -1) }

func planIncrBy(c *Ctx) {
	n, bad := intArg(c.Args[2])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	incrBy(c, n)
}

func planDecrBy(c *Ctx) {
	n, bad := intArg(c.Args[2])
	switch {
	case bad != "":
		c.W.Error(bad)
	case n == math.MinInt64:
		c.W.Error(msgDecrOverflow)
	default:
		incrBy(c, -n)
	}
}

// incrBy plans an addition to an integer, 0 for a missing key. The deadline stays.
func incrBy(c *Ctx, by int64) {
	e, ok := c.Lookup(c.Args[1])
	var old int64
	if ok {
		if !isString(c, e) {
			return
		}
		var bad errorText
		if old, bad = intArg(e.Value()); bad != "" {
			c.W.Error(bad)
			return
		}
	}
	if (by < 0 && old < 0 && by < math.MinInt64-old) || (by > 0 && old > 0 && by > math.MaxInt64-old) {
		c.W.Error(msgOverflow)
		return
	}
	emitUpdate(c, c.Args[1], c.Int(old+by), e, ok)
	c.W.Int(old + by)
}

func planIncrByFloat(c *Ctx) {
	e, ok := c.Lookup(c.Args[1])
	sum := newLongDouble()
	if ok {
		if !isString(c, e) {
			return
		}
		if !sum.parse(e.Value()) {
			c.W.Error(msgNotFloat)
			return
		}
	}
	by := newLongDouble()
	if !by.parse(c.Args[2]) {
		c.W.Error(msgNotFloat)
		return
	}
	if !sum.add(by) {
		c.W.Error(msgNaN)
		return
	}
	text := sum.format()
	emitUpdate(c, c.Args[1], text, e, ok)
	c.W.Bulk(text)
}
