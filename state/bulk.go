package state

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/google/btree"

	"github.com/kevydb/kevy/internal/arena"
)

// leafBulk entries go into a leaf built by a bulk load: room for later keys.
const leafBulk = leafMax * 9 / 10

// BeginBulk starts a bulk load: until EndBulk order and deadline index are not maintained, so only Fold,
// lookups, Scan and the counters Len and UsedBytes may be used. REQUIRES: no open view.
//
// A load of new keys in their order, as snapshots have them, costs less than any other, and no sorting.
func (ks *Keyspace) BeginBulk() {
	ks.bulk = true
	ks.arrived = arrivals{sorted: ks.Len() == 0}
}

// arrivals are the records of a bulk load in the order in which they were made, as long as that is the order of their keys. They lie in pieces,
// as one list would be copied time and again while it grows.
type arrivals struct {
	pieces [][]arena.Ref
	n      int
	sorted bool
}

const arrivalsPiece = 1 << 12

// last returns the newest record, nil: there is none.
func (x *arrivals) last() *arena.Ref {
	if x.n == 0 {
		return nil
	}
	piece := x.pieces[len(x.pieces)-1]
	return &piece[len(piece)-1]
}

// add takes in a new record.
func (x *arrivals) add(a *arena.Arena, key []byte, r arena.Ref) {
	if !x.sorted {
		return
	}
	if last := x.last(); last != nil && bytes.Compare(keyOf(a, *last), key) >= 0 {
		*x = arrivals{}
		return
	}
	if x.n%arrivalsPiece == 0 {
		x.pieces = append(x.pieces, make([]arena.Ref, 0, arrivalsPiece))
	}
	piece := &x.pieces[len(x.pieces)-1]
	*piece = append(*piece, r)
	x.n++
}

// move says that a record is now n, 0: nowhere. The newest one moves while its value is built.
func (x *arrivals) move(r, n arena.Ref) {
	if last := x.last(); n != 0 && last != nil && *last == r {
		*last = n
	} else {
		*x = arrivals{}
	}
}

// EndBulk ends a bulk load: order and deadline index are built, by sorting unless the keys came in order.
func (ks *Keyspace) EndBulk() {
	if !ks.bulk {
		return
	}
	arrived := ks.arrived
	ks.bulk, ks.arrived = false, arrivals{}
	var dues, fields []due
	deadlines := func(r arena.Ref) {
		if ms := deadlineOf(ks.a.Tail(r)); ms != NoDeadline {
			dues = append(dues, due{ms, r})
		}
		if ms := fieldDeadline(ks.a, r); ms != NoDeadline {
			fields = append(fields, due{ms, r})
		}
	}
	var keys []sortItem
	var lcp int
	if arrived.sorted {
		keys, lcp = ks.inOrder(&arrived, deadlines)
	} else {
		keys, lcp = ks.sorted(deadlines)
	}
	ks.ord.build(keys, lcp)
	ks.dl.build(dues)
	ks.fields.build(fields)
}

// inOrder returns records that are in the order of their keys with their windows, and how much all keys share. It calls f with each.
func (ks *Keyspace) inOrder(x *arrivals, f func(arena.Ref)) (keys []sortItem, lcp int) {
	if x.n == 0 {
		return nil, 0
	}
	lcp = common(keyOf(ks.a, x.pieces[0][0]), keyOf(ks.a, *x.last()))
	keys = make([]sortItem, 0, x.n)
	for _, piece := range x.pieces {
		for _, r := range piece {
			keys = append(keys, sortItem{keyWindow(keyOf(ks.a, r), lcp), r})
			f(r)
		}
	}
	return keys, lcp
}

// sorted returns all records in the order of their keys with their windows, and how much all keys share. It calls f with each.
func (ks *Keyspace) sorted(f func(arena.Ref)) (keys []sortItem, lcp int) {
	keys = make([]sortItem, 0, ks.Len())
	lcp = ks.guessPrefix()
	var first []byte
	ks.idx.each(func(r arena.Ref) {
		f(r)
		k := keyOf(ks.a, r)
		if first == nil {
			first = k
		}
		if lcp > len(k) || lcp > 0 && string(k[:lcp]) != string(first[:lcp]) {
			lcp = -1 // the guess was wrong: sortKeys does without
		}
		keys = append(keys, sortItem{keyWindow(k, max(lcp, 0)), r})
	})
	if lcp < 0 {
		return keys, sortKeys(ks.a, keys, 0)
	}
	sortWindows(ks.a, keys, lcp)
	return keys, lcp
}

// guessPrefix returns what the first keys in hash order share: most likely all keys do.
func (ks *Keyspace) guessPrefix() int {
	const sample = 1000
	var first []byte
	n, lcp := 0, 0
	ks.Scan(0, sample, func(e Entry) {
		if n++; n == 1 {
			first = e.Key()
			lcp = len(first)
		}
		lcp = common(first[:lcp], e.Key())
	})
	return lcp
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

// sortItem is a record to sort with eight bytes of its key, its window.
type sortItem struct {
	win uint64
	ref arena.Ref
}

// sortKeys sorts records by key, by the window after all that the keys share, and returns how much
// that is. REQUIRES: the keys share their first prefix bytes.
func sortKeys(a *arena.Arena, items []sortItem, prefix int) (lcp int) {
	if len(items) == 0 {
		return 0
	}
	first := keyOf(a, items[0].ref)
	lcp = len(first)
	for _, it := range items[1:] {
		lcp = prefix + common(first[prefix:lcp], keyOf(a, it.ref)[prefix:])
	}
	for i := range items {
		items[i].win = keyWindow(keyOf(a, items[i].ref), lcp)
	}
	sortWindows(a, items, lcp)
	return lcp
}

// sortWindows sorts records by key, whose windows after lcp bytes are set: first by window, then each run of
// equal ones.
func sortWindows(a *arena.Arena, items []sortItem, lcp int) {
	radixSort(items, 56)
	for i := 0; i < len(items); {
		j := i + 1
		for j < len(items) && items[j].win == items[i].win {
			j++
		}
		if j > i+1 {
			sortTies(a, items[i:j], lcp)
		}
		i = j
	}
}

// radixSort sorts by window in place, byte by byte from the one at shift on.
func radixSort(items []sortItem, shift int) {
	const small = 128
	if len(items) <= small {
		slices.SortFunc(items, func(x, y sortItem) int { return cmp.Compare(x.win, y.win) })
		return
	}
	var count, at, end [256]int
	for _, it := range items {
		count[byte(it.win>>shift)]++
	}
	sum := 0
	for b, n := range count {
		at[b] = sum
		sum += n
		end[b] = sum
	}
	for b := range at {
		for at[b] < end[b] {
			it := items[at[b]]
			for t := byte(it.win >> shift); int(t) != b; t = byte(it.win >> shift) {
				it, items[at[t]] = items[at[t]], it
				at[t]++
			}
			items[at[b]] = it
			at[b]++
		}
	}
	if shift == 0 {
		return
	}
	for b, n := range count {
		if n > 1 {
			radixSort(items[end[b]-n:end[b]], shift-8)
		}
	}
}

// sortTies sorts records whose windows after lcp bytes are equal. The window pads with zeros, so a key
// that ends in it is less than the others only by its length.
func sortTies(a *arena.Arena, items []sortItem, lcp int) {
	end := lcp + windowBytes
	length := func(it sortItem) int { return min(len(keyOf(a, it.ref)), end) }
	slices.SortFunc(items, func(x, y sortItem) int { return cmp.Compare(length(x), length(y)) })
	for i, it := range items {
		if length(it) == end { // those before have a length each of their own
			win := it.win
			sortKeys(a, items[i:], end)
			for k := i; k < len(items); k++ {
				items[k].win = win // build relies on windows after the first lcp
			}
			return
		}
	}
}

const windowBytes = 8

// keyWindow returns eight bytes of key from position at on, padded with zeros.
func keyWindow(key []byte, at int) uint64 {
	if len(key) >= at+windowBytes {
		return be.Uint64(key[at:])
	}
	var b [windowBytes]byte
	copy(b[:], key[min(at, len(key)):])
	return be.Uint64(b[:])
}

// build replaces the order by one of the sorted records, whose windows begin after lcp bytes.
func (o *order) build(keys []sortItem, lcp int) {
	o.t.Ascend(func(f fence) bool { o.a.Free(f.leaf); return true })
	o.t = btree.NewG(fanOut, lessFence)
	f, from := fence{}, 0
	for {
		to := min(from+leafBulk, len(keys))
		next, bounded := fence{}, to < len(keys)
		if bounded {
			next.sep = separator(keyOf(o.a, keys[to-1].ref), keyOf(o.a, keys[to].ref))
		}
		prefix := prefixOf(f.sep, next, bounded)
		f.leaf = o.newLeaf(prefix)
		w := o.words(f.leaf)
		known := prefix - lcp // bytes of the window before the entry's
		for i, k := range keys[from:to] {
			if known >= 0 && known+windowLen <= windowBytes {
				w[i+1] = k.win<<(8*known)>>tagShift<<arena.RefBits | uint64(k.ref)
			} else {
				w[i+1] = window(keyOf(o.a, k.ref), prefix)<<arena.RefBits | uint64(k.ref)
			}
		}
		w[0] += uint64(to - from)
		o.t.ReplaceOrInsert(f)
		if f, from = next, to; !bounded {
			return
		}
	}
}
