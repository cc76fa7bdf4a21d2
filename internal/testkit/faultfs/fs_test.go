package faultfs_test

import (
	"errors"
	"reflect"
	"sync"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/internal/vfs/vfstest"
)

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(*testing.T) (vfs.FS, string) { return faultfs.New(vfs.NewMem()), "/" })
}

// perform does one operation of the kind.
func perform(f vfs.FS, kind faultfs.OpKind) error {
	ok := func(file vfs.File, err error) error {
		if err == nil {
			_ = file.Close()
		}
		return err
	}
	fileOp := func(op func(vfs.File) error) error {
		file, err := f.OpenReadWrite("d/a")
		if err != nil {
			return err
		}
		return op(file)
	}
	switch kind {
	case faultfs.OpCreate:
		return ok(f.Create("d/new"))
	case faultfs.OpOpen:
		return ok(f.Open("d/a"))
	case faultfs.OpOpenReadWrite:
		return ok(f.OpenReadWrite("d/a"))
	case faultfs.OpRename:
		return f.Rename("d/a", "d/b")
	case faultfs.OpRemove:
		return f.Remove("d/a")
	case faultfs.OpRemoveAll:
		return f.RemoveAll("d")
	case faultfs.OpMkdirAll:
		return f.MkdirAll("d/e")
	case faultfs.OpReadDir:
		_, err := f.ReadDir("d")
		return err
	case faultfs.OpStat:
		_, err := f.Stat("d/a")
		return err
	case faultfs.OpSyncDir:
		return f.SyncDir("d")
	case faultfs.OpLock:
		_, err := f.Lock("d/LOCK")
		return err
	case faultfs.OpReadAt:
		return fileOp(func(file vfs.File) error { _, err := file.ReadAt(make([]byte, 1), 0); return err })
	case faultfs.OpWriteAt:
		return fileOp(func(file vfs.File) error { _, err := file.WriteAt([]byte("x"), 0); return err })
	case faultfs.OpClose:
		return fileOp(vfs.File.Close)
	case faultfs.OpSync:
		return fileOp(vfs.File.Sync)
	case faultfs.OpTruncate:
		return fileOp(func(file vfs.File) error { return file.Truncate(0) })
	case faultfs.OpSize:
		return fileOp(func(file vfs.File) error { _, err := file.Size(); return err })
	case faultfs.OpPreallocate:
		return fileOp(func(file vfs.File) error { return file.Preallocate(0, 1) })
	}
	panic("no such operation: " + kind.String())
}

func newFS(t *testing.T) (*faultfs.FS, vfs.File) {
	t.Helper()
	f := faultfs.New(vfs.NewMem())
	if err := f.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	file, err := f.Create("d/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("0123456789"), 0); err != nil {
		t.Fatal(err)
	}
	return f, file
}

// TestEveryKindFailsAndCounts: no method forgets to ask the injector.
func TestEveryKindFailsAndCounts(t *testing.T) {
	for kind := faultfs.OpCreate; kind <= faultfs.OpPreallocate; kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			f, _ := newFS(t)
			before := f.Count(kind)
			f.Inject(faultfs.FailNth(kind, 1, nil))
			if err := perform(f, kind); !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("error is %v", err)
			}
			if err := perform(f, kind); err != nil {
				t.Errorf("second time: %v", err)
			}
			if n := f.Count(kind) - before; n != 2 {
				t.Errorf("counted %d", n)
			}
		})
	}
}

// TestKindsAreMethods: every method of the interfaces has a kind and every kind a method.
func TestKindsAreMethods(t *testing.T) {
	methods := map[string]bool{}
	for _, typ := range []reflect.Type{reflect.TypeFor[vfs.FS](), reflect.TypeFor[vfs.File]()} {
		for m := range typ.Methods() {
			methods[m.Name] = true
		}
	}
	delete(methods, "WriteBack") // a hint, which cannot fail
	for kind := faultfs.OpCreate; kind <= faultfs.OpPreallocate; kind++ {
		if !methods[kind.String()] {
			t.Errorf("%v is no method, or twice", kind)
		}
		if !kind.Classified() {
			t.Errorf("%v is neither read nor write", kind)
		}
		delete(methods, kind.String())
	}
	for name := range methods {
		t.Errorf("method %s has no kind", name)
	}
}

func TestFailFrom(t *testing.T) {
	f, file := newFS(t)
	f.Inject(faultfs.FailFrom(faultfs.OpSync, 2, syscall.EIO))
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := file.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("sync: %v", err)
		}
	}
	f.Inject(nil)
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
}

func TestFailNthWrite(t *testing.T) {
	f, file := newFS(t)
	f.Inject(faultfs.FailNthWrite(2, syscall.EIO))
	_, err := file.Size()
	err = errors.Join(err, file.Sync())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SyncDir("d"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("second write operation: %v", err)
	}
}

func TestOnPathAndAny(t *testing.T) {
	f, _ := newFS(t)
	f.Inject(faultfs.Any(
		faultfs.OnPath("MANIFEST", faultfs.FailNth(faultfs.OpRename, 1, syscall.EIO)),
		faultfs.FailNth(faultfs.OpRemove, 2, syscall.EPERM),
	))
	if err := f.Rename("d/a", "d/b"); err != nil {
		t.Fatal(err)
	}
	if err := f.Rename("d/b", "d/MANIFEST"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("rename: %v", err)
	}
	if err := f.Remove("d/b"); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove("d/b"); !errors.Is(err, syscall.EPERM) {
		t.Fatalf("remove: %v", err)
	}
}

func TestShortWrite(t *testing.T) {
	f, file := newFS(t)
	f.Inject(faultfs.FailNth(faultfs.OpWriteAt, 1, faultfs.Short(syscall.EIO)))
	n, err := file.WriteAt([]byte("abcdef"), 8)
	if n != 3 || !errors.Is(err, syscall.EIO) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	has(t, file, "01234567abc")
}

func has(t *testing.T, file vfs.File, want string) {
	t.Helper()
	got := make([]byte, 100)
	n, _ := file.ReadAt(got, 0)
	if string(got[:n]) != want {
		t.Errorf("file holds %q, want %q", got[:n], want)
	}
}

func TestDiskFull(t *testing.T) {
	f, file := newFS(t)
	if err := file.Preallocate(10, 4); err != nil {
		t.Fatal(err)
	}
	f.SetFull(true)
	if _, err := file.WriteAt([]byte("AB"), 0); err != nil {
		t.Errorf("overwriting: %v", err)
	}
	if _, err := file.WriteAt([]byte("cd"), 10); err != nil {
		t.Errorf("writing to preallocated space: %v", err)
	}
	if n, err := file.WriteAt([]byte("efgh"), 12); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing beyond: %d, %v", n, err)
	}
	has(t, file, "AB23456789cdef")
	if err := file.Preallocate(14, 1); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("preallocating: %v", err)
	}
	if err := file.Preallocate(0, 14); err != nil {
		t.Errorf("preallocating again: %v", err)
	}
	f.SetFull(false)
	if _, err := file.WriteAt([]byte("gh"), 14); err != nil {
		t.Errorf("writing after there is space: %v", err)
	}
}

// TestDiskFullFollowsFile: space belongs to the file, whatever its name and handle.
func TestDiskFullFollowsFile(t *testing.T) {
	f, file := newFS(t)
	steps := errors.Join(
		file.Preallocate(0, 100),
		f.Rename("d", "e"),
		f.Rename("e/a", "e/b"),
	)
	if steps != nil {
		t.Fatal(steps)
	}
	f.SetFull(true)
	again, err := f.OpenReadWrite("e/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.WriteAt(make([]byte, 100), 0); err != nil {
		t.Errorf("writing to preallocated space: %v", err)
	}
	if err := again.Truncate(50); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("x"), 50); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing to space given back: %v", err)
	}
	if err := f.Remove("e/b"); err != nil {
		t.Fatal(err)
	}
	created, err := f.Create("e/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := created.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing to a new file: %v", err)
	}
}

func TestInjectorSeesOps(t *testing.T) {
	f, file := newFS(t)
	var mu sync.Mutex
	var got []faultfs.Op
	f.Inject(func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, op)
		return nil
	})
	_, err := file.WriteAt([]byte("xyz"), 7)
	err = errors.Join(err, file.Truncate(5), file.Preallocate(5, 6), f.Rename("d/a", "d/b"))
	if err != nil {
		t.Fatal(err)
	}
	want := []faultfs.Op{
		{Kind: faultfs.OpWriteAt, Path: "d/a", Offset: 7, N: 3},
		{Kind: faultfs.OpTruncate, Path: "d/a", Offset: 5},
		{Kind: faultfs.OpPreallocate, Path: "d/a", Offset: 5, N: 6},
		{Kind: faultfs.OpRename, Path: "d/b"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("injector saw %v, want %v", got, want)
	}
}
