package state

import "github.com/kevydb/kevy/internal/arena"

// tree is a counted B+tree in the arena: a sequence of items with weights, found by order or by
// position, both in logarithmic time. An item is a ref with a weight of 1 to 2^24-1: the number of
// elements in the block it names (a chunk of a list), or 1.
//
// A keyed tree is ordered by a word kept beside each item (the score of a sorted set, the time of a
// stream entry), and by the item itself where these are equal, so most comparisons touch no item.
//
//	node          = header, then entries; nodeWords words
//	header        = entries (16) | level (8); level 0 is a leaf
//	leaf entry    = ref (40) | weight (24) [, key]
//	inner entry   = child, weight of all below it [, key and ref of the first item below it]
//
// Persistence: a node that an open view may see is copied before it changes, so a copy of the tree
// struct is a frozen tree for as long as the arena is pinned.
//
// Invariant: all leaves have the same depth; no node but the root of an empty tree is empty; an inner
// entry tells its child's weight and first item.
type tree struct {
	a     *arena.Arena
	root  arena.Ref // 0: empty
	keyed bool
	bytes *int64 // capacity of all blocks of the owner: nodes are added to it; nil for a frozen tree
}

const (
	nodeWords = 128
	nodeBytes = 8 * nodeWords
	maxLevels = 12

	weightShift = arena.RefBits
	maxWeight   = 1<<(64-weightShift) - 1
	levelShift  = 16
	entriesMask = 1<<levelShift - 1
)

func (t *tree) words(n arena.Ref) []uint64 { return t.a.Words(n, nodeWords) }

func entries(w []uint64) int { return int(w[0] & entriesMask) }
func level(w []uint64) int   { return int(w[0] >> levelShift & 0xff) }

// stride returns the words of an entry.
func (t *tree) stride(w []uint64) int {
	s := 1
	if level(w) > 0 {
		s = 2
	}
	if t.keyed {
		s *= 2
	}
	return s
}

// capacity returns how many entries a node takes.
func (t *tree) capacity(w []uint64) int { return (nodeWords - 1) / t.stride(w) }

// weightAt returns the weight of entry i.
func (t *tree) weightAt(w []uint64, i int) uint64 {
	if level(w) == 0 {
		return w[1+i*t.stride(w)] >> weightShift
	}
	return w[2+i*t.stride(w)]
}

// firstOf returns the key and ref of the first item below entry i. REQUIRES: keyed.
func (t *tree) firstOf(w []uint64, i int) (key uint64, ref arena.Ref) {
	at := 1 + i*t.stride(w)
	if level(w) == 0 {
		return w[at+1], refOf(w[at])
	}
	return w[at+2], arena.Ref(w[at+3])
}

// sumOf returns the weight of a node's first n entries.
func (t *tree) sumOf(w []uint64, n int) (sum uint64) {
	s := t.stride(w)
	if level(w) == 0 {
		for at := 1; n > 0; n-- {
			sum += w[at] >> weightShift
			at += s
		}
		return sum
	}
	for at := 2; n > 0; n-- {
		sum += w[at]
		at += s
	}
	return sum
}

// weight returns the sum of all items' weights.
func (t *tree) weight() uint64 {
	if t.root == 0 {
		return 0
	}
	w := t.words(t.root)
	return t.sumOf(w, entries(w))
}

func (t *tree) newNode(level int) (arena.Ref, []uint64) {
	r := t.a.Alloc(nodeBytes)
	*t.bytes += nodeBytes
	w := t.words(r)
	w[0] = uint64(level) << levelShift
	return r, w
}

func (t *tree) free(n arena.Ref) {
	*t.bytes -= nodeBytes
	t.a.Free(n)
}

// setEntry describes a child in entry i of its parent.
func (t *tree) setEntry(w []uint64, i int, child arena.Ref) {
	c := t.words(child)
	at := 1 + i*t.stride(w)
	w[at], w[at+1] = uint64(child), t.sumOf(c, entries(c))
	if t.keyed {
		key, ref := t.firstOf(c, 0)
		w[at+2], w[at+3] = key, uint64(ref)
	}
}

// openGap makes room for an entry at i.
func (t *tree) openGap(w []uint64, i int) {
	s, n := t.stride(w), entries(w)
	copy(w[1+(i+1)*s:1+(n+1)*s], w[1+i*s:1+n*s])
	w[0]++
}

// closeGap takes entry i out.
func (t *tree) closeGap(w []uint64, i int) {
	s, n := t.stride(w), entries(w)
	copy(w[1+i*s:1+(n-1)*s], w[1+(i+1)*s:1+n*s])
	w[0]--
}

// drain frees the last leaf and what became empty above it, calling free with each of its items. It
// returns whether the tree still has items. Large trees go in slices this way.
func (t *tree) drain(free func(arena.Ref)) (more bool) {
	if t.root == 0 {
		return false
	}
	c := t.end()
	c.own()
	leaf := c.leaf()
	for i := range entries(leaf) {
		free(refOf(leaf[1+i*t.stride(leaf)]))
	}
	d := c.depth - 1
	for ; d >= 0; d-- {
		t.free(c.node[d])
		if d == 0 {
			t.root = 0
			return false
		}
		p := t.words(c.node[d-1])
		t.closeGap(p, entries(p)-1)
		if entries(p) > 0 {
			break
		}
	}
	c.depth = d
	c.refresh()
	return true
}

// nodes calls f with every node.
func (t *tree) nodes(f func(arena.Ref)) {
	if t.root != 0 {
		t.nodesBelow(t.root, f)
	}
}

func (t *tree) nodesBelow(n arena.Ref, f func(arena.Ref)) {
	f(n)
	w := t.words(n)
	if level(w) == 0 {
		return
	}
	for i := range entries(w) {
		t.nodesBelow(arena.Ref(w[1+i*t.stride(w)]), f)
	}
}

// each calls f with every item, in order, until f returns false.
func (t *tree) each(f func(ref arena.Ref, weight, key uint64) bool) bool {
	c := t.begin()
	for {
		ref, weight, key, ok := c.item()
		if !ok {
			return true
		}
		if !f(ref, weight, key) {
			return false
		}
		c.next()
	}
}
