package arena

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages for n bytes at p: random access over gigabytes is bound by address translation. It comes before anything is read there, a check of
// the pointer against nil included (what p[:] of a pointer to an array does): memory whose first byte has been read has small pages for good.
func adviseHuge(p unsafe.Pointer, n int) {
	_ = unix.Madvise(unsafe.Slice((*byte)(p), n), unix.MADV_HUGEPAGE)
}
