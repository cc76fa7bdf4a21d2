package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sync/atomic"
	"syscall"

	"github.com/kevydb/kevy/internal/vfs"
)

// FS is a vfs.FS that can be made to fail.
type FS struct {
	base   vfs.FS
	inject atomic.Pointer[Injector]
	counts [numKinds]atomic.Int64
	disk   *disk
}

var _ vfs.FS = (*FS)(nil)

// New returns base with faults: none so far.
func New(base vfs.FS) *FS { return &FS{base: base, disk: newDisk()} }

// Inject replaces the injector; nil: no more faults.
func (f *FS) Inject(inject Injector) {
	if inject == nil {
		f.inject.Store(nil)
		return
	}
	f.inject.Store(&inject)
}

// SetFull makes the disk full or not. While it is full, Preallocate fails with syscall.ENOSPC, and
// so does WriteAt beyond what the file already has written or preallocated, after writing what fits.
func (f *FS) SetFull(full bool) { f.disk.setFull(full) }

// Count returns how many operations of a kind were begun, failed ones included.
func (f *FS) Count(kind OpKind) int { return int(f.counts[kind].Load()) }

// before counts an operation and returns the fault for it, if any.
func (f *FS) before(op Op) error {
	f.counts[op.Kind].Add(1)
	if inject := f.inject.Load(); inject != nil {
		if err := (*inject)(op); err != nil {
			return fault(op, err)
		}
	}
	return nil
}

func fault(op Op, err error) error {
	return &fs.PathError{Op: op.Kind.String(), Path: op.Path, Err: err}
}

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) { return f.open(OpCreate, name, f.base.Create) }

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) { return f.open(OpOpen, name, f.base.Open) }

// OpenReadWrite implements vfs.FS.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) {
	return f.open(OpOpenReadWrite, name, f.base.OpenReadWrite)
}

func (f *FS) open(kind OpKind, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	if err := f.before(Op{Kind: kind, Path: name}); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	space, err := f.disk.open(path.Clean(name), file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &faultFile{fs: f, base: file, name: name, space: space}, nil
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldname, newname string) error {
	if err := f.before(Op{Kind: OpRename, Path: newname}); err != nil {
		return err
	}
	if err := f.base.Rename(oldname, newname); err != nil {
		return err
	}
	f.disk.rename(path.Clean(oldname), path.Clean(newname))
	return nil
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error { return f.remove(OpRemove, name, f.base.Remove) }

// RemoveAll implements vfs.FS.
func (f *FS) RemoveAll(name string) error { return f.remove(OpRemoveAll, name, f.base.RemoveAll) }

func (f *FS) remove(kind OpKind, name string, remove func(string) error) error {
	if err := f.before(Op{Kind: kind, Path: name}); err != nil {
		return err
	}
	if err := remove(name); err != nil {
		return err
	}
	f.disk.remove(path.Clean(name))
	return nil
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(name string) error {
	if err := f.before(Op{Kind: OpMkdirAll, Path: name}); err != nil {
		return err
	}
	return f.base.MkdirAll(name)
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(name string) ([]string, error) {
	if err := f.before(Op{Kind: OpReadDir, Path: name}); err != nil {
		return nil, err
	}
	return f.base.ReadDir(name)
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	if err := f.before(Op{Kind: OpStat, Path: name}); err != nil {
		return nil, err
	}
	return f.base.Stat(name)
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(name string) error {
	if err := f.before(Op{Kind: OpSyncDir, Path: name}); err != nil {
		return err
	}
	return f.base.SyncDir(name)
}

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	if err := f.before(Op{Kind: OpLock, Path: name}); err != nil {
		return nil, err
	}
	return f.base.Lock(name)
}

// faultFile is an open file.
type faultFile struct {
	fs    *FS
	base  vfs.File
	name  string
	space *extent
}

func (f *faultFile) before(kind OpKind, off, n int64) error {
	return f.fs.before(Op{Kind: kind, Path: f.name, Offset: off, N: n})
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.before(OpReadAt, off, int64(len(p))); err != nil {
		return 0, err
	}
	return f.base.ReadAt(p, off)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.before(OpWriteAt, off, int64(len(p)))
	if short := (*shortError)(nil); errors.As(err, &short) {
		p = p[:len(p)/2]
	} else if err != nil {
		return 0, err
	}
	fits := f.fs.disk.take(f.space, off, int64(len(p)))
	if fits < int64(len(p)) && err == nil {
		err = fault(Op{Kind: OpWriteAt, Path: f.name}, syscall.ENOSPC)
	}
	n, writeErr := f.base.WriteAt(p[:fits], off)
	if writeErr != nil {
		return n, writeErr
	}
	return n, err
}

// Close closes the file even if it is made to fail, as close(2) does.
func (f *faultFile) Close() error {
	err := f.before(OpClose, 0, 0)
	if closeErr := f.base.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (f *faultFile) Sync() error {
	if err := f.before(OpSync, 0, 0); err != nil {
		return err
	}
	return f.base.Sync()
}

func (f *faultFile) Truncate(size int64) error {
	if err := f.before(OpTruncate, size, 0); err != nil {
		return err
	}
	if err := f.base.Truncate(size); err != nil {
		return err
	}
	f.fs.disk.truncate(f.space, size)
	return nil
}

func (f *faultFile) Size() (int64, error) {
	if err := f.before(OpSize, 0, 0); err != nil {
		return 0, err
	}
	return f.base.Size()
}

func (f *faultFile) Preallocate(off, n int64) error {
	if err := f.before(OpPreallocate, off, n); err != nil {
		return err
	}
	if f.fs.disk.take(f.space, off, n) < n {
		return fault(Op{Kind: OpPreallocate, Path: f.name}, syscall.ENOSPC)
	}
	return f.base.Preallocate(off, n)
}

func (f *faultFile) WriteBack(off, n int64) { f.base.WriteBack(off, n) }
