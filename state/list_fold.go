package state

import (
	"bytes"
	"math"
	"slices"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// listFold is a list while an effect changes it. Either the list is packed and next is what it becomes, or it is
// large and w is its head, to be changed.
type listFold struct {
	ks  *Keyspace
	h   uint64
	r   arena.Ref // 0: no key yet
	key []byte
	w   []uint64 // head of a large list
	t   tree
	// What the list has meanwhile while an element is replaced, for the hint: Redis counts the new element
	// before it takes the old one out.
	peakSize, peakCount int
}

// openList finds the list of key for a change; ok is false if the key has another type. It returns the
// list as it is; its elements are aliases.
func (ks *Keyspace) openList(key []byte) (f listFold, l List, ok bool) {
	f = listFold{ks: ks, key: key}
	if f.h, f.r, ok = ks.open(key, TypeList); !ok || f.r == 0 {
		return f, l, ok
	}
	v := valueAt(ks.a, f.r)
	if v.head != 0 {
		f.large()
		v = valueAt(ks.a, f.r)
	}
	return f, listValue(v), true
}

// large takes the head of a large list for writing.
func (f *listFold) large() {
	f.r, f.w = f.ks.headForWrite(f.h, f.r, TypeList)
	f.t = tree{a: f.ks.a, root: arena.Ref(f.w[listRoot]), bytes: &f.ks.bytes}
}

// pack makes the list a packed one of count elements; run may lie in its record. The key goes if there are none.
func (f *listFold) pack(count int, run []byte) (c Change) {
	ks := f.ks
	if count == 0 {
		ks.drop(f.h, f.r)
		return Change{Removed: 1}
	}
	var n [listPrefix]byte
	le.PutUint16(n[:], uint16(count))
	flat := append(ks.scratch[:0], n[:]...)
	flat = append(flat, run...)
	ks.scratch = flat[:0]
	f.setPacked(flat)
	return c
}

// setPacked makes flat, which lies in ks.scratch, the content.
func (f *listFold) setPacked(flat []byte) {
	f.r = f.ks.setFlat(f.h, f.r, f.key, TypeList, flat)
	f.hint(len(flat)-listPrefix, int(le.Uint16(flat)))
}

// close ends the change of a large list: an empty one goes, a short one is packed again.
func (f *listFold) close() (c Change) {
	f.w[listRoot] = uint64(f.t.root)
	switch n := f.w[listBytes]; {
	case f.w[listCount] == 0:
		f.ks.drop(f.h, f.r)
		return Change{Removed: 1}
	case n <= listShrink:
		flat := append(f.ks.scratch[:0], 0, 0)
		le.PutUint16(flat, uint16(f.w[listCount]))
		f.t.each(func(r arena.Ref, _, _ uint64) bool {
			flat = append(flat, listRunOf(f.ks.a, r)...)
			return true
		})
		f.ks.scratch = flat[:0]
		f.setPacked(flat)
	default:
		f.hint(int(n), int(f.w[listCount]))
	}
	return c
}

// grow makes a packed list, or none, a large one.
func (f *listFold) grow(l *List) {
	ks := f.ks
	var chunk arena.Ref
	if l.n > 0 {
		chunk = ks.newListChunk(listChunkFull, len(l.run), false)
		copy(listRunOf(ks.a, chunk), l.run)
	}
	head, w := ks.newHead(TypeList)
	w[listCount], w[listBytes] = uint64(l.n), uint64(len(l.run))
	f.r = ks.setHead(f.h, f.r, f.key, TypeList, head)
	f.large()
	if chunk != 0 {
		c := f.t.begin()
		c.insert(chunk, uint64(l.n), 0)
	}
}

// hint keeps the record's hint for OBJECT ENCODING: Redis lets a list go beyond list-max-listpack-size into a
// quicklist, and back when it is half as large.
func (f *listFold) hint(size, count int) {
	maxBytes, maxCount := 8192, math.MaxInt
	if n := f.ks.Limits.ListSize; n >= 0 {
		maxCount = max(n, 1)
	} else {
		maxBytes = 4096 << min(-n-1, 4)
	}
	const frame = 7 // header and end of a listpack
	b := f.ks.a.Tail(f.r)
	switch {
	case size+frame <= maxBytes/2 && count <= maxCount/2:
		b[offHint] &^= hintLarge
	case max(size, f.peakSize)+frame > maxBytes || max(count, f.peakCount) > maxCount:
		b[offHint] |= hintLarge
	}
}

func (ks *Keyspace) foldPush(e *effect.Effect) (c Change, err error) {
	key, elements := e.Args[0], e.Args[1:]
	size := 0
	for _, x := range elements {
		if len(x) > MaxValue {
			return c, fail(e, "too long")
		}
		size += runSize(len(x))
	}
	f, l, ok := ks.openList(key)
	if !ok {
		return c, fail(e, wrongType)
	}
	if f.r == 0 {
		c.Created = 1
	}
	front := e.Op == effect.LPush
	if f.w == nil {
		if len(l.run)+size <= listPacked {
			f.pushPacked(&l, elements, front)
			return c, nil
		}
		f.grow(&l)
	}
	for len(elements) > 0 {
		n := f.pushChunk(elements, front)
		elements = elements[n:]
	}
	f.close()
	return c, nil
}

func (f *listFold) pushPacked(l *List, elements [][]byte, front bool) {
	flat := append(f.ks.scratch[:0], 0, 0)
	le.PutUint16(flat, uint16(l.n+len(elements)))
	if front {
		for _, element := range slices.Backward(elements) {
			flat = appendElement(flat, element)
		}
		flat = append(flat, l.run...)
	} else {
		flat = append(flat, l.run...)
		for _, x := range elements {
			flat = appendElement(flat, x)
		}
	}
	f.ks.scratch = flat[:0]
	f.setPacked(flat)
}

// listForChange is openList for an effect that changes a list if it is there; f.r is 0 if it is not, or no list.
func (ks *Keyspace) listForChange(e *effect.Effect) (f listFold, l List, err error) {
	f, l, ok := ks.openList(e.Args[0])
	if !ok {
		f.r, err = 0, fail(e, wrongType)
	}
	return f, l, err
}

func (ks *Keyspace) foldPop(e *effect.Effect) (c Change, err error) {
	n := int64(1)
	if len(e.Args) == 2 {
		var ok bool
		if n, ok = parseInt(e.Args[1]); !ok || n < 0 {
			return c, fail(e, "count")
		}
	}
	f, l, err := ks.listForChange(e)
	if f.r == 0 {
		return c, err
	}
	m := int(min(n, int64(l.n)))
	if e.Op == effect.LPop {
		return f.cut(&l, m, 0), nil
	}
	return f.cut(&l, 0, m), nil
}

func (ks *Keyspace) foldLTrim(e *effect.Effect) (c Change, err error) {
	start, ok1 := parseInt(e.Args[1])
	stop, ok2 := parseInt(e.Args[2])
	if !ok1 || !ok2 {
		return c, fail(e, "range")
	}
	f, l, err := ks.listForChange(e)
	if f.r == 0 {
		return c, err
	}
	from, n := l.Bounds(start, stop)
	if n == 0 {
		from = l.n
	}
	return f.cut(&l, from, l.n-from-n), nil
}

// Bounds resolves a range of indexes as clients give it, negative ones counting from the end: the first
// element and the number of elements.
func (l *List) Bounds(start, stop int64) (from, n int) {
	count := int64(l.n)
	if start < 0 {
		start = max(start+count, 0)
	}
	if stop < 0 {
		stop += count
	}
	stop = min(stop, count-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop - start + 1)
}

// cut removes elements from both ends.
func (f *listFold) cut(l *List, front, back int) Change {
	if f.w == nil {
		from := seekRun(l.run, l.n, front)
		to := max(from, seekRun(l.run, l.n, l.n-back))
		return f.pack(l.n-front-back, l.run[from:to])
	}
	if front+back == l.n {
		f.ks.drop(f.h, f.r)
		return Change{Removed: 1}
	}
	f.cutFront(front)
	f.cutBack(back)
	return f.close()
}

func (ks *Keyspace) foldLSet(e *effect.Effect) (c Change, err error) {
	i, ok := parseInt(e.Args[1])
	if !ok || len(e.Args[2]) > MaxValue {
		return c, fail(e, "arguments")
	}
	f, l, ok := ks.openList(e.Args[0])
	if !ok {
		return c, fail(e, wrongType)
	}
	if i < 0 {
		i += int64(l.n)
	}
	if f.r != 0 && i >= 0 && i < int64(l.n) {
		f.peakSize, f.peakCount = l.size()+runSize(len(e.Args[2])), l.n+1
		f.splice(&l, int(i), 1, e.Args[2])
	}
	return c, nil
}

func (ks *Keyspace) foldLInsert(e *effect.Effect) (c Change, err error) {
	before := bytes.EqualFold(e.Args[1], []byte("before"))
	if !before && !bytes.EqualFold(e.Args[1], []byte("after")) || len(e.Args[3]) > MaxValue {
		return c, fail(e, "arguments")
	}
	f, l, err := ks.listForChange(e)
	if f.r == 0 {
		return c, err
	}
	if i := l.Find(e.Args[2]); i >= 0 {
		if !before {
			i++
		}
		f.splice(&l, i, 0, e.Args[3])
	}
	return c, nil
}

// Find returns the index of the first element equal to x, -1 if there is none.
func (l *List) Find(x []byte) int {
	i, found := 0, false
	l.Range(0, l.n, false, func(e []byte) bool {
		if found = bytes.Equal(e, x); !found {
			i++
		}
		return !found
	})
	if !found {
		return -1
	}
	return i
}

// splice puts x in the place of n elements (0 or 1) from element i on.
func (f *listFold) splice(l *List, i, n int, x []byte) {
	ks := f.ks
	if f.w == nil {
		from := seekRun(l.run, l.n, i)
		to := from
		if n > 0 {
			to += elementSize(l.run[from:])
		}
		if len(l.run)-(to-from)+runSize(len(x)) <= listPacked {
			flat := append(ks.scratch[:0], 0, 0)
			le.PutUint16(flat, uint16(l.n-n+1))
			flat = append(flat, l.run[:from]...)
			flat = appendElement(flat, x)
			flat = append(flat, l.run[to:]...)
			ks.scratch = flat[:0]
			f.setPacked(flat)
			return
		}
		f.grow(l)
	}
	f.spliceChunk(i, n, x)
	f.close()
}

func (ks *Keyspace) foldLRem(e *effect.Effect) (c Change, err error) {
	count, ok := parseInt(e.Args[1])
	if !ok {
		return c, fail(e, "count")
	}
	f, l, err := ks.listForChange(e)
	if f.r == 0 {
		return c, err
	}
	left, back := count, false
	switch {
	case count == 0:
		left = 1 << 62
	case count < 0:
		left, back = -max(count, -1<<62), true
	}
	if f.w == nil {
		flat, removed := withoutElements(append(ks.scratch[:0], 0, 0), l.run, e.Args[2], left, back)
		ks.scratch = flat[:0]
		switch removed {
		case 0:
		case l.n:
			return f.pack(0, nil), nil
		default:
			le.PutUint16(flat, uint16(l.n-removed))
			f.setPacked(flat)
		}
		return c, nil
	}
	f.removeEqual(e.Args[2], left, back)
	return f.close(), nil
}

// withoutElements appends to dst a run without the first, or last, at most left elements equal to x, and
// returns how many these are. If there are none, dst is as it was.
func withoutElements(dst, run, x []byte, left int64, back bool) (out []byte, removed int) {
	matches := 0
	for b := run; len(b) > 0; {
		var e []byte
		if e, b = cutFirst(b); bytes.Equal(e, x) {
			matches++
		}
	}
	if matches == 0 {
		return dst, 0
	}
	removed = int(min(left, int64(matches)))
	skip := 0 // matches to keep before the first one to go
	if back {
		skip = matches - removed
	}
	gone := 0
	for b := run; len(b) > 0; {
		e, rest := cutFirst(b)
		if gone < removed && bytes.Equal(e, x) {
			if skip == 0 {
				gone++
				b = rest
				continue
			}
			skip--
		}
		dst = append(dst, b[:len(b)-len(rest)]...)
		b = rest
	}
	return dst, removed
}
