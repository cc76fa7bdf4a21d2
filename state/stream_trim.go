package state

import "github.com/kevydb/kevy/internal/arena"

// StreamTrim says what to remove from the beginning of a stream.
type StreamTrim struct {
	ByID   bool
	MinID  StreamID // ByID: entries before this one
	MaxLen int      // else: entries beyond this many
	// Approx removes whole nodes only: runs of Node entries (0: whole chunks), at most Limit entries (0: any number).
	Approx bool
	Node   int
	Limit  int
}

// trimmer works out a trim.
type trimmer struct {
	StreamTrim
	a       *arena.Arena
	length  int
	extra   StreamID // an entry about to be added; 0-0: none
	cut     StreamID
	removed int
}

// Trim returns how many entries t removes, and the ID before which they are. extra, if not 0-0, is the
// ID of an entry about to be added. The zero Stream stands for no stream.
func (s *Stream) Trim(t StreamTrim, extra StreamID) (cut StreamID, removed int) {
	x := trimmer{StreamTrim: t, a: s.a, extra: extra}
	var chunks tree
	if s.a != nil {
		x.length, chunks = s.Len(), s.chunks()
	}
	if !extra.IsZero() {
		x.length++
	}
	if !t.ByID && x.length <= t.MaxLen {
		return cut, 0
	}
	c := chunks.begin()
	for {
		r, _, _, ok := c.item()
		if !ok {
			break
		}
		c.next()
		next, _, _, _ := c.item()
		if !x.chunk(chunkAt(s.a, r), next) {
			return x.cut, x.removed
		}
	}
	if !x.extra.IsZero() {
		x.node(1, extra, extra)
	}
	return x.cut, x.removed
}

// chunk removes from a chunk; next is the one behind it, 0 if there is none. It returns whether all of it goes.
func (x *trimmer) chunk(b chunk, next arena.Ref) bool {
	switch {
	case !x.Approx && !x.ByID && x.length-b.live() >= x.MaxLen,
		!x.Approx && x.ByID && next != 0 && !x.MinID.Less(chunkKey(x.a, next)):
		x.length -= b.live()
		x.removed += b.live()
		if next == 0 {
			x.cut = lastEntry(b).after()
		} else {
			nb := chunkAt(x.a, next)
			x.cut = nb.entry(nb.first()).id
		}
		return true
	}
	size := x.Node
	switch {
	case !x.Approx:
		size = 1
	case size <= 0 || size > chunkEntries:
		size = chunkEntries
	}
	at, n := b.first(), b.before()
	if head := b.entry(at).id; x.stays(b, head, size) {
		x.cut = head
		return false
	}
	for at < len(b) {
		live, total := 0, n%size
		var first, last StreamID
		for at < len(b) && total < size {
			e := b.entry(at)
			if e.flags&entryDeleted == 0 {
				if live++; live == 1 {
					first = e.id
				}
			}
			last, at = e.id, e.next
			total++
			n++
		}
		if at == len(b) && next == 0 && total < size && !x.extra.IsZero() {
			live, last = live+1, x.extra // the new entry joins this node
			x.extra = StreamID{}
		}
		if live > 0 && !x.node(live, first, last) {
			return false
		}
	}
	return true
}

// stays reports at a glance whether nothing of a chunk that begins with entry head goes.
func (x *trimmer) stays(b chunk, head StreamID, size int) bool {
	if x.ByID {
		return !head.Less(x.MinID)
	}
	return x.length <= x.MaxLen || size == chunkEntries && x.length-b.live() < x.MaxLen
}

// node decides about a run of live entries from first to last; false if they stay.
func (x *trimmer) node(live int, first, last StreamID) bool {
	gone := x.Limit == 0 || !x.Approx || x.removed+live <= x.Limit
	if x.ByID {
		gone = gone && last.Less(x.MinID)
	} else {
		gone = gone && x.length > x.MaxLen && x.length-live >= x.MaxLen
	}
	if !gone {
		if x.removed > 0 {
			x.cut = first
		}
		return false
	}
	x.length -= live
	x.removed += live
	x.cut = last.after()
	return true
}

// lastEntry returns the ID of the last entry of a chunk, live or not.
func lastEntry(b chunk) (id StreamID) {
	for at := b.first(); at < len(b); {
		e := b.entry(at)
		id, at = e.id, e.next
	}
	return id
}

// after is Next, and the ID itself if it is the greatest.
func (x StreamID) after() StreamID {
	if next, ok := x.Next(); ok {
		return next
	}
	return x
}
