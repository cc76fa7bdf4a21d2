package state

import (
	"cmp"
	"slices"

	"github.com/google/btree"

	"github.com/kevydb/kevy/internal/arena"
)

// leafBulk entries go into a leaf built by a bulk load: room for later keys.
const leafBulk = leafMax * 9 / 10

// BeginBulk starts a bulk load: until EndBulk order and deadline index are not maintained, so only Fold,
// lookups, Scan and the counters Len and UsedBytes may be used. REQUIRES: no open view.
func (ks *Keyspace) BeginBulk() { ks.bulk = true }

// EndBulk ends a bulk load: order and deadline index are built by sorting.
func (ks *Keyspace) EndBulk() {
	if !ks.bulk {
		return
	}
	ks.bulk = false
	keys := make([]sortItem, 0, ks.Len())
	var dues []due
	ks.idx.each(func(r arena.Ref) {
		keys = append(keys, sortItem{ref: r})
		if ms := deadlineOf(ks.a.Tail(r)); ms != NoDeadline {
			dues = append(dues, due{ms, r})
		}
	})
	sortKeys(ks.a, keys, 0)
	ks.ord.build(keys)
	ks.dl.build(dues)
}

// each calls f with every record, in hash order.
func (x *index) each(f func(r arena.Ref)) {
	for i := 0; i < len(x.dir); {
		e := x.dir[i]
		w := x.words(e)
		for _, s := range w[:len(w)-1] {
			if s != 0 {
				f(arena.Ref(s & arena.RefMask))
			}
		}
		i += 1 << (uint(x.depth) - entryDepth(e))
	}
}

// sortItem is a record to sort with eight bytes of its key.
type sortItem struct {
	win uint64
	ref arena.Ref
}

// sortKeys sorts records by key. REQUIRES: the keys share their first prefix bytes. It sorts by eight
// bytes after the whole common prefix, then each run of equal bytes again.
func sortKeys(a *arena.Arena, items []sortItem, prefix int) {
	if len(items) < 2 {
		return
	}
	first := keyOf(a, items[0].ref)
	lcp := len(first)
	for _, it := range items[1:] {
		k := keyOf(a, it.ref)
		if n := min(lcp, len(k)); string(k[prefix:n]) != string(first[prefix:n]) || n < lcp {
			lcp = prefix + common(first[prefix:n], k[prefix:n])
		}
	}
	for i := range items {
		items[i].win = keyWindow(keyOf(a, items[i].ref), lcp)
	}
	slices.SortFunc(items, func(x, y sortItem) int { return cmp.Compare(x.win, y.win) })
	for i := 0; i < len(items); {
		j := i + 1
		for j < len(items) && items[j].win == items[i].win {
			j++
		}
		sortTies(a, items[i:j], lcp)
		i = j
	}
}

// sortTies sorts records whose windows after lcp bytes are equal. The window pads with zeros, so a key
// that ends in it is less than the others only by its length.
func sortTies(a *arena.Arena, items []sortItem, lcp int) {
	if len(items) < 2 {
		return
	}
	byLen := func(it sortItem) int { return min(len(keyOf(a, it.ref)), lcp+8) }
	slices.SortFunc(items, func(x, y sortItem) int { return cmp.Compare(byLen(x), byLen(y)) })
	for i, it := range items {
		if byLen(it) == lcp+8 { // at most one key each is shorter
			sortKeys(a, items[i:], lcp+8)
			return
		}
	}
}

// keyWindow returns eight bytes of key from position at on, padded with zeros.
func keyWindow(key []byte, at int) uint64 {
	var b [8]byte
	copy(b[:], key[min(at, len(key)):])
	return uint64(b[0])<<56 | uint64(b[1])<<48 | uint64(b[2])<<40 | uint64(b[3])<<32 |
		uint64(b[4])<<24 | uint64(b[5])<<16 | uint64(b[6])<<8 | uint64(b[7])
}

// build replaces the order by one of the sorted records.
func (o *order) build(keys []sortItem) {
	o.t.Ascend(func(f fence) bool { o.a.Free(f.leaf); return true })
	o.t = btree.NewG(fanOut, lessFence)
	f, from := fence{}, 0
	for {
		to := min(from+leafBulk, len(keys))
		next, bounded := fence{}, to < len(keys)
		if bounded {
			next.sep = separator(keyOf(o.a, keys[to-1].ref), keyOf(o.a, keys[to].ref))
		}
		f.leaf = o.newLeaf(prefixOf(f.sep, next, bounded))
		w := o.words(f.leaf)
		for i, k := range keys[from:to] {
			w[i+1] = window(keyOf(o.a, k.ref), leafPrefix(w))<<arena.RefBits | uint64(k.ref)
		}
		w[0] += uint64(to - from)
		o.t.ReplaceOrInsert(f)
		if f, from = next, to; !bounded {
			return
		}
	}
}
