package command

import (
	"math"

	"github.com/kevydb/kevy/log/effect"
)

func planAppend(c *Ctx) {
	key, tail := c.Args[1], c.Args[2]
	e, ok := c.Lookup(key)
	if !ok {
		c.DropExpired(key)
		c.Emit(effect.Append, key, tail)
		c.W.Int(int64(len(tail)))
		return
	}
	if !isString(c, e) || !fits(c, int64(len(e.Value())), tail) {
		return
	}
	if len(tail) > 0 {
		c.Emit(effect.Append, key, tail)
	}
	c.W.Int(int64(len(e.Value()) + len(tail)))
}

func planSetRange(c *Ctx) {
	key, part := c.Args[1], c.Args[3]
	offset, bad := intArg(c.Args[2])
	switch {
	case bad != "":
		c.W.Error(bad)
		return
	case offset < 0:
		c.W.Error(msgOffset)
		return
	}
	e, ok := c.Lookup(key)
	var size int64
	if ok {
		if !isString(c, e) {
			return
		}
		size = int64(len(e.Value()))
	}
	if len(part) == 0 {
		c.W.Int(size)
		return
	}
	if !fits(c, offset, part) {
		return
	}
	if !ok {
		c.DropExpired(key)
	}
	c.Emit(effect.SetRange, key, c.Int(offset), part)
	c.W.Int(max(size, offset+int64(len(part))))
}

// fits replies an error unless a string of size bytes may grow by b.
func fits(c *Ctx, size int64, b []byte) bool {
	if size <= math.MaxInt64-int64(len(b)) && size+int64(len(b)) <= c.maxBulk() {
		return true
	}
	c.W.Error(MsgTooLong)
	return false
}

// planGetRange plans GETRANGE and SUBSTR.
func planGetRange(c *Ctx) {
	start, bad := intArg(c.Args[2])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	end, bad := intArg(c.Args[3])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	e, ok := c.Lookup(c.Args[1])
	switch {
	case !ok:
		c.W.Bulk(nil)
	case isString(c, e):
		c.W.Bulk(slice(e.Value(), start, end))
	}
}

// slice returns the bytes from start to end, both inclusive, negative ones counting from the end.
func slice(b []byte, start, end int64) []byte {
	n := int64(len(b))
	if start < 0 && end < 0 && start > end {
		return nil
	}
	if start < 0 {
		start = max(0, start+n)
	}
	if end < 0 {
		end = max(0, end+n)
	}
	end = min(end, n-1)
	if start > end {
		return nil
	}
	return b[start : end+1]
}
