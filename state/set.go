package state

import (
	"bytes"

	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// A packed set is a run of its members. A large set is a tree of members, keyed by their hashes:
//
//	head   = members, root of the tree
//	member = length as uvarint, bytes
const (
	setCount = iota
	setRoot
	setHeadWords
)

var setOps = kindOps{
	headWords: setHeadWords,
	len:       func(v value) int { return setValue(v).Len() },
	digest:    digestSet,
	rebuild:   rebuildSet,
	blocks:    setBlocks,
	drain:     drainSet,
	encoding:  func(v value, hint byte) string { return "hashtable" },
}

// Set reads the members of a set.
type Set struct {
	v    value
	tree tree // of a large set
	seed uint64
}

// Set returns the members of a set. REQUIRES: e.Type() == TypeSet.
func (ks *Keyspace) Set(e Entry) Set {
	s := setValue(valueAt(e.a, e.ref))
	s.seed = ks.seed
	return s
}

func setValue(v value) Set {
	s := Set{v: v}
	if v.head != 0 {
		s.tree = tree{a: v.a, keyed: true, root: arena.Ref(v.words(setHeadWords)[setRoot])}
	}
	return s
}

// Len returns the number of members.
func (s Set) Len() int {
	if s.v.head != 0 {
		return int(s.v.words(setHeadWords)[setCount])
	}
	n := 0
	for b := s.v.flat; len(b) > 0; n++ {
		_, b = cutString(b)
	}
	return n
}

// Each calls f with every member, read-only aliases, until f returns false.
func (s Set) Each(f func(member []byte) bool) bool {
	if s.v.head != 0 {
		return s.tree.each(func(r arena.Ref, _, _ uint64) bool { return f(blockString(s.v.a, r)) })
	}
	for b := s.v.flat; len(b) > 0; {
		var m []byte
		if m, b = cutString(b); !f(m) {
			return false
		}
	}
	return true
}

// Has reports whether m is a member.
func (s Set) Has(m []byte) bool {
	if s.v.head != 0 {
		_, ok := seekString(&s.tree, Hash(s.seed, m), m)
		return ok
	}
	return !s.Each(func(have []byte) bool { return !bytes.Equal(have, m) })
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

// seekString finds the item whose string is s in a tree keyed by the strings' hashes.
func seekString(t *tree, h uint64, s []byte) (c treeCursor, found bool) {
	c = t.seek(h, func(r arena.Ref) int { return bytes.Compare(blockString(t.a, r), s) })
	r, _, key, ok := c.item()
	return c, ok && key == h && bytes.Equal(blockString(t.a, r), s)
}

func digestSet(v value) (lo, hi uint64) {
	setValue(v).Each(func(m []byte) bool {
		h := xxh3.Hash128Seed(m, valueSeed)
		lo += h.Lo
		hi += h.Hi
		return true
	})
	return lo, hi
}

func rebuildSet(v value, key []byte, emit func(*effect.Effect) bool) bool {
	p := pieces{op: effect.SAdd, key: key, emit: emit}
	return setValue(v).Each(func(m []byte) bool { return p.add(m) }) && p.flush()
}

func setBlocks(v value, f func(arena.Ref)) {
	t := setValue(v).tree
	t.nodes(f)
	t.each(func(r arena.Ref, _, _ uint64) bool { f(r); return true })
}

func drainSet(ks *Keyspace, w []uint64) (more bool) {
	t := tree{a: ks.a, keyed: true, root: arena.Ref(w[setRoot]), bytes: &ks.bytes}
	more = t.drain(ks.freeValue)
	w[setRoot] = uint64(t.root)
	return more
}
