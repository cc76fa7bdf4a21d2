package command

import (
	"bytes"
	"math"

	"github.com/kevydb/kevy/state"
)

// sides are arguments 3 and 4: from where to where an element is moved.
func sides(c *Ctx) (from, to side, ok bool) {
	from, bad := parseSide(c.Args[3])
	if bad == "" {
		to, bad = parseSide(c.Args[4])
	}
	if bad != "" {
		c.W.Error(bad)
	}
	return from, to, bad == ""
}

func planLMove(c *Ctx) {
	from, to, ok := sides(c)
	if !ok {
		return
	}
	if l, ok := listAt(c, c.Args[1]); ok && !runMove(c, &l, from, to) {
		c.W.Null()
	}
}

func planRPopLPush(c *Ctx) {
	if l, ok := listAt(c, c.Args[1]); ok && !runMove(c, &l, right, left) {
		c.W.Null()
	}
}

// runMove moves an element of the list l, which the first key holds, to the second key and replies it. It
// reports false, without a reply, if the list is empty.
func runMove(c *Ctx, l *state.List, from, to side) bool {
	source, dest := c.Args[1], c.Args[2]
	if l.Len() == 0 {
		return false
	}
	d, ok := listAt(c, dest)
	if !ok {
		return true
	}
	e := l.Index(from.last(l))
	c.W.Bulk(e)
	if bytes.Equal(source, dest) && (from == to || l.Len() == 1) {
		return true // nothing changes
	}
	e = c.Copy(e)
	c.Emit(from.pop(), source)
	if d.Len() == 0 {
		c.DropExpired(dest)
	}
	c.Emit(to.push(), dest, e)
	return true
}

func planLMPop(c *Ctx) {
	if o, ok := parseListPop(c, 1); ok && !runListPop(c, o) {
		c.W.NullArray()
	}
}

// listPop is what LMPOP and BLMPOP ask for.
type listPop struct {
	keys  [][]byte
	side  side
	count int64
}

// parseListPop reads numkeys key... LEFT|RIGHT [COUNT n] from position at on.
func parseListPop(c *Ctx, at int) (o listPop, ok bool) {
	n, good := parseInt(c.Args[at])
	if !good || n < 1 {
		c.W.Error(msgListNumKeys)
		return o, false
	}
	rest := c.Args[at+1:]
	if n >= int64(len(rest)) {
		c.W.Error(msgSyntax)
		return o, false
	}
	o.keys, rest = rest[:n], rest[n:]
	var bad errorText
	if o.side, bad = parseSide(rest[0]); bad == "" {
		o.count, bad = parseListCount(rest[1:])
	}
	if bad != "" {
		c.W.Error(bad)
	}
	return o, bad == ""
}

// parseListCount reads [COUNT n]. Every COUNT with a number is read before what follows it is found wrong.
func parseListCount(args [][]byte) (count int64, bad errorText) {
	if len(args) == 0 {
		return 1, ""
	}
	if len(args) < 2 || !isWord(args[0], "count") {
		return 0, msgSyntax
	}
	count, ok := parseInt(args[1])
	switch {
	case !ok || count < 1:
		return 0, msgListCount
	case len(args) > 2:
		return 0, msgSyntax
	}
	return count, ""
}

// runListPop pops from the first of the keys that has elements. It reports false, without a reply, if none has.
func runListPop(c *Ctx, o listPop) bool {
	for _, key := range o.keys {
		l, ok := listAt(c, key)
		if !ok {
			return true
		}
		if l.Len() > 0 {
			c.W.Array(2)
			c.W.Bulk(key)
			popMany(c, key, &l, o.side, o.count)
			return true
		}
	}
	return false
}

func planBLPop(c *Ctx) { runBPop(c, left) }

func planBRPop(c *Ctx) { runBPop(c, right) }

func runBPop(c *Ctx, s side) {
	last := len(c.Args) - 1
	deadline, bad := secondsArg(c.Args[last], c.Now)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	keys := c.Args[1:last]
	for _, key := range keys {
		l, ok := listAt(c, key)
		if !ok {
			return
		}
		if l.Len() > 0 {
			c.W.Array(2)
			c.W.Bulk(key)
			c.W.Bulk(l.Index(s.last(&l)))
			c.Emit(s.pop(), key)
			return
		}
	}
	if !c.Block(Wait{Kind: state.TypeList, Keys: keys, Deadline: deadline}) {
		c.W.NullArray()
	}
}

func planBLMove(c *Ctx) {
	from, to, ok := sides(c)
	if !ok {
		return
	}
	runBMove(c, from, to, c.Args[5])
}

func planBRPopLPush(c *Ctx) { runBMove(c, right, left, c.Args[3]) }

func runBMove(c *Ctx, from, to side, timeout []byte) {
	deadline, bad := secondsArg(timeout, c.Now)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	l, ok := listAt(c, c.Args[1])
	if !ok || runMove(c, &l, from, to) {
		return
	}
	if !c.Block(Wait{Kind: state.TypeList, Keys: c.Args[1:2], Deadline: deadline}) {
		c.W.Null()
	}
}

func planBLMPop(c *Ctx) {
	o, ok := parseListPop(c, 2)
	if !ok {
		return
	}
	deadline, bad := secondsArg(c.Args[1], c.Now)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	if !runListPop(c, o) && !c.Block(Wait{Kind: state.TypeList, Keys: o.keys, Deadline: deadline}) {
		c.W.NullArray()
	}
}

// secondsArg reads the timeout of a blocking command, in seconds with a fraction, and returns the unix ms
// at which it ends, 0 for never.
func secondsArg(b []byte, now int64) (deadline int64, bad errorText) {
	if n, ok := parseInt(b); ok {
		switch {
		case n < 0:
			return 0, msgTimeoutNeg
		case n > (math.MaxInt64-now)/1000:
			return 0, msgTimeoutRange
		case n > 0:
			n = n*1000 + now
		}
		return n, ""
	}
	d := newLongDouble()
	if !d.parse(b) {
		return 0, msgTimeoutFloat
	}
	if d.inf {
		if b[0] == '-' {
			return 0, msgTimeoutNeg
		}
		return 0, msgTimeoutRange
	}
	d.f.Mul(&d.f, thousand)
	if d.f.Sign() < 0 {
		if ms, _ := d.f.Int64(); ms < 0 {
			return 0, msgTimeoutNeg
		}
		return 0, "" // rounds up to 0
	}
	ms, acc := d.f.Int64()
	if ms == math.MaxInt64 {
		return 0, msgTimeoutRange
	}
	if acc < 0 {
		ms++ // part of a millisecond counts as one
	}
	switch {
	case ms == 0:
		return 0, ""
	case ms > math.MaxInt64-now:
		return 0, msgTimeoutRange
	}
	return now + ms, ""
}

var thousand = newLongDouble().f.SetInt64(1000)
