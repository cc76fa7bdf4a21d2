package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes bytes and size durable, leaving out the times.
func datasync(f *os.File) error { return control(f, "fdatasync", unix.Fdatasync) }

// writeBack starts the writing of dirty pages and waits for none. Without its WAIT flags sync_file_range takes no error from
// the file, neither one of before: fdatasync reports them all.
func writeBack(f *os.File, off, n int64) {
	_ = control(f, "sync_file_range", func(fd int) error {
		return unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

// preallocate reserves blocks beyond the size. A file system that cannot is no error.
func preallocate(f *os.File, off, n int64) error {
	err := control(f, "fallocate", func(fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
