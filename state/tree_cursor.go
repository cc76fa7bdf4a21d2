package state

import "github.com/kevydb/kevy/internal/arena"

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

// seek returns a cursor before the first item that is not less than the target: its key is greater than key, or
// equal and cmp(item) >= 0. cmp orders items of equal keys against the target. REQUIRES: keyed.
func (t *tree) seek(key uint64, cmp func(arena.Ref) int) (c treeCursor) {
	c.t = t
	for n := t.root; n != 0; {
		w := t.words(n)
		leaf, s := level(w) == 0, t.stride(w)
		keyAt, refAt := 2, 1 // of the first entry
		if !leaf {
			keyAt, refAt = 3, 4
		}
		lo, hi := 0, entries(w)
		for lo < hi {
			m := int(uint(lo+hi) >> 1)
			if k := w[m*s+keyAt]; k < key || k == key && cmp(refOf(w[m*s+refAt])) < 0 {
				lo = m + 1
			} else {
				hi = m
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
