package state

import (
	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
)

// A stream always has a head, also an empty one: a stream may have no entries.
//
//	head = entries, last ID, greatest deleted ID, entries ever added, root of the tree of chunks, last chunk,
//	       root of the tree of groups, groups, greatest ID in the chunks
//
// The last of these is that of an entry which XDEL may have removed; it is 0-0 without chunks. Chunks are keyed by the ms of their first IDs, groups (stream_group.go) by the first bytes of their names.
const (
	streamLen = iota
	streamLastMs
	streamLastSeq
	streamDeletedMs
	streamDeletedSeq
	streamAdded
	streamChunks
	streamTail
	streamGroups
	streamGroupCount
	streamTopMs
	streamTopSeq
	streamHeadWords
)

var streamOps = kindOps{
	headWords: streamHeadWords,
	len:       func(v value) int { return int(v.words(streamHeadWords)[streamLen]) },
	digest:    digestStream,
	rebuild:   rebuildStream,
	blocks:    streamBlocks,
	bytes:     streamBytes,
	drain:     drainStream,
	encoding:  func(value, byte) string { return "stream" },
}

// Stream reads a stream. What it returns aliases the keyspace: read-only, valid until the next Fold.
type Stream struct {
	a *arena.Arena
	w []uint64 // head
}

// Stream returns the content of a stream. REQUIRES: e.Type() == TypeStream.
func (ks *Keyspace) Stream(e Entry) Stream { return streamValue(valueAt(e.a, e.ref)) }

func streamValue(v value) Stream { return Stream{a: v.a, w: v.words(streamHeadWords)} }

func (s *Stream) chunks() tree { return tree{a: s.a, keyed: true, root: arena.Ref(s.w[streamChunks])} }

// Len returns the number of entries.
func (s *Stream) Len() int { return int(s.w[streamLen]) }

// LastID returns the greatest ID an entry ever had, or what XSETID made of it.
func (s *Stream) LastID() StreamID { return StreamID{s.w[streamLastMs], s.w[streamLastSeq]} }

// MaxDeletedID returns the greatest ID of an entry deleted by XDEL, 0-0 if there was none.
func (s *Stream) MaxDeletedID() StreamID {
	return StreamID{s.w[streamDeletedMs], s.w[streamDeletedSeq]}
}

// Added returns how many entries were ever added.
func (s *Stream) Added() int64 { return int64(s.w[streamAdded]) }

// FirstID returns the ID of the first entry, 0-0 if there is none.
func (s *Stream) FirstID() StreamID {
	t := s.chunks()
	c := t.begin()
	r, _, _, ok := c.item()
	if !ok {
		return StreamID{}
	}
	b := chunkAt(s.a, r)
	return b.entry(b.first()).id
}

// TopID returns the ID of the last entry, 0-0 if there is none.
func (s *Stream) TopID() StreamID {
	var it StreamIter
	it.Seek(*s, StreamID{}, MaxStreamID, true)
	if !it.Next() {
		return StreamID{}
	}
	return it.ID()
}

// Chunks returns in how many pieces the entries are stored.
func (s *Stream) Chunks() int {
	t := s.chunks()
	return int(t.weight())
}

// seekChunk returns a cursor before the only chunk that may have id: the last one that begins at or
// before it, or the first one.
func seekChunk(t *tree, id StreamID) treeCursor {
	c := t.seek(id.Ms, func(r arena.Ref) int {
		if id.Less(chunkKey(t.a, r)) {
			return 1
		}
		return -1
	})
	c.prev()
	return c
}

// Has reports whether there is an entry with an ID.
func (s *Stream) Has(id StreamID) bool {
	t := s.chunks()
	c := seekChunk(&t, id)
	r, _, _, ok := c.item()
	if !ok {
		return false
	}
	_, ok = chunkAt(s.a, r).find(id)
	return ok
}

func digestStream(v value) (lo, hi uint64) {
	s := streamValue(v)
	var b []byte
	add := func() {
		h := xxh3.Hash128Seed(b, valueSeed)
		lo += h.Lo
		hi += h.Hi
	}
	b = append(b, 's')
	for _, w := range s.w[:streamChunks] {
		b = le.AppendUint64(b, w)
	}
	add()
	var it StreamIter
	for it.Seek(s, StreamID{}, MaxStreamID, false); it.Next(); {
		b = appendIDBytes(append(b[:0], 'e'), it.ID())
		for range it.NumFields() {
			name, val := it.Field()
			b = appendString(appendString(b, name), val)
		}
		add()
	}
	s.EachGroup(func(g Group) bool {
		b = appendIDBytes(appendString(append(b[:0], 'g'), g.Name()), g.LastID())
		b = le.AppendUint64(b, uint64(g.Read()))
		add()
		g.EachConsumer(func(c Consumer) bool {
			b = appendString(appendString(append(b[:0], 'c'), g.Name()), c.Name())
			add()
			return true
		})
		g.EachPending(StreamID{}, func(n Nack) bool {
			b = appendIDBytes(appendString(append(b[:0], 'p'), g.Name()), n.ID)
			b = le.AppendUint64(le.AppendUint64(b, uint64(n.Time)), uint64(n.Count))
			b = appendString(b, n.Consumer)
			add()
			return true
		})
		return true
	})
	return lo, hi
}

func appendIDBytes(b []byte, id StreamID) []byte {
	return le.AppendUint64(le.AppendUint64(b, id.Ms), id.Seq)
}

func streamBlocks(v value, f func(arena.Ref)) {
	s := streamValue(v)
	t := s.chunks()
	t.nodes(f)
	t.each(func(r arena.Ref, _, _ uint64) bool { f(r); return true })
	groups := s.groups()
	groups.nodes(f)
	groups.each(func(r arena.Ref, _, _ uint64) bool {
		f(r)
		g := groupAt(s.a, r)
		g.blocks(f)
		return true
	})
}

func streamBytes(v value) (n int) {
	streamBlocks(v, func(r arena.Ref) { n += v.a.Capacity(r) })
	return n
}

// drainStream frees a leaf of chunks, then of the last group's parts, then that group.
func drainStream(ks *Keyspace, w []uint64) (more bool) {
	if w[streamChunks] != 0 {
		t := ks.treeAt(w[streamChunks])
		more = t.drain(ks.freeValue)
		w[streamChunks] = uint64(t.root)
		return more || w[streamGroups] != 0
	}
	if w[streamGroups] == 0 {
		return false
	}
	groups := ks.treeAt(w[streamGroups])
	c := groups.end()
	c.prev()
	r, _, _, _ := c.item()
	r = ks.ownGroup(&c, r)
	if !ks.drainGroup(ks.a.Words(r, groupWords)) {
		c.remove()
		ks.freeValue(r)
	}
	w[streamGroups] = uint64(groups.root)
	return w[streamGroups] != 0
}

// treeAt returns a keyed tree to be changed.
func (ks *Keyspace) treeAt(root uint64) tree {
	return tree{a: ks.a, keyed: true, root: arena.Ref(root), bytes: &ks.bytes}
}
