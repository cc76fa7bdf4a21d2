package state

import "github.com/kevydb/kevy/internal/arena"

// prefetched is how much of a record PrefetchRecord asks for: all of most small ones. prefetchedItem is the same for
// an element of a large collection: two cache lines if it does not begin with one.
const (
	prefetched     = 128
	prefetchedItem = 65
)

// A Lookup waits for memory twice: for the key's place in the index, then for its record. Who knows many
// keys beforehand asks for all the places, then for all the records, and waits hardly longer than for one.
// Finding an element of a large collection waits for a leaf of its tree, and for the element.

// PrefetchIndex asks for the place in the index of the key with hash h. REQUIRES: the shard's lock.
func (ks *Keyspace) PrefetchIndex(h uint64) {
	x := &ks.idx
	e := x.dir[h>>(x.shift&63)]
	at := 8 * home(tagOf(h, entryDepth(e)), 1<<(e>>slotsPos&63))
	x.a.Prefetch(arena.Ref(e&arena.RefMask), at, at+8)
}

// PrefetchRecord asks for the record of the key with hash h. REQUIRES: the shard's lock.
func (ks *Keyspace) PrefetchRecord(h uint64) {
	if r := ks.recordOf(h); r != 0 {
		ks.a.Prefetch(r, 0, prefetched)
	}
}

// Place is where an element of a large collection belongs; the zero value is none.
type Place struct {
	leaf arena.Ref
	hash uint64
}

// PrefetchLeaf asks for the leaf of the tree where an element belongs that has this name in the value of the key with
// hash h. REQUIRES: the shard's lock.
func (ks *Keyspace) PrefetchLeaf(h uint64, element []byte) (p Place) {
	r := ks.recordOf(h)
	if r == 0 {
		return p
	}
	v := valueAt(ks.a, r)
	if v.head == 0 {
		return p
	}
	o := v.kind.ops()
	if o.names == 0 {
		return p
	}
	t := tree{a: ks.a, keyed: true, root: arena.Ref(v.words(o.headWords)[o.names])}
	p.hash = Hash(ks.seed, element)
	p.leaf = t.prefetchLeaf(p.hash)
	return p
}

// PrefetchElement asks for the element at a place. REQUIRES: the lock is held since PrefetchLeaf has told it.
func (ks *Keyspace) PrefetchElement(p Place) {
	if p.leaf != 0 {
		t := tree{a: ks.a, keyed: true}
		t.prefetchItem(p.leaf, p.hash)
	}
}

// recordOf returns a record that the key with hash h may have, 0 if there is none.
func (ks *Keyspace) recordOf(h uint64) arena.Ref {
	x := &ks.idx
	e := x.dir[h>>(x.shift&63)]
	t := tagOf(h, entryDepth(e))
	w := x.words(e)
	for i := home(t, len(w)); i < len(w) && w[i] != 0 && w[i]>>tagPos <= t; i++ {
		if w[i]>>tagPos == t {
			return arena.Ref(w[i] & arena.RefMask)
		}
	}
	return 0
}
