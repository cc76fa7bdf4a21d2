package state

import "github.com/kevydb/kevy/internal/arena"

// own copies the nodes of the path that an open view may see, so that they can be changed.
func (c *treeCursor) own() {
	t := c.t
	for d := range c.depth {
		if !t.a.Shared(c.node[d]) {
			continue
		}
		old := c.node[d]
		src := t.words(old)
		n, w := t.newNode(0)
		copy(w, src[:1+entries(src)*t.stride(src)])
		c.node[d] = n
		c.link(d)
		t.free(old)
	}
}

// link writes the path's node at depth d into its parent.
func (c *treeCursor) link(d int) {
	if d == 0 {
		c.t.root = c.node[0]
		return
	}
	p := c.t.words(c.node[d-1])
	p[1+c.pos[d-1]*c.t.stride(p)] = uint64(c.node[d])
}

// refresh writes what the path's nodes have become into their parents, from the last one up.
func (c *treeCursor) refresh() {
	for d := c.depth - 1; d > 0; d-- {
		c.t.setEntry(c.t.words(c.node[d-1]), c.pos[d-1], c.node[d])
	}
}

// adjust adds delta to the weights that the ancestors of the path's last node have for it, and tells them its
// first item if the cursor is there.
func (c *treeCursor) adjust(delta uint64) {
	t := c.t
	first := t.keyed && c.pos[c.depth-1] == 0
	var key uint64
	var ref arena.Ref
	if first {
		key, ref = t.firstOf(t.words(c.node[c.depth-1]), 0)
	}
	for d := c.depth - 1; d > 0; d-- {
		p, at := t.words(c.node[d-1]), 1+c.pos[d-1]*2
		if t.keyed {
			at = 1 + c.pos[d-1]*4
		}
		p[at+1] += delta
		if first {
			p[at+2], p[at+3] = key, uint64(ref)
			first = c.pos[d-1] == 0
		}
	}
}

// insert puts an item before the cursor, which then stands before the new item. REQUIRES: in a keyed tree
// the cursor comes from seek with the item's key; weight is 1 to maxWeight.
func (c *treeCursor) insert(ref arena.Ref, weight, key uint64) {
	t := c.t
	if c.depth == 0 {
		t.root, _ = t.newNode(0)
		c.node[0], c.pos[0], c.depth = t.root, 0, 1
	}
	c.own()
	c.makeRoom()
	w := c.leaf()
	i := c.pos[c.depth-1]
	t.openGap(w, i)
	at := 1 + i*t.stride(w)
	w[at] = uint64(ref) | weight<<weightShift
	if t.keyed {
		w[at+1] = key
	}
	c.adjust(weight)
}

// makeRoom splits the full nodes of the path, from the root down. REQUIRES: owned.
func (c *treeCursor) makeRoom() {
	t := c.t
	for d := 0; d < c.depth; d++ {
		w := t.words(c.node[d])
		if entries(w) < t.capacity(w) {
			continue
		}
		if d == 0 {
			c.growRoot()
			d = 1
		}
		c.split(d)
	}
}

// growRoot puts a new root above the path.
func (c *treeCursor) growRoot() {
	t := c.t
	n, w := t.newNode(level(t.words(t.root)) + 1)
	w[0]++
	t.setEntry(w, 0, t.root)
	t.root = n
	copy(c.node[1:], c.node[:c.depth])
	copy(c.pos[1:], c.pos[:c.depth])
	c.node[0], c.pos[0] = n, 0
	c.depth++
}

// split moves the end of the path's node at depth d into a new node behind it. A node that grows at one end only
// keeps nearly all of its entries. REQUIRES: its parent has room.
func (c *treeCursor) split(d int) {
	t := c.t
	w := t.words(c.node[d])
	n, s := entries(w), t.stride(w)
	at := n / 2
	switch c.pos[d] {
	case 0:
		at = max(1, n/16)
	case n, n - 1:
		at = min(n-1, n-n/16)
	}
	right, rw := t.newNode(level(w))
	copy(rw[1:], w[1+at*s:1+n*s])
	rw[0] += uint64(n - at)
	w[0] -= uint64(n - at)
	p, i := t.words(c.node[d-1]), c.pos[d-1]
	t.openGap(p, i+1)
	t.setEntry(p, i, c.node[d])
	t.setEntry(p, i+1, right)
	if c.pos[d] >= at && (c.pos[d] > at || level(w) > 0) {
		c.node[d] = right
		c.pos[d] -= at
		c.pos[d-1]++
	}
}

// replace puts another ref and weight in the place of the item behind the cursor. REQUIRES: there is
// one, and in a keyed tree key is not less than its predecessor's and not greater than its successor's.
func (c *treeCursor) replace(ref arena.Ref, weight, key uint64) {
	c.settle()
	c.own()
	w := c.leaf()
	at := 1 + c.pos[c.depth-1]*c.t.stride(w)
	old := w[at] >> weightShift
	w[at] = uint64(ref) | weight<<weightShift
	if c.t.keyed {
		w[at+1] = key
	}
	c.adjust(weight - old)
}

// remove takes out the item behind the cursor. The cursor is invalid afterwards. REQUIRES: there is one.
func (c *treeCursor) remove() {
	c.settle()
	c.own()
	t := c.t
	weight := t.weightAt(c.leaf(), c.pos[c.depth-1])
	t.closeGap(c.leaf(), c.pos[c.depth-1])
	for d := c.depth - 1; d > 0 && entries(t.words(c.node[d])) == 0; d-- {
		t.free(c.node[d])
		t.closeGap(t.words(c.node[d-1]), c.pos[d-1])
		c.depth = d
	}
	if entries(t.words(t.root)) == 0 {
		t.free(t.root)
		t.root = 0
		return
	}
	c.adjust(-weight)
	for d := c.depth - 1; d > 0; d-- {
		c.merge(d)
	}
	t.shrinkRoot()
}

// merge joins the path's node at depth d with a neighbour if both are sparse enough.
func (c *treeCursor) merge(d int) {
	t := c.t
	w := t.words(c.node[d])
	if entries(w) > t.capacity(w)/4 {
		return
	}
	p := t.words(c.node[d-1])
	for _, i := range [2]int{c.pos[d-1], c.pos[d-1] - 1} {
		if i < 0 || i+1 >= entries(p) {
			continue
		}
		s := t.stride(p)
		left, right := arena.Ref(p[1+i*s]), arena.Ref(p[1+(i+1)*s])
		if t.join(left, right, p, i) {
			return
		}
	}
}

// join appends the entries of right to left, entries i+1 and i of their parent p; false if that is too
// much for one node.
func (t *tree) join(left, right arena.Ref, p []uint64, i int) bool {
	lw, rw := t.words(left), t.words(right)
	n, m := entries(lw), entries(rw)
	if n+m > t.capacity(lw)*3/4 {
		return false
	}
	s := t.stride(lw)
	if t.a.Shared(left) {
		fresh, fw := t.newNode(level(lw))
		copy(fw, lw[:1+n*s])
		t.free(left)
		left, lw = fresh, fw
	}
	copy(lw[1+n*s:], rw[1:1+m*s])
	lw[0] += uint64(m)
	t.free(right)
	t.closeGap(p, i+1)
	t.setEntry(p, i, left)
	return true
}

// shrinkRoot removes roots that have but one child.
func (t *tree) shrinkRoot() {
	for {
		w := t.words(t.root)
		if level(w) == 0 || entries(w) > 1 {
			return
		}
		old := t.root
		t.root = arena.Ref(w[1])
		t.free(old)
	}
}
