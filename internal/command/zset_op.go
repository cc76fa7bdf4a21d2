package command

import (
	"math"
	"slices"

	"github.com/kevydb/kevy/state"
)

// algebra is an operation on several sorted sets and sets.
type algebra struct {
	op      setOp
	sources []source
	merge   aggregate
	scores  bool   // WITHSCORES
	limit   int64  // ZINTERCARD: 0 is none
	chunk   []byte // backing of copied members
}

type setOp uint8

const (
	opUnion setOp = iota
	opInter
	opDiff
	opInterCard
)

// aggregate is how the scores of one member become one.
type aggregate uint8

const (
	aggregateSum aggregate = iota
	aggregateMin
	aggregateMax
)

// apply merges two scores. A y that is no number counts in sums only.
func (a aggregate) apply(x, y float64) float64 {
	switch {
	case a == aggregateSum:
		return noNaN(x + y)
	case a == aggregateMin && y < x, a == aggregateMax && y > x:
		return y
	}
	return x
}

// noNaN makes 0 of what is no number: inf - inf, and 0 times inf.
func noNaN(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// source is one input: a sorted set, a set whose members all have the score 1, or nothing.
type source struct {
	kind   state.Type
	zset   state.ZSet
	set    state.Set
	n      int
	weight float64
}

func (s *source) score(m []byte) (float64, bool) {
	if s.kind == state.TypeZSet {
		return s.zset.Score(m)
	}
	return 1, s.kind == state.TypeSet && s.set.Has(m)
}

// each calls f with every element, until f returns false. The member of a set is valid until f returns.
func (s *source) each(f func(m []byte, score float64) bool) {
	if s.kind == state.TypeSet {
		s.set.Each(func(m []byte) bool { return f(m, 1) })
	}
	if s.kind != state.TypeZSet {
		return
	}
	cur := s.zset.At(0)
	for {
		score, m, ok := cur.Next()
		if !ok || !f(m, score) {
			return
		}
	}
}

// parse reads numkeys key... [options] from args; it looks up the keys before the options, as Redis does.
func (a *algebra) parse(c *Ctx, args [][]byte, store bool) (bad errorText) {
	n, bad := intArg(args[0])
	switch {
	case bad != "":
		return bad
	case n < 1:
		return "ERR at least 1 input key is needed for '" + c.Cmd.Name + "' command"
	case n > int64(len(args)-1):
		return msgSyntax
	}
	for _, key := range args[1 : 1+n] {
		s := source{weight: 1}
		if e, ok := c.Lookup(key); ok {
			ks := c.Shards[c.ShardOf(key)]
			switch s.kind = e.Type(); s.kind {
			case state.TypeZSet:
				s.zset = ks.ZSet(e)
				s.n = s.zset.Len()
			case state.TypeSet:
				s.set = ks.Set(e)
				s.n = s.set.Len()
			default:
				return msgWrongType
			}
		}
		a.sources = append(a.sources, s)
	}
	return a.parseOptions(args[1+n:], store)
}

func (a *algebra) parseOptions(args [][]byte, store bool) (bad errorText) {
	weighted := a.op == opUnion || a.op == opInter
	for len(args) > 0 {
		word, rest := args[0], args[1:]
		switch {
		case weighted && len(rest) >= len(a.sources) && isWord(word, "weights"):
			for i := range a.sources {
				var ok bool
				if a.sources[i].weight, ok = parseDouble(rest[i]); !ok {
					return msgWeight
				}
			}
			args = rest[len(a.sources):]
		case weighted && len(rest) >= 1 && isWord(word, "aggregate"):
			switch {
			case isWord(rest[0], "sum"):
				a.merge = aggregateSum
			case isWord(rest[0], "min"):
				a.merge = aggregateMin
			case isWord(rest[0], "max"):
				a.merge = aggregateMax
			default:
				return msgSyntax
			}
			args = rest[1:]
		case !store && a.op != opInterCard && isWord(word, "withscores"):
			a.scores = true
			args = rest
		case a.op == opInterCard && len(rest) >= 1 && isWord(word, "limit"):
			var ok bool
			if a.limit, ok = parseInt(rest[0]); !ok || a.limit < 0 {
				return msgLimitNegative
			}
			args = rest[1:]
		default:
			return msgSyntax
		}
	}
	return ""
}

// run returns the result, ordered.
func (a *algebra) run() []scored {
	var out []scored
	keep := func(m []byte, score float64) bool {
		out = append(out, scored{a.own(&a.sources[0], m), score})
		return true
	}
	switch a.op {
	case opUnion:
		out = a.union()
	case opDiff:
		a.diff(keep)
	default:
		a.inter(keep)
	}
	slices.SortFunc(out, byScore)
	return out
}

// own returns a member of s that stays valid: sets lend theirs for a moment only.
func (a *algebra) own(s *source, m []byte) []byte {
	if s.kind != state.TypeSet {
		return m
	}
	if cap(a.chunk)-len(a.chunk) < len(m) {
		a.chunk = make([]byte, 0, max(1024, len(m)))
	}
	start := len(a.chunk)
	a.chunk = append(a.chunk, m...)
	return a.chunk[start:len(a.chunk):len(a.chunk)]
}

// bySize orders the sources from the smallest: sums of scores are made in this order.
func (a *algebra) bySize() {
	slices.SortStableFunc(a.sources, func(x, y source) int { return x.n - y.n })
}

func (a *algebra) union() (out []scored) {
	a.bySize()
	if len(a.sources) == 1 {
		a.sources[0].each(func(m []byte, score float64) bool {
			out = append(out, scored{a.own(&a.sources[0], m), noNaN(score * a.sources[0].weight)})
			return true
		})
		return out
	}
	index := make(map[string]int, a.sources[len(a.sources)-1].n)
	for i := range a.sources {
		s := &a.sources[i]
		s.each(func(m []byte, score float64) bool {
			score = noNaN(score * s.weight)
			if k, ok := index[string(m)]; ok {
				out[k].score = a.merge.apply(out[k].score, score)
				return true
			}
			index[string(m)] = len(out)
			out = append(out, scored{a.own(s, m), score})
			return true
		})
	}
	return out
}

func (a *algebra) inter(keep func(m []byte, score float64) bool) {
	a.bySize()
	first := &a.sources[0]
	first.each(func(m []byte, score float64) bool {
		score = noNaN(score * first.weight)
		for i := range a.sources[1:] {
			s := &a.sources[1+i]
			x, ok := s.score(m)
			if !ok {
				return true
			}
			score = a.merge.apply(score, x*s.weight)
		}
		return keep(m, score)
	})
}

func (a *algebra) diff(keep func(m []byte, score float64) bool) {
	a.sources[0].each(func(m []byte, score float64) bool {
		for i := range a.sources[1:] {
			if _, ok := a.sources[1+i].score(m); ok {
				return true
			}
		}
		return keep(m, score)
	})
}

func planZUnion(c *Ctx) { planAlgebra(c, opUnion) }
func planZInter(c *Ctx) { planAlgebra(c, opInter) }
func planZDiff(c *Ctx)  { planAlgebra(c, opDiff) }

func planAlgebra(c *Ctx, op setOp) {
	a := algebra{op: op}
	if bad := a.parse(c, c.Args[1:], false); bad != "" {
		c.W.Error(bad)
		return
	}
	items := a.run()
	pairsHeader(c.W, len(items), a.scores)
	for _, it := range items {
		writeScored(c.W, it.member, it.score, a.scores)
	}
}

func planZUnionStore(c *Ctx) { planAlgebraStore(c, opUnion) }
func planZInterStore(c *Ctx) { planAlgebraStore(c, opInter) }
func planZDiffStore(c *Ctx)  { planAlgebraStore(c, opDiff) }

func planAlgebraStore(c *Ctx, op setOp) {
	a := algebra{op: op}
	if bad := a.parse(c, c.Args[2:], true); bad != "" {
		c.W.Error(bad)
		return
	}
	items := a.run()
	for _, key := range c.Args[3 : 3+len(a.sources)] {
		if string(key) == string(c.Args[1]) { // its record goes before the elements are added
			for i := range items {
				items[i].member = c.Copy(items[i].member)
			}
			break
		}
	}
	storeScored(c, c.Args[1], items)
	c.W.Int(int64(len(items)))
}

func planZInterCard(c *Ctx) {
	a := algebra{op: opInterCard}
	if bad := a.parse(c, c.Args[1:], false); bad != "" {
		c.W.Error(bad)
		return
	}
	n := int64(0)
	a.inter(func([]byte, float64) bool {
		n++
		return n != a.limit
	})
	c.W.Int(n)
}
