package state

import (
	"bytes"

	"github.com/google/btree"

	"github.com/kevydb/kevy/internal/arena"
)

// order is the ordered keyspace: a B-tree whose last level lies in the arena.
//
// A leaf is a block with up to leafMax entries in key order; the B-tree holds one fence for each leaf. So
// the collector sees one small object for about 180 keys, and the tree above the leaves stays in the cache.
//
//	leaf  = count (16) | prefix length (32), then entries
//	entry = window (24) | ref (40)
//
// The window is the three bytes of the key after the prefix that all keys between the leaf's fence and the
// next one share; it decides nearly every comparison without touching a record. Windows of
// equal value are ordered by their keys.
//
// Frozen copies share leaves: a leaf an open view may see is copied before it changes.
type order struct {
	a *arena.Arena
	t *btree.BTreeG[fence]

	hit  fence            // result of floor
	grab func(fence) bool // stores its argument in hit
}

// fence is the lower bound of a leaf's keys: all are >= sep and less than the next fence's sep. The first
// fence has an empty sep and is never removed.
type fence struct {
	sep  string
	leaf arena.Ref
}

const (
	leafBytes  = 2048
	leafMax    = leafBytes/8 - 1
	windowLen  = 3
	fanOut     = 32 // degree of the tree of fences
	countBits  = 16
	countMask  = 1<<countBits - 1
	leafSparse = leafMax / 4     // below this a leaf looks for a neighbour to merge with
	leafMerged = leafMax * 3 / 4 // and merges if both together have no more than this

	// ascendAhead is how many records before its turn the processor is asked to bring one.
	ascendAhead = 8
)

func lessFence(a, b fence) bool { return a.sep < b.sep }

func newOrder(a *arena.Arena) order {
	o := order{a: a, t: btree.NewG(fanOut, lessFence)}
	o.t.ReplaceOrInsert(fence{leaf: o.newLeaf(0)})
	return o
}

func (o *order) newLeaf(prefix int) arena.Ref {
	r := o.a.Alloc(leafBytes)
	o.words(r)[0] = uint64(prefix) << countBits
	return r
}

func (o *order) words(leaf arena.Ref) []uint64 { return o.a.Words(leaf, leafMax+1) }

func leafLen(w []uint64) int    { return int(w[0] & countMask) }
func leafPrefix(w []uint64) int { return int(w[0] >> countBits) }

func refOf(entry uint64) arena.Ref { return arena.Ref(entry & arena.RefMask) }

// window returns the window of key behind a prefix.
func window(key []byte, prefix int) uint64 {
	if len(key) >= prefix+windowLen {
		k := key[prefix : prefix+windowLen]
		return uint64(k[0])<<16 | uint64(k[1])<<8 | uint64(k[2])
	}
	var w uint64
	for i := prefix; i < prefix+windowLen; i++ {
		w <<= 8
		if i < len(key) {
			w |= uint64(key[i])
		}
	}
	return w
}

// floor returns the fence of the leaf where key belongs.
func (o *order) floor(key []byte) fence {
	if o.grab == nil {
		o.grab = func(f fence) bool { o.hit = f; return false }
	}
	o.t.DescendLessOrEqual(fence{sep: arena.String(key)}, o.grab)
	return o.hit
}

// next returns the fence after f.
func (o *order) next(f fence) (n fence, ok bool) {
	o.t.AscendGreaterOrEqual(f, func(g fence) bool {
		if g.sep == f.sep {
			return true
		}
		n, ok = g, true
		return false
	})
	return n, ok
}

// own returns the words of f's leaf, for writing: a copy takes the leaf's place if a view may see it.
func (o *order) own(f *fence) []uint64 {
	if !o.a.Shared(f.leaf) {
		return o.words(f.leaf)
	}
	old := f.leaf
	f.leaf = o.a.Alloc(leafBytes)
	w := o.words(f.leaf)
	src := o.words(old)
	copy(w, src[:leafLen(src)+1])
	o.t.ReplaceOrInsert(*f)
	o.a.Free(old)
	return w
}

// lower returns the first entry of the leaf whose window is >= win.
func lower(w []uint64, win uint64) int {
	lo, hi := 1, leafLen(w)+1
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if w[m]>>arena.RefBits < win {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// seek returns the first entry of the leaf whose key is >= key.
func (o *order) seek(w []uint64, key []byte) int {
	win := window(key, leafPrefix(w))
	lo, n := lower(w, win), leafLen(w)
	hi := lo
	for step := 1; hi <= n && w[hi]>>arena.RefBits == win; step *= 2 { // gallop over equal windows
		hi = min(hi+step, n+1)
	}
	less := func(e uint64) bool {
		return e>>arena.RefBits < win || e>>arena.RefBits == win && bytes.Compare(keyOf(o.a, refOf(e)), key) < 0
	}
	if lo < hi && hi == n+1 && less(w[n]) {
		return hi // keys that come in order
	}
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); less(w[m]) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// insert adds a record. REQUIRES: its key is not in the order.
func (o *order) insert(key []byte, r arena.Ref) {
	f := o.floor(key)
	w := o.words(f.leaf)
	if leafLen(w) == leafMax {
		o.split(f, key)
		f = o.floor(key)
	}
	w = o.own(&f)
	i, n := o.seek(w, key), leafLen(w)
	copy(w[i+1:n+2], w[i:n+1])
	w[i] = window(key, leafPrefix(w))<<arena.RefBits | uint64(r)
	w[0]++
}

// position returns where the leaf has the record.
func position(w []uint64, key []byte, r arena.Ref) int {
	e := window(key, leafPrefix(w))<<arena.RefBits | uint64(r)
	for i := lower(w, e>>arena.RefBits); ; i++ {
		if w[i] == e {
			return i
		}
	}
}

// replace puts a record's new ref in the place of the old one. REQUIRES: old is in the order.
func (o *order) replace(key []byte, old, r arena.Ref) {
	f := o.floor(key)
	w := o.own(&f)
	i := position(w, key, old)
	w[i] = w[i]&^arena.RefMask | uint64(r)
}

// remove takes a record out. REQUIRES: it is in the order.
func (o *order) remove(key []byte, r arena.Ref) {
	f := o.floor(key)
	w := o.own(&f)
	i, n := position(w, key, r), leafLen(w)
	copy(w[i:n], w[i+1:n+1])
	w[0]--
	if n-1 < leafSparse {
		o.merge(f)
	}
}

// ascend calls f with the records from start on, in key order, until f returns false. It may run without
// the lock on a frozen copy.
func (o *order) ascend(start []byte, f func(r arena.Ref) bool) {
	from := fence{}
	o.t.DescendLessOrEqual(fence{sep: arena.String(start)}, func(g fence) bool { from = g; return false })
	first := true
	o.t.AscendGreaterOrEqual(from, func(g fence) bool {
		w := o.words(g.leaf)
		i := 1
		if first {
			i, first = o.seek(w, start), false
		}
		entries := w[i : leafLen(w)+1]
		for _, e := range entries[:min(ascendAhead, len(entries))] {
			o.a.Prefetch(refOf(e), 0, prefetched)
		}
		for i, e := range entries {
			if i+ascendAhead < len(entries) {
				o.a.Prefetch(refOf(entries[i+ascendAhead]), 0, prefetched)
			}
			if !f(refOf(e)) {
				return false
			}
		}
		return true
	})
}

// frozen returns a copy that does not change, as long as the arena is pinned.
func (o *order) frozen() order { return order{a: o.a, t: o.t.Clone()} }
