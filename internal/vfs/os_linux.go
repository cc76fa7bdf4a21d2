package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes bytes and size durable, leaving out the times.
func datasync(f *os.File) error { return control(f, "fdatasync", unix.Fdatasync) }

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
