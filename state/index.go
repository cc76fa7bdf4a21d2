package state

import (
	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
)

// index finds records by hash: extendible hashing with tables in the arena.
//
// The directory has one entry for each value of the hash's top bits; a table of depth d serves all
// hashes that share d top bits. A table is a sorted array with gaps: a slot holds a tag, the next up to 24
// bits of the hash below the table's depth, and a ref. Slots are ordered by tag, none lies before
// its home, and between a slot's home and the slot there is no gap. The home grows with the tag and never
// wraps, so the order of slots over all tables is the order of hashes: that is what Scan relies on.
//
// A full table splits in two, or doubles when splitting would blow up the directory (many equal hash
// prefixes). Nothing ever rehashes more than one table.
//
//	slot      = tag (24) | ref (40); 0 is empty
//	directory = log2 of slots (8) | depth (8) | table ref (40)
//
// Tags have a resolution that depends only on the depth: bits down to hash bit 24 + depth&^7. So seven
// of eight splits shift the tags and need no record.
type index struct {
	a       *arena.Arena
	hash    func(key []byte) uint64 // keyed; only splits need it
	dir     []uint64
	shift   uint8 // 64 - depth of the directory
	depth   uint8
	byDepth [maxDepth + 1]int // tables of each depth
	n       int
}

const (
	tagBits   = 24
	tagShift  = 64 - tagBits // of the tag in a hash
	tagPos    = arena.RefBits
	maxDepth  = 24
	tableLog  = 9 // slots of an ordinary table, log2
	depthPos  = 40
	slotsPos  = 48
	spareHigh = 2 // last slots of a table: an empty one that ends every probe, and the count
)

// Hash is the keyed hash of a key: shards are chosen by its low 16 bits, the index uses its top bits.
func Hash(seed uint64, key []byte) uint64 { return xxh3.HashSeed(key, seed) }

func newIndex(a *arena.Arena, seed uint64) index {
	hash := func(key []byte) uint64 { return Hash(seed, key) }
	x := index{a: a, hash: hash, dir: make([]uint64, 2), shift: 63, depth: 1}
	e := x.newTable(0, tableLog)
	x.dir[0], x.dir[1] = e, e
	x.byDepth[0] = 1
	return x
}

// newTable returns the directory entry of an empty table.
func (x *index) newTable(depth, log uint) uint64 {
	r := x.a.Alloc(8 << log)
	clear(x.a.Words(r, 1<<log))
	return uint64(r) | uint64(depth)<<depthPos | uint64(log)<<slotsPos
}

func entryDepth(e uint64) uint { return uint(e>>depthPos) & 63 }

func (x *index) words(e uint64) []uint64 {
	return x.a.Words(arena.Ref(e&arena.RefMask), 1<<(e>>slotsPos&63))
}

// tagOf returns the tag of a hash in a table of depth d.
func tagOf(h uint64, d uint) uint64 {
	return h << (d & 63) >> tagShift >> (d & 7) << (d & 7)
}

// home returns the slot where a tag belongs in a table of n slots. The last 16th is for overflow.
func home(tag uint64, n int) int {
	return int(tag * uint64(n-n>>4) >> tagBits)
}

// find returns the ref of key, or 0.
func (x *index) find(h uint64, key []byte) arena.Ref {
	e := x.dir[h>>(x.shift&63)]
	t := tagOf(h, entryDepth(e))
	w := x.words(e)
	for i := home(t, len(w)); i < len(w); i++ {
		switch s := w[i]; {
		case s>>tagPos == t && s != 0:
			if r := arena.Ref(s & arena.RefMask); hasKey(x.a, r, key) {
				return r
			}
		case s == 0 || s>>tagPos > t:
			return 0
		}
	}
	return 0
}

// slot returns the position of a record in its table.
func (x *index) slot(w []uint64, t uint64, r arena.Ref) int {
	s := t<<tagPos | uint64(r)
	for i := home(t, len(w)); ; i++ {
		if w[i] == s {
			return i
		}
	}
}

// replace puts a record's new ref in the place of the old one. REQUIRES: old is in the index.
func (x *index) replace(h uint64, old, r arena.Ref) {
	e := x.dir[h>>(x.shift&63)]
	t := tagOf(h, entryDepth(e))
	w := x.words(e)
	w[x.slot(w, t, old)] = t<<tagPos | uint64(r)
}

// insert adds a record. REQUIRES: its key is not in the index.
func (x *index) insert(h uint64, r arena.Ref) {
	for {
		e := x.dir[h>>(x.shift&63)]
		w := x.words(e)
		if int(w[len(w)-1]) < fullAt(len(w)) && place(w, tagOf(h, entryDepth(e)), r) {
			break
		}
		x.grow(h, e)
	}
	x.n++
}

// fullAt returns the number of entries at which a table of n slots is split.
func fullAt(n int) int { return n / 16 * 13 }

// place puts a slot into a table in tag order; false if it does not fit.
func place(w []uint64, t uint64, r arena.Ref) bool {
	i := home(t, len(w))
	for w[i] != 0 && w[i]>>tagPos <= t {
		i++
	}
	end := i
	for w[end] != 0 {
		end++
	}
	if end >= len(w)-spareHigh {
		return false
	}
	copy(w[i+1:end+1], w[i:end])
	w[i] = t<<tagPos | uint64(r)
	w[len(w)-1]++
	return true
}

// remove takes a record out. REQUIRES: it is in the index.
func (x *index) remove(h uint64, r arena.Ref) {
	e := x.dir[h>>(x.shift&63)]
	w := x.words(e)
	i := x.slot(w, tagOf(h, entryDepth(e)), r)
	end := i + 1
	for w[end] != 0 && home(w[end]>>tagPos, len(w)) < end {
		end++
	}
	copy(w[i:end-1], w[i+1:end])
	w[end-1] = 0
	w[len(w)-1]--
	x.n--
	if int(w[len(w)-1]) < len(w)/8 {
		x.shrink(h, e)
	}
}
