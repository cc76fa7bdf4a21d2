package crashfs

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/kevydb/kevy/internal/vfs/tree"
)

// journal knows which directory entries are durable and which changes are not yet.
type journal struct {
	durable map[*node]map[string]*node // entries of directories; none for an empty one
	pending []*record
}

// record is an atomic change of entries: one, or two for the rename of a directory.
type record struct {
	entries []entry
	after   *record // nil, or an earlier one in pending; cannot be durable without that one
}

type entry struct {
	place
	node *node // nil: removed
}

// place is where an entry is.
type place struct {
	dir  *node
	name string
}

func newJournal() journal { return journal{durable: map[*node]map[string]*node{}} }

// add notes a change. The second half of a rename cannot be durable without the first.
func (j *journal) add(c tree.Change[*inode]) {
	e := entry{place: place{c.Dir, c.Name}, node: c.Node}
	if !c.Renamed {
		j.pending = append(j.pending, &record{entries: []entry{e}})
		return
	}
	link := j.pending[len(j.pending)-1]
	if link.entries[0].node.IsDir() {
		link.entries = append(link.entries, e)
		return
	}
	j.pending = append(j.pending, &record{entries: []entry{e}, after: link})
}

// sync makes the entries of dir durable, and what they depend on.
func (j *journal) sync(dir *node) {
	places := map[place]bool{}
	records := map[*record]bool{}
	for _, r := range slices.Backward(j.pending) {
		needed := records[r] || slices.ContainsFunc(r.entries, func(e entry) bool {
			return e.dir == dir || places[e.place]
		})
		if !needed {
			continue
		}
		records[r] = true
		records[r.after] = true
		for _, e := range r.entries {
			places[e.place] = true
		}
	}
	var rest []*record
	for _, r := range j.pending {
		if records[r] {
			r.apply(j.durable)
			continue
		}
		if records[r.after] {
			r.after = nil
		}
		rest = append(rest, r)
	}
	j.pending = rest
}

// crash returns the entries that could be left after a power failure.
func (j *journal) crash(rng *rand.Rand) map[*node]map[string]*node {
	left := make(map[*node]map[string]*node, len(j.durable))
	for dir, entries := range j.durable {
		left[dir] = maps.Clone(entries)
	}
	if len(j.pending) == 0 {
		return left
	}
	kept := newSurvivors[place](rng)
	for _, r := range j.pending {
		for _, e := range r.entries {
			kept.count(e.place)
		}
	}
	survived := map[*record]bool{nil: true}
	for _, r := range j.pending {
		ok := survived[r.after]
		for _, e := range r.entries {
			ok = kept.next(e.place) && ok
		}
		if ok {
			r.apply(left)
			survived[r] = true
			continue
		}
		for _, e := range r.entries {
			kept.stop(e.place)
		}
	}
	return left
}

func (r *record) apply(to map[*node]map[string]*node) {
	for _, e := range r.entries {
		if e.node == nil {
			delete(to[e.dir], e.name)
			continue
		}
		if to[e.dir] == nil {
			to[e.dir] = map[string]*node{}
		}
		to[e.dir][e.name] = e.node
	}
}
