// Package vfstest is the contract of vfs.FS as tests. Every implementation runs them.
package vfstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
)

// Run tests a file system. newFS returns one and an existing empty directory in it.
func Run(t *testing.T, newFS func(t *testing.T) (vfs.FS, string)) {
	tests := []struct {
		name string
		test func(t *testing.T, f *fixture)
	}{
		{"Create", testCreate},
		{"Open", testOpen},
		{"ReadWrite", testReadWrite},
		{"Large", testLarge},
		{"Truncate", testTruncate},
		{"Model", testModel},
		{"Preallocate", testPreallocate},
		{"WriteBack", testWriteBack},
		{"Close", testClose},
		{"Rename", testRename},
		{"RenameDir", testRenameDir},
		{"Remove", testRemove},
		{"RemoveAll", testRemoveAll},
		{"Dirs", testDirs},
		{"Stat", testStat},
		{"Lock", testLock},
		{"Concurrent", testConcurrent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys, dir := newFS(t)
			tt.test(t, &fixture{FS: fsys, t: t, dir: dir})
		})
	}
}

// fixture is the file system under test.
type fixture struct {
	vfs.FS
	t   *testing.T
	dir string
}

func (f *fixture) path(name string) string { return path.Join(f.dir, name) }

// create makes a file with the given content and leaves it open until the end of the test.
func (f *fixture) create(name, content string) vfs.File {
	f.t.Helper()
	file, err := f.Create(f.path(name))
	f.ok(err)
	f.t.Cleanup(func() { _ = file.Close() })
	f.write(file, content, 0)
	return file
}

func (f *fixture) write(file vfs.File, content string, off int64) {
	f.t.Helper()
	n, err := file.WriteAt([]byte(content), off)
	f.ok(err)
	if n != len(content) {
		f.t.Fatalf("wrote %d of %d bytes", n, len(content))
	}
}

// has checks what an open file holds.
func (f *fixture) has(file vfs.File, want string) {
	f.t.Helper()
	size, err := file.Size()
	f.ok(err)
	got := make([]byte, size)
	_, err = file.ReadAt(got, 0)
	if size > 0 {
		f.ok(err)
	}
	if string(got) != want {
		f.t.Fatalf("file holds %d bytes %.100q, want %d bytes %.100q", len(got), got, len(want), want)
	}
}

// holds checks what the file of that name holds.
func (f *fixture) holds(name, want string) {
	f.t.Helper()
	file, err := f.Open(f.path(name))
	f.ok(err)
	f.has(file, want)
	f.ok(file.Close())
}

func (f *fixture) list(dir string, want ...string) {
	f.t.Helper()
	got, err := f.ReadDir(f.path(dir))
	f.ok(err)
	if !slices.Equal(got, want) {
		f.t.Fatalf("%q holds %q, want %q", dir, got, want)
	}
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) fails(err, want error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Fatalf("error is %v, want %v", err, want)
	}
}

func (f *fixture) failsSomehow(err error) {
	f.t.Helper()
	if err == nil {
		f.t.Fatal("no error")
	}
}

func testCreate(_ *testing.T, f *fixture) {
	f.create("a", "x")
	_, err := f.Create(f.path("a"))
	f.fails(err, fs.ErrExist)
	_, err = f.Create(f.path("none/a"))
	f.fails(err, fs.ErrNotExist)
	_, err = f.Create(f.path("a/b"))
	f.failsSomehow(err)
	f.holds("a", "x")
}

func testOpen(_ *testing.T, f *fixture) {
	f.create("a", "abc")
	_, err := f.Open(f.path("none"))
	f.fails(err, fs.ErrNotExist)
	_, err = f.OpenReadWrite(f.path("none"))
	f.fails(err, fs.ErrNotExist)

	r, err := f.Open(f.path("a"))
	f.ok(err)
	_, err = r.WriteAt([]byte("x"), 0)
	f.failsSomehow(err)
	f.failsSomehow(r.Truncate(0))
	f.ok(r.Close())

	w, err := f.OpenReadWrite(f.path("a"))
	f.ok(err)
	f.write(w, "X", 1)
	f.ok(w.Sync())
	f.ok(w.Close())
	f.holds("a", "aXc")
}

func testReadWrite(t *testing.T, f *fixture) {
	a := f.create("a", "abc")
	f.write(a, "yz", 5)
	f.has(a, "abc\x00\x00yz")
	f.write(a, "", 100)
	f.has(a, "abc\x00\x00yz")
	f.ok(a.Sync())

	buf := make([]byte, 4)
	n, err := a.ReadAt(buf, 5)
	f.fails(err, io.EOF)
	if string(buf[:n]) != "yz" {
		t.Fatalf("read %q at the end", buf[:n])
	}
	n, err = a.ReadAt(buf, 50)
	f.fails(err, io.EOF)
	if n != 0 {
		t.Fatalf("read %d bytes beyond the end", n)
	}
	_, err = a.ReadAt(buf, -1)
	f.failsSomehow(err)
	_, err = a.WriteAt(buf, -1)
	f.failsSomehow(err)
}

func testLarge(_ *testing.T, f *fixture) {
	a := f.create("a", "")
	want := bytes.Repeat([]byte("0123456789abcde"), 20_000)
	for off := 0; off < len(want); off += 7777 {
		f.write(a, string(want[off:min(off+7777, len(want))]), int64(off))
	}
	f.has(a, string(want))
	f.write(a, "tail", 1<<20)
	want = append(want, make([]byte, 1<<20-len(want))...)
	f.has(a, string(want)+"tail")
}

func testTruncate(_ *testing.T, f *fixture) {
	a := f.create("a", "abcdef")
	f.ok(a.Truncate(3))
	f.has(a, "abc")
	f.ok(a.Truncate(5))
	f.has(a, "abc\x00\x00")
	f.write(a, "Z", 6)
	f.has(a, "abc\x00\x00\x00Z")
	f.ok(a.Truncate(200_000))
	f.ok(a.Truncate(70_000))
	f.ok(a.Truncate(0))
	f.has(a, "")
	f.failsSomehow(a.Truncate(-1))
}

// testModel compares random writes and truncations with a plain slice.
func testModel(_ *testing.T, f *fixture) {
	rng := rand.New(rand.NewPCG(1, 2))
	a := f.create("a", "")
	var model []byte
	extend := func(size int) { model = append(model, make([]byte, max(0, size-len(model)))...) }
	for range 100 {
		off := rng.IntN(300_000)
		if rng.IntN(3) == 0 {
			f.ok(a.Truncate(int64(off)))
			extend(off)
			model = model[:off:off]
		} else {
			p := bytes.Repeat([]byte{byte(rng.IntN(256))}, 1+rng.IntN(100_000))
			f.write(a, string(p), int64(off))
			extend(off + len(p))
			copy(model[off:], p)
		}
		f.has(a, string(model))
	}
}

// testWriteBack: it changes nothing and fails nothing, wherever it points and in whatever state the file is.
func testWriteBack(_ *testing.T, f *fixture) {
	a := f.create("a", "abc")
	for _, at := range [][2]int64{{0, 3}, {0, 0}, {1, 1}, {2, 1 << 20}, {1 << 20, 1}} {
		a.WriteBack(at[0], at[1])
	}
	f.has(a, "abc")
	f.ok(a.Sync())
	f.write(a, "def", 3)
	f.has(a, "abcdef")
	f.ok(a.Close())
	a.WriteBack(0, 3)
	f.holds("a", "abcdef")
}

func testPreallocate(_ *testing.T, f *fixture) {
	a := f.create("a", "abc")
	f.ok(a.Preallocate(3, 1<<16))
	f.ok(a.Preallocate(0, 0))
	f.has(a, "abc")
	f.write(a, "def", 3)
	f.has(a, "abcdef")
}

func testClose(_ *testing.T, f *fixture) {
	a := f.create("a", "abc")
	f.ok(a.Close())
	f.fails(a.Close(), fs.ErrClosed)
	f.fails(a.Sync(), fs.ErrClosed)
	f.fails(a.Truncate(0), fs.ErrClosed)
	f.fails(a.Preallocate(0, 1), fs.ErrClosed)
	_, err := a.WriteAt([]byte("x"), 0)
	f.fails(err, fs.ErrClosed)
	_, err = a.ReadAt(make([]byte, 1), 0)
	f.fails(err, fs.ErrClosed)
	_, err = a.Size()
	f.fails(err, fs.ErrClosed)
	f.holds("a", "abc")
}

func testRename(_ *testing.T, f *fixture) {
	a := f.create("a", "new")
	b := f.create("b", "old")
	f.ok(f.Rename(f.path("a"), f.path("b")))
	f.ok(f.SyncDir(f.dir))
	f.list("", "b")
	f.holds("b", "new")
	f.has(b, "old")
	f.write(a, "N", 0)
	f.holds("b", "New")
	f.ok(f.Rename(f.path("b"), f.path("b")))
	f.fails(f.Rename(f.path("a"), f.path("b")), fs.ErrNotExist)
	f.fails(f.Rename(f.path("b"), f.path("none/b")), fs.ErrNotExist)
	f.ok(f.MkdirAll(f.path("d")))
	f.failsSomehow(f.Rename(f.path("b"), f.path("d")))
	f.failsSomehow(f.Rename(f.path("d"), f.path("b")))
	f.list("", "b", "d")
}

func testRenameDir(_ *testing.T, f *fixture) {
	f.ok(f.MkdirAll(f.path("tmp")))
	f.create("tmp/a", "abc")
	f.ok(f.MkdirAll(f.path("sets")))
	f.failsSomehow(f.Rename(f.path("sets"), f.path("sets/in")))
	f.ok(f.Rename(f.path("tmp"), f.path("sets/1")))
	f.list("", "sets")
	f.holds("sets/1/a", "abc")
}

func testRemove(_ *testing.T, f *fixture) {
	a := f.create("a", "abc")
	f.ok(f.Remove(f.path("a")))
	f.fails(f.Remove(f.path("a")), fs.ErrNotExist)
	f.has(a, "abc")
	f.create("a", "other")
	f.has(a, "abc")
	f.ok(f.MkdirAll(f.path("d")))
	f.create("d/x", "")
	f.failsSomehow(f.Remove(f.path("d")))
	f.ok(f.Remove(f.path("d/x")))
	f.ok(f.Remove(f.path("d")))
	f.list("", "a")
}

func testRemoveAll(_ *testing.T, f *fixture) {
	f.ok(f.MkdirAll(f.path("d/e/f")))
	f.create("d/x", "1")
	f.create("d/e/y", "2")
	f.create("z", "3")
	f.ok(f.RemoveAll(f.path("d")))
	f.ok(f.RemoveAll(f.path("d")))
	f.list("", "z")
	f.ok(f.RemoveAll(f.path("z")))
	f.list("")
}

func testDirs(_ *testing.T, f *fixture) {
	f.ok(f.MkdirAll(f.path("d/e")))
	f.ok(f.MkdirAll(f.path("d/e")))
	for _, name := range []string{"d/c", "d/a", "d/b"} {
		f.create(name, "")
	}
	f.list("d", "a", "b", "c", "e")
	f.ok(f.SyncDir(f.path("d")))
	f.failsSomehow(f.MkdirAll(f.path("d/a/x")))
	f.fails(f.SyncDir(f.path("none")), fs.ErrNotExist)
	_, err := f.ReadDir(f.path("none"))
	f.fails(err, fs.ErrNotExist)
	_, err = f.ReadDir(f.path("d/a"))
	f.failsSomehow(err)
}

func testStat(t *testing.T, f *fixture) {
	f.create("a", "abc")
	fi, err := f.Stat(f.path("a"))
	f.ok(err)
	if fi.Name() != "a" || fi.Size() != 3 || fi.IsDir() || !fi.Mode().IsRegular() {
		t.Errorf("file is described as %s", fs.FormatFileInfo(fi))
	}
	fi, err = f.Stat(f.dir)
	f.ok(err)
	if !fi.IsDir() || !fi.Mode().IsDir() {
		t.Errorf("directory is described as %s", fs.FormatFileInfo(fi))
	}
	_, err = f.Stat(f.path("none"))
	f.fails(err, fs.ErrNotExist)
}

func testLock(_ *testing.T, f *fixture) {
	l, err := f.Lock(f.path("LOCK"))
	f.ok(err)
	f.list("", "LOCK")
	_, err = f.Lock(f.path("LOCK"))
	f.fails(err, vfs.ErrLocked)
	other, err := f.Lock(f.path("OTHER"))
	f.ok(err)
	f.ok(l.Close())
	l, err = f.Lock(f.path("LOCK"))
	f.ok(err)
	f.ok(l.Close())
	f.ok(other.Close())
	_, err = f.Lock(f.path("none/LOCK"))
	f.fails(err, fs.ErrNotExist)
}

// testConcurrent appends while others read and sync: a reader sees each byte as written or not
// there yet.
func testConcurrent(t *testing.T, f *fixture) {
	const total = 300_000
	w := f.create("a", "")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { readUntil(t, f, total) })
	}
	wg.Go(func() {
		for range 20 {
			if err := w.Sync(); err != nil {
				t.Error(err)
			}
		}
	})
	block := bytes.Repeat([]byte("x"), 1000)
	for off := int64(0); off < total; off += int64(len(block)) {
		f.write(w, string(block), off)
	}
	wg.Wait()
}

// readUntil reads the file to its end over and over until it has total bytes.
func readUntil(t *testing.T, f *fixture, total int) {
	r, err := f.Open(f.path("a"))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = r.Close() }()
	buf := make([]byte, total)
	for n := 0; n < total; {
		n, err = r.ReadAt(buf, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
			return
		}
		if bytes.Count(buf[:n], []byte("x")) != n {
			t.Error("read bytes that were never written")
			return
		}
	}
}
