//go:build !linux

package server

// residentBytes returns what the Go runtime has from the system: the best there is without /proc.
func residentBytes() int64 { return readMetric("/memory/classes/total:bytes") }

// systemMemory returns the machine's memory, 0 if unknown.
func systemMemory() int64 { return 0 }

const pollAPI = "goroutines"
