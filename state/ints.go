package state

import (
	"slices"

	"github.com/kevydb/kevy/internal/arena"
)

// The integer members of a large set are a roaring bitmap in the arena: a tree of containers, each with the
// members that share their upper 48 bits. An item's weight is the number of members in it.
//
//	key       = upper 48 bits of the member's ordinal | kind
//	array     = lower 16 bits of each member, ascending
//	bitmap    = 65536 bits
//
// A container that a view may see is copied before it changes, as every block of a tree.
const (
	lowBits     = 16
	lowMask     = 1<<lowBits - 1
	bitmapWords = 1 << lowBits / 64

	kindArray  = 0
	kindBitmap = 1

	maxArray  = 4096 // members of an array
	minBitmap = 3072 // a bitmap with fewer becomes an array
)

// ordinal maps integers to unsigned ones of the same order, integer back.
func ordinal(n int64) uint64 { return uint64(n) ^ 1<<63 }
func integer(u uint64) int64 { return int64(u ^ 1<<63) }

// container is a set of 16-bit numbers: ascending in low, or a bitmap in words.
type container struct {
	n     int
	low   []uint16
	words []uint64 // nil: an array
}

// containerAt returns the container of a tree's item.
func containerAt(a *arena.Arena, r arena.Ref, weight, key uint64) container {
	if key&lowMask == kindBitmap {
		return container{n: int(weight), words: a.Words(r, bitmapWords)}
	}
	return container{n: int(weight), low: a.Halves(r, int(weight))}
}

// has reports whether x is in the container.
func (c container) has(x uint16) bool {
	if c.words != nil {
		return c.words[x/64]&(1<<(x%64)) != 0
	}
	_, found := slices.BinarySearch(c.low, x)
	return found
}

// seekInts returns a cursor before the first container whose members may be hi or greater, hi being a
// multiple of 65536.
func seekInts(t *tree, hi uint64) treeCursor {
	return t.seek(hi, func(arena.Ref) int { return 0 })
}

// containerOf returns the container for members with the upper bits hi; ok is false if there is none.
func containerOf(t *tree, hi uint64) (c container, ok bool) {
	cur := seekInts(t, hi)
	r, weight, key, ok := cur.item()
	if !ok || key&^lowMask != hi {
		return container{}, false
	}
	return containerAt(t.a, r, weight, key), true
}

func hasInt(t *tree, n int64) bool {
	u := ordinal(n)
	c, ok := containerOf(t, u&^lowMask)
	return ok && c.has(uint16(u))
}

// eachContainer calls f with every container and its members' upper bits, ascending, until f returns false.
func eachContainer(t *tree, f func(hi uint64, c container) bool) bool {
	return t.each(func(r arena.Ref, weight, key uint64) bool {
		return f(key&^lowMask, containerAt(t.a, r, weight, key))
	})
}

// newArray makes a block with the members of low and room for more.
func (ks *Keyspace) newArray(low []uint16, room int) arena.Ref {
	r := ks.newValue(2 * (len(low) + room))
	copy(ks.a.Halves(r, len(low)), low)
	return r
}

// newBitmap makes a block with the members of c.
func (ks *Keyspace) newBitmap(c container) arena.Ref {
	r := ks.newValue(8 * bitmapWords)
	w := ks.a.Words(r, bitmapWords)
	if c.words != nil {
		copy(w, c.words)
		return r
	}
	clear(w)
	for _, x := range c.low {
		w[x/64] |= 1 << (x % 64)
	}
	return r
}

// addInt adds n to the integers of a set and reports whether it was new.
func (ks *Keyspace) addInt(t *tree, n int64) bool {
	u := ordinal(n)
	hi, x := u&^lowMask, uint16(u)
	cur := seekInts(t, hi)
	r, weight, key, ok := cur.item()
	if !ok || key&^lowMask != hi {
		cur.insert(ks.newArray([]uint16{x}, 0), 1, hi|kindArray)
		return true
	}
	c := containerAt(ks.a, r, weight, key)
	if c.words == nil {
		return ks.addToArray(&cur, r, c, hi, x)
	}
	if c.has(x) {
		return false
	}
	old := r
	if ks.a.Shared(r) {
		r = ks.newBitmap(c)
	}
	ks.a.Words(r, bitmapWords)[x/64] |= 1 << (x % 64)
	cur.replace(r, weight+1, key)
	if r != old {
		ks.freeValue(old)
	}
	return true
}

func (ks *Keyspace) addToArray(cur *treeCursor, r arena.Ref, c container, hi uint64, x uint16) bool {
	i, found := slices.BinarySearch(c.low, x)
	switch {
	case found:
		return false
	case c.n == maxArray:
		b := ks.newBitmap(c)
		ks.a.Words(b, bitmapWords)[x/64] |= 1 << (x % 64)
		cur.replace(b, uint64(c.n)+1, hi|kindBitmap)
		ks.freeValue(r)
		return true
	}
	n := r
	if ks.a.Shared(r) || 2*(c.n+1) > ks.a.Capacity(r) {
		n = ks.newArray(c.low, 1+c.n/16)
	}
	low := ks.a.Halves(n, c.n+1)
	copy(low[i+1:], low[i:c.n])
	low[i] = x
	cur.replace(n, uint64(c.n)+1, hi|kindArray)
	if n != r {
		ks.freeValue(r)
	}
	return true
}

// removeInt takes n out of the integers of a set and reports whether it was there.
func (ks *Keyspace) removeInt(t *tree, n int64) bool {
	u := ordinal(n)
	hi, x := u&^lowMask, uint16(u)
	cur := seekInts(t, hi)
	r, weight, key, ok := cur.item()
	if !ok || key&^lowMask != hi {
		return false
	}
	c := containerAt(ks.a, r, weight, key)
	if !c.has(x) {
		return false
	}
	if c.n == 1 {
		cur.remove()
		ks.freeValue(r)
		return true
	}
	fresh := r
	switch {
	case c.words == nil:
		fresh = ks.cutFromArray(r, c, x)
	case c.n-1 < minBitmap:
		fresh = ks.newValue(2 * (c.n - 1))
		c.words = slices.Clone(c.words)
		c.words[x/64] &^= 1 << (x % 64)
		c.appendLow(ks.a.Halves(fresh, c.n-1)[:0])
		key = hi | kindArray
	default:
		if ks.a.Shared(r) {
			fresh = ks.newBitmap(c)
		}
		ks.a.Words(fresh, bitmapWords)[x/64] &^= 1 << (x % 64)
	}
	cur.replace(fresh, weight-1, key)
	if fresh != r {
		ks.freeValue(r)
	}
	return true
}

// cutFromArray takes x out of an array, in place if no view sees it and its block does not get too large
// for it.
func (ks *Keyspace) cutFromArray(r arena.Ref, c container, x uint16) arena.Ref {
	i, _ := slices.BinarySearch(c.low, x)
	if ks.a.Shared(r) || 2*c.n < ks.a.Capacity(r)/2 && c.n > 16 {
		n := ks.newValue(2 * (c.n - 1))
		low := ks.a.Halves(n, c.n-1)
		copy(low, c.low[:i])
		copy(low[i:], c.low[i+1:])
		return n
	}
	copy(c.low[i:], c.low[i+1:])
	return r
}
