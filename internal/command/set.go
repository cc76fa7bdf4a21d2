package command

import (
	"bytes"
	"math"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// lookupSet finds the live set of key. It replies WRONGTYPE and returns !ok if the key has another type; found
// is false if there is none, and the set is empty then.
func lookupSet(c *Ctx, key []byte) (s state.Set, found, ok bool) {
	e, there := c.Lookup(key)
	switch {
	case !there:
		return s, false, true
	case e.Type() != state.TypeSet:
		c.W.Error(msgWrongType)
		return s, false, false
	}
	return c.Shards[c.ShardOf(key)].Set(e), true, true
}

func planSAdd(c *Ctx) {
	key, members := c.Args[1], c.Args[2:]
	s, found, ok := lookupSet(c, key)
	if !ok {
		return
	}
	if !found {
		c.DropExpired(key)
	}
	c.W.Int(emitMembers(c, effect.SAdd, key, members, func(m []byte) bool { return !s.Has(m) }))
}

func planSRem(c *Ctx) {
	key, members := c.Args[1], c.Args[2:]
	s, found, ok := lookupSet(c, key)
	switch {
	case !ok:
	case !found:
		c.W.Int(0)
	default:
		c.W.Int(emitMembers(c, effect.SRem, key, members, s.Has))
	}
}

// emitMembers plans op with those members that wanted tells, each once, and returns how many there are. It
// plans nothing without any.
func emitMembers(c *Ctx, op effect.Op, key []byte, members [][]byte, wanted func([]byte) bool) (n int64) {
	if len(members) == 1 {
		if !wanted(members[0]) {
			return 0
		}
		c.Emit(op, key, members[0])
		return 1
	}
	seen := newKeySet(members)
	c.beginEffect()
	c.addArg(key)
	for i, m := range members {
		if wanted(m) && seen.add(i) {
			c.addArg(m)
			n++
		}
	}
	if n == 0 {
		c.args = c.args[:c.open]
		return 0
	}
	c.emitOpen(c.ShardOf(key), op)
	return n
}

func planSMove(c *Ctx) {
	from, to, m := c.Args[1], c.Args[2], c.Args[3]
	src, there, ok := lookupSet(c, from)
	if !ok {
		return
	}
	if !there {
		c.W.Int(0)
		return
	}
	dst, found, ok := lookupSet(c, to)
	switch {
	case !ok:
	case !src.Has(m):
		c.W.Int(0)
	case bytes.Equal(from, to):
		c.W.Int(1)
	default:
		c.Emit(effect.SRem, from, m)
		if !found {
			c.DropExpired(to)
		}
		if !dst.Has(m) {
			c.Emit(effect.SAdd, to, m)
		}
		c.W.Int(1)
	}
}

func planSCard(c *Ctx) {
	if s, _, ok := lookupSet(c, c.Args[1]); ok {
		c.W.Int(int64(s.Len()))
	}
}

func planSIsMember(c *Ctx) {
	if s, _, ok := lookupSet(c, c.Args[1]); ok {
		writeHas(c, &s, c.Args[2])
	}
}

func planSMIsMember(c *Ctx) {
	s, _, ok := lookupSet(c, c.Args[1])
	if !ok {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, m := range c.Args[2:] {
		writeHas(c, &s, m)
	}
}

func writeHas(c *Ctx, s *state.Set, m []byte) {
	n := int64(0)
	if s.Has(m) {
		n = 1
	}
	c.W.Int(n)
}

func planSMembers(c *Ctx) {
	s, found, ok := lookupSet(c, c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Set(0)
	default:
		c.W.Set(s.Len())
		writeMembers(c, &s)
	}
}

// writeMembers writes all members, without a header.
func writeMembers(c *Ctx, s *state.Set) {
	s.Each(func(m []byte) bool { c.W.Bulk(m); return true })
}

// planSScan plans SSCAN key cursor [MATCH pattern] [COUNT n].
func planSScan(c *Ctx) {
	cursor, ok := parseCursor(c.Args[2])
	if !ok {
		c.W.Error(msgCursor)
		return
	}
	s, found, ok := lookupSet(c, c.Args[1])
	if !ok {
		return
	}
	if !found {
		c.W.Raw(emptyScan)
		return
	}
	o, bad := parseMemberScan(c.Args)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	writeScan(c, func(write func([]byte)) uint64 {
		return s.Scan(cursor, int(min(o.count, math.MaxInt32)), func(m []byte) {
			if o.pattern == nil || glob(o.pattern, m) {
				write(m)
			}
		})
	})
}

// emptyScan is the reply of a scan of a key that is not there.
var emptyScan = []byte("*2\r\n$1\r\n0\r\n*0\r\n")

// parseMemberScan reads the options of SSCAN: MATCH and COUNT.
func parseMemberScan(args [][]byte) (o scanOptions, bad errorText) {
	o.count = 10
	for i := 3; i < len(args); i += 2 {
		switch {
		case i+1 == len(args):
			return o, msgSyntax
		case isWord(args[i], "count"):
			if o.count, bad = intArg(args[i+1]); bad != "" {
				return o, bad
			}
			if o.count < 1 {
				return o, msgSyntax
			}
		case isWord(args[i], "match"):
			o.pattern = args[i+1]
			if string(o.pattern) == "*" {
				o.pattern = nil
			}
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}
