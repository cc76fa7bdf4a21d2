package arena

import (
	"math/bits"
	"unsafe"
)

const (
	// keepDirty free pages stay resident in any case; beyond that a share of the spans' pages.
	keepDirty      = 2 * chunkPages
	keepDirtyShare = 8
	// hugeFrom is the chunk number from which huge pages are asked for: a small keyspace must not
	// pay 2 MiB for its first key.
	hugeFrom = 1
)

// takePages returns the id of the first of n free pages in a row.
func (a *Arena) takePages(n int) uint32 {
	for i := a.hint[n]; i < len(a.info); i++ {
		in := &a.info[i]
		m := runMask(in.freeMask, n)
		if m == 0 {
			continue
		}
		a.hint[n] = i
		at := bits.TrailingZeros64(m)
		run := (uint64(1)<<n - 1) << at
		in.freeMask &^= run
		a.dirty -= bits.OnesCount64(in.dirty & run)
		in.dirty &^= run
		return uint32(i*chunkPages + at)
	}
	a.hint[n] = len(a.info)
	a.lowerHints(a.addChunk())
	return a.takePages(n)
}

func (a *Arena) lowerHints(i int) {
	for k := range a.hint {
		a.hint[k] = min(a.hint[k], i)
	}
}

func (a *Arena) givePages(id uint32, n int) {
	i, at := int(id/chunkPages), id%chunkPages
	in := &a.info[i]
	run := (uint64(1)<<n - 1) << at
	in.freeMask |= run
	a.lowerHints(i)
	if a.dirty+n > keepDirty+int(a.stats.Spans>>pageShift)/keepDirtyShare {
		lo := int(at) << pageShift
		clearResident(a.chunks[i][lo : lo+n<<pageShift])
		return
	}
	in.dirty |= run
	a.dirty += n
}

// addChunk maps a chunk and returns its number.
func (a *Arena) addChunk() int {
	i := a.takeNumbers(1)
	p := mapChunk()
	if i >= hugeFrom {
		adviseHuge(p, 1<<chunkShift)
	}
	a.chunks[i] = (*chunk)(p)
	a.info[i] = chunkInfo{pages: new([chunkPages]page), freeMask: ^uint64(0)}
	a.stats.Mapped += 1 << chunkShift
	return i
}

// takeNumbers returns the first of n consecutive unused chunk numbers.
func (a *Arena) takeNumbers(n int) int {
	if n == 1 && len(a.free) > 0 {
		i := a.free[len(a.free)-1]
		a.free = a.free[:len(a.free)-1]
		return int(i)
	}
	if n > 1 {
		if i := a.findRun(n); i >= 0 {
			return i
		}
	}
	i := len(a.info)
	if i+n > maxChunks {
		panic("arena: full")
	}
	a.info = append(a.info, make([]chunkInfo, n)...)
	return i
}

// findRun looks for n consecutive numbers among the unused ones. It is slow, and rare: blocks beyond
// 4 MiB only.
func (a *Arena) findRun(n int) int {
	if len(a.free) < n {
		return -1
	}
	unused := make([]bool, len(a.info))
	for _, i := range a.free {
		unused[i] = true
	}
	for i, run := 0, 0; i < len(unused); i++ {
		if run++; !unused[i] {
			run = 0
		}
		if run == n {
			a.dropNumbers(i-n+1, n)
			return i - n + 1
		}
	}
	return -1
}

func (a *Arena) dropNumbers(first, n int) {
	keep := a.free[:0]
	for _, i := range a.free {
		if int(i) < first || int(i) >= first+n {
			keep = append(keep, i)
		}
	}
	a.free = keep
}

// allocLarge maps a block on its own. Its bytes are zero.
func (a *Arena) allocLarge(size int) Ref {
	if len(a.info) == 0 {
		a.addChunk() // Ref 0 must not be a block
	}
	mapped := roundMapped(size)
	n := (mapped + 1<<chunkShift - 1) >> chunkShift
	i := a.takeNumbers(n)
	base := mapBytes(mapped)
	for k := range n {
		a.chunks[i+k] = (*chunk)(unsafe.Add(base, k<<chunkShift))
	}
	in := chunkInfo{pages: new([chunkPages]page), large: mapped, size: size}
	in.pages[0] = page{class: Large, span: true}
	a.info[i] = in
	a.stats.Mapped += int64(mapped)
	a.stats.Spans += int64(mapped)
	a.stats.Allocated += int64(mapped)
	a.stats.Blocks++
	return Ref(i) << (chunkShift - unitShift)
}

// freeLarge unmaps in the background: giving back hundreds of megabytes takes the system a while.
func (a *Arena) freeLarge(r Ref) {
	i := int(r >> (chunkShift - unitShift))
	mapped := a.info[i].large
	base := unsafe.Pointer(a.chunks[i])
	n := (mapped + 1<<chunkShift - 1) >> chunkShift
	for k := range n {
		a.chunks[i+k] = nil
		a.info[i+k] = chunkInfo{}
		a.free = append(a.free, uint32(i+k))
	}
	a.stats.Mapped -= int64(mapped)
	a.stats.Spans -= int64(mapped)
	a.stats.Allocated -= int64(mapped)
	a.stats.Blocks--
	go unmapBytes(base, mapped)
}

// Retire gives all memory back, in the background, as soon as no pin is left. Nothing may be
// allocated afterwards; blocks may be read only by those who hold a pin.
func (a *Arena) Retire() {
	a.retired = true
	if len(a.pins.open) == 0 {
		a.unmapAll()
	}
}

func (a *Arena) unmapAll() {
	type mapping struct {
		base unsafe.Pointer
		n    int
	}
	var all []mapping
	for i, in := range a.info {
		switch {
		case in.large > 0:
			all = append(all, mapping{unsafe.Pointer(a.chunks[i]), in.large})
		case in.pages != nil:
			all = append(all, mapping{unsafe.Pointer(a.chunks[i]), 1 << chunkShift})
		}
	}
	for i := range a.info {
		a.chunks[i] = nil
	}
	a.info, a.free, a.pins.queue, a.pins.ready, a.stats = nil, nil, nil, false, Stats{}
	go func() {
		for _, m := range all {
			unmapBytes(m.base, m.n)
		}
	}()
}
