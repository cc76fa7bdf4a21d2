package state

import (
	"bytes"

	"github.com/kevydb/kevy/internal/arena"
)

// nameAt returns the name of an element of a large collection, given its block.
type nameAt func(a *arena.Arena, r arena.Ref) []byte

// seekNamed finds the element of a name in a tree keyed by the hashes of names, h being the name's. The cursor is
// before it, or where it belongs.
func seekNamed(t *tree, h uint64, name []byte, at nameAt) (c treeCursor, found bool) {
	c = t.seek(h, func(r arena.Ref) int { return bytes.Compare(at(t.a, r), name) })
	r, _, key, ok := c.item()
	return c, ok && key == h && bytes.Equal(at(t.a, r), name)
}

// sought is the place in a tree where a planner has looked for an element last. Folding the planned effect, right
// behind it, looks for the same element, and need not search again.
//
// Invariant: the tree has not changed since. So the first search of a fold takes the place, whether or not it is
// its own, and the end of a fold forgets it.
type sought struct {
	root  arena.Ref // of the tree; 0: nothing is known
	key   uint64    // hash of the element's name
	depth int
	node  [maxLevels]arena.Ref
	pos   [maxLevels]int
}

// note keeps the place of a cursor that seek has returned for key.
func (s *sought) note(c *treeCursor, key uint64) {
	s.root, s.key, s.depth = c.t.root, key, c.depth
	for d := range c.depth {
		s.node[d], s.pos[d] = c.node[d], c.pos[d]
	}
}

// take returns the place of key in t, if it is the one that was noted.
func (s *sought) take(t *tree, key uint64) (c treeCursor, ok bool) {
	ok = s.root == t.root && s.key == key && s.root != 0
	s.root = 0
	if ok {
		c.t, c.depth = t, s.depth
		for d := range s.depth {
			c.node[d], c.pos[d] = s.node[d], s.pos[d]
		}
	}
	return c, ok
}

// seekNamed is the function of that name for planners: they tell where they have looked.
func (s *sought) seekNamed(t *tree, h uint64, name []byte, at nameAt) (r arena.Ref, found bool) {
	c, found := seekNamed(t, h, name, at)
	if s != nil {
		s.note(&c, h)
	}
	if found {
		r, _, _, _ = c.item()
	}
	return r, found
}

// seekNamed is the function of that name for folds.
func (ks *Keyspace) seekNamed(t *tree, h uint64, name []byte, at nameAt) (c treeCursor, found bool) {
	if c, ok := ks.sought.take(t, h); ok {
		r, _, key, ok := c.item()
		if !ok || key != h {
			return c, false
		}
		if bytes.Equal(at(t.a, r), name) {
			return c, true
		}
	}
	return seekNamed(t, h, name, at)
}
