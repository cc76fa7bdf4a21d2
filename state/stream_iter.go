package state

import "github.com/kevydb/kevy/internal/arena"

// StreamIter walks over the entries of a stream between two IDs, both included. Use it in place: it
// must not be copied after Seek.
type StreamIter struct {
	a        *arena.Arena
	t        tree
	cur      treeCursor // at the chunk being read
	from, to StreamID
	rev      bool
	c        chunk
	at       int                  // forward: where the next entry begins
	left     int                  // backward: entries of places not yet returned
	places   [chunkEntries]uint32 // backward: where the chunk's entries begin

	e      chunkEntry
	fields int
	names  []byte // what is left of the names; unused with entryOwn
	items  []byte // what is left of the items
	text   [2][20]byte
}

// Seek begins a walk.
func (it *StreamIter) Seek(s Stream, from, to StreamID, rev bool) {
	it.a, it.t = s.a, s.chunks()
	it.from, it.to, it.rev = from, to, rev
	it.c, it.at, it.left = nil, 0, 0
	start := from
	if rev {
		start = to
	}
	it.cur = seekChunk(&it.t, start)
	it.load()
}

// load reads the chunk behind the cursor; c is nil at the end.
func (it *StreamIter) load() {
	r, _, _, ok := it.cur.item()
	if !ok {
		it.c, it.at, it.left = nil, 0, 0
		return
	}
	it.c = chunkAt(it.a, r)
	it.at = it.c.first()
	if !it.rev {
		return
	}
	it.left = 0
	for at := it.at; at < len(it.c); {
		e := it.c.entry(at)
		if it.to.Less(e.id) {
			break
		}
		if e.flags&entryDeleted == 0 {
			it.places[it.left] = uint32(at)
			it.left++
		}
		at = e.next
	}
}

// Next goes to the next entry; false if there is none.
func (it *StreamIter) Next() bool {
	if it.rev {
		return it.nextBack()
	}
	for it.c != nil {
		if it.at >= len(it.c) {
			it.cur.next()
			it.load()
			continue
		}
		it.e = it.c.entry(it.at)
		it.at = it.e.next
		if it.e.flags&entryDeleted != 0 || it.e.id.Less(it.from) {
			continue
		}
		if it.to.Less(it.e.id) {
			it.c = nil
			return false
		}
		it.open()
		return true
	}
	return false
}

func (it *StreamIter) nextBack() bool {
	for it.c != nil {
		if it.left == 0 {
			if !it.cur.prev() {
				it.c = nil
				return false
			}
			it.load()
			continue
		}
		it.left--
		it.e = it.c.entry(int(it.places[it.left]))
		if it.e.id.Less(it.from) {
			it.c = nil
			return false
		}
		it.open()
		return true
	}
	return false
}

func (it *StreamIter) open() {
	it.items = it.e.rest
	if it.e.flags&entryOwn != 0 {
		n, w := uvarint(it.items)
		it.fields, it.items = n, it.items[w:]
		return
	}
	it.fields, it.names = it.c.numFields(), it.c[chunkHead:it.c.body()]
}

// ID returns the entry's ID.
func (it *StreamIter) ID() StreamID { return it.e.id }

// NumFields returns how many fields the entry has: how often Field may be called.
func (it *StreamIter) NumFields() int { return it.fields }

// Field returns the entry's next field. It is valid until the next call.
func (it *StreamIter) Field() (name, val []byte) {
	if it.e.flags&entryOwn != 0 {
		name, it.items = cutItem(it.items, &it.text[0])
	} else {
		name, it.names = cutString(it.names)
	}
	val, it.items = cutItem(it.items, &it.text[1])
	return name, val
}
