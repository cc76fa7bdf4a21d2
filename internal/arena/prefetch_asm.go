//go:build amd64 || arm64

package arena

import "unsafe"

// prefetch is the processor's instruction (PREFETCHT0, PRFM), which the language does not offer, for n cache lines from
// p's on. Any address will do: it never faults.
//
//go:noescape
func prefetch(p unsafe.Pointer, n int)
