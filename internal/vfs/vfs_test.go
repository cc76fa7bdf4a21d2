package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/internal/vfs/vfstest"
)

func TestOS(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		return vfs.OS(), filepath.ToSlash(t.TempDir())
	})
}

func TestMem(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		m := vfs.NewMem()
		if err := m.MkdirAll("data/store"); err != nil {
			t.Fatal(err)
		}
		return m, "data/store"
	})
}

func TestMemRoot(t *testing.T) {
	vfstest.Run(t, func(*testing.T) (vfs.FS, string) { return vfs.NewMem(), "/" })
}

func TestOSModesAndLockFile(t *testing.T) {
	dir := t.TempDir()
	sys := vfs.OS()
	l, err := sys.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	pid, err := os.ReadFile(filepath.Join(dir, "LOCK"))
	if err != nil || strings.TrimSpace(string(pid)) != strconv.Itoa(os.Getpid()) {
		t.Errorf("lock file holds %q (%v)", pid, err)
	}
	if err := sys.MkdirAll(filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]fs.FileMode{"LOCK": 0o640, "d": 0o750} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fi.Mode().Perm(); got&^most != 0 {
			t.Errorf("%s has mode %v, want at most %v", name, got, most)
		}
	}
}

// TestOSDiskFull needs a system that can say ENOSPC without filling a disk: /dev/full.
func TestOSDiskFull(t *testing.T) {
	f, err := vfs.OS().OpenReadWrite("/dev/full")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %v", err)
	}
}
