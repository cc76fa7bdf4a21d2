package command

import (
	"bytes"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// listAt looks up a list. ok is false if the key holds something else: the error is replied. A key that is
// not there is an empty list.
func listAt(c *Ctx, key []byte) (l state.List, ok bool) {
	e, there := c.Lookup(key)
	if !there {
		return l, true
	}
	if e.Type() != state.TypeList {
		c.W.Error(msgWrongType)
		return l, false
	}
	return c.Shards[c.ShardOf(key)].List(e), true
}

// side is an end of a list.
type side bool

const (
	left  side = false
	right side = true
)

func (s side) push() effect.Op {
	if s == left {
		return effect.LPush
	}
	return effect.RPush
}

func (s side) pop() effect.Op {
	if s == left {
		return effect.LPop
	}
	return effect.RPop
}

// parseSide reads LEFT or RIGHT.
func parseSide(b []byte) (s side, bad errorText) {
	switch {
	case isWord(b, "left"):
		return left, ""
	case isWord(b, "right"):
		return right, ""
	}
	return left, msgSyntax
}

func planLPush(c *Ctx) { runPush(c, left, false) }

func planRPush(c *Ctx) { runPush(c, right, false) }

func planLPushX(c *Ctx) { runPush(c, left, true) }

func planRPushX(c *Ctx) { runPush(c, right, true) }

func runPush(c *Ctx, s side, onlyOld bool) {
	l, ok := listAt(c, c.Args[1])
	switch {
	case !ok:
		return
	case l.Len() == 0 && onlyOld:
		c.W.Int(0)
		return
	case l.Len() == 0:
		c.DropExpired(c.Args[1])
	}
	c.Emit(s.push(), c.Args[1:]...)
	c.W.Int(int64(l.Len() + len(c.Args) - 2))
}

func planLPop(c *Ctx) { runPop(c, left) }

func planRPop(c *Ctx) { runPop(c, right) }

func runPop(c *Ctx, s side) {
	if len(c.Args) > 3 {
		c.W.Error(ArityError(c.Cmd))
		return
	}
	count, counted := int64(1), len(c.Args) == 3
	if counted {
		var bad errorText
		if count, bad = positiveArg(c.Args[2], msgNotPositive); bad != "" {
			c.W.Error(bad)
			return
		}
	}
	l, ok := listAt(c, c.Args[1])
	switch {
	case !ok:
	case l.Len() == 0 && counted:
		c.W.NullArray()
	case l.Len() == 0:
		c.W.Null()
	case counted:
		popMany(c, c.Args[1], &l, s, count)
	default:
		c.W.Bulk(l.Index(s.last(&l)))
		c.Emit(s.pop(), c.Args[1])
	}
}

// last returns the index of the element at the side's end.
func (s side) last(l *state.List) int {
	if s == left {
		return 0
	}
	return l.Len() - 1
}

// popMany replies up to count elements from one end as an array and plans their removal.
func popMany(c *Ctx, key []byte, l *state.List, s side, count int64) {
	n := int(min(count, int64(l.Len())))
	c.W.Array(n)
	if n == 0 {
		return
	}
	l.Range(s.last(l), n, s == right, func(e []byte) bool { c.W.Bulk(e); return true })
	if n == 1 {
		c.Emit(s.pop(), key)
		return
	}
	c.Emit(s.pop(), key, c.Int(int64(n)))
}

func planLLen(c *Ctx) {
	if l, ok := listAt(c, c.Args[1]); ok {
		c.W.Int(int64(l.Len()))
	}
}

func planLIndex(c *Ctx) {
	l, ok := listAt(c, c.Args[1])
	switch {
	case !ok:
		return
	case l.Len() == 0:
		c.W.Null()
		return
	}
	i, bad := intArg(c.Args[2])
	switch {
	case bad != "":
		c.W.Error(bad)
	case !inList(&l, &i):
		c.W.Null()
	default:
		c.W.Bulk(l.Index(int(i)))
	}
}

// inList resolves an index that may count from the end; false if there is no such element.
func inList(l *state.List, i *int64) bool {
	if *i < 0 {
		*i += int64(l.Len())
	}
	return *i >= 0 && *i < int64(l.Len())
}

// rangeArgs reads start and stop.
func rangeArgs(c *Ctx) (start, stop int64, ok bool) {
	start, bad := intArg(c.Args[2])
	if bad == "" {
		stop, bad = intArg(c.Args[3])
	}
	if bad != "" {
		c.W.Error(bad)
	}
	return start, stop, bad == ""
}

func planLRange(c *Ctx) {
	start, stop, ok := rangeArgs(c)
	if !ok {
		return
	}
	l, ok := listAt(c, c.Args[1])
	if !ok {
		return
	}
	from, n := l.Bounds(start, stop)
	c.W.Array(n)
	l.Range(from, n, false, func(e []byte) bool { c.W.Bulk(e); return true })
}

func planLSet(c *Ctx) {
	l, ok := listAt(c, c.Args[1])
	switch {
	case !ok:
		return
	case l.Len() == 0:
		c.W.Error(msgNoKey)
		return
	}
	i, bad := intArg(c.Args[2])
	switch {
	case bad != "":
		c.W.Error(bad)
	case !inList(&l, &i):
		c.W.Error(msgIndexRange)
	default:
		c.Emit(effect.LSet, c.Args[1], c.Int(i), c.Args[3])
		c.W.OK()
	}
}

var wordBefore, wordAfter = []byte("BEFORE"), []byte("AFTER")

func planLInsert(c *Ctx) {
	where := wordBefore
	switch {
	case isWord(c.Args[2], "after"):
		where = wordAfter
	case !isWord(c.Args[2], "before"):
		c.W.Error(msgSyntax)
		return
	}
	l, ok := listAt(c, c.Args[1])
	switch {
	case !ok:
	case l.Len() == 0:
		c.W.Int(0)
	case l.Find(c.Args[3]) < 0:
		c.W.Int(-1)
	default:
		c.Emit(effect.LInsert, c.Args[1], where, c.Args[3], c.Args[4])
		c.W.Int(int64(l.Len() + 1))
	}
}

func planLRem(c *Ctx) {
	count, bad := intArg(c.Args[2])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	l, ok := listAt(c, c.Args[1])
	if !ok {
		return
	}
	most, from := uint64(count), 0
	if count < 0 {
		most, from = -most, l.Len()-1
	}
	removed := uint64(0)
	l.Range(from, l.Len(), count < 0, func(e []byte) bool {
		if bytes.Equal(e, c.Args[3]) {
			removed++
		}
		return count == 0 || removed < most
	})
	if removed > 0 {
		if removed < most {
			count = 0
		}
		c.Emit(effect.LRem, c.Args[1], c.Int(count), c.Args[3])
	}
	c.W.Int(int64(removed))
}

// planLTrim plans LTRIM. What stays is told by its distance from the end that is cut, so that trimming
// twice is trimming once.
func planLTrim(c *Ctx) {
	start, stop, ok := rangeArgs(c)
	if !ok {
		return
	}
	l, ok := listAt(c, c.Args[1])
	if !ok {
		return
	}
	from, n := l.Bounds(start, stop)
	switch {
	case n == l.Len():
	case n == 0:
		c.Emit(effect.Del, c.Args[1])
	default:
		if end := from + n; end < l.Len() {
			c.Emit(effect.LTrim, c.Args[1], c.Int(0), c.Int(int64(end-1)))
		}
		if from > 0 {
			c.Emit(effect.LTrim, c.Args[1], c.Int(int64(-n)), c.Int(-1))
		}
	}
	c.W.OK()
}
