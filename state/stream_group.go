package state

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/kevydb/kevy/internal/arena"
)

// A group is a block of words and its name. Its pending entries are in two trees: pel by ID, and owned by
// consumer and then by ID. A consumer is named in the latter by the ref of its name, a block that stays
// as it is as long as the consumer lives.
//
//	group    = last ID, entries read, roots of pel, owned and consumers, entries pending, consumers; name
//	consumer = ref of the name, entries pending, seen and active (unix ms, not state)
//	pending  = ID, delivered (unix ms), how often, ref of the consumer's name
const (
	groupLastMs = iota
	groupLastSeq
	groupRead
	groupPEL
	groupOwned
	groupConsumers
	groupPending
	groupConsumerCount
	groupWords

	consumerName  = 0
	consumerCount = 1
	consumerSeen  = 2
	consumerTime  = 3
	consumerWords = 4

	nackMs    = 0
	nackSeq   = 1
	nackTime  = 2
	nackCount = 3
	nackName  = 4
	nackWords = 5
)

// nameKey is the key of a name in a tree ordered by names.
func nameKey(name []byte) uint64 {
	if len(name) >= 8 {
		return binary.BigEndian.Uint64(name)
	}
	var b [8]byte
	copy(b[:], name)
	return be.Uint64(b[:])
}

// Group reads a consumer group.
type Group struct {
	a    *arena.Arena
	w    []uint64
	name []byte
}

func groupAt(a *arena.Arena, r arena.Ref) Group {
	return Group{a: a, w: a.Words(r, groupWords), name: groupName(a, r)}
}

func groupName(a *arena.Arena, r arena.Ref) []byte {
	const at = 8 * groupWords
	b := a.Tail(r)[at:]
	n, w := uvarint(b)
	return a.Bytes(r, at+w+n)[at+w:]
}

func (s *Stream) groups() tree { return tree{a: s.a, keyed: true, root: arena.Ref(s.w[streamGroups])} }

// seekGroup returns a cursor before the group with a name, or where it belongs.
func seekGroup(t *tree, name []byte) (c treeCursor, r arena.Ref, found bool) {
	c = t.seek(nameKey(name), func(r arena.Ref) int { return bytes.Compare(groupName(t.a, r), name) })
	r, _, _, ok := c.item()
	return c, r, ok && bytes.Equal(groupName(t.a, r), name)
}

// NumGroups returns the number of groups.
func (s *Stream) NumGroups() int { return int(s.w[streamGroupCount]) }

// Group returns the group with a name.
func (s *Stream) Group(name []byte) (Group, bool) {
	t := s.groups()
	_, r, ok := seekGroup(&t, name)
	if !ok {
		return Group{}, false
	}
	return groupAt(s.a, r), true
}

// EachGroup calls f with the groups in the order of their names, until f returns false.
func (s *Stream) EachGroup(f func(Group) bool) bool {
	t := s.groups()
	return t.each(func(r arena.Ref, _, _ uint64) bool { return f(groupAt(s.a, r)) })
}

// Name returns the group's name.
func (g *Group) Name() []byte { return g.name }

// LastID returns the ID of the last entry delivered.
func (g *Group) LastID() StreamID { return StreamID{g.w[groupLastMs], g.w[groupLastSeq]} }

// Read returns how many entries the group has read, -1 if nobody knows.
func (g *Group) Read() int64 { return int64(g.w[groupRead]) }

// Pending returns the number of entries delivered and not acknowledged.
func (g *Group) Pending() int { return int(g.w[groupPending]) }

// NumConsumers returns the number of consumers.
func (g *Group) NumConsumers() int { return int(g.w[groupConsumerCount]) }

func (g *Group) tree(root int) tree {
	return tree{a: g.a, keyed: true, root: arena.Ref(g.w[root])}
}

// Consumer reads a consumer of a group.
type Consumer struct {
	a *arena.Arena
	w []uint64
}

// seekConsumer returns a cursor before the consumer with a name, or where it belongs.
func seekConsumer(t *tree, name []byte) (c treeCursor, r arena.Ref, found bool) {
	c = t.seek(nameKey(name), func(r arena.Ref) int { return bytes.Compare(nameOfConsumer(t.a, r), name) })
	r, _, _, ok := c.item()
	return c, r, ok && bytes.Equal(nameOfConsumer(t.a, r), name)
}

func nameOfConsumer(a *arena.Arena, r arena.Ref) []byte {
	return blockString(a, arena.Ref(a.Words(r, consumerWords)[consumerName]))
}

// Consumer returns the consumer with a name.
func (g *Group) Consumer(name []byte) (Consumer, bool) {
	t := g.tree(groupConsumers)
	_, r, ok := seekConsumer(&t, name)
	if !ok {
		return Consumer{}, false
	}
	return Consumer{g.a, g.a.Words(r, consumerWords)}, true
}

// EachConsumer calls f with the consumers in the order of their names, until f returns false.
func (g *Group) EachConsumer(f func(Consumer) bool) bool {
	t := g.tree(groupConsumers)
	return t.each(func(r arena.Ref, _, _ uint64) bool {
		return f(Consumer{g.a, g.a.Words(r, consumerWords)})
	})
}

// Name returns the consumer's name.
func (c *Consumer) Name() []byte { return blockString(c.a, arena.Ref(c.w[consumerName])) }

// Pending returns the number of entries the consumer has not acknowledged.
func (c *Consumer) Pending() int { return int(c.w[consumerCount]) }

// Seen returns when the consumer last asked for something, unix ms; 0 if that was before the start. Like
// an access clock it is no state.
func (c *Consumer) Seen() int64 { return int64(c.w[consumerSeen]) }

// Active returns when the consumer last got something, unix ms; 0 if never. It is no state, but
// survives as far as the times of deliveries do.
func (c *Consumer) Active() int64 { return int64(c.w[consumerTime]) }

// Touch sets when the consumer last asked for something. REQUIRES: the lock for writing.
func (c *Consumer) Touch(ms int64) { c.w[consumerSeen] = uint64(ms) }

// SetTimes sets what Seen and Active return. REQUIRES: the lock for writing.
func (c *Consumer) SetTimes(seen, active int64) {
	c.w[consumerSeen], c.w[consumerTime] = uint64(seen), uint64(active)
}

// Nack is a pending entry.
type Nack struct {
	ID       StreamID
	Time     int64 // unix ms of the last delivery
	Count    int64 // deliveries
	Consumer []byte
}

func nackID(a *arena.Arena, r arena.Ref) StreamID {
	w := a.Words(r, nackWords)
	return StreamID{w[nackMs], w[nackSeq]}
}

func nackAt(a *arena.Arena, r arena.Ref) Nack {
	w := a.Words(r, nackWords)
	return Nack{
		ID: StreamID{w[nackMs], w[nackSeq]}, Time: int64(w[nackTime]), Count: int64(w[nackCount]),
		Consumer: blockString(a, arena.Ref(w[nackName])),
	}
}

// compareID orders the pending entry r against id.
func compareID(a *arena.Arena, r arena.Ref, id StreamID) int {
	switch have := nackID(a, r); {
	case have == id:
		return 0
	case have.Less(id):
		return -1
	}
	return 1
}

// seekPending returns a cursor before the first entry of a PEL that is not before id.
func seekPending(t *tree, id StreamID) (c treeCursor, r arena.Ref, found bool) {
	c = t.seek(id.Ms, func(r arena.Ref) int { return compareID(t.a, r, id) })
	r, _, _, ok := c.item()
	return c, r, ok && nackID(t.a, r) == id
}

// seekOwned returns a cursor before the first entry of a consumer that is not before id.
func seekOwned(t *tree, name uint64, id StreamID) treeCursor {
	return t.seek(name, func(r arena.Ref) int { return compareID(t.a, r, id) })
}

// PendingEntry returns the pending entry with an ID.
func (g *Group) PendingEntry(id StreamID) (Nack, bool) {
	t := g.tree(groupPEL)
	_, r, ok := seekPending(&t, id)
	if !ok {
		return Nack{}, false
	}
	return nackAt(g.a, r), true
}

// EachPending calls f with the pending entries from an ID on, until f returns false.
func (g *Group) EachPending(from StreamID, f func(Nack) bool) {
	t := g.tree(groupPEL)
	c, _, _ := seekPending(&t, from)
	for {
		r, _, _, ok := c.item()
		if !ok || !f(nackAt(g.a, r)) {
			return
		}
		c.next()
	}
}

// EachPendingOf is EachPending of one consumer.
func (g *Group) EachPendingOf(x Consumer, from StreamID, f func(Nack) bool) {
	t := g.tree(groupOwned)
	c := seekOwned(&t, x.w[consumerName], from)
	for {
		r, _, key, ok := c.item()
		if !ok || key != x.w[consumerName] || !f(nackAt(g.a, r)) {
			return
		}
		c.next()
	}
}

// LastPending returns the greatest ID pending. REQUIRES: there is one.
func (g *Group) LastPending() StreamID {
	t := g.tree(groupPEL)
	c, _, _ := seekPending(&t, StreamID{math.MaxUint64, math.MaxUint64})
	if _, _, _, ok := c.item(); !ok {
		c.prev()
	}
	r, _, _, _ := c.item()
	return nackID(g.a, r)
}

// blocks calls f with every block of the group but its own.
func (g *Group) blocks(f func(arena.Ref)) {
	pel, owned, consumers := g.tree(groupPEL), g.tree(groupOwned), g.tree(groupConsumers)
	pel.nodes(f)
	pel.each(func(r arena.Ref, _, _ uint64) bool { f(r); return true })
	owned.nodes(f)
	consumers.nodes(f)
	consumers.each(func(r arena.Ref, _, _ uint64) bool {
		f(r)
		f(arena.Ref(g.a.Words(r, consumerWords)[consumerName]))
		return true
	})
}
