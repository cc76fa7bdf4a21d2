package state

import "github.com/kevydb/kevy/internal/arena"

// The functions of this file change the chunks of a large list. A chunk that an open view may see is
// copied first.

// newListChunk makes a chunk in a block of size bytes whose run of n bytes lies at the block's beginning or end.
func (ks *Keyspace) newListChunk(size, n int, atEnd bool) arena.Ref {
	size = max(size, n+listChunkHead)
	r := ks.newValue(size)
	start := listChunkHead
	if atEnd {
		start = ks.a.Capacity(r) - n
	}
	setListSpan(ks.a, r, start, start+n)
	return r
}

// pushChunk adds the first of the elements, and as many of the following as fit the same chunk, to one end; it
// returns how many.
func (f *listFold) pushChunk(elements [][]byte, front bool) (n int) {
	ks, c := f.ks, f.t.end()
	if front {
		c = f.t.begin()
	} else {
		c.prev()
	}
	ref, weight, _, ok := c.item()
	size := runSize(len(elements[0]))
	fresh := !ok
	if ok {
		grown := f.roomFor(ref, size, front)
		switch {
		case grown == 0:
			fresh = true
		case grown != ref:
			c.replace(grown, weight, 0)
			ks.freeValue(ref)
			ref = grown
		}
	}
	if fresh {
		if ok && !front {
			c.next()
		}
		first := listChunkLess
		if f.w[listBytes] > 8*listChunkFull {
			first = listChunkFull
		}
		ref = ks.newListChunk(max(first, size+listChunkHead), 0, front)
	}
	n = f.fill(ref, elements, front)
	if fresh {
		c.insert(ref, uint64(n), 0)
	} else {
		c.reweigh(int64(n))
	}
	f.w[listCount] += uint64(n)
	return n
}

// roomFor returns the chunk, or its copy in a larger block, if it takes size more bytes at one end; else 0.
func (f *listFold) roomFor(ref arena.Ref, size int, front bool) arena.Ref {
	ks := f.ks
	start, end := listSpan(ks.a, ref)
	room, used := ks.a.Capacity(ref)-end, end-start
	if front {
		room = start - listChunkHead
	}
	shared := ks.a.Shared(ref)
	if used+size > listChunkRun {
		return 0
	}
	if room >= size && !shared {
		return ref
	}
	if room < size && used+size > listChunkRun/2 && ks.a.Capacity(ref) >= listChunkFull {
		return 0 // copying it for so little room would be done again and again
	}
	n := ks.newListChunk(min(max(2*(used+size), listChunkLess), listChunkFull), used, front)
	copy(listRunOf(ks.a, n), listRunOf(ks.a, ref))
	return n
}

// fill writes elements to one end of a chunk while there is room, and returns how many.
func (f *listFold) fill(ref arena.Ref, elements [][]byte, front bool) (n int) {
	a := f.ks.a
	start, end := listSpan(a, ref)
	limit := a.Capacity(ref)
	block := a.Bytes(ref, limit)
	used := end - start
	for _, x := range elements {
		size := runSize(len(x))
		if n > 0 && used+size > listChunkRun {
			break
		}
		if front {
			if start-size < listChunkHead {
				break
			}
			start -= size
			appendElement(block[start:start], x)
		} else {
			if end+size > limit {
				break
			}
			appendElement(block[end:end], x)
			end += size
		}
		used += size
		f.w[listBytes] += uint64(size)
		n++
	}
	setListSpan(a, ref, start, end)
	return n
}

// cutFront removes the first n elements.
func (f *listFold) cutFront(n int) {
	for n > 0 {
		c := f.t.begin()
		ref, weight, _, _ := c.item()
		count := int(weight)
		start, end := listSpan(f.ks.a, ref)
		if n >= count {
			f.dropChunk(&c, ref, count, end-start)
			n -= count
			continue
		}
		at := start + seekRun(listRunOf(f.ks.a, ref), count, n)
		f.narrow(&c, ref, count-n, at, end)
		f.lose(n, at-start)
		return
	}
}

// cutBack removes the last n elements.
func (f *listFold) cutBack(n int) {
	for n > 0 {
		c := f.t.end()
		c.prev()
		ref, weight, _, _ := c.item()
		count := int(weight)
		start, end := listSpan(f.ks.a, ref)
		if n >= count {
			f.dropChunk(&c, ref, count, end-start)
			n -= count
			continue
		}
		at := start + seekRun(listRunOf(f.ks.a, ref), count, count-n)
		f.narrow(&c, ref, count-n, start, at)
		f.lose(n, end-at)
		return
	}
}

func (f *listFold) lose(count, size int) {
	f.w[listCount] -= uint64(count)
	f.w[listBytes] -= uint64(size)
}

// dropChunk removes the chunk behind the cursor.
func (f *listFold) dropChunk(c *treeCursor, ref arena.Ref, count, size int) {
	c.remove()
	f.ks.freeValue(ref)
	f.lose(count, size)
}

// narrow makes count elements from start to end all there is of the chunk behind the cursor.
func (f *listFold) narrow(c *treeCursor, ref arena.Ref, count, start, end int) {
	ks := f.ks
	if !ks.a.Shared(ref) {
		setListSpan(ks.a, ref, start, end)
		_, weight, _, _ := c.item()
		c.reweigh(int64(count) - int64(weight))
		return
	}
	n := ks.newListChunk(0, end-start, false)
	copy(listRunOf(ks.a, n), ks.a.Bytes(ref, end)[start:])
	c.replace(n, uint64(count), 0)
	ks.freeValue(ref)
}

// spliceChunk puts x in the place of n elements (0 or 1) from element i on. REQUIRES: the list has
// elements; i + n is at most their number.
func (f *listFold) spliceChunk(i, n int, x []byte) {
	ks := f.ks
	at := uint64(i)
	if n == 0 && i > 0 {
		at-- // behind the last element of a chunk rather than before the first of the next
	}
	c, rest := f.t.seekWeight(at)
	ref, weight, _, _ := c.item()
	k := int(rest) + i - int(at)
	run := listRunOf(ks.a, ref)
	from := seekRun(run, int(weight), k)
	to := from
	if n > 0 {
		to += elementSize(run[from:])
	}
	size := runSize(len(x))
	f.w[listCount] += uint64(1 - n)
	f.w[listBytes] += uint64(size)
	f.w[listBytes] -= uint64(to - from)
	count, total := int(weight)+1-n, len(run)-(to-from)+size
	if start, _ := listSpan(ks.a, ref); total <= ks.a.Capacity(ref)-start && !ks.a.Shared(ref) && (total <= listChunkRun || count == 1) {
		b := ks.a.Bytes(ref, start+max(total, len(run)))[start:]
		copy(b[from+size:], b[to:len(run)])
		appendElement(b[from:from], x)
		setListSpan(ks.a, ref, start, start+total)
		c.replace(ref, uint64(count), 0)
		return
	}
	out := append(ks.scratch[:0], run[:from]...)
	out = appendElement(out, x)
	out = append(out, run[to:]...)
	ks.scratch = out[:0]
	f.store(&c, ref, out)
}

// store puts a run, which lies in no chunk, in the place of the chunk behind the cursor: in one
// chunk, or in several if it is too long. REQUIRES: run is not empty.
func (f *listFold) store(c *treeCursor, old arena.Ref, run []byte) {
	ks := f.ks
	target := listChunkRun
	if len(run) > listChunkRun {
		target = max(len(run)/2, 1)
		target = min(target+target/8, listChunkRun)
	}
	first := true
	for len(run) > 0 {
		n, m := 0, 0
		for b := run; len(b) > 0; b = run[m:] {
			size := elementSize(b)
			if n > 0 && m+size > target {
				break
			}
			n++
			m += size
		}
		r := ks.newListChunk(0, m, false)
		copy(listRunOf(ks.a, r), run[:m])
		if first {
			c.replace(r, uint64(n), 0)
			ks.freeValue(old)
		} else {
			c.insert(r, uint64(n), 0)
		}
		c.next()
		first = false
		run = run[m:]
	}
}

// removeEqual removes at most left elements equal to x, the first or the last ones.
func (f *listFold) removeEqual(x []byte, left int64, back bool) {
	ks := f.ks
	pos := uint64(0) // elements examined and kept
	for left > 0 && pos < f.w[listCount] {
		at := pos
		if back {
			at = f.w[listCount] - 1 - pos
		}
		c, _ := f.t.seekWeight(at)
		ref, weight, _, _ := c.item()
		run := listRunOf(ks.a, ref)
		out, removed := withoutElements(ks.scratch[:0], run, x, left, back)
		ks.scratch = out[:0]
		pos += weight - uint64(removed)
		if removed == 0 {
			continue
		}
		left -= int64(removed)
		if len(out) == 0 {
			f.dropChunk(&c, ref, int(weight), len(run))
			continue
		}
		f.lose(removed, len(run)-len(out))
		f.rewriteChunk(&c, ref, int(weight)-removed, out)
	}
}

// rewriteChunk puts a shorter run in the place of the chunk's.
func (f *listFold) rewriteChunk(c *treeCursor, ref arena.Ref, count int, run []byte) {
	ks := f.ks
	start, _ := listSpan(ks.a, ref)
	if ks.a.Shared(ref) || len(run) < ks.a.Capacity(ref)/2 {
		f.store(c, ref, run)
		return
	}
	copy(ks.a.Bytes(ref, start+len(run))[start:], run)
	setListSpan(ks.a, ref, start, start+len(run))
	c.replace(ref, uint64(count), 0)
}

// reweigh adds delta to the weight of the item behind the cursor.
func (c *treeCursor) reweigh(delta int64) {
	c.settle()
	c.own()
	t := c.t
	w := c.leaf()
	w[1+c.pos[c.depth-1]*t.stride(w)] += uint64(delta) << weightShift
	for d := c.depth - 2; d >= 0; d-- {
		w = t.words(c.node[d])
		w[2+c.pos[d]*t.stride(w)] += uint64(delta)
	}
}
