package command

import (
	"math"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// zaddOptions are what ZADD, ZINCRBY and GEOADD ask for.
type zaddOptions struct {
	nx, xx, gt, lt, ch, incr bool
}

// parseZAdd reads the flags behind the key and returns where the scores begin.
func parseZAdd(args [][]byte) (o zaddOptions, at int, bad errorText) {
	at = 2
scan:
	for ; at < len(args); at++ {
		switch word := args[at]; {
		case isWord(word, "nx"):
			o.nx = true
		case isWord(word, "xx"):
			o.xx = true
		case isWord(word, "ch"):
			o.ch = true
		case isWord(word, "incr"):
			o.incr = true
		case isWord(word, "gt"):
			o.gt = true
		case isWord(word, "lt"):
			o.lt = true
		default:
			break scan
		}
	}
	switch n := len(args) - at; {
	case n == 0 || n%2 != 0:
		return o, at, msgSyntax
	case o.nx && o.xx:
		return o, at, msgZAddNXXX
	case o.gt && o.nx || o.lt && o.nx || o.gt && o.lt:
		return o, at, msgZAddGTLT
	case o.incr && n > 2:
		return o, at, msgZAddIncrPairs
	}
	return o, at, ""
}

func planZAdd(c *Ctx) {
	o, at, bad := parseZAdd(c.Args)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	planScores(c, o, c.Args[at:])
}

// planZIncrBy plans ZINCRBY. As in Redis it is ZADD with INCR, and an increment spelled like an option of ZADD is taken for
// that: it leaves a member without a score.
func planZIncrBy(c *Ctx) {
	for _, word := range []string{"nx", "xx", "gt", "lt", "ch", "incr"} {
		if isWord(c.Args[2], word) {
			c.W.Error(msgSyntax)
			return
		}
	}
	planScores(c, zaddOptions{incr: true}, c.Args[2:])
}

// planScores reads pairs of score and member and plans them.
func planScores(c *Ctx, o zaddOptions, pairs [][]byte) {
	var few [8]scored
	items := few[:0]
	for i := 0; i < len(pairs); i += 2 {
		f, ok := parseDouble(pairs[i])
		if !ok {
			c.W.Error(msgNotFloat)
			return
		}
		items = append(items, scored{member: pairs[i+1], score: f})
	}
	runZAdd(c, o, items)
}

// runZAdd plans ZADD of items on the command's key and replies.
func runZAdd(c *Ctx, o zaddOptions, items []scored) {
	key := c.Args[1]
	z, found, ok := peekZSet(c, key)
	if !ok {
		return
	}
	p := zaddPlan{o: o, z: &z, found: found}
	if !found && o.xx {
		items = nil
	}
	for i := range items {
		if !p.add(items, i) {
			c.W.Error(msgScoreNaN)
			return
		}
	}
	if p.changed > 0 {
		c.DropExpired(key)
		e := zsetPieces{c: c, key: key, op: effect.ZAdd}
		for i := range items {
			if !math.IsNaN(items[i].score) {
				e.add(c.scoreText(items[i].score), items[i].member)
			}
		}
		e.end()
	}
	if o.incr {
		c.nameEvent("zincr")
	}
	switch {
	case o.incr && p.processed > 0:
		c.W.Double(p.last)
	case o.incr:
		c.W.Null()
	case o.ch:
		c.W.Int(int64(p.added + p.updated))
	default:
		c.W.Int(int64(p.added))
	}
}

// zaddPlan works out what becomes of the elements of one ZADD, one after the other: items that change
// nothing, or that a later one of the same member overrides, get NaN for a score.
type zaddPlan struct {
	o     zaddOptions
	z     *state.ZSet
	found bool
	seen  map[string]int // items by member, of a command with many

	added, updated, processed int
	changed                   int // items whose score is to be written
	last                      float64
}

// manyItems is when a map finds repeated members faster than comparing does.
const manyItems = 16

// add decides about item i, given those before it. It is false if the score would be no number.
func (p *zaddPlan) add(items []scored, i int) bool {
	it := &items[i]
	before := p.before(items, i)
	cur, exists := 0.0, false
	stored, inState := 0.0, false
	if p.found {
		stored, inState = p.z.Score(it.member)
		cur, exists = stored, inState
	}
	if before >= 0 {
		cur, exists = items[before].score, true
	}
	score := it.score
	it.score = math.NaN()
	switch {
	case exists && p.o.nx || !exists && p.o.xx:
		return true
	case exists && p.o.incr:
		if score += cur; math.IsNaN(score) {
			return false
		}
	}
	if exists && (p.o.lt && score >= cur || p.o.gt && score <= cur) {
		return true
	}
	p.processed++
	p.last = score
	switch {
	case !exists:
		p.added++
	case score != cur:
		p.updated++
	default:
		return true
	}
	if before >= 0 {
		items[before].score = math.NaN()
		p.changed--
	}
	if !inState || score != stored {
		it.score = score
		p.changed++
	}
	if p.seen != nil {
		p.seen[string(it.member)] = i
	}
	return true
}

// before returns the item before i that has set the score of its member, -1 if none has.
func (p *zaddPlan) before(items []scored, i int) int {
	m := items[i].member
	if len(items) > manyItems {
		if p.seen == nil {
			p.seen = make(map[string]int, len(items))
		}
		if k, ok := p.seen[string(m)]; ok && !math.IsNaN(items[k].score) {
			return k
		}
		return -1
	}
	for k := i - 1; k >= 0; k-- {
		if !math.IsNaN(items[k].score) && string(items[k].member) == string(m) {
			return k
		}
	}
	return -1
}

func planZRem(c *Ctx) {
	key := c.Args[1]
	z, found, ok := peekZSet(c, key)
	switch {
	case !ok:
		return
	case !found:
		c.W.Int(0)
		return
	}
	members := c.Args[2:]
	seen := newKeySet(members)
	p := zsetPieces{c: c, key: key, op: effect.ZRem}
	n := 0
	for i, m := range members {
		if _, there := z.Score(m); there && seen.add(i) {
			p.add(m)
			n++
		}
	}
	p.end()
	c.W.Int(int64(n))
}
