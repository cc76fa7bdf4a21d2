package arena

import (
	"bytes"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestUntouched: nothing of a new chunk is there before it is used. Reading its first byte would be enough for half of it to have small pages for good.
func TestUntouched(t *testing.T) {
	a := New()
	for a.stats.Mapped < (hugeFrom+2)<<chunkShift {
		i := a.addChunk()
		size := uintptr(1 << chunkShift)
		resident := make([]byte, size/uintptr(os.Getpagesize()))
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(a.chunks[i])), size, uintptr(unsafe.Pointer(&resident[0])))
		if errno != 0 {
			t.Fatal(errno)
		}
		if n := bytes.Count(resident, []byte{1}); n > 0 {
			t.Errorf("chunk %d: %d pages are there", i, n)
		}
	}
}
