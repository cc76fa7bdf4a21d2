//go:build !linux

package vfs

import "os"

// datasync is a full sync; on macOS Go makes that F_FULLFSYNC, which reaches the medium.
func datasync(f *os.File) error { return f.Sync() }

// preallocate does nothing: a full disk shows at WriteAt.
func preallocate(*os.File, int64, int64) error { return nil }

// writeBack does nothing: Sync writes it all.
func writeBack(*os.File, int64, int64) {}
