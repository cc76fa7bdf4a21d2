package crashfs

import (
	"io"
	"io/fs"
	"syscall"
)

// file is an open file.
type file struct {
	fs       *FS
	inode    *inode
	name     string
	writable bool
	closed   bool // guarded by fs.mu
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do("read", true, off, func() {
		if off < int64(len(f.inode.data)) {
			n = copy(p, f.inode.data[off:])
		}
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.do("write", f.writable, off, func() {
		f.inode.writeAt(p, off)
		n = len(p)
	})
	return n, err
}

func (f *file) Truncate(size int64) error {
	return f.do("truncate", f.writable, size, func() { f.inode.truncate(size) })
}

func (f *file) Sync() error { return f.do("sync", true, 0, f.inode.sync) }

func (f *file) Size() (size int64, err error) {
	err = f.do("stat", true, 0, func() { size = int64(len(f.inode.data)) })
	return size, err
}

// Preallocate does nothing: what it reserves cannot be seen after a crash.
func (f *file) Preallocate(off, _ int64) error {
	return f.do("preallocate", f.writable, off, func() {})
}

// WriteBack does nothing: a crash may keep any of what was not synced as it is.
func (f *file) WriteBack(int64, int64) {}

// Close implements vfs.File. It works on a frozen file system.
func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	return nil
}

func (f *file) do(op string, allowed bool, off int64, run func()) error {
	return f.fs.do(func() error {
		switch {
		case f.closed:
			return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
		case !allowed:
			return &fs.PathError{Op: op, Path: f.name, Err: syscall.EBADF}
		case off < 0:
			return &fs.PathError{Op: op, Path: f.name, Err: syscall.EINVAL}
		}
		run()
		return nil
	})
}
