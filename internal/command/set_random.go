package command

import (
	"math"
	"math/bits"
	"slices"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// maxSetDraws bounds what SRANDMEMBER with a negative count makes of a few bytes of request.
const maxSetDraws = 1 << 26

// planSPop plans SPOP key [count].
func planSPop(c *Ctx) {
	switch len(c.Args) {
	case 2:
		spopOne(c)
	case 3:
		spopCount(c)
	default:
		c.W.Error(msgSyntax)
	}
}

func spopOne(c *Ctx) {
	s, found, ok := lookupSet(c, c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Null()
	default:
		m := s.At(drawBelow(mix(c.Rand), s.Len()), c.digits())
		c.W.Bulk(m)
		c.Emit(effect.SRem, c.Args[1], m)
	}
}

func spopCount(c *Ctx) {
	key := c.Args[1]
	count, bad := countArg(c.Args[2])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	s, found, ok := lookupSet(c, key)
	switch {
	case !ok:
	case !found || count == 0:
		c.W.Set(0)
	case count >= int64(s.Len()):
		c.W.Set(s.Len())
		writeMembers(c, &s)
		c.Emit(effect.Del, key)
	default:
		c.W.Set(int(count))
		p := storePieces{c: c, key: key, op: effect.SRem}
		sampleSet(c.Rand, &s, int(count), func(m []byte) {
			c.W.Bulk(m)
			p.add(m)
		})
		p.end()
	}
}

// planSRandMember plans SRANDMEMBER key [count].
func planSRandMember(c *Ctx) {
	switch len(c.Args) {
	case 2:
		s, found, ok := lookupSet(c, c.Args[1])
		switch {
		case !ok:
		case !found:
			c.W.Null()
		default:
			var num [20]byte
			c.W.Bulk(s.At(drawBelow(mix(c.Rand), s.Len()), num[:0]))
		}
	case 3:
		srandCount(c)
	default:
		c.W.Error(msgSyntax)
	}
}

func srandCount(c *Ctx) {
	count, bad := intArg(c.Args[2])
	if bad == "" && count == math.MinInt64 {
		bad = msgLongRange
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	s, found, ok := lookupSet(c, c.Args[1])
	switch {
	case !ok:
	case !found || count == 0:
		c.W.Array(0)
	case count < -maxSetDraws:
		c.W.Error(MsgIntRange)
	case count < 0:
		c.W.Array(int(-count))
		var num [20]byte
		for rnd := c.Rand; count < 0; count++ {
			rnd = mix(rnd)
			c.W.Bulk(s.At(drawBelow(rnd, s.Len()), num[:0]))
		}
	case count >= int64(s.Len()):
		c.W.Array(s.Len())
		writeMembers(c, &s)
	default:
		c.W.Array(int(count))
		sampleSet(c.Rand, &s, int(count), c.W.Bulk)
	}
}

// digits returns room for an integer that lives as long as the planned effects.
func (c *Ctx) digits() []byte {
	const most = 20
	if cap(c.scratch)-len(c.scratch) < most {
		c.scratch = make([]byte, 0, max(256, 2*cap(c.scratch)))
	}
	start := len(c.scratch)
	c.scratch = c.scratch[:start+most]
	return c.scratch[start : start : start+most]
}

// drawBelow maps a random number to one below n.
func drawBelow(rnd uint64, n int) int {
	hi, _ := bits.Mul64(rnd, uint64(n))
	return int(hi)
}

// sampleSet calls f with n different members, every choice of n being as likely as any other. REQUIRES: n < s.Len().
func sampleSet(rnd uint64, s *state.Set, n int, f func(m []byte)) {
	left := s.Len()
	if n > left/4 {
		s.Each(func(m []byte) bool {
			if rnd = mix(rnd); drawBelow(rnd, left) < n {
				f(m)
				n--
			}
			left--
			return n > 0
		})
		return
	}
	chosen := make(map[int]struct{}, n)
	ranks := make([]int, 0, n)
	for i := left - n; i < left; i++ { // Floyd's choice of n out of left
		rnd = mix(rnd)
		rank := drawBelow(rnd, i+1)
		if _, again := chosen[rank]; again {
			rank = i
		}
		chosen[rank] = struct{}{}
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	var num [20]byte
	for _, rank := range ranks {
		f(s.At(rank, num[:0]))
	}
}

// countArg reads a number that must not be negative.
func countArg(b []byte) (int64, errorText) {
	n, ok := parseInt(b)
	if !ok || n < 0 {
		return 0, msgNotPositive
	}
	return n, ""
}
