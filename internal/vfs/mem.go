package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/kevydb/kevy/internal/vfs/tree"
)

// NewMem returns an empty file system in memory. Syncing does nothing, preallocating neither, and
// all is gone with the last reference to it.
func NewMem() FS { return &memFS{tree: tree.New[*memData]()} }

type memFS struct {
	mu   sync.Mutex // guards tree and memData.locked; never held together with memData.mu
	tree *tree.Tree[*memData]
}

func (m *memFS) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &memData{}
	if err := m.tree.Create(name, d); err != nil {
		return nil, err
	}
	return &memFile{data: d, name: name, writable: true}, nil
}

func (m *memFS) Open(name string) (File, error) { return m.open(name, false) }

func (m *memFS) OpenReadWrite(name string) (File, error) { return m.open(name, true) }

func (m *memFS) open(name string, writable bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.tree.File("open", name)
	if err != nil {
		return nil, err
	}
	return &memFile{data: d, name: name, writable: writable}, nil
}

func (m *memFS) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.Rename(oldname, newname)
}

func (m *memFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.Remove(name)
}

func (m *memFS) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.RemoveAll(name)
}

func (m *memFS) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.MkdirAll(name)
}

func (m *memFS) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.ReadDir(name)
}

func (m *memFS) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	n, err := m.tree.Lookup("stat", name)
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		return tree.Info(name, 0, true), nil
	}
	return tree.Info(name, n.File.length(), false), nil
}

func (m *memFS) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.tree.Dir("syncdir", name)
	return err
}

func (m *memFS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.tree.File("lock", name)
	if err != nil {
		d = &memData{}
		if err := m.tree.Create(name, d); err != nil {
			return nil, err
		}
	}
	if d.locked {
		return nil, fmt.Errorf("%w: %s", ErrLocked, name)
	}
	d.locked = true
	return &memLock{fs: m, data: d}, nil
}

type memLock struct {
	fs   *memFS
	data *memData // nil after Close
}

func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.data == nil {
		return fs.ErrClosed
	}
	l.data.locked = false
	l.data = nil
	return nil
}

// memFile is an open file.
type memFile struct {
	data     *memData
	name     string
	writable bool
	closed   atomic.Bool
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.check("read", true, off); err != nil {
		return 0, err
	}
	return f.data.readAt(p, off)
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.check("write", f.writable, off); err != nil {
		return 0, err
	}
	f.data.writeAt(p, off)
	return len(p), nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.check("truncate", f.writable, size); err != nil {
		return err
	}
	f.data.truncate(size)
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.check("stat", true, 0); err != nil {
		return 0, err
	}
	return f.data.length(), nil
}

func (f *memFile) Sync() error { return f.check("sync", true, 0) }

func (f *memFile) Preallocate(off, _ int64) error {
	return f.check("preallocate", f.writable, off)
}

func (f *memFile) WriteBack(int64, int64) {}

func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	return nil
}

func (f *memFile) check(op string, allowed bool, off int64) error {
	switch {
	case f.closed.Load():
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	case !allowed:
		return &fs.PathError{Op: op, Path: f.name, Err: syscall.EBADF}
	case off < 0:
		return &fs.PathError{Op: op, Path: f.name, Err: syscall.EINVAL}
	}
	return nil
}
