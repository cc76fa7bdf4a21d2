package state

import (
	"bytes"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// SetClock tells the time (unix ms) that folds note as the time a consumer was last seen. It is no
// state: digest, snapshot and rebuild do not know it.
func (ks *Keyspace) SetClock(ms int64) { ks.clock = ms }

// foldXGroup folds XGROUP CREATE|SETID key group id ENTRIESREAD n [MKSTREAM], DESTROY key group and
// CREATECONSUMER|DELCONSUMER key group consumer.
func (ks *Keyspace) foldXGroup(e *effect.Effect) (c Change, err error) {
	sub, key, name, more := e.Args[0], e.Args[1], e.Args[2], e.Args[3:]
	h, r, ok := ks.open(key, TypeStream)
	if !ok {
		return c, fail(e, wrongType)
	}
	switch string(sub) {
	case "CREATE", "SETID":
		return ks.foldSetGroup(e, h, r, string(sub) == "CREATE")
	case "DESTROY":
		if len(more) != 0 {
			return c, fail(e, "arguments")
		}
		ks.destroyGroup(h, r, name)
		return c, nil
	case "CREATECONSUMER", "DELCONSUMER":
		if len(more) != 1 {
			return c, fail(e, "arguments")
		}
		if x, ok := ks.editGroup(h, r, name); ok {
			if sub[0] == 'C' {
				x.consumer(more[0])
			} else {
				x.deleteConsumer(more[0])
			}
			x.done()
		}
		return c, nil
	}
	return c, fail(e, "subcommand")
}

func (ks *Keyspace) foldSetGroup(e *effect.Effect, h uint64, r arena.Ref, create bool) (c Change, err error) {
	key, name, more := e.Args[1], e.Args[2], e.Args[3:]
	mkstream := create && len(more) == 4 && string(more[3]) == "MKSTREAM"
	if len(more) < 3 || len(more) == 4 && !mkstream || string(more[1]) != "ENTRIESREAD" {
		return c, fail(e, "arguments")
	}
	id, ok1 := parseID(more[0])
	read, ok2 := parseInt(more[2])
	if !ok1 || !ok2 || read < -1 || !fits(key, len(name)) {
		return c, fail(e, "arguments")
	}
	if r == 0 {
		if !mkstream {
			return c, nil
		}
		c.Created = 1
		r = ks.createStream(h, key)
	}
	if create {
		ks.createGroup(h, r, name, id, read)
		return c, nil
	}
	if x, ok := ks.editGroup(h, r, name); ok {
		x.g[groupLastMs], x.g[groupLastSeq], x.g[groupRead] = id.Ms, id.Seq, uint64(read)
		x.done()
	}
	return c, nil
}

// createGroup adds a group unless there is one of that name.
func (ks *Keyspace) createGroup(h uint64, r arena.Ref, name []byte, id StreamID, read int64) {
	_, w := ks.headForWrite(h, r, TypeStream)
	t := ks.treeAt(w[streamGroups])
	c, _, found := seekGroup(&t, name)
	if found {
		return
	}
	size := 8*groupWords + stringSize(len(name))
	g := ks.newValue(size)
	b := ks.a.Bytes(g, size)
	appendString(b[:8*groupWords], name)
	gw := ks.a.Words(g, groupWords)
	clear(gw)
	gw[groupLastMs], gw[groupLastSeq], gw[groupRead] = id.Ms, id.Seq, uint64(read)
	c.insert(g, 1, nameKey(name))
	w[streamGroups] = uint64(t.root)
	w[streamGroupCount]++
}

// destroyGroup takes a group out. It is freed in slices, as the only group of a stream that is gone.
func (ks *Keyspace) destroyGroup(h uint64, r arena.Ref, name []byte) {
	if r == 0 {
		return
	}
	s := streamValue(valueAt(ks.a, r))
	if _, ok := s.Group(name); !ok {
		return
	}
	_, w := ks.headForWrite(h, r, TypeStream)
	t := ks.treeAt(w[streamGroups])
	c, g, _ := seekGroup(&t, name)
	c.remove()
	w[streamGroups] = uint64(t.root)
	w[streamGroupCount]--
	head, hw := ks.newHead(TypeStream)
	grave := ks.treeAt(0)
	gc := grave.begin()
	gc.insert(g, 1, nameKey(groupName(ks.a, g)))
	hw[streamGroups] = uint64(grave.root)
	ks.discard(TypeStream, head)
}

// ownGroup returns the group behind the cursor to be changed, copied if a view may see it.
func (ks *Keyspace) ownGroup(c *treeCursor, r arena.Ref) arena.Ref {
	if !ks.a.Shared(r) {
		return r
	}
	name := groupName(ks.a, r)
	size := 8*groupWords + stringSize(len(name))
	n := ks.newValue(size)
	copy(ks.a.Bytes(n, size), ks.a.Bytes(r, size))
	c.replace(n, 1, nameKey(name))
	ks.freeValue(r)
	return n
}

// groupEdit is a group being changed. Its trees are kept apart until done writes their roots back.
type groupEdit struct {
	ks                    *Keyspace
	w, g                  []uint64 // the stream's head, the group's words
	groups                tree
	pel, owned, consumers tree
}

// editGroup opens a group to be changed; ok is false if there is none.
func (ks *Keyspace) editGroup(h uint64, r arena.Ref, name []byte) (x groupEdit, ok bool) {
	if r == 0 {
		return x, false
	}
	s := streamValue(valueAt(ks.a, r))
	if _, ok = s.Group(name); !ok {
		return x, false
	}
	_, w := ks.headForWrite(h, r, TypeStream)
	x.ks, x.w, x.groups = ks, w, ks.treeAt(w[streamGroups])
	c, g, _ := seekGroup(&x.groups, name)
	x.g = ks.a.Words(ks.ownGroup(&c, g), groupWords)
	x.pel, x.owned = ks.treeAt(x.g[groupPEL]), ks.treeAt(x.g[groupOwned])
	x.consumers = ks.treeAt(x.g[groupConsumers])
	return x, true
}

func (x *groupEdit) done() {
	x.w[streamGroups] = uint64(x.groups.root)
	x.g[groupPEL], x.g[groupOwned] = uint64(x.pel.root), uint64(x.owned.root)
	x.g[groupConsumers] = uint64(x.consumers.root)
}

// consumer returns the words of a consumer to be changed, making it if there is none.
func (x *groupEdit) consumer(name []byte) []uint64 {
	c, r, found := seekConsumer(&x.consumers, name)
	if found {
		return x.ownConsumer(&c, r)
	}
	n := x.ks.newValue(8 * consumerWords)
	w := x.ks.a.Words(n, consumerWords)
	clear(w)
	w[consumerName] = uint64(x.ks.newString(name))
	w[consumerSeen] = uint64(x.ks.clock)
	c.insert(n, 1, nameKey(name))
	x.g[groupConsumerCount]++
	return w
}

func (x *groupEdit) ownConsumer(c *treeCursor, r arena.Ref) []uint64 {
	a := x.ks.a
	if !a.Shared(r) {
		return a.Words(r, consumerWords)
	}
	n := x.ks.newValue(8 * consumerWords)
	w := a.Words(n, consumerWords)
	copy(w, a.Words(r, consumerWords))
	c.replace(n, 1, nameKey(blockString(a, arena.Ref(w[consumerName]))))
	x.ks.freeValue(r)
	return w
}

// deleteConsumer removes a consumer and what it has pending.
func (x *groupEdit) deleteConsumer(name []byte) {
	c, r, found := seekConsumer(&x.consumers, name)
	if !found {
		return
	}
	own := x.ks.a.Words(r, consumerWords)[consumerName]
	for {
		oc := seekOwned(&x.owned, own, StreamID{})
		n, _, key, ok := oc.item()
		if !ok || key != own {
			break
		}
		oc.remove()
		pc, _, _ := seekPending(&x.pel, nackID(x.ks.a, n))
		pc.remove()
		x.ks.freeValue(n)
		x.g[groupPending]--
	}
	c.remove()
	x.ks.freeValue(r)
	x.ks.freeValue(arena.Ref(own))
	x.g[groupConsumerCount]--
}

// drop removes a pending entry, if there is one.
func (x *groupEdit) drop(id StreamID) {
	pc, r, found := seekPending(&x.pel, id)
	if !found {
		return
	}
	own := x.ks.a.Words(r, nackWords)[nackName]
	pc.remove()
	oc := seekOwned(&x.owned, own, id)
	oc.remove()
	x.consumer(blockString(x.ks.a, arena.Ref(own)))[consumerCount]--
	x.ks.freeValue(r)
	x.g[groupPending]--
}

// claim makes an entry pending for the consumer to.
func (x *groupEdit) claim(id StreamID, to []uint64, ms, count int64) {
	a := x.ks.a
	pc, r, found := seekPending(&x.pel, id)
	if found {
		if w := a.Words(r, nackWords); w[nackName] == to[consumerName] && !a.Shared(r) {
			w[nackTime], w[nackCount] = uint64(ms), uint64(count)
			return
		}
		x.drop(id)
		pc, _, _ = seekPending(&x.pel, id)
	}
	n := x.ks.newValue(8 * nackWords)
	w := a.Words(n, nackWords)
	w[nackMs], w[nackSeq], w[nackTime], w[nackCount] = id.Ms, id.Seq, uint64(ms), uint64(count)
	w[nackName] = to[consumerName]
	pc.insert(n, 1, id.Ms)
	oc := seekOwned(&x.owned, to[consumerName], id)
	oc.insert(n, 1, to[consumerName])
	to[consumerCount]++
	x.g[groupPending]++
}

// foldXAck folds XACK key group id...
func (ks *Keyspace) foldXAck(e *effect.Effect) (c Change, err error) {
	for _, text := range e.Args[2:] {
		if _, ok := parseID(text); !ok {
			return c, fail(e, "ID")
		}
	}
	h, r, ok := ks.open(e.Args[0], TypeStream)
	if !ok {
		return c, fail(e, wrongType)
	}
	if x, ok := ks.editGroup(h, r, e.Args[1]); ok {
		for _, text := range e.Args[2:] {
			id, _ := parseID(text)
			x.drop(id)
		}
		x.done()
	}
	return c, nil
}

// claimTail are the arguments behind the IDs of an XCLAIM: options, nil for their values.
var claimTail = [...][]byte{
	[]byte("TIME"), nil, []byte("RETRYCOUNT"), nil, []byte("FORCE"), []byte("JUSTID"), []byte("LASTID"), nil,
}

// foldXClaim folds XCLAIM key group consumer 0 id... TIME ms RETRYCOUNT n FORCE JUSTID LASTID id: the
// entries are pending for the consumer afterwards, whether the stream still has them or not.
func (ks *Keyspace) foldXClaim(e *effect.Effect) (c Change, err error) {
	ids, tail := e.Args[4:len(e.Args)-len(claimTail)], e.Args[len(e.Args)-len(claimTail):]
	for i, want := range claimTail {
		if want != nil && !bytes.Equal(want, tail[i]) {
			return c, fail(e, "options")
		}
	}
	ms, ok1 := parseInt(tail[1])
	count, ok2 := parseInt(tail[3])
	last, ok3 := parseID(tail[7])
	for _, text := range ids {
		_, ok := parseID(text)
		ok3 = ok3 && ok
	}
	if !ok1 || !ok2 || !ok3 || len(e.Args[2]) > MaxValue {
		return c, fail(e, "arguments")
	}
	h, r, ok := ks.open(e.Args[0], TypeStream)
	if !ok {
		return c, fail(e, wrongType)
	}
	x, ok := ks.editGroup(h, r, e.Args[1])
	if !ok {
		return c, nil
	}
	to := x.consumer(e.Args[2])
	to[consumerSeen] = max(to[consumerSeen], uint64(ks.clock))
	to[consumerTime] = max(to[consumerTime], uint64(ks.clock), uint64(max(ms, 0)))
	for _, text := range ids {
		id, _ := parseID(text)
		x.claim(id, to, ms, count)
	}
	if (StreamID{x.g[groupLastMs], x.g[groupLastSeq]}).Less(last) {
		x.g[groupLastMs], x.g[groupLastSeq] = last.Ms, last.Seq
	}
	x.done()
	return c, nil
}

// drainGroup frees a leaf of a group's trees; false when there is nothing left.
func (ks *Keyspace) drainGroup(g []uint64) (more bool) {
	for _, at := range [...]int{groupOwned, groupPEL, groupConsumers} {
		if g[at] == 0 {
			continue
		}
		t := ks.treeAt(g[at])
		t.drain(func(r arena.Ref) {
			switch at {
			case groupConsumers:
				ks.freeValue(arena.Ref(ks.a.Words(r, consumerWords)[consumerName]))
				fallthrough
			case groupPEL:
				ks.freeValue(r)
			}
		})
		g[at] = uint64(t.root)
		return true
	}
	return false
}
