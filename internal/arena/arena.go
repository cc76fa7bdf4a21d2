package arena

import "unsafe"

// Ref names a block. Zero names none. It has 40 bits, so that it can share a word with 24 others.
type Ref uint64

// RefBits is the width of a Ref.
const RefBits = 40

// RefMask selects a Ref out of a word it shares.
const RefMask = 1<<RefBits - 1

// Arena is a set of blocks. REQUIRES: see the package comment; the zero value is not usable.
type Arena struct {
	chunks [maxChunks]*chunk // an entry is written before any ref into it is handed out

	info    []chunkInfo      // per chunk number
	room    [nClasses]uint32 // first span with room, as page id; 0: none
	hint    [maxSpan + 1]int // no chunk below it has a run of so many free pages
	free    []uint32         // chunk numbers that are not mapped and below len(info)
	dirty   int              // free pages that are still resident
	retired bool

	pins  pins
	stats Stats
}

// Stats are the arena's sizes in bytes and counts.
type Stats struct {
	Allocated int64 // bytes of live blocks, put-off frees included
	Deferred  int64 // of these, blocks whose free was put off
	Mapped    int64 // bytes mapped
	Spans     int64 // bytes of spans and large blocks: Spans-Allocated is lost to fragmentation
	Blocks    int64 // live blocks, put-off frees included
}

// chunkInfo is what the owner knows of a chunk.
type chunkInfo struct {
	pages    *[chunkPages]page // nil: not mapped, or the continuation of a large block
	freeMask uint64            // pages that belong to no span
	dirty    uint64            // of these, pages that are resident
	large    int               // bytes mapped, for a block on its own
	size     int               // bytes asked for, for a block on its own
}

// page describes a page; the first page of a span describes the span.
type page struct {
	fresh      *[pageUnits / 64]uint64 // blocks that begin here and were allocated in epoch
	epoch      uint64
	head       uint32 // first free block, as unit in the span plus 1
	bump       uint32 // units carved so far
	used       uint32 // blocks in use
	next, prev uint32 // list of the class's spans with room; page ids
	class      Class
	back       uint8 // pages back to the first page of the span
	span       bool  // belongs to a span
	listed     bool
}

// New returns an empty arena.
func New() *Arena { return &Arena{} }

// Stats returns the arena's sizes.
func (a *Arena) Stats() Stats { return a.stats }

// Tail returns the bytes from the block's first to the end of its chunk. The caller knows how many
// of them are the block's. It never covers more than the first chunk of a large block.
func (a *Arena) Tail(r Ref) []byte {
	return a.chunks[r>>(chunkShift-unitShift)&(maxChunks-1)][r&(chunkUnits-1)<<unitShift:]
}

// Bytes returns the first n bytes of the block. REQUIRES: the block has n bytes.
func (a *Arena) Bytes(r Ref, n int) []byte {
	b := a.Tail(r)
	if n <= len(b) {
		return b[:n:n]
	}
	return unsafe.Slice(unsafe.SliceData(b), n)
}

// Words returns the first n words of the block. REQUIRES: the block has 8*n bytes.
func (a *Arena) Words(r Ref, n int) []uint64 {
	b := a.Tail(r)
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Halves returns the first n 16-bit words of the block. REQUIRES: the block has 2*n bytes.
func (a *Arena) Halves(r Ref, n int) []uint16 {
	b := a.Tail(r)
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// String returns a string that aliases b: it must not outlive b or see it change.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (a *Arena) page(id uint32) *page { return &a.info[id/chunkPages].pages[id%chunkPages] }

// home returns the page the block begins in.
func (a *Arena) home(r Ref) *page {
	return &a.info[r>>(chunkShift-unitShift)].pages[r>>(pageShift-unitShift)&(chunkPages-1)]
}

// Capacity returns how many bytes the block holds.
func (a *Arena) Capacity(r Ref) int {
	if p := a.home(r); p.class != Large {
		return p.class.Size()
	}
	return a.info[r>>(chunkShift-unitShift)].large
}

// Alloc returns a block of at least n bytes with arbitrary content.
func (a *Arena) Alloc(n int) Ref {
	if a.pins.ready {
		a.drain(drainStep)
	}
	c := ClassOf(n)
	var r Ref
	if c == Large {
		r = a.allocLarge(n)
	} else {
		r = a.allocClass(c)
	}
	if len(a.pins.open) > 0 {
		a.markFresh(r)
	}
	return r
}

func (a *Arena) allocClass(c Class) Ref {
	id := a.room[c]
	if id == 0 {
		id = a.newSpan(c)
	}
	p := a.page(id)
	units := classSize[c] >> unitShift
	var at uint32
	if p.head != 0 {
		at = p.head - 1
		p.head = uint32(a.Words(spanRef(id, at), 1)[0])
	} else {
		at = p.bump
		p.bump += units
	}
	p.used++
	if p.head == 0 && p.bump+units > uint32(classPages[c])*pageUnits {
		a.unlist(p)
	}
	a.stats.Allocated += int64(classSize[c])
	a.stats.Blocks++
	return spanRef(id, at)
}

func spanRef(id, unit uint32) Ref { return Ref(id)<<(pageShift-unitShift) + Ref(unit) }

// Free gives the block back, at once or, when a pin still covers it, after the pin is gone.
func (a *Arena) Free(r Ref) {
	if a.pins.ready {
		a.drain(drainStep)
	}
	if a.Shared(r) {
		a.deferFree(r)
		return
	}
	a.release(r)
}

func (a *Arena) release(r Ref) {
	p := a.home(r)
	if p.class == Large {
		a.freeLarge(r)
		return
	}
	id := uint32(r>>(pageShift-unitShift)) - uint32(p.back)
	p = a.page(id)
	size := classSize[p.class]
	if poisoned {
		poison(a.Bytes(r, int(size)))
	}
	a.Words(r, 1)[0] = uint64(p.head)
	p.head = uint32(r-spanRef(id, 0)) + 1
	p.used--
	a.stats.Allocated -= int64(size)
	a.stats.Blocks--
	if !p.listed {
		a.list(id, p)
	}
	if p.used == 0 && (a.room[p.class] != id || p.next != 0) {
		a.freeSpan(id, p)
	}
}

func poison(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}

// list and unlist keep the spans with room of each class. The span released into last is used first:
// its lines are in the cache.
func (a *Arena) list(id uint32, p *page) {
	p.prev, p.next, p.listed = 0, a.room[p.class], true
	if p.next != 0 {
		a.page(p.next).prev = id
	}
	a.room[p.class] = id
}

func (a *Arena) unlist(p *page) {
	if p.prev != 0 {
		a.page(p.prev).next = p.next
	} else {
		a.room[p.class] = p.next
	}
	if p.next != 0 {
		a.page(p.next).prev = p.prev
	}
	p.next, p.prev, p.listed = 0, 0, false
}

func (a *Arena) newSpan(c Class) uint32 {
	n := int(classPages[c])
	id := a.takePages(n)
	for i := range n {
		p := a.page(id + uint32(i))
		p.class, p.back, p.span = c, uint8(i), true
	}
	p := a.page(id)
	p.head, p.bump, p.used = 0, 0, 0
	if id == 0 {
		p.bump = classSize[c] >> unitShift // block 0 would be Ref 0
		p.used = 1
	}
	a.stats.Spans += int64(n) << pageShift
	a.list(id, p)
	return id
}

func (a *Arena) freeSpan(id uint32, p *page) {
	a.unlist(p)
	n := int(classPages[p.class])
	for i := range n {
		q := a.page(id + uint32(i))
		q.class, q.back, q.span = 0, 0, false
	}
	a.stats.Spans -= int64(n) << pageShift
	a.givePages(id, n)
}

// runMask returns the positions where n free pages begin.
func runMask(free uint64, n int) uint64 {
	m := free
	for i := 1; i < n && m != 0; i++ {
		m &= free >> i
	}
	return m
}
