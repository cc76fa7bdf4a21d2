package state

import (
	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// value is the content of a record, of whatever type, in a keyspace or in a view:
//
//   - a string: its bytes;
//   - a small collection: packed into the record, at most maxInline bytes and maxPacked elements;
//   - a large collection: a head, a block of words in the arena with counts and the roots of trees. The head is
//     the record's own block (flagOwn), so the record may move without it. A head an open view may
//     see is copied before it changes.
//
// The bounds between small and large are fixed: folding depends on no setting.
type value struct {
	a    *arena.Arena
	kind Type
	flat []byte    // string or packed collection
	head arena.Ref // large collection; flat is nil then
}

// maxPacked is the most elements of a packed collection.
const maxPacked = 128

// valueAt returns the content of a record.
func valueAt(a *arena.Arena, r arena.Ref) value {
	b := a.Tail(r)
	v := value{a: a, kind: Type(b[offFlags] & typeMask)}
	if v.kind != TypeString && b[offFlags]&flagOwn != 0 {
		at := valueStart(b)
		v.head, _ = ownValue(a.Bytes(r, at+ownLen)[at:])
		return v
	}
	v.flat = valueOf(a, r)
	return v
}

// Large reports whether the value is too large to lie in its record.
func (e Entry) Large() bool { return e.a.Tail(e.ref)[offFlags]&flagOwn != 0 }

// words returns the head's words.
func (v value) words(n int) []uint64 { return v.a.Words(v.head, n) }

// kindOps is what the keyspace must be able to do with every value of a collection type.
type kindOps struct {
	headWords int // words of a large value's head
	names     int // the head's word with the root of the tree of elements keyed by the hashes of their names; 0: none

	// len returns how many elements the value has.
	len func(v value) int
	// digest returns a hash of the content that does not depend on how it is stored.
	digest func(v value) (lo, hi uint64)
	// rebuild emits the effects that make the value on a keyspace without the key, in pieces of bounded
	// size, until emit returns false. The effects are valid until emit returns.
	rebuild func(v value, key []byte, emit func(*effect.Effect) bool) bool
	// blocks calls f with every block of a large value but the head.
	blocks func(v value, f func(arena.Ref))
	// bytes returns the size of a large value's blocks but the head; nil: nobody has counted.
	bytes func(v value) int
	// drain frees some blocks of a large value that belongs to no record any more, and returns whether
	// there are more; the head goes last, by the caller.
	drain func(ks *Keyspace, w []uint64) (more bool)
	// encoding returns Redis's name for the value's encoding, given the record's hint.
	encoding func(v value, hint byte) string
}

// kinds has the operations of each collection type.
func (t Type) ops() *kindOps {
	//exhaustive:enforce
	switch t {
	case TypeList:
		return &listOps
	case TypeSet:
		return &setOps
	case TypeHash:
		return &hashOps
	case TypeZSet:
		return &zsetOps
	case TypeStream:
		return &streamOps
	case TypeNone, TypeString:
	}
	return nil
}

// open finds the record of key for a fold of the given type; r is 0 if there is none, ok is false if
// it has another type.
func (ks *Keyspace) open(key []byte, kind Type) (h uint64, r arena.Ref, ok bool) {
	h = Hash(ks.seed, key)
	r = ks.idx.find(h, key)
	return h, r, r == 0 || Type(ks.a.Tail(r)[offFlags]&typeMask) == kind
}

// setFlat makes flat the packed content of the key's record, creating it if r is 0 and removing it if
// flat is empty. A large value the record had is freed. flat may lie in ks.scratch, not in the record.
func (ks *Keyspace) setFlat(h uint64, r arena.Ref, key []byte, kind Type, flat []byte) arena.Ref {
	switch {
	case len(flat) == 0:
		if r != 0 {
			ks.drop(h, r)
		}
		return 0
	case r == 0:
		return ks.create(h, key, flat, NoDeadline, byte(kind))
	}
	b := ks.a.Tail(r)
	old := ks.detach(r, b)
	n := ks.rewrite(h, r, b, &content{kind: byte(kind), deadline: deadlineOf(b), value: flat})
	ks.discard(kind, old)
	return n
}

// newHead returns the words of a head that no record has yet.
func (ks *Keyspace) newHead(kind Type) (arena.Ref, []uint64) {
	n := kind.ops().headWords
	head := ks.newValue(8 * n)
	w := ks.a.Words(head, n)
	clear(w)
	return head, w
}

// setHead makes head the content of the key's record, creating it if r is 0.
func (ks *Keyspace) setHead(h uint64, r arena.Ref, key []byte, kind Type, head arena.Ref) arena.Ref {
	c := content{kind: byte(kind), own: head, ownLen: 8 * kind.ops().headWords}
	if r == 0 {
		c.key = key
		return ks.add(h, &c)
	}
	b := ks.a.Tail(r)
	c.deadline = deadlineOf(b)
	return ks.rewrite(h, r, b, &c)
}

// headForWrite returns the head of a large value to be changed, and its record, which has moved if a
// view may see the old head. REQUIRES: the value is large.
func (ks *Keyspace) headForWrite(h uint64, r arena.Ref, kind Type) (arena.Ref, []uint64) {
	n := kind.ops().headWords
	v := valueAt(ks.a, r)
	if !ks.a.Shared(v.head) {
		return r, v.words(n)
	}
	head, w := ks.newHead(kind)
	copy(w, v.words(n))
	r = ks.setHead(h, r, nil, kind, head)
	ks.freeValue(v.head)
	return r, w
}

// detach returns the own block of a record about to be rewritten, 0 if it has none.
func (ks *Keyspace) detach(r arena.Ref, b []byte) arena.Ref {
	if b[offFlags]&flagOwn == 0 {
		return 0
	}
	block, _ := ks.own(r, b)
	return block
}

// trash is a large value that lost its record and is freed bit by bit.
type trash struct {
	kind Type
	head arena.Ref
	w    []uint64 // copy of the head: a view may still see the head itself
}

// discard frees a value's own block: a string's at once, a collection's with all it holds in slices.
func (ks *Keyspace) discard(kind Type, block arena.Ref) {
	switch {
	case block == 0:
	case kind == TypeString:
		ks.freeValue(block)
	default:
		w := append([]uint64(nil), ks.a.Words(block, kind.ops().headWords)...)
		ks.trash = append(ks.trash, trash{kind: kind, head: block, w: w})
		ks.Housekeep(1)
	}
}

// Housekeep frees up to n slices (a few KiB each) of large values that are gone and returns whether
// there is more to free. Call it now and then: nothing else depends on it.
func (ks *Keyspace) Housekeep(n int) (more bool) {
	for ; n > 0 && len(ks.trash) > 0; n-- {
		last := &ks.trash[len(ks.trash)-1]
		if last.kind.ops().drain(ks, last.w) {
			continue
		}
		ks.freeValue(last.head)
		ks.trash = ks.trash[:len(ks.trash)-1]
	}
	return len(ks.trash) > 0
}
