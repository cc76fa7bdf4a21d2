package command

import (
	"bytes"
	"math"
	"strconv"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// Error texts of sorted sets.
const (
	msgMinMaxFloat   = "ERR min or max is not a float"
	msgMinMaxLex     = "ERR min or max not valid string range item"
	msgZAddNXXX      = "ERR XX and NX options at the same time are not compatible"
	msgZAddGTLT      = "ERR GT, LT, and/or NX options at the same time are not compatible"
	msgZAddIncrPairs = "ERR INCR option supports a single increment-element pair"
	msgScoreNaN      = "ERR resulting score is not a number (NaN)"
	msgRangeLimit    = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
	msgRangeScores   = "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
	msgNumKeys       = "ERR numkeys should be greater than 0"
	msgCountPositive = "ERR count should be greater than 0"
	msgWeight        = "ERR weight value is not a float"
	msgLimitNegative = "ERR LIMIT can't be negative"
)

// lookupZSet finds the live sorted set of key for a reading command. It replies WRONGTYPE and returns !ok if
// the key has another type; found is false if there is none.
func lookupZSet(c *Ctx, key []byte) (z state.ZSet, found, ok bool) {
	e, there := c.Lookup(key)
	return zsetOf(c, key, e, there)
}

// peekZSet is lookupZSet for commands that write: it counts no hit.
func peekZSet(c *Ctx, key []byte) (z state.ZSet, found, ok bool) {
	e, there := c.Peek(key)
	return zsetOf(c, key, e, there)
}

func zsetOf(c *Ctx, key []byte, e state.Entry, there bool) (z state.ZSet, found, ok bool) {
	switch {
	case !there:
		return z, false, true
	case e.Type() != state.TypeZSet:
		c.W.Error(msgWrongType)
		return z, false, false
	}
	return c.Shards[c.ShardOf(key)].ZSet(e), true, true
}

// scoreText formats a score into memory that lives as long as the planned effects. A negative zero becomes
// zero, as it does in Redis's compact form.
func (c *Ctx) scoreText(f float64) []byte {
	const most = 32
	if cap(c.scratch)-len(c.scratch) < most {
		c.scratch = make([]byte, 0, max(256, 2*cap(c.scratch)))
	}
	start := len(c.scratch)
	c.scratch = state.AppendScore(c.scratch, f+0)
	return c.scratch[start:len(c.scratch):len(c.scratch)]
}

// scored is an element of a sorted set.
type scored struct {
	member []byte
	score  float64
}

// byScore orders elements as a sorted set does.
func byScore(a, b scored) int {
	switch {
	case a.score < b.score:
		return -1
	case a.score > b.score:
		return 1
	}
	return bytes.Compare(a.member, b.member)
}

// emitScored plans the ZADDs that give elements their scores, in pieces of bounded size.
func emitScored(c *Ctx, key []byte, items []scored) {
	p := zsetPieces{c: c, key: key, op: effect.ZAdd}
	for i := range items {
		p.add(c.scoreText(items[i].score), items[i].member)
	}
	p.end()
}

// Bounds of one effect on a sorted set.
const (
	pieceElements = 512
	pieceBytes    = 1 << 20
)

// zsetPieces plans the effects of one command on many elements. Nothing else may be emitted between the
// first add and end.
type zsetPieces struct {
	c    *Ctx
	key  []byte
	op   effect.Op
	n    int
	size int
}

func (p *zsetPieces) add(args ...[]byte) {
	if p.n == pieceElements || p.size >= pieceBytes {
		p.end()
	}
	if p.n == 0 {
		p.c.beginEffect()
		p.c.addArg(p.key)
	}
	for _, a := range args {
		p.c.addArg(a)
		p.size += len(a)
	}
	p.n++
}

func (p *zsetPieces) end() {
	if p.n > 0 {
		p.c.emitOpen(p.c.ShardOf(p.key), p.op)
		p.n, p.size = 0, 0
	}
}

// storeScored plans that key becomes a sorted set of items, whatever it was; without items it goes away. The
// members must not lie in the record of key.
func storeScored(c *Ctx, key []byte, items []scored) {
	dropForStore(c, key)
	emitScored(c, key, items)
}

// dropForStore plans the removal of the key a command stores into.
func dropForStore(c *Ctx, key []byte) {
	_, e, there := c.find(key)
	if !there {
		return
	}
	c.Emit(effect.Del, key)
	c.planned[len(c.planned)-1].Expired = c.due(e)
}

// emitZRem plans the removal of the elements with ranks lo to hi-1.
func emitZRem(c *Ctx, key []byte, z *state.ZSet, lo, hi int) {
	if hi-lo > pieceElements && hi-lo == z.Len() {
		c.Emit(effect.Del, key)
		return
	}
	p := zsetPieces{c: c, key: key, op: effect.ZRem}
	cur := z.At(lo)
	for ; lo < hi; lo++ {
		_, m, _ := cur.Next()
		p.add(m)
	}
	p.end()
}

// parseDouble reads a number as Redis does with C's strtod: all of the text, no space before it, finite or
// inf, not so small that nothing is left.
func parseDouble(b []byte) (float64, bool) {
	if n, ok := parseInt(b); ok {
		return float64(n), true
	}
	if len(b) == 0 || len(b) >= maxFloatText {
		return 0, false
	}
	f, exact := strtod(b)
	if !exact || math.IsNaN(f) {
		return 0, false
	}
	return f, true
}

// strtod reads a number that is the whole text. exact is false if it is none, or if it lies beyond the range
// of a double: f is infinite or zero then.
func strtod(b []byte) (f float64, exact bool) {
	body, neg := b, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		body, neg = b[1:], b[0] == '-'
	}
	if isWord(body, "inf") || isWord(body, "infinity") {
		return math.Inf(1 - 2*boolInt(neg)), true
	}
	digits, exp, base, ok := scanFloat(body)
	if !ok {
		return math.NaN(), false
	}
	text := string(b)
	if base == 16 {
		text = string(digits) + "p" + strconv.FormatInt(exp, 10)
		if neg {
			text = "-0x" + text
		} else {
			text = "0x" + text
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && (f != 0 || len(bytes.Trim(digits, "0.")) == 0)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scoreBound is an end of a range of scores: -inf, 1.5, (1.5.
type scoreBound struct {
	score float64
	open  bool // the score itself is not in the range
}

// parseScoreBound reads a bound as C's strtod does: up to a NUL, spaces before it, beyond the range of a
// double too, and nothing for 0.
func parseScoreBound(b []byte) (s scoreBound, ok bool) {
	b = clip(b, len(b))
	if len(b) > 0 && b[0] == '(' {
		s.open, b = true, b[1:]
	}
	if n, isInt := parseInt(b); isInt {
		s.score = float64(n)
		return s, true
	}
	if len(b) == 0 {
		return s, true
	}
	s.score, _ = strtod(bytes.TrimLeft(b, " \t\n\v\f\r"))
	return s, !math.IsNaN(s.score)
}

// lexBound is an end of a range of members: -, +, [m, (m.
type lexBound struct {
	member []byte
	open   bool
	all    int8 // -1: before every member, 1: behind every member
}

func parseLexBound(b []byte) (x lexBound, ok bool) {
	if len(b) == 0 {
		return x, false
	}
	switch b[0] {
	case '(', '[':
		return lexBound{member: b[1:], open: b[0] == '('}, true
	case '-':
		x.all = -1
	case '+':
		x.all = 1
	default:
		return x, false
	}
	return x, len(b) == 1 || b[1] == 0
}

// rank returns how many elements of z lie before the bound: as the lower bound of a range those that are not
// in it, as the upper bound (upper) those that are.
func (x *lexBound) rank(z *state.ZSet, upper bool) int {
	switch x.all {
	case -1:
		return 0
	case 1:
		return z.Len()
	}
	return z.RankOfMember(x.member, x.open != upper)
}

func (s *scoreBound) rank(z *state.ZSet, upper bool) int {
	return z.RankOfScore(s.score, s.open != upper)
}

// pairsHeader writes the header of n elements, with their scores or without: pairs are nested in RESP3 only.
func pairsHeader(w *resp.Writer, n int, scores bool) {
	if scores && !w.RESP3() {
		n *= 2
	}
	w.Array(n)
}

// writeScored writes one element of a reply that pairsHeader began.
func writeScored(w *resp.Writer, m []byte, score float64, scores bool) {
	if scores && w.RESP3() {
		w.Array(2)
	}
	w.Bulk(m)
	if scores {
		w.Double(score)
	}
}
