package state

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// A run is a sequence of elements that can be walked from both ends:
//
//	element = length as uvarint, bytes, the same uvarint with its bytes reversed
//
// A packed list is the number of elements (2 bytes) and a run of at most listPacked bytes. A large list is
// a tree of chunks by position, each with the number of its elements as weight:
//
//	head  = elements, bytes of all runs, root of the tree
//	chunk = where the run begins and ends in the block (4, 4), room, run, room
const (
	listCount = iota
	listBytes
	listRoot
	listHeadWords

	listPrefix = 2    // bytes before the run of a packed list
	listPacked = 4080 // longest run of a packed list: it fits a chunk
	listShrink = 1024 // a large list whose runs are together no longer than this is packed again

	listChunkHead = 8                             // bytes before the room of a chunk
	listChunkFull = 4096                          // bytes of a chunk's block, unless one element needs more
	listChunkRun  = listChunkFull - listChunkHead // longest run of more than one element
	listChunkLess = 512                           // bytes of the first block of a chunk at an end
)

var listOps = kindOps{
	headWords: listHeadWords,
	len:       func(v value) int { return listValue(v).n },
	digest:    digestList,
	rebuild:   rebuildList,
	blocks:    listBlocks,
	drain:     drainList,
	encoding: func(_ value, hint byte) string {
		if hint&hintLarge != 0 {
			return "quicklist"
		}
		return "listpack"
	},
}

// List reads the elements of a list.
type List struct {
	v    value
	run  []byte // of a packed list
	n    int
	tree tree // of a large list
}

// size returns the bytes that the elements take, with their lengths.
func (l *List) size() int {
	if l.v.head != 0 {
		return int(l.v.words(listHeadWords)[listBytes]) //nolint:gosec // a size
	}
	return len(l.run)
}

// List returns the elements of a list. REQUIRES: e.Type() == TypeList.
func (ks *Keyspace) List(e Entry) List { return listValue(valueAt(e.a, e.ref)) }

func listValue(v value) List {
	l := List{v: v}
	if v.head != 0 {
		w := v.words(listHeadWords)
		l.n = int(w[listCount])
		l.tree = tree{a: v.a, root: arena.Ref(w[listRoot])}
	} else {
		l.n, l.run = int(le.Uint16(v.flat)), v.flat[listPrefix:]
	}
	return l
}

// Len returns the number of elements, in constant time.
func (l *List) Len() int { return l.n }

// Index returns element i, a read-only alias. REQUIRES: 0 <= i < Len().
func (l *List) Index(i int) (e []byte) {
	l.Range(i, 1, false, func(x []byte) bool { e = x; return true })
	return e
}

// Range calls f with n elements beginning with element from, in order or backwards, until f returns
// false. The elements are read-only aliases. REQUIRES: all of them exist.
func (l *List) Range(from, n int, backwards bool, f func(e []byte) bool) {
	if n <= 0 {
		return
	}
	if l.v.head == 0 {
		walkRun(l.run, l.n, from, n, backwards, f)
		return
	}
	c, rest := l.tree.seekWeight(uint64(from))
	for at := int(rest); n > 0; {
		ref, weight, _, ok := c.item()
		if !ok {
			return
		}
		count := int(weight)
		var m int
		if backwards {
			if at < 0 {
				at = count - 1
			}
			m = min(n, at+1)
		} else {
			m = min(n, count-at)
		}
		if !walkRun(listRunOf(l.v.a, ref), count, at, m, backwards, f) {
			return
		}
		n -= m
		if backwards {
			at = -1
			if !c.prev() {
				return
			}
		} else {
			at = 0
			c.next()
		}
	}
}

// walkRun calls f with n elements of a run of count elements, beginning with element at.
func walkRun(run []byte, count, at, n int, backwards bool, f func(e []byte) bool) bool {
	var e []byte
	if backwards {
		for b := run[:seekRun(run, count, at+1)]; n > 0; n-- {
			if e, b = cutLast(b); !f(e) {
				return false
			}
		}
		return true
	}
	for b := run[seekRun(run, count, at):]; n > 0; n-- {
		if e, b = cutFirst(b); !f(e) {
			return false
		}
	}
	return true
}

// seekRun returns where element i of a run of count elements begins; the end of the run for i == count.
func seekRun(run []byte, count, i int) int {
	b := run
	if i <= count/2 {
		for ; i > 0; i-- {
			b = b[elementSize(b):]
		}
		return len(run) - len(b)
	}
	for i = count - i; i > 0; i-- {
		_, b = cutLast(b)
	}
	return len(b)
}

// runSize returns the bytes an element of n bytes takes in a run.
func runSize(n int) int {
	if n < 0x80 {
		return n + 2
	}
	return n + 2*((bits.Len(uint(n))+6)/7)
}

// elementSize returns the bytes of the first element of a run.
func elementSize(b []byte) int {
	if n := int(b[0]); n < 0x80 {
		return n + 2
	}
	n, _ := uvarint(b)
	return runSize(n)
}

// appendElement appends an element to a run.
func appendElement(dst, e []byte) []byte {
	if n := len(e); n < 0x80 {
		dst = append(dst, byte(n))
		dst = append(dst, e...)
		return append(dst, byte(n))
	}
	var num [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(num[:], uint64(len(e)))
	dst = append(dst, num[:n]...)
	dst = append(dst, e...)
	for n--; n >= 0; n-- {
		dst = append(dst, num[n])
	}
	return dst
}

// cutFirst returns the first element of a run and what follows it. REQUIRES: the run is not empty.
func cutFirst(b []byte) (e, rest []byte) {
	if n := int(b[0]); n < 0x80 {
		return b[1 : 1+n : 1+n], b[2+n:]
	}
	n, w := uvarint(b)
	return b[w : w+n : w+n], b[2*w+n:]
}

// cutLast returns the last element of a run and what precedes it. REQUIRES: the run is not empty.
func cutLast(b []byte) (e, before []byte) {
	end := len(b) - 1
	n, w := int(b[end]), 1
	if n >= 0x80 {
		n &= 0x7f
		for shift := 7; ; shift += 7 {
			x := int(b[end-w])
			w++
			n |= x & 0x7f << shift
			if x < 0x80 {
				break
			}
		}
	}
	end = len(b) - w
	return b[end-n : end : end], b[:end-n-w]
}

// listSpan returns where the run of a chunk begins and ends in its block.
func listSpan(a *arena.Arena, r arena.Ref) (start, end int) {
	b := a.Tail(r)
	return int(le.Uint32(b)), int(le.Uint32(b[4:]))
}

// listRunOf returns the run of a chunk.
func listRunOf(a *arena.Arena, r arena.Ref) []byte {
	start, end := listSpan(a, r)
	return a.Bytes(r, end)[start:]
}

func setListSpan(a *arena.Arena, r arena.Ref, start, end int) {
	b := a.Tail(r)
	le.PutUint32(b, uint32(start))
	le.PutUint32(b[4:], uint32(end))
}

func digestList(v value) (lo, hi uint64) {
	const factor = 0x9e3779b97f4a7c15
	l := listValue(v)
	l.Range(0, l.n, false, func(e []byte) bool {
		h := xxh3.Hash128Seed(e, valueSeed)
		lo = lo*factor + h.Lo
		hi = hi*factor + h.Hi
		return true
	})
	return lo, hi
}

func rebuildList(v value, key []byte, emit func(*effect.Effect) bool) bool {
	p := pieces{op: effect.RPush, key: key, emit: emit}
	l, ok := listValue(v), true
	l.Range(0, l.n, false, func(e []byte) bool { ok = p.add(e); return ok })
	return ok && p.flush()
}

func listBlocks(v value, f func(arena.Ref)) {
	t := listValue(v).tree
	t.nodes(f)
	t.each(func(r arena.Ref, _, _ uint64) bool { f(r); return true })
}

func drainList(ks *Keyspace, w []uint64) (more bool) {
	t := tree{a: ks.a, root: arena.Ref(w[listRoot]), bytes: &ks.bytes}
	more = t.drain(ks.freeValue)
	w[listRoot] = uint64(t.root)
	return more
}
