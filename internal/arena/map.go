package arena

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

type chunk [1 << chunkShift]byte

const hugePage = 2 << 20

// mapBytes maps n zeroed bytes. Running out of address space or memory is a panic, as it is for the Go
// heap: callers allocate before they change anything.
func mapBytes(n int) unsafe.Pointer {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Errorf("arena: mapping %d bytes: %w", n, err))
	}
	return p
}

func unmapBytes(p unsafe.Pointer, n int) {
	if n > 0 {
		if err := unix.MunmapPtr(p, uintptr(n)); err != nil {
			panic(fmt.Errorf("arena: unmapping %d bytes: %w", n, err))
		}
	}
}

// mapChunk maps the bytes of a chunk, aligned for huge pages.
func mapChunk() unsafe.Pointer {
	p := mapBytes(1 << chunkShift)
	if uintptr(p)%hugePage == 0 {
		return p
	}
	unmapBytes(p, 1<<chunkShift)
	p = mapBytes(1<<chunkShift + hugePage)
	lead := int(hugePage - uintptr(p)%hugePage)
	unmapBytes(p, lead)
	unmapBytes(unsafe.Add(p, lead+1<<chunkShift), hugePage-lead)
	return unsafe.Add(p, lead)
}

// clearResident gives the pages' memory back to the system; they read as anything afterwards.
func clearResident(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

// roundMapped rounds up to what the system maps.
func roundMapped(n int) int {
	const grain = 16 << 10
	return (n + grain - 1) &^ (grain - 1)
}
