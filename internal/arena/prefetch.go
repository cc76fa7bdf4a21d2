package arena

import "unsafe"

const cacheLine = 64

// Prefetch asks the processor to bring the cache lines with the bytes from at up to end into its caches, and does
// not wait. It reads nothing: the block may be shorter.
func (a *Arena) Prefetch(r Ref, at, end int) {
	p := unsafe.Pointer(unsafe.SliceData(a.Tail(r)))
	prefetch(unsafe.Add(p, at), (end-at+cacheLine-1)/cacheLine)
}
