package state

import (
	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// maxEntry is the most bytes of an entry's names and values, as in Redis.
const maxEntry = 1 << 30

// createStream makes an empty stream.
func (ks *Keyspace) createStream(h uint64, key []byte) arena.Ref {
	head, _ := ks.newHead(TypeStream)
	return ks.setHead(h, 0, key, TypeStream, head)
}

// foldXAdd folds XADD key id field value...: an entry that is not greater than the last ID is already there.
// So is one that is not greater than what the chunks had: an older XSETID is being applied again.
func (ks *Keyspace) foldXAdd(e *effect.Effect) (c Change, err error) {
	key, fields := e.Args[0], e.Args[2:]
	id, ok := parseID(e.Args[1])
	if !ok || id.IsZero() {
		return c, fail(e, "ID")
	}
	if len(fields)%2 != 0 {
		return c, fail(e, "a field without a value")
	}
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	if size > maxEntry || len(key) > MaxValue {
		return c, fail(e, "too long")
	}
	h, r, ok := ks.open(key, TypeStream)
	if !ok {
		return c, fail(e, wrongType)
	}
	if r == 0 {
		c.Created = 1
		r = ks.createStream(h, key)
	} else if s := streamValue(valueAt(ks.a, r)); !s.LastID().Less(id) {
		return c, nil
	}
	_, w := ks.headForWrite(h, r, TypeStream)
	if top := (StreamID{w[streamTopMs], w[streamTopSeq]}); top.Less(id) {
		ks.addEntry(w, id, fields)
		w[streamTopMs], w[streamTopSeq] = id.Ms, id.Seq
		w[streamLen]++
	}
	w[streamLastMs], w[streamLastSeq] = id.Ms, id.Seq
	w[streamAdded]++
	return c, nil
}

// addEntry puts an entry behind all others.
func (ks *Keyspace) addEntry(w []uint64, id StreamID, fields [][]byte) {
	tail := arena.Ref(w[streamTail])
	if tail == 0 {
		ks.newChunk(w, id, fields, 0)
		return
	}
	b := chunkAt(ks.a, tail)
	enc := appendEntry(ks.scratch[:0], b.key(), id, fields, !b.sameNames(fields))
	ks.scratch = enc[:0]
	end := len(b)
	if b.total() >= chunkEntries || end+len(enc) > chunkBytes {
		ks.shrinkTail(w, end)
		ks.newChunk(w, id, fields, end)
		return
	}
	need := end + len(enc)
	if need > ks.a.Capacity(tail) || ks.a.Shared(tail) {
		tail = ks.moveTail(w, min(max(need+need/2, 128), chunkBytes))
	}
	b = ks.a.Bytes(tail, need)
	copy(b[end:], enc)
	le.PutUint32(b[chunkEnd:], uint32(need))
	b.setTotal(b.total() + 1)
	b.setLive(b.live() + 1)
}

// newChunk begins a chunk with an entry; room is how long it is going to be, 0 if nobody knows.
func (ks *Keyspace) newChunk(w []uint64, id StreamID, fields [][]byte, room int) {
	enc := appendChunkHead(ks.scratch[:0], id, fields)
	enc = appendEntry(enc, id, id, fields, false)
	ks.scratch = enc[:0]
	le.PutUint32(enc[chunkEnd:], uint32(len(enc)))
	chunk(enc).setLive(1)
	chunk(enc).setTotal(1)
	r := ks.newValue(max(len(enc), min(room, chunkBytes)))
	copy(ks.a.Bytes(r, len(enc)), enc)
	t := ks.treeAt(w[streamChunks])
	c := t.end()
	c.insert(r, 1, id.Ms)
	w[streamChunks], w[streamTail] = uint64(t.root), uint64(r)
}

// moveTail moves the last chunk to a block of at least size bytes.
func (ks *Keyspace) moveTail(w []uint64, size int) arena.Ref {
	old := arena.Ref(w[streamTail])
	b := chunkAt(ks.a, old)
	r := ks.newValue(max(size, len(b)))
	copy(ks.a.Bytes(r, len(b)), b)
	t := ks.treeAt(w[streamChunks])
	c := t.end()
	c.prev()
	c.replace(r, 1, b.key().Ms)
	ks.freeValue(old)
	w[streamChunks], w[streamTail] = uint64(t.root), uint64(r)
	return r
}

// shrinkTail gives back what the last chunk, which is full, does not need.
func (ks *Keyspace) shrinkTail(w []uint64, size int) {
	tail := arena.Ref(w[streamTail])
	if arena.ClassOf(size).Size() < ks.a.Capacity(tail) && !ks.a.Shared(tail) {
		ks.moveTail(w, size)
	}
}

// ownChunk returns the chunk behind the cursor to be changed, copied if a view may see it.
func (ks *Keyspace) ownChunk(w []uint64, c *treeCursor) chunk {
	r, _, key, _ := c.item()
	b := chunkAt(ks.a, r)
	if !ks.a.Shared(r) {
		return b
	}
	n := ks.newValue(len(b))
	nb := chunk(ks.a.Bytes(n, len(b)))
	copy(nb, b)
	c.replace(n, 1, key)
	if w[streamTail] == uint64(r) {
		w[streamTail] = uint64(n)
	}
	ks.freeValue(r)
	return nb
}

// dropChunk removes the chunk behind the cursor, which is invalid afterwards.
func (ks *Keyspace) dropChunk(w []uint64, t *tree, c *treeCursor) {
	r, _, _, _ := c.item()
	c.remove()
	ks.freeValue(r)
	if w[streamTail] == uint64(r) {
		end := t.end()
		end.prev()
		last, _, _, _ := end.item()
		w[streamTail] = uint64(last)
	}
	if t.root == 0 {
		w[streamTopMs], w[streamTopSeq] = 0, 0
	}
}

// streamForWrite opens the stream of an effect that changes it if it is there; nil: it is not, or not a stream.
func (ks *Keyspace) streamForWrite(e *effect.Effect) (w []uint64, err error) {
	h, r, ok := ks.open(e.Args[0], TypeStream)
	if !ok {
		return nil, fail(e, wrongType)
	}
	if r == 0 {
		return nil, nil
	}
	_, w = ks.headForWrite(h, r, TypeStream)
	return w, nil
}

// foldXDel folds XDEL key id... The greatest deleted ID grows also where the entry has gone already.
func (ks *Keyspace) foldXDel(e *effect.Effect) (c Change, err error) {
	for _, text := range e.Args[1:] {
		if _, ok := parseID(text); !ok {
			return c, fail(e, "ID")
		}
	}
	w, err := ks.streamForWrite(e)
	if w == nil {
		return c, err
	}
	t := ks.treeAt(w[streamChunks])
	for _, text := range e.Args[1:] {
		id, _ := parseID(text)
		ks.deleteEntry(w, &t, id)
		if last := (StreamID{w[streamDeletedMs], w[streamDeletedSeq]}); last.Less(id) {
			w[streamDeletedMs], w[streamDeletedSeq] = id.Ms, id.Seq
		}
	}
	w[streamChunks] = uint64(t.root)
	return c, nil
}

// deleteEntry marks an entry deleted, if there is one.
func (ks *Keyspace) deleteEntry(w []uint64, t *tree, id StreamID) {
	c := seekChunk(t, id)
	r, _, _, ok := c.item()
	if !ok {
		return
	}
	e, ok := chunkAt(ks.a, r).find(id)
	if !ok {
		return
	}
	w[streamLen]--
	b := ks.ownChunk(w, &c)
	if b.live() == 1 {
		ks.dropChunk(w, t, &c)
		return
	}
	b[e.at] |= entryDeleted
	b.setLive(b.live() - 1)
	if e.at == b.first() {
		b.settleFirst(e.at, b.before())
	}
}

// foldXTrim folds XTRIM key MINID = id, which removes what is before id, and XTRIM key MAXLEN = 0.
func (ks *Keyspace) foldXTrim(e *effect.Effect) (c Change, err error) {
	cut, ok := parseID(e.Args[3])
	how, all := e.Args[1], false
	switch {
	case string(e.Args[2]) != "=":
		ok = false
	case string(how) == "MAXLEN":
		all = true
		ok = string(e.Args[3]) == "0"
	case string(how) != "MINID":
		ok = false
	}
	if !ok {
		return c, fail(e, "options")
	}
	w, err := ks.streamForWrite(e)
	if w == nil {
		return c, err
	}
	t := ks.treeAt(w[streamChunks])
	for t.root != 0 && ks.trimChunk(w, &t, cut, all) {
	}
	w[streamChunks] = uint64(t.root)
	return c, nil
}

// trimChunk removes what is before cut from the first chunk; true if that was the whole of it.
func (ks *Keyspace) trimChunk(w []uint64, t *tree, cut StreamID, all bool) bool {
	c := t.begin()
	r, _, _, _ := c.item()
	b := chunkAt(ks.a, r)
	if !all {
		next := t.begin()
		next.next()
		if n, _, _, ok := next.item(); !ok || cut.Less(chunkKey(ks.a, n)) {
			at, gone, live := b.first(), b.before(), b.live()
			for at < len(b) {
				e := b.entry(at)
				if !e.id.Less(cut) {
					break
				}
				if e.flags&entryDeleted == 0 {
					live--
				}
				at = e.next
				gone++
			}
			if live > 0 {
				ks.cutChunk(w, &c, at, gone, live)
				return false
			}
		}
	}
	w[streamLen] -= uint64(b.live())
	ks.dropChunk(w, t, &c)
	return true
}

// cutChunk makes the chunk behind the cursor begin at offset at, behind gone entries, with live ones left.
func (ks *Keyspace) cutChunk(w []uint64, c *treeCursor, at, gone, live int) {
	b := ks.ownChunk(w, c)
	w[streamLen] -= uint64(b.live() - live)
	b.settleFirst(at, gone)
	b.setLive(live)
}

// foldXSetID folds XSETID key id ENTRIESADDED n MAXDELETEDID id.
func (ks *Keyspace) foldXSetID(e *effect.Effect) (c Change, err error) {
	a := e.Args
	last, ok1 := parseID(a[1])
	added, ok2 := parseInt(a[3])
	deleted, ok3 := parseID(a[5])
	if !ok1 || !ok2 || !ok3 || added < 0 || string(a[2]) != "ENTRIESADDED" || string(a[4]) != "MAXDELETEDID" {
		return c, fail(e, "arguments")
	}
	w, err := ks.streamForWrite(e)
	if w == nil {
		return c, err
	}
	w[streamLastMs], w[streamLastSeq], w[streamAdded] = last.Ms, last.Seq, uint64(added)
	if !deleted.IsZero() {
		w[streamDeletedMs], w[streamDeletedSeq] = deleted.Ms, deleted.Seq
	}
	return c, nil
}
