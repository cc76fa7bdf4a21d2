package state

import (
	"math/bits"

	"github.com/kevydb/kevy/internal/arena"
)

// grow makes room in the full table e that serves h.
func (x *index) grow(h, e uint64) {
	d := entryDepth(e)
	// Evenly spread hashes need about log2(n/290) bits; a table that wants clearly more holds
	// many equal prefixes, and splitting it would double the directory for nothing.
	if d >= maxDepth || d > uint(bits.Len(uint(x.n/64)))+3 {
		x.setTable(h, d, x.rebuild(e, uint(e>>slotsPos)+1))
		return
	}
	x.split(h, e)
}

// setTable points the directory entries of h's table of depth d to e.
func (x *index) setTable(h uint64, d uint, e uint64) {
	first, n := x.span(h, d)
	for i := first; i < first+n; i++ {
		x.dir[i] = e
	}
}

// span returns the directory entries of the table of depth d that serves h.
func (x *index) span(h uint64, d uint) (first, n int) {
	n = 1 << (uint(x.depth) - d)
	return int(h>>(x.shift&63)) &^ (n - 1), n
}

// rebuild copies table e into a new one of 1<<log slots or more, and frees e.
func (x *index) rebuild(e uint64, log uint) uint64 {
	old := x.words(e)
	for ; ; log++ {
		ne := x.newTable(entryDepth(e), log)
		if copySlots(x.words(ne), old) {
			x.a.Free(arena.Ref(e & arena.RefMask))
			return ne
		}
		x.a.Free(arena.Ref(ne & arena.RefMask))
	}
}

func copySlots(dst, src []uint64) bool {
	for _, s := range src[:len(src)-1] {
		if s != 0 && !place(dst, s>>tagPos, arena.Ref(s&arena.RefMask)) {
			return false
		}
	}
	return true
}

// split replaces table e, which serves h, by two tables one level deeper.
func (x *index) split(h, e uint64) {
	d := entryDepth(e)
	if d == uint(x.depth) {
		x.doubleDir()
	}
	log := uint(tableLog)
	var half [2]uint64
	half[0], half[1] = x.newTable(d+1, log), x.newTable(d+1, log)
	w := x.words(e)
	for _, s := range w[:len(w)-1] {
		if s == 0 {
			continue
		}
		t, r := s>>tagPos, arena.Ref(s&arena.RefMask)
		side := t >> (tagBits - 1)
		if t = t << 1 & (1<<tagBits - 1); (d+1)&7 == 0 {
			t = tagOf(x.hash(keyOf(x.a, r)), d+1)
		}
		for c := x.words(half[side]); int(c[len(c)-1]) >= fullAt(len(c)) || !place(c, t, r); c = x.words(half[side]) {
			half[side] = x.rebuild(half[side], uint(half[side]>>slotsPos)+1)
		}
	}
	first, n := x.span(h, d)
	for i := range n {
		x.dir[first+i] = half[i*2/n]
	}
	x.a.Free(arena.Ref(e & arena.RefMask))
	x.byDepth[d]--
	x.byDepth[d+1] += 2
}

func (x *index) doubleDir() {
	dir := make([]uint64, 2*len(x.dir))
	for i, e := range x.dir {
		dir[2*i], dir[2*i+1] = e, e
	}
	x.dir = dir
	x.depth++
	x.shift--
}

// shrink gives back room of the sparse table e that serves h: an oversized table is rebuilt smaller, an
// ordinary one is merged with its buddy if both together leave the result half empty.
func (x *index) shrink(h, e uint64) {
	d := entryDepth(e)
	if log := uint(e >> slotsPos); log > tableLog {
		// Crowded tags may need the size they have: try at powers of two only, not at each removal.
		if n := x.words(e)[1<<log-1]; n&(n-1) == 0 {
			x.setTable(h, d, x.rebuild(e, log-1))
		}
		return
	}
	if d == 0 {
		return
	}
	first, n := x.span(h, d)
	buddy := x.dir[first^n]
	if entryDepth(buddy) != d || buddy>>slotsPos != tableLog {
		return
	}
	w, bw := x.words(e), x.words(buddy)
	if int(w[len(w)-1]+bw[len(bw)-1]) > len(w)*3/8 {
		return
	}
	if first&n != 0 {
		w, bw = bw, w
	}
	m := x.newTable(d-1, tableLog)
	mw := x.words(m)
	// Half a table never overflows, unless the tags crowd at its end.
	if !mergeSlots(mw, w, 0, d-1) || !mergeSlots(mw, bw, 1, d-1) {
		x.a.Free(arena.Ref(m & arena.RefMask))
		return
	}
	x.setTable(h, d-1, m)
	x.a.Free(arena.Ref(e & arena.RefMask))
	x.a.Free(arena.Ref(buddy & arena.RefMask))
	x.byDepth[d] -= 2
	x.byDepth[d-1]++
	x.halveDir()
}

// mergeSlots adds the slots of a half to a table of depth d.
func mergeSlots(dst, src []uint64, side uint64, d uint) bool {
	for _, s := range src[:len(src)-1] {
		if s == 0 {
			continue
		}
		t := (s>>tagPos>>1 | side<<(tagBits-1)) >> (d & 7) << (d & 7)
		if !place(dst, t, arena.Ref(s&arena.RefMask)) {
			return false
		}
	}
	return true
}

// halveDir shrinks the directory once its two deepest levels have no table.
func (x *index) halveDir() {
	for x.depth > 2 && x.byDepth[x.depth] == 0 && x.byDepth[x.depth-1] == 0 {
		dir := make([]uint64, len(x.dir)/2)
		for i := range dir {
			dir[i] = x.dir[2*i]
		}
		x.dir = dir
		x.depth--
		x.shift++
	}
}
