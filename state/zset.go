package state

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// A packed sorted set is a run of scores (packScore) and members, ordered by score and then by member. A
// large one is a set of elements in two trees: names is keyed by the hash of the member, scores by the
// order-preserving bits of the score and then by the member.
//
//	head    = elements, root of names, root of scores, bytes of elements and nodes
//	element = score (8, IEEE 754), length of the member as uvarint, bytes of the member
const (
	zsetCount = iota
	zsetNames
	zsetScores
	zsetBytes
	zsetHeadWords
)

var zsetOps = kindOps{
	headWords: zsetHeadWords,
	names:     zsetNames,
	len:       func(v value) int { z := zsetValue(v); return z.Len() },
	digest:    digestZSet,
	rebuild:   rebuildZSet,
	blocks:    zsetBlocks,
	bytes:     func(v value) int { return int(v.words(zsetHeadWords)[zsetBytes]) },
	drain:     drainZSet,
	encoding: func(_ value, hint byte) string {
		if hint&hintLarge != 0 {
			return "skiplist"
		}
		return "listpack"
	},
}

// ZSet reads a sorted set. Its elements have ranks from 0 in the order of score and member. What it returns
// aliases the keyspace: read-only, valid until the next Fold.
type ZSet struct {
	v      value
	names  tree // of a large sorted set
	scores tree
	seed   uint64

	sought *sought // nil in a view
}

// ZSet returns the elements of a sorted set. REQUIRES: e.Type() == TypeZSet.
func (ks *Keyspace) ZSet(e Entry) ZSet {
	z := zsetValue(valueAt(e.a, e.ref))
	z.seed, z.sought = ks.seed, &ks.sought
	return z
}

func zsetValue(v value) ZSet {
	z := ZSet{v: v}
	if v.head != 0 {
		w := v.words(zsetHeadWords)
		z.names = tree{a: v.a, keyed: true, root: arena.Ref(w[zsetNames])}
		z.scores = tree{a: v.a, keyed: true, root: arena.Ref(w[zsetScores])}
	}
	return z
}

// Len returns the number of elements.
func (z *ZSet) Len() int {
	if z.v.head != 0 {
		return int(z.v.words(zsetHeadWords)[zsetCount])
	}
	n := 0
	for b := z.v.flat; len(b) > 0; n++ {
		_, _, b = cutScored(b)
	}
	return n
}

// Score returns the score of a member.
func (z *ZSet) Score(m []byte) (score float64, ok bool) {
	if z.v.head != 0 {
		r, ok := z.sought.seekNamed(&z.names, Hash(z.seed, m), m, memberAt)
		if !ok {
			return 0, false
		}
		return scoreAt(z.v.a, r), true
	}
	for b := z.v.flat; len(b) > 0; {
		var have []byte
		if score, have, b = cutScored(b); bytes.Equal(have, m) {
			return score, true
		}
	}
	return 0, false
}

// Rank returns the rank and the score of a member.
func (z *ZSet) Rank(m []byte) (rank int, score float64, ok bool) {
	if z.v.head != 0 {
		if score, ok = z.Score(m); !ok {
			return 0, 0, false
		}
		c := z.seek(scoreKey(score), m)
		return int(c.rank()), score, true
	}
	for b := z.v.flat; len(b) > 0; rank++ {
		var have []byte
		if score, have, b = cutScored(b); bytes.Equal(have, m) {
			return rank, score, true
		}
	}
	return 0, 0, false
}

// seek returns a cursor before the first element of a large sorted set that is not less than the target.
func (z *ZSet) seek(key uint64, m []byte) treeCursor { return seekScored(&z.scores, key, m) }

func seekScored(t *tree, key uint64, m []byte) treeCursor {
	return t.seek(key, func(r arena.Ref) int { return bytes.Compare(memberAt(t.a, r), m) })
}

// RankOfScore returns the number of elements whose score is less than score, or, with above, not greater.
func (z *ZSet) RankOfScore(score float64, above bool) (rank int) {
	if z.v.head == 0 {
		for b := z.v.flat; len(b) > 0; rank++ {
			var s float64
			if s, _, b = cutScored(b); s > score || s == score && !above {
				break
			}
		}
		return rank
	}
	key := scoreKey(score)
	if above {
		key++
	}
	c := z.scores.seek(key, func(arena.Ref) int { return 0 })
	return int(c.rank())
}

// RankOfMember returns the number of elements whose member is less than m, or, with above, not greater,
// provided that all elements have the same score. If they have not, it is a rank of no meaning.
func (z *ZSet) RankOfMember(m []byte, above bool) (rank int) {
	if z.v.head == 0 {
		for b := z.v.flat; len(b) > 0; rank++ {
			var have []byte
			_, have, b = cutScored(b)
			if c := bytes.Compare(have, m); c > 0 || c == 0 && !above {
				break
			}
		}
		return rank
	}
	first := z.scores.begin()
	_, _, key, _ := first.item()
	c := z.scores.seek(key, func(r arena.Ref) int {
		if c := bytes.Compare(memberAt(z.v.a, r), m); c != 0 || !above {
			return c
		}
		return -1
	})
	return int(c.rank())
}

// scoreAt and memberAt read the block of an element.
func scoreAt(a *arena.Arena, r arena.Ref) float64 {
	return math.Float64frombits(le.Uint64(a.Tail(r)))
}

func memberAt(a *arena.Arena, r arena.Ref) []byte {
	b := a.Tail(r)
	if n := int(b[8]); n < 0x80 {
		return b[9 : 9+n : 9+n]
	}
	n, w := uvarint(b[8:])
	return a.Bytes(r, 8+w+n)[8+w:]
}

// scoreKey maps scores to words of the same order; both zeros are equal.
func scoreKey(f float64) uint64 {
	b := math.Float64bits(f)
	switch {
	case b == 1<<63:
		return 1 << 63
	case b>>63 != 0:
		return ^b
	}
	return b | 1<<63
}

// scoreOf is the inverse of scoreKey. A zero may be negative: only the element knows.
func scoreOf(key uint64) float64 {
	if key>>63 != 0 {
		return math.Float64frombits(key &^ (1 << 63))
	}
	return math.Float64frombits(^key)
}

// A packed score that is an integer of at most 48 bits is a uvarint of its zigzag form, doubled. Any other
// is a byte 1 and 8 bytes of IEEE 754.
const packedScoreBits = 48

func appendPackedScore(dst []byte, f float64) []byte {
	if n := int64(f); float64(n) == f && n > -(1<<packedScoreBits) && n < 1<<packedScoreBits &&
		(n != 0 || !math.Signbit(f)) {
		return binary.AppendUvarint(dst, uint64(n<<1^n>>63)<<1)
	}
	return le.AppendUint64(append(dst, 1), math.Float64bits(f))
}

func cutScore(b []byte) (f float64, rest []byte) {
	if b[0]&1 != 0 {
		return math.Float64frombits(le.Uint64(b[1:])), b[9:]
	}
	u, w := uint64(b[0]), 1
	if u >= 0x80 {
		u, w = binary.Uvarint(b)
	}
	u >>= 1
	return float64(int64(u>>1) ^ -int64(u&1)), b[w:]
}

// cutScored returns the first element of a packed sorted set and the rest.
func cutScored(b []byte) (score float64, m, rest []byte) {
	score, b = cutScore(b)
	m, rest = cutString(b)
	return score, m, rest
}

// AppendScore appends a score as effects have it: the shortest text that is read as the same number.
func AppendScore(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == math.Trunc(f) && math.Abs(f) < 1<<62 && (f != 0 || !math.Signbit(f)):
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// parseScore reads a score of an effect.
func parseScore(b []byte) (float64, bool) {
	if n, ok := parseInt(b); ok {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(arena.String(b), 64)
	return f, err == nil && f == f
}

func digestZSet(v value) (lo, hi uint64) {
	z := zsetValue(v)
	var buf []byte
	c := z.At(0)
	for {
		score, m, ok := c.Next()
		if !ok {
			return lo, hi
		}
		buf = append(le.AppendUint64(buf[:0], math.Float64bits(score)), m...)
		h := xxh3.Hash128Seed(buf, valueSeed)
		lo += h.Lo
		hi += h.Hi
	}
}

func rebuildZSet(v value, key []byte, emit func(*effect.Effect) bool) bool {
	const chunk, most = 4096, 32
	z := zsetValue(v)
	p := pieces{op: effect.ZAdd, key: key, emit: emit}
	var text []byte
	c := z.At(0)
	for {
		score, m, ok := c.Next()
		if !ok {
			return p.flush()
		}
		if cap(text)-len(text) < most {
			text = make([]byte, 0, chunk)
		}
		start := len(text)
		text = AppendScore(text, score)
		if !p.add(text[start:len(text):len(text)], m) {
			return false
		}
	}
}

func zsetBlocks(v value, f func(arena.Ref)) {
	z := zsetValue(v)
	z.names.nodes(f)
	z.scores.nodes(f)
	z.names.each(func(r arena.Ref, _, _ uint64) bool { f(r); return true })
}

func drainZSet(ks *Keyspace, w []uint64) (more bool) {
	at, free := zsetScores, func(arena.Ref) {} // the names free the elements
	if w[at] == 0 {
		at, free = zsetNames, ks.freeValue
	}
	t := tree{a: ks.a, keyed: true, root: arena.Ref(w[at]), bytes: &ks.bytes}
	more = t.drain(free)
	w[at] = uint64(t.root)
	return more || at == zsetScores
}

func putScore(b []byte, f float64) { le.PutUint64(b, math.Float64bits(f)) }
