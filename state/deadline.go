package state

import (
	"github.com/google/btree"

	"github.com/kevydb/kevy/internal/arena"
)

// deadlines is the index of the records with a deadline, by deadline. It is exact: every such record is
// in it once.
type deadlines struct {
	t    *btree.BTreeG[due]
	next int64 // the earliest, or NoDeadline
}

// due is a record's deadline. Pointer-free: the collector skips the tree's items.
type due struct {
	ms  int64
	ref arena.Ref
}

func lessDue(a, b due) bool { return a.ms < b.ms || a.ms == b.ms && a.ref < b.ref }

func newDeadlines() deadlines { return deadlines{t: btree.NewG(2*fanOut, lessDue)} }

func (d *deadlines) insert(ms int64, r arena.Ref) {
	d.t.ReplaceOrInsert(due{ms, r})
	if d.next == NoDeadline || ms < d.next {
		d.next = ms
	}
}

func (d *deadlines) remove(ms int64, r arena.Ref) {
	d.t.Delete(due{ms, r})
	if ms == d.next {
		first, _ := d.t.Min() // zero, which is NoDeadline, when there is none
		d.next = first.ms
	}
}

// change moves a record from one deadline and ref to another; NoDeadline is not in the index.
func (d *deadlines) change(oldMS int64, old arena.Ref, ms int64, r arena.Ref) {
	if oldMS == ms && (old == r || ms == NoDeadline) {
		return
	}
	if oldMS != NoDeadline {
		d.remove(oldMS, old)
	}
	if ms != NoDeadline {
		d.insert(ms, r)
	}
}
