package state

import "github.com/kevydb/kevy/internal/arena"

// ZCursor is a place between the elements of a sorted set. It is valid until the next Fold.
type ZCursor struct {
	z  *ZSet
	tc treeCursor // of a large sorted set

	// of a packed one: where its elements begin, their number, and the place
	at   [maxPacked]uint16
	n, i int
}

// At returns a cursor before the element of rank, which is from 0 to Len.
func (z *ZSet) At(rank int) (c ZCursor) {
	c.z = z
	if z.v.head != 0 {
		c.tc, _ = z.scores.seekWeight(uint64(rank))
		return c
	}
	for b := z.v.flat; len(b) > 0; c.n++ {
		c.at[c.n] = uint16(len(z.v.flat) - len(b))
		_, _, b = cutScored(b)
	}
	c.i = rank
	return c
}

// Next returns the element behind the cursor and moves over it; ok is false at the end.
func (c *ZCursor) Next() (score float64, m []byte, ok bool) {
	if c.z.v.head == 0 {
		if c.i == c.n {
			return 0, nil, false
		}
		score, m, _ = cutScored(c.z.v.flat[c.at[c.i]:])
		c.i++
		return score, m, true
	}
	if score, m, ok = c.element(); ok {
		c.tc.next()
	}
	return score, m, ok
}

// Prev returns the element before the cursor and moves over it; ok is false at the beginning.
func (c *ZCursor) Prev() (score float64, m []byte, ok bool) {
	if c.z.v.head == 0 {
		if c.i == 0 {
			return 0, nil, false
		}
		c.i--
		score, m, _ = cutScored(c.z.v.flat[c.at[c.i]:])
		return score, m, true
	}
	if !c.tc.prev() {
		return 0, nil, false
	}
	return c.element()
}

func (c *ZCursor) element() (score float64, m []byte, ok bool) {
	r, _, key, ok := c.tc.item()
	if !ok {
		return 0, nil, false
	}
	return keyScore(c.z.v.a, key, r), memberAt(c.z.v.a, r), true
}

// keyScore returns an element's score, which its key tells but for the sign of zero.
func keyScore(a *arena.Arena, key uint64, r arena.Ref) float64 {
	if key == 1<<63 {
		return scoreAt(a, r)
	}
	return scoreOf(key)
}

// Scan calls f with elements in the order of their members' hashes, from the 48-bit position cursor on, and
// returns the position to go on from, 0 at the end. It visits about count elements, and all of those
// whose positions are equal; a packed sorted set is visited at once. An element present throughout a
// whole scan is visited.
func (z *ZSet) Scan(cursor uint64, count int, f func(score float64, m []byte)) (next uint64) {
	if z.v.head == 0 {
		for b := z.v.flat; len(b) > 0; {
			var score float64
			var m []byte
			score, m, b = cutScored(b)
			f(score, m)
		}
		return 0
	}
	c := z.names.seek(cursor<<positionShift, func(arena.Ref) int { return 0 })
	last := uint64(0)
	for n := 0; ; n++ {
		r, _, key, ok := c.item()
		if !ok {
			return 0
		}
		if position := key >> positionShift; n >= count && position != last {
			return position
		}
		last = key >> positionShift
		f(scoreAt(z.v.a, r), memberAt(z.v.a, r))
		c.next()
	}
}
