package command

import "github.com/kevydb/kevy/state"

// rangeKind is what the ends of a range are.
type rangeKind uint8

const (
	byRank rangeKind = iota
	byScores
	byLex
)

// zrange is a range of a sorted set as a client asks for it.
type zrange struct {
	kind     rangeKind
	reverse  bool
	scores   bool // WITHSCORES
	offset   int64
	limit    int64 // negative: none
	from, to int64 // byRank
	min, max scoreBound
	low, top lexBound
}

// parseZRange reads what stands behind the key of ZRANGE and its relatives: two ends, then options. The kind
// and the direction are given already for the older commands (fixed).
func (r *zrange) parse(args [][]byte, fixed, store bool) (bad errorText) {
	r.limit = -1
	chosen := fixed
	for i := 2; i < len(args); i++ {
		switch word := args[i]; {
		case !store && isWord(word, "withscores"):
			r.scores = true
		case isWord(word, "limit") && i+2 < len(args):
			if r.offset, bad = intArg(args[i+1]); bad == "" {
				r.limit, bad = intArg(args[i+2])
			}
			if bad != "" {
				return bad
			}
			i += 2
		case !fixed && !r.reverse && isWord(word, "rev"):
			r.reverse = true
		case !chosen && isWord(word, "bylex"):
			r.kind, chosen = byLex, true
		case !chosen && isWord(word, "byscore"):
			r.kind, chosen = byScores, true
		default:
			return msgSyntax
		}
	}
	switch {
	case r.limit != -1 && r.kind == byRank:
		return msgRangeLimit
	case r.scores && r.kind == byLex:
		return msgRangeScores
	}
	return r.parseEnds(args[0], args[1])
}

func (r *zrange) parseEnds(first, second []byte) (bad errorText) {
	if r.kind == byRank {
		if r.from, bad = intArg(first); bad == "" {
			r.to, bad = intArg(second)
		}
		return bad
	}
	if r.reverse {
		first, second = second, first
	}
	var ok1, ok2 bool
	if r.kind == byLex {
		r.low, ok1 = parseLexBound(first)
		if r.top, ok2 = parseLexBound(second); !ok1 || !ok2 {
			return msgMinMaxLex
		}
		return ""
	}
	r.min, ok1 = parseScoreBound(first)
	if r.max, ok2 = parseScoreBound(second); !ok1 || !ok2 {
		return msgMinMaxFloat
	}
	return ""
}

// bounds returns the ranks of the range's elements: lo to hi-1, before offset and limit.
func (r *zrange) bounds(z *state.ZSet) (lo, hi int) {
	switch r.kind {
	case byScores:
		lo, hi = r.min.rank(z, false), r.max.rank(z, true)
	case byLex:
		lo, hi = r.low.rank(z, false), r.top.rank(z, true)
	default:
		n := z.Len()
		if lo, hi = rankRange(r.from, r.to, n); r.reverse {
			lo, hi = n-hi, n-lo
		}
	}
	return lo, max(lo, hi)
}

// rankRange resolves ranks that may count from the end.
func rankRange(from, to int64, n int) (lo, hi int) {
	if from < 0 {
		from = max(0, from+int64(n))
	}
	if to < 0 {
		to += int64(n)
	}
	if from > to || from >= int64(n) {
		return 0, 0
	}
	return int(from), int(min(to, int64(n)-1)) + 1
}

// cut applies offset and limit.
func (r *zrange) cut(lo, hi int) (int, int) {
	n := int64(hi - lo)
	if r.kind == byRank {
		return lo, hi
	}
	if r.offset < 0 || r.offset >= n {
		return lo, lo
	}
	n -= r.offset
	if r.limit >= 0 {
		n = min(n, r.limit)
	}
	if r.reverse {
		hi -= int(r.offset)
		return hi - int(n), hi
	}
	lo += int(r.offset)
	return lo, lo + int(n)
}

func planZRange(c *Ctx)           { planRange(c, zrange{}, false) }
func planZRevRange(c *Ctx)        { planRange(c, zrange{reverse: true}, true) }
func planZRangeByScore(c *Ctx)    { planRange(c, zrange{kind: byScores}, true) }
func planZRevRangeByScore(c *Ctx) { planRange(c, zrange{kind: byScores, reverse: true}, true) }
func planZRangeByLex(c *Ctx)      { planRange(c, zrange{kind: byLex}, true) }
func planZRevRangeByLex(c *Ctx)   { planRange(c, zrange{kind: byLex, reverse: true}, true) }

func planRange(c *Ctx, r zrange, fixed bool) {
	if bad := r.parse(c.Args[2:], fixed, false); bad != "" {
		c.W.Error(bad)
		return
	}
	z, found, ok := lookupZSet(c, c.Args[1])
	switch {
	case !ok:
		return
	case !found:
		c.W.Array(0)
		return
	}
	lo, hi := r.cut(r.bounds(&z))
	writeRange(c, &z, &r, lo, hi)
}

func writeRange(c *Ctx, z *state.ZSet, r *zrange, lo, hi int) {
	pairsHeader(c.W, hi-lo, r.scores)
	if r.reverse {
		cur := z.At(hi)
		for ; hi > lo; hi-- {
			score, m, _ := cur.Prev()
			writeScored(c.W, m, score, r.scores)
		}
		return
	}
	cur := z.At(lo)
	for ; lo < hi; lo++ {
		score, m, _ := cur.Next()
		writeScored(c.W, m, score, r.scores)
	}
}

func planZRangeStore(c *Ctx) {
	var r zrange
	if bad := r.parse(c.Args[3:], false, true); bad != "" {
		c.W.Error(bad)
		return
	}
	z, found, ok := lookupZSet(c, c.Args[2])
	if !ok {
		return
	}
	var items []scored
	if found {
		lo, hi := r.cut(r.bounds(&z))
		own := string(c.Args[1]) == string(c.Args[2])
		cur := z.At(lo)
		for ; lo < hi; lo++ {
			score, m, _ := cur.Next()
			if own {
				m = c.Copy(m)
			}
			items = append(items, scored{m, score})
		}
	}
	storeScored(c, c.Args[1], items)
	c.W.Int(int64(len(items)))
}

func planZRemRangeByRank(c *Ctx)  { planRemRange(c, zrange{}) }
func planZRemRangeByScore(c *Ctx) { planRemRange(c, zrange{kind: byScores}) }
func planZRemRangeByLex(c *Ctx)   { planRemRange(c, zrange{kind: byLex}) }

func planRemRange(c *Ctx, r zrange) {
	if bad := r.parseEnds(c.Args[2], c.Args[3]); bad != "" {
		c.W.Error(bad)
		return
	}
	z, found, ok := peekZSet(c, c.Args[1])
	switch {
	case !ok:
		return
	case !found:
		c.W.Int(0)
		return
	}
	lo, hi := r.bounds(&z)
	emitZRem(c, c.Args[1], &z, lo, hi)
	c.W.Int(int64(hi - lo))
}
