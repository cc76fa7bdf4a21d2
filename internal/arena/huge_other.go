//go:build !linux

package arena

// adviseHuge does nothing: huge pages are asked for on Linux only.
func adviseHuge(*chunk) {}
