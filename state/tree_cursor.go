package state

import (
	"math/bits"

	"github.com/kevydb/kevy/internal/arena"
)

// treeCursor is a place in a tree: before an item, or at the end. Any change of the tree by another
// cursor makes it invalid. Cursors of a frozen tree may be read without the lock.
type treeCursor struct {
	t     *tree
	depth int // nodes on the path; 0: the tree is empty
	node  [maxLevels]arena.Ref
	pos   [maxLevels]int // entry in the node
}

func (c *treeCursor) leaf() []uint64 { return c.t.words(c.node[c.depth-1]) }

// descend completes the path below depth c.depth: the first item there, or behind the last one.
func (c *treeCursor) descend(n arena.Ref, last bool) {
	for {
		w := c.t.words(n)
		i := 0
		if last {
			i = entries(w) - 1
		}
		c.node[c.depth], c.pos[c.depth] = n, i
		c.depth++
		if level(w) == 0 {
			if last {
				c.pos[c.depth-1]++
			}
			return
		}
		n = arena.Ref(w[1+i*c.t.stride(w)])
	}
}

// begin returns a cursor before the first item.
func (t *tree) begin() (c treeCursor) {
	c.t = t
	if t.root != 0 {
		c.descend(t.root, false)
	}
	return c
}

// end returns a cursor behind the last item.
func (t *tree) end() (c treeCursor) {
	c.t = t
	if t.root != 0 {
		c.descend(t.root, true)
	}
	return c
}

// Words of the key and the ref of the first entry of a keyed node.
const (
	leafKey, leafRef   = 2, 1
	innerKey, innerRef = 3, 4
)

// firstAtLeast returns the first entry of a node whose key is not less than key. keyAt is the word of the first
// entry's key, s the words of an entry. Each step halves what is left without a branch: the keys of a hash are
// random, so every other branch would be taken for the wrong one.
func firstAtLeast(w []uint64, s, keyAt int, key uint64) (lo int) {
	at := keyAt - s // word of the key before entry lo
	for n := entries(w); n > 0; {
		half := (n + 1) >> 1
		_, less := bits.Sub64(w[at+half*s], key, 0)
		mask := -int(less) //nolint:gosec // 0 or 1
		at += half * s & mask
		lo += half & mask
		n -= half
	}
	return lo
}

// prefetchLeaf asks for the leaf where a key belongs, and returns it; 0: the tree is empty. REQUIRES: keyed.
func (t *tree) prefetchLeaf(key uint64) arena.Ref {
	n := t.root
	if n == 0 {
		return 0
	}
	for w := t.words(n); level(w) > 0; w = t.words(n) {
		n = t.childFor(w, key)
		if level(w) == 1 {
			t.a.Prefetch(n, 0, nodeBytes)
			break
		}
	}
	return n
}

// childFor returns the child of an inner node below which the first item of that key is, if there is one.
func (t *tree) childFor(w []uint64, key uint64) arena.Ref {
	s := t.stride(w)
	return arena.Ref(w[1+s*max(firstAtLeast(w, s, innerKey, key)-1, 0)])
}

// prefetchItem asks for the beginning of the item of a key in its leaf.
func (t *tree) prefetchItem(leaf arena.Ref, key uint64) {
	w := t.words(leaf)
	s := t.stride(w)
	if i := firstAtLeast(w, s, leafKey, key); i < entries(w) && w[i*s+leafKey] == key {
		t.a.Prefetch(refOf(w[i*s+leafRef]), 0, prefetchedItem)
	}
}

// seek returns a cursor before the first item that is not less than the target: its key is greater than key, or
// equal and cmp(item) >= 0. cmp orders items of equal keys against the target. REQUIRES: keyed.
func (t *tree) seek(key uint64, cmp func(arena.Ref) int) (c treeCursor) {
	c.t = t
	for n := t.root; n != 0; {
		w := t.words(n)
		leaf, s := level(w) == 0, t.stride(w)
		keyAt, refAt := leafKey, leafRef
		if !leaf {
			keyAt, refAt = innerKey, innerRef
		}
		lo, hi := firstAtLeast(w, s, keyAt, key), entries(w)
		if lo < hi && w[lo*s+keyAt] == key && cmp(refOf(w[lo*s+refAt])) < 0 {
			for lo++; lo < hi; {
				m := int(uint(lo+hi) >> 1)
				if w[m*s+keyAt] == key && cmp(refOf(w[m*s+refAt])) < 0 {
					lo = m + 1
				} else {
					hi = m
				}
			}
		}
		if !leaf {
			lo = max(lo-1, 0) // the last child that begins before the target
		}
		c.node[c.depth], c.pos[c.depth] = n, lo
		c.depth++
		if leaf {
			break
		}
		n = arena.Ref(w[1+lo*s])
	}
	return c
}

// seekWeight returns a cursor before the item that covers position x of the sequence of elements, and
// the rest: the element's place in that item. x equal to the whole weight is the end.
func (t *tree) seekWeight(x uint64) (c treeCursor, rest uint64) {
	c.t = t
	for n := t.root; n != 0; {
		w := t.words(n)
		i, count, leaf, s := 0, entries(w), level(w) == 0, t.stride(w)
		if leaf {
			for ; i < count && x >= w[1+i*s]>>weightShift; i++ {
				x -= w[1+i*s] >> weightShift
			}
		} else {
			for ; i < count-1 && x >= w[2+i*s]; i++ {
				x -= w[2+i*s]
			}
		}
		c.node[c.depth], c.pos[c.depth] = n, i
		c.depth++
		if leaf {
			break
		}
		n = arena.Ref(w[1+i*s])
	}
	return c, x
}

// rank returns the weight of all items before the cursor.
func (c *treeCursor) rank() (sum uint64) {
	for d := range c.depth {
		sum += c.t.sumOf(c.t.words(c.node[d]), c.pos[d])
	}
	return sum
}

// item returns the item behind the cursor; ok is false at the end.
func (c *treeCursor) item() (ref arena.Ref, weight uint64, key uint64, ok bool) {
	if !c.settle() {
		return 0, 0, 0, false
	}
	w := c.leaf()
	at := 1 + c.pos[c.depth-1]*c.t.stride(w)
	if c.t.keyed {
		key = w[at+1]
	}
	return refOf(w[at]), w[at] >> weightShift, key, true
}

// settle moves a cursor at the end of a leaf to the beginning of the next one; false at the end of the tree.
func (c *treeCursor) settle() bool {
	if c.depth == 0 {
		return false
	}
	if c.pos[c.depth-1] < entries(c.leaf()) {
		return true
	}
	for d := c.depth - 2; d >= 0; d-- {
		w := c.t.words(c.node[d])
		if c.pos[d]+1 < entries(w) {
			c.pos[d]++
			c.depth = d + 1
			c.descend(arena.Ref(w[1+c.pos[d]*c.t.stride(w)]), false)
			return true
		}
	}
	return false
}

// next moves over the item behind the cursor, if there is one.
func (c *treeCursor) next() {
	if c.settle() {
		c.pos[c.depth-1]++
	}
}

// prev moves over the item before the cursor; false at the beginning.
func (c *treeCursor) prev() bool {
	if c.depth == 0 {
		return false
	}
	if c.pos[c.depth-1] > 0 {
		c.pos[c.depth-1]--
		return true
	}
	for d := c.depth - 2; d >= 0; d-- {
		if c.pos[d] > 0 {
			c.pos[d]--
			w := c.t.words(c.node[d])
			c.depth = d + 1
			c.descend(arena.Ref(w[1+c.pos[d]*c.t.stride(w)]), true)
			c.pos[c.depth-1]--
			return true
		}
	}
	return false
}
