package state

import "github.com/kevydb/kevy/internal/arena"

// prefetched is how much of a record PrefetchRecords asks for: all of most small ones.
const prefetched = 128

// A Lookup waits for memory twice: for the key's place in the index, then for its record. Who knows many
// keys beforehand asks for all the places, then for all the records, and waits hardly longer than for one.

// PrefetchIndex asks for the place in the index of the key with hash h. REQUIRES: the shard's lock.
func (ks *Keyspace) PrefetchIndex(h uint64) {
	x := &ks.idx
	e := x.dir[h>>(x.shift&63)]
	at := 8 * home(tagOf(h, entryDepth(e)), 1<<(e>>slotsPos&63))
	x.a.Prefetch(arena.Ref(e&arena.RefMask), at, at+8)
}

// PrefetchRecord asks for the record of the key with hash h. REQUIRES: the shard's lock.
func (ks *Keyspace) PrefetchRecord(h uint64) {
	x := &ks.idx
	e := x.dir[h>>(x.shift&63)]
	t := tagOf(h, entryDepth(e))
	w := x.words(e)
	for i := home(t, len(w)); i < len(w) && w[i] != 0 && w[i]>>tagPos <= t; i++ {
		if w[i]>>tagPos == t {
			x.a.Prefetch(arena.Ref(w[i]&arena.RefMask), 0, prefetched)
			return
		}
	}
}
