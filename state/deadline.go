package state

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/btree"

	"github.com/kevydb/kevy/internal/arena"
)

// deadlines is the index of the records with a deadline, by deadline. It is exact: every such record is
// in it once. Like the order it is a B-tree whose last level lies in the arena; views do not share it.
//
//	leaf = count, then up to dueMax pairs (deadline, ref), ascending
type deadlines struct {
	a    *arena.Arena
	t    *btree.BTreeG[bound]
	n    int
	next int64 // the earliest, or NoDeadline

	hit  bound            // result of floor
	grab func(bound) bool // stores its argument in hit
}

// due is a record's deadline.
type due struct {
	ms  int64
	ref arena.Ref
}

// bound is the lower bound of a leaf: all its pairs are >= it and less than the next bound. The first
// bound is lowest and is never removed. No leaf is empty but the only one.
type bound struct {
	due
	leaf arena.Ref
}

var lowest = due{ms: math.MinInt64}

const (
	dueMax    = (leafBytes/8 - 1) / 2
	dueBulk   = dueMax * 9 / 10
	dueSparse = dueMax / 4
	dueMerged = dueMax * 3 / 4
)

func (d due) less(o due) bool { return d.ms < o.ms || d.ms == o.ms && d.ref < o.ref }

func compareDue(a, b due) int { return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(a.ref, b.ref)) }

func newDeadlines(a *arena.Arena) deadlines {
	d := deadlines{a: a, t: btree.NewG(fanOut, func(x, y bound) bool { return x.less(y.due) })}
	d.t.ReplaceOrInsert(bound{lowest, d.newLeaf()})
	return d
}

func (d *deadlines) newLeaf() arena.Ref {
	r := d.a.Alloc(leafBytes)
	d.words(r)[0] = 0
	return r
}

func (d *deadlines) words(leaf arena.Ref) []uint64 { return d.a.Words(leaf, 1+2*dueMax) }

func dueAt(w []uint64, i int) due { return due{int64(w[1+2*i]), arena.Ref(w[2+2*i])} }

func putDue(w []uint64, i int, p due) { w[1+2*i], w[2+2*i] = uint64(p.ms), uint64(p.ref) }

// moveDues moves the pairs from..n-1 of a leaf of n pairs by step places.
func moveDues(w []uint64, from, n, step int) {
	copy(w[1+2*(from+step):], w[1+2*from:1+2*n])
}

// floor returns the leaf where p belongs.
func (d *deadlines) floor(p due) bound {
	if d.grab == nil {
		d.grab = func(b bound) bool { d.hit = b; return false }
	}
	d.t.DescendLessOrEqual(bound{due: p}, d.grab)
	return d.hit
}

// following returns the bound after b.
func (d *deadlines) following(b bound) (n bound, ok bool) {
	d.t.AscendGreaterOrEqual(b, func(g bound) bool {
		n, ok = g, g.due != b.due
		return !ok
	})
	return n, ok
}

// seekDue returns the first pair of the leaf that is >= p.
func seekDue(w []uint64, p due) int {
	lo, hi := 0, int(w[0])
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); dueAt(w, m).less(p) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

func (d *deadlines) insert(p due) {
	b := d.floor(p)
	w := d.words(b.leaf)
	i := seekDue(w, p)
	if int(w[0]) == dueMax {
		m := dueMax / 2
		if i == dueMax {
			m = dueMax // deadlines that come in order leave full leaves behind
		}
		g := bound{p, d.newLeaf()}
		if m < dueMax {
			g.due = dueAt(w, m)
		}
		gw := d.words(g.leaf)
		copy(gw[1:], w[1+2*m:])
		w[0], gw[0] = uint64(m), uint64(dueMax-m)
		d.t.ReplaceOrInsert(g)
		if !p.less(g.due) {
			w, i = gw, i-m
		}
	}
	moveDues(w, i, int(w[0]), 1)
	putDue(w, i, p)
	w[0]++
	d.n++
	if d.next == NoDeadline || p.ms < d.next {
		d.next = p.ms
	}
}

// remove takes a pair out. REQUIRES: it is in the index.
func (d *deadlines) remove(p due) {
	b := d.floor(p)
	w := d.words(b.leaf)
	moveDues(w, seekDue(w, p)+1, int(w[0]), -1)
	w[0]--
	d.n--
	if w[0] < dueSparse {
		d.merge(b)
	}
	if p.ms == d.next {
		d.next = NoDeadline
		if first, _ := d.t.Min(); d.n > 0 {
			d.next = dueAt(d.words(first.leaf), 0).ms
		}
	}
}

// merge joins a sparse leaf with the one after it if both fit well into one, or drops it if it is empty.
func (d *deadlines) merge(b bound) {
	w := d.words(b.leaf)
	next, ok := d.following(b)
	switch {
	case ok && w[0] == 0: // the next leaf takes its place
		d.t.Delete(next)
		d.a.Free(b.leaf)
		b.leaf = next.leaf
		d.t.ReplaceOrInsert(b)
	case ok:
		nw := d.words(next.leaf)
		if w[0]+nw[0] > dueMerged {
			return
		}
		copy(w[1+2*w[0]:], nw[1:1+2*nw[0]])
		w[0] += nw[0]
		d.t.Delete(next)
		d.a.Free(next.leaf)
	case w[0] == 0 && b.due != lowest:
		d.t.Delete(b)
		d.a.Free(b.leaf)
	}
}

// change moves a record from one deadline and ref to another; NoDeadline is not in the index.
func (d *deadlines) change(oldMS int64, old arena.Ref, ms int64, r arena.Ref) {
	if oldMS == ms && (old == r || ms == NoDeadline) {
		return
	}
	if oldMS != NoDeadline {
		d.remove(due{oldMS, old})
	}
	if ms != NoDeadline {
		d.insert(due{ms, r})
	}
}

// ascend calls f with the pairs in order until it returns false.
func (d *deadlines) ascend(f func(due) bool) {
	d.t.Ascend(func(b bound) bool {
		w := d.words(b.leaf)
		for i := range int(w[0]) {
			if !f(dueAt(w, i)) {
				return false
			}
		}
		return true
	})
}

// build replaces the content by the pairs, in any order.
func (d *deadlines) build(pairs []due) {
	d.t.Ascend(func(b bound) bool { d.a.Free(b.leaf); return true })
	*d = newDeadlines(d.a)
	slices.SortFunc(pairs, compareDue)
	b, _ := d.t.Min()
	for from := 0; from < len(pairs); from += dueBulk {
		if from > 0 {
			b = bound{pairs[from], d.newLeaf()}
			d.t.ReplaceOrInsert(b)
		}
		w := d.words(b.leaf)
		part := pairs[from:min(from+dueBulk, len(pairs))]
		for i, p := range part {
			putDue(w, i, p)
		}
		w[0] = uint64(len(part))
	}
	if d.n = len(pairs); d.n > 0 {
		d.next = pairs[0].ms
	}
}
