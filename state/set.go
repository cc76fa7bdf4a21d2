package state

import (
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// A small set is an intPack if all its members are integers, else a run of its members. A large set has its
// integers in a roaring bitmap and its other members in a tree, keyed by their hashes; each may be empty, so
// that a member of the other kind converts nothing.
//
//	head   = members, root of the tree of strings, root of the tree of containers (ints.go), bytes of all blocks
//	         but the head
//	member = length as uvarint, bytes
const (
	setCount = iota
	setRoot
	setInts
	setBytes
	setHeadWords
)

var setOps = kindOps{
	headWords: setHeadWords,
	names:     setRoot,
	len:       func(v value) int { s := setValue(v); return s.Len() },
	digest:    digestSet,
	rebuild:   rebuildSet,
	blocks:    setBlocks,
	drain:     drainSet,
	bytes:     func(v value) int { return int(v.words(setHeadWords)[setBytes]) },
	encoding:  encodingOfSet,
}

// Set reads the members of a set.
type Set struct {
	v    value
	tree tree // strings of a large set
	ints tree // integers of a large set
	seed uint64

	sought *sought // nil in a view
}

// Set returns the members of a set. REQUIRES: e.Type() == TypeSet.
func (ks *Keyspace) Set(e Entry) Set {
	s := setValue(valueAt(e.a, e.ref))
	s.seed, s.sought = ks.seed, &ks.sought
	return s
}

func setValue(v value) Set {
	s := Set{v: v}
	if v.head != 0 {
		w := v.words(setHeadWords)
		s.tree = tree{a: v.a, keyed: true, root: arena.Ref(w[setRoot])}
		s.ints = tree{a: v.a, keyed: true, root: arena.Ref(w[setInts])}
	}
	return s
}

// large reports whether the set has trees.
func (s *Set) large() bool { return s.v.head != 0 }

// Len returns the number of members.
func (s *Set) Len() int {
	if s.large() {
		return int(s.v.words(setHeadWords)[setCount])
	}
	if p, ok := packedInts(s.v.flat); ok {
		return p.len()
	}
	n := 0
	for b := s.v.flat; len(b) > 0; n++ {
		_, b = cutString(b)
	}
	return n
}

// Each calls f with every member until f returns false; integers first, ascending. A member is read-only and
// valid until f returns.
func (s *Set) Each(f func(member []byte) bool) bool {
	if s.large() {
		var w numbers
		return eachContainer(&s.ints, func(hi uint64, c container) bool { return w.each(hi, c, f) }) &&
			s.eachString(f)
	}
	return s.eachPacked(f)
}

// eachString calls f with the members of a large set that are no integers, read-only aliases.
func (s *Set) eachString(f func(member []byte) bool) bool {
	return s.tree.each(func(r arena.Ref, _, _ uint64) bool { return f(blockString(s.v.a, r)) })
}

func (s *Set) eachPacked(f func(member []byte) bool) bool {
	if p, ok := packedInts(s.v.flat); ok {
		var w numbers
		for i := range p.len() {
			if !f(w.format(p.at(i))) {
				return false
			}
		}
		return true
	}
	for b := s.v.flat; len(b) > 0; {
		var m []byte
		if m, b = cutString(b); !f(m) {
			return false
		}
	}
	return true
}

// numbers formats integers, each in the place of the one before.
type numbers struct{ b [20]byte }

func (w *numbers) format(n int64) []byte { return strconv.AppendInt(w.b[:0], n, 10) }

// each calls f with the members of a container.
func (w *numbers) each(hi uint64, c container, f func(member []byte) bool) bool {
	return c.each(func(x uint16) bool { return f(w.format(integer(hi | uint64(x)))) })
}

// Has reports whether m is a member.
func (s *Set) Has(m []byte) bool {
	n, isInt := parseInt(m)
	switch p, packed := packedInts(s.v.flat); {
	case s.large() && isInt:
		return hasInt(&s.ints, n)
	case s.large():
		_, ok := s.sought.seekNamed(&s.tree, Hash(s.seed, m), m, blockString)
		return ok
	case packed:
		return isInt && p.has(n)
	}
	return hasString(s.v.flat, m)
}

// At appends the member of the given rank to dst: every member has a rank of its own below Len. The result is
// dst's or a read-only alias.
func (s *Set) At(rank int, dst []byte) []byte {
	if p, ok := packedInts(s.v.flat); ok {
		return strconv.AppendInt(dst, p.at(rank), 10)
	}
	if !s.large() {
		b := s.v.flat
		for ; rank > 0; rank-- {
			_, b = cutString(b)
		}
		m, _ := cutString(b)
		return m
	}
	n := s.ints.weight()
	if uint64(rank) < n {
		c, rest := s.ints.seekWeight(uint64(rank))
		r, weight, key, _ := c.item()
		x := containerAt(s.v.a, r, weight, key).at(int(rest))
		return strconv.AppendInt(dst, integer(key&^lowMask|uint64(x)), 10)
	}
	c, _ := s.tree.seekWeight(uint64(rank) - n)
	r, _, _, _ := c.item()
	return blockString(s.v.a, r)
}

// blockString returns the string at the beginning of a block.
func blockString(a *arena.Arena, r arena.Ref) []byte {
	b := a.Tail(r)
	if n := int(b[0]); n < 0x80 {
		return b[1 : 1+n : 1+n]
	}
	n, w := uvarint(b)
	return a.Bytes(r, w+n)[w:]
}

// newString makes a block that holds s with its length.
func (ks *Keyspace) newString(s []byte) arena.Ref {
	n := stringSize(len(s))
	r := ks.newValue(n)
	appendString(ks.a.Bytes(r, n)[:0], s)
	return r
}

func digestSet(v value) (lo, hi uint64) {
	s := setValue(v)
	s.Each(func(m []byte) bool {
		h := xxh3.Hash128Seed(m, valueSeed)
		lo += h.Lo
		hi += h.Hi
		return true
	})
	return lo, hi
}

func rebuildSet(v value, key []byte, emit func(*effect.Effect) bool) bool {
	p := pieces{op: effect.SAdd, key: key, emit: emit}
	s := setValue(v)
	if _, ints := packedInts(v.flat); !ints && v.head == 0 {
		return s.eachPacked(func(m []byte) bool { return p.add(m) }) && p.flush()
	}
	// Receivers may keep the members for longer than the call: so the digits stay where they are.
	var digits []byte
	number := func(m []byte) bool {
		if cap(digits)-len(digits) < len(m) {
			digits = make([]byte, 0, 4096)
		}
		at := len(digits)
		digits = append(digits, m...)
		return p.add(digits[at:len(digits):len(digits)])
	}
	if !s.large() {
		return s.eachPacked(number) && p.flush()
	}
	var w numbers
	return eachContainer(&s.ints, func(hi uint64, c container) bool { return w.each(hi, c, number) }) &&
		s.eachString(func(m []byte) bool { return p.add(m) }) && p.flush()
}

func setBlocks(v value, f func(arena.Ref)) {
	s := setValue(v)
	for _, t := range [2]*tree{&s.tree, &s.ints} {
		t.nodes(f)
		t.each(func(r arena.Ref, _, _ uint64) bool { f(r); return true })
	}
}

func drainSet(ks *Keyspace, w []uint64) (more bool) {
	for _, root := range [2]int{setInts, setRoot} {
		t := tree{a: ks.a, keyed: true, root: arena.Ref(w[root]), bytes: &ks.bytes}
		more = t.drain(ks.freeValue)
		w[root] = uint64(t.root)
		if more {
			return true
		}
	}
	return w[setRoot] != 0
}

// hintPacked in a set's hint byte says that it is no intset.
const hintPacked = 2

func encodingOfSet(_ value, hint byte) string {
	switch {
	case hint&hintLarge != 0:
		return "hashtable"
	case hint&hintPacked != 0:
		return "listpack"
	}
	return "intset"
}
