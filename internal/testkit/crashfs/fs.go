package crashfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/internal/vfs/tree"
)

// ErrFrozen is returned by everything in a frozen file system.
var ErrFrozen = errors.New("crashfs: frozen")

type node = tree.Node[*inode]

// FS is a vfs.FS that can crash.
type FS struct {
	mu      sync.Mutex // guards all below and the inodes
	tree    *tree.Tree[*inode]
	journal journal
	frozen  bool
}

var _ vfs.FS = (*FS)(nil)

// New returns an empty file system.
func New() *FS { return newFS(tree.NewDir[*inode](), newJournal()) }

func newFS(root *node, j journal) *FS {
	f := &FS{tree: tree.New[*inode](), journal: j}
	f.tree.Root = root
	f.tree.Changed = f.journal.add
	return f
}

// Freeze makes every later operation on f and its open files fail with ErrFrozen, so that what
// still runs of a store that is meant to be dead can do nothing. It can still be cloned.
func (f *FS) Freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = true
}

// do runs an operation under the lock, unless f is frozen.
func (f *FS) do(op func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.frozen {
		return ErrFrozen
	}
	return op()
}

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) {
	i := &inode{}
	if err := f.do(func() error { return f.tree.Create(name, i) }); err != nil {
		return nil, err
	}
	return &file{fs: f, inode: i, name: name, writable: true}, nil
}

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) { return f.open(name, false) }

// OpenReadWrite implements vfs.FS.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) { return f.open(name, true) }

func (f *FS) open(name string, writable bool) (vfs.File, error) {
	h := &file{fs: f, name: name, writable: writable}
	err := f.do(func() (err error) {
		h.inode, err = f.tree.File("open", name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldname, newname string) error {
	return f.do(func() error { return f.tree.Rename(oldname, newname) })
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	return f.do(func() error { return f.tree.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (f *FS) RemoveAll(name string) error {
	return f.do(func() error { return f.tree.RemoveAll(name) })
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(name string) error {
	return f.do(func() error { return f.tree.MkdirAll(name) })
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(name string) (names []string, err error) {
	err = f.do(func() (err error) {
		names, err = f.tree.ReadDir(name)
		return err
	})
	return names, err
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (info fs.FileInfo, err error) {
	err = f.do(func() error {
		n, err := f.tree.Lookup("stat", name)
		switch {
		case err != nil:
			return err
		case n.IsDir():
			info = tree.Info(name, 0, true)
		default:
			info = tree.Info(name, int64(len(n.File.data)), false)
		}
		return nil
	})
	return info, err
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(name string) error {
	return f.do(func() error {
		dir, err := f.tree.Dir("syncdir", name)
		if err != nil {
			return err
		}
		f.journal.sync(dir)
		return nil
	})
}

// Lock implements vfs.FS. Clones do not inherit locks: their holder is dead.
func (f *FS) Lock(name string) (io.Closer, error) {
	l := &lock{fs: f}
	err := f.do(func() error {
		i, err := f.tree.File("lock", name)
		if errors.Is(err, fs.ErrNotExist) {
			i = &inode{}
			err = f.tree.Create(name, i)
		}
		if err != nil {
			return err
		}
		if i.locked {
			return fmt.Errorf("%w: %s", vfs.ErrLocked, name)
		}
		i.locked = true
		l.inode = i
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

type lock struct {
	fs    *FS
	inode *inode // nil after Close
}

// Close releases the lock. It works on a frozen file system, as Close of a file does.
func (l *lock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.inode == nil {
		return fs.ErrClosed
	}
	l.inode.locked = false
	l.inode = nil
	return nil
}
