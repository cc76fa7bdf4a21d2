package arena

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages: random access over gigabytes is bound by address translation.
func adviseHuge(c *chunk) { _ = unix.Madvise(c[:], unix.MADV_HUGEPAGE) }
