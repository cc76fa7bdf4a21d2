package command

import (
	"math"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

func planHSet(c *Ctx) {
	if created, ok := runHSet(c); ok {
		c.W.Int(created)
	}
}

func planHMSet(c *Ctx) {
	if _, ok := runHSet(c); ok {
		c.W.OK()
	}
}

// runHSet plans HSET key field value... and returns how many fields are new; ok is false if it has replied
// an error.
func runHSet(c *Ctx) (created int64, ok bool) {
	pairs := c.Args[2:]
	if len(pairs)%2 != 0 {
		c.W.Error(ArityError(c.Cmd))
		return 0, false
	}
	h, found, ok := writeHash(c, c.Args[1])
	if !ok {
		return 0, false
	}
	r := newRepeats(pairs, 2)
	for i := 0; i < len(pairs); i += 2 {
		if !r.first(i) {
			continue
		}
		if found {
			if _, there := h.get(pairs[i]); there {
				continue
			}
		}
		created++
	}
	emitHSet(c, c.Args[1], found, pairs...)
	return created, true
}

// emitHSet plans HSET on a hash that is there (found) or not. A dead value whose record is still there goes first.
func emitHSet(c *Ctx, key []byte, found bool, pairs ...[]byte) {
	if !found {
		c.DropExpired(key)
	}
	c.beginEffect()
	c.addArg(key)
	c.args = append(c.args, pairs...)
	c.emitOpen(c.ShardOf(key), effect.HSet)
}

func planHSetNX(c *Ctx) {
	h, found, ok := writeHash(c, c.Args[1])
	if !ok {
		return
	}
	if found {
		if _, there := h.get(c.Args[2]); there {
			c.W.Int(0)
			return
		}
	}
	emitHSet(c, c.Args[1], found, c.Args[2], c.Args[3])
	c.W.Int(1)
}

func planHDel(c *Ctx) {
	h, found, ok := writeHash(c, c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Int(0)
	default:
		c.W.Int(int64(emitHDel(c, c.Args[1], &h, c.Args[2:])))
	}
}

// emitHDel plans the removal of the live fields among names and returns how many they are.
func emitHDel(c *Ctx, key []byte, h *hash, names [][]byte) (n int) {
	r := newRepeats(names, 1)
	c.beginEffect()
	for i, name := range names {
		if _, there := h.get(name); !there || !r.first(i) {
			continue
		}
		if n++; n == 1 {
			c.addArg(key)
		}
		c.addArg(name)
	}
	c.emitOpen(c.ShardOf(key), effect.HDel)
	return n
}

// writeFields reads the arguments key FIELDS n field... of a write, and begins its reply of one element a field.
func writeFields(c *Ctx) (h hash, names [][]byte, found, ok bool) {
	if h, found, ok = writeHash(c, c.Args[1]); !ok {
		return h, nil, found, false
	}
	names, bad := parseFields(c.Args[2:], msgFieldNumber)
	if bad != "" {
		c.W.Error(bad)
		return h, nil, found, false
	}
	c.W.Array(len(names))
	return h, names, found, true
}

// planHGetDel plans HGETDEL key FIELDS n field...
func planHGetDel(c *Ctx) {
	h, names, found, ok := writeFields(c)
	if !ok {
		return
	}
	r := newRepeats(names, 1)
	for i, name := range names {
		replyField(c, &h, r.first(i) && found, name)
	}
	if found {
		emitHDel(c, c.Args[1], &h, names)
	}
}

// hashCounter finds the field of HINCRBY and HINCRBYFLOAT.
func hashCounter(c *Ctx) (f state.Field, there, found, ok bool) {
	h, found, ok := writeHash(c, c.Args[1])
	if found {
		f, there = h.get(c.Args[2])
	}
	return f, there, found, ok
}

// emitCounter plans a new value for a field, which keeps its deadline.
func emitCounter(c *Ctx, found bool, old *state.Field, value []byte) {
	emitHSet(c, c.Args[1], found, c.Args[2], value)
	if old.Deadline != state.NoDeadline {
		c.Emit(effect.HPExpireAt, c.Args[1], c.Int(old.Deadline), wordFields, wordOne, c.Args[2])
	}
}

var wordFields, wordOne = []byte("FIELDS"), []byte("1")

func planHIncrBy(c *Ctx) {
	by, bad := intArg(c.Args[3])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	f, there, found, ok := hashCounter(c)
	if !ok {
		return
	}
	old := int64(0)
	if there {
		if old, ok = parseInt(f.Value); !ok {
			c.W.Error(msgHashInteger)
			return
		}
	} else {
		f.Deadline = state.NoDeadline
	}
	if (by < 0 && old < 0 && by < math.MinInt64-old) || (by > 0 && old > 0 && by > math.MaxInt64-old) {
		c.W.Error(msgOverflow)
		return
	}
	emitCounter(c, found, &f, c.Int(old+by))
	c.W.Int(old + by)
}

func planHIncrByFloat(c *Ctx) {
	by := newLongDouble()
	switch {
	case !by.parse(c.Args[3]):
		c.W.Error(msgNotFloat)
		return
	case by.inf:
		c.W.Error(msgInfinite)
		return
	}
	f, there, found, ok := hashCounter(c)
	if !ok {
		return
	}
	sum := newLongDouble()
	if !there {
		f.Deadline = state.NoDeadline
	} else if !sum.parse(f.Value) {
		c.W.Error(msgHashFloat)
		return
	}
	if !sum.add(by) {
		c.W.Error(msgNaN)
		return
	}
	text := sum.format()
	emitCounter(c, found, &f, text)
	c.W.Bulk(text)
}
