//go:build !linux

package arena

import "unsafe"

// adviseHuge does nothing: huge pages are asked for on Linux only.
func adviseHuge(unsafe.Pointer, int) {}
