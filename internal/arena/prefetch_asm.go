//go:build amd64 || arm64

package arena

import "unsafe"

// prefetch is the processor's instruction (PREFETCHT0, PRFM), which the language does not offer. Any address
// will do: it never faults.
//
//go:noescape
func prefetch(p unsafe.Pointer)
