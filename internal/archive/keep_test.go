package archive_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// TestRetention keeps a window of time: whatever is asked of it is there at each moment, and what is older goes.
func TestRetention(t *testing.T) {
	const window = 120 * time.Millisecond
	l := newLife(t, 41, archive.NewFileStore(vfs.NewMem(), place))
	l.o = archive.Options{KeepTime: window, KeepSets: 1, Grace: 50 * time.Millisecond}
	l.restart()
	gone := false
	for round := range 25 {
		l.write(20)
		l.record()
		if l.rng.IntN(2) == 0 {
			l.save()
		}
		if round%8 == 5 {
			l.s.Do("FLUSHALL")
		}
		l.pass()
		h := read(t, l.store)
		for i := range l.instants {
			x := &l.instants[i]
			b, err := h.Build(history.At(x.cursors...), nil, nil)
			old := l.s.Clock.Now()-x.ms > window.Milliseconds()
			switch {
			case err == nil:
				if _, sum := b.Digest(nil, x.ms); !strings.Contains(x.digest, sum) {
					t.Fatalf("round %d, instant %d: digest %s, was %q", round, i, sum, x.digest)
				}
				b.Release()
			case errors.Is(err, history.ErrNoPoint) && old:
				gone = true
			default:
				t.Fatalf("round %d, instant %d of %d ms ago: %v", round, i, l.s.Clock.Now()-x.ms, err)
			}
		}
	}
	l.sound()
	if !gone {
		t.Error("nothing has gone: the window was not tested")
	}
	before := len(names(t, l.store))
	l.s.Clock.Advance(1000)
	l.pass()
	if after := len(names(t, l.store)); after >= before {
		t.Errorf("%d objects, then %d: what is no part of the archive stays", before, after)
	}
}

// TestGrace reads an archive that is opened before much of it is retired.
func TestGrace(t *testing.T) {
	l := newLife(t, 42, archive.NewFileStore(vfs.NewMem(), place))
	l.o = archive.Options{KeepSets: 1, Grace: time.Second}
	l.restart()
	l.write(50)
	l.record()
	l.pass()
	h := read(t, l.store)
	l.write(100)
	l.save()
	l.pass()
	b, err := h.Build(history.At(l.instants[0].cursors...), nil, nil)
	if err != nil {
		t.Fatalf("a reader that began before: %v", err)
	}
	b.Release()
}

// TestNameAgain: an archive in which nothing is yet becomes that of another directory, whose objects have the same names: they stay.
func TestNameAgain(t *testing.T) {
	store := archive.NewFileStore(vfs.NewMem(), place)
	l := newLife(t, 52, store)
	l.pass()
	x := &life{t: t, rng: l.rng, fs: crashfs.New(), store: store, s: l.s, o: archive.Options{Grace: time.Second}}
	x.open()
	defer func() { _ = x.s.E.Close(false) }()
	x.pass()
	for range 3 {
		x.s.Do("SET a 1") // the other shard has nothing yet
		x.record()
		x.pass()
		x.s.Clock.Advance(2000)
	}
	if n := x.check(); n != 2*len(x.instants) {
		t.Errorf("%d of %d points were restored", n, 2*len(x.instants))
	}
}

// TestHold takes snapshots and drops log while the archive can't be reached: no segment is lost to it.
func TestHold(t *testing.T) {
	l := newLife(t, 43, archive.NewFileStore(vfs.NewMem(), place))
	l.write(100)
	l.record()
	l.save() // drops the log but for the floor
	l.restart()
	l.save()
	l.kill(false)
	l.save()
	segments := len(l.s.E.Dir().Log(0).SegmentList())
	l.pass()
	l.write(1)
	l.save()
	if n := len(l.s.E.Dir().Log(0).SegmentList()); n >= segments {
		t.Errorf("%d segments before they were archived, %d after", segments, n)
	}
	if l.check() != 2 {
		t.Error("what was written before the first pass can't be restored")
	}
}

// TestForeign refuses archives of another history and leaves them as they are.
func TestForeign(t *testing.T) {
	store := archive.NewFileStore(vfs.NewMem(), place)
	l := newLife(t, 44, store)
	l.write(20)
	old := l.fs.KillClone()
	l.write(20)
	l.pass()
	objects := names(t, store)
	newer := string(content(t, store, "ARCHIVE"))

	for what, fs := range map[string]*crashfs.FS{"another directory": crashfs.New(), "an older copy of the directory": old} {
		x := &life{t: t, rng: l.rng, fs: fs, store: store, s: l.s}
		x.open()
		if err := x.a.Pass(t.Context()); !errors.Is(err, archive.ErrForeign) {
			t.Errorf("%s: %v", what, err)
		}
		_ = x.s.E.Close(false)
	}
	if got := names(t, store); !slices.Equal(got, objects) || string(content(t, store, "ARCHIVE")) != newer {
		t.Errorf("objects were %v, are %v", objects, got)
	}
}

// TestLostManifest takes an archive without its manifest for what it is.
func TestLostManifest(t *testing.T) {
	store := archive.NewFileStore(vfs.NewMem(), place)
	l := newLife(t, 45, store)
	l.write(20)
	l.pass()
	objects := len(names(t, store))
	if err := store.Delete(t.Context(), "ARCHIVE"); err != nil {
		t.Fatal(err)
	}
	l.restart()
	l.write(20)
	if err := l.a.Pass(t.Context()); !errors.Is(err, archive.ErrCorrupt) || !strings.Contains(err.Error(), "no ARCHIVE") {
		t.Errorf("an archive whose manifest is lost: %v", err)
	}
	if n := len(names(t, store)); n != objects-1 {
		t.Errorf("%d objects, then %d", objects-1, n)
	}
}

// TestBegun says when a directory that was archived before finds no archive: its disk may not be mounted.
func TestBegun(t *testing.T) {
	var said bytes.Buffer
	l := newLife(t, 50, archive.NewFileStore(vfs.NewMem(), place))
	l.o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	l.restart()
	l.write(100)
	l.pass()
	if !strings.Contains(said.String(), "level=INFO msg=\"an archive is begun\"") || strings.Contains(said.String(), "WARN") {
		t.Errorf("the first time: %s", said.String())
	}
	said.Reset()
	l.restart()
	l.pass()
	if said.Len() > 0 {
		t.Errorf("going on: %s", said.String())
	}
	l.store = archive.NewFileStore(vfs.NewMem(), place)
	l.restart()
	l.pass()
	if !strings.Contains(said.String(), "level=WARN") || !strings.Contains(said.String(), "mounted") {
		t.Errorf("an empty place: %s", said.String())
	}
}

// TestFirstPutKilled: a process that is killed amid the very first manifest leaves no archive, and nothing in the way of one.
func TestFirstPutKilled(t *testing.T) {
	fs := vfs.NewMem()
	must(t, fs.MkdirAll(place))
	must(t, vfs.WriteFile(fs, place+"/ARCHIVE.put", []byte("half")))
	l := newLife(t, 51, archive.NewFileStore(fs, place))
	l.write(3)
	l.pass()
	if all := names(t, l.store); slices.Contains(all, "ARCHIVE.put") || !slices.Contains(all, "ARCHIVE") {
		t.Errorf("objects: %v", all)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTwoWriters notices another writer.
func TestTwoWriters(t *testing.T) {
	store := archive.NewFileStore(vfs.NewMem(), place)
	l := newLife(t, 46, store)
	l.write(20)
	l.pass()
	b := string(content(t, store, "ARCHIVE"))
	l.write(1)
	l.pass()
	l.write(1)
	if err := store.Put(t.Context(), "ARCHIVE", strings.NewReader(b), int64(len(b))); err != nil {
		t.Fatal(err)
	}
	if err := l.a.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "another kevy") {
		t.Errorf("the manifest was changed by another: %v", err)
	}
}

// TestStrangers leaves alone what is not the archive's.
func TestStrangers(t *testing.T) {
	store := archive.NewFileStore(vfs.NewMem(), place)
	for _, name := range []string{"README", "shard-00/notes.txt", "snapshots/old/SET", "shard-00/00000000000000000001.seg"} {
		if err := store.Put(t.Context(), name, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	l := newLife(t, 47, store)
	l.live(20)
	for _, name := range []string{"README", "shard-00/notes.txt", "snapshots/old/SET", "shard-00/00000000000000000001.seg"} {
		if string(content(t, store, name)) != "x" {
			t.Errorf("%s was changed", name)
		}
	}
	if _, err := store.Get(t.Context(), "none", 0, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an object that is not there: %v", err)
	}
}

// TestParts keeps the number of parts of a segment small, and sends no byte often.
func TestParts(t *testing.T) {
	l := newLife(t, 48, archive.NewFileStore(vfs.NewMem(), place))
	l.o.Grace = 1
	l.restart()
	for range 200 {
		l.s.Do("SET k " + strings.Repeat("v", 50))
		l.s.Clock.Advance(5)
		l.pass()
	}
	l.record()
	st := l.a.Status()
	if n := len(names(t, l.store)); n > 20 {
		t.Errorf("%d objects after 200 passes: %v", n, names(t, l.store))
	}
	if st.Shipped > 12*uint64(st.Bytes) {
		t.Errorf("%d bytes were sent for %d", st.Shipped, st.Bytes)
	}
	if st.LagMS != 0 || st.LagBytes != 0 {
		t.Errorf("%+v", st)
	}
	l.check()
	l.write(3)
	if st = l.a.Status(); st.LagMS < 1 || st.LagBytes < 100 {
		t.Errorf("behind: %+v", st)
	}
}

// TestIdleLag: after hours without a write the first one is seconds behind, not hours.
func TestIdleLag(t *testing.T) {
	l := newLife(t, 49, archive.NewFileStore(vfs.NewMem(), place))
	l.write(3)
	l.pass()
	l.s.Clock.Advance(time.Hour.Milliseconds())
	l.pass()
	l.s.Clock.Advance(5)
	l.s.Do("SET k v")
	l.s.Clock.Advance(5)
	if st := l.a.Status(); st.LagMS < 5 || st.LagMS > 20 {
		t.Errorf("10 ms after the last pass: %+v", st)
	}
}

func TestURLs(t *testing.T) {
	for _, bad := range []string{
		"", "x", "/dir", "file://host/dir", "file:///", "file:dir", "file:///d?x=1", "s3://", "s3:///p", "s3://b?region=a&region=b", "s3://b?key=1",
		"s3://u:p@b/x", "s3://b?endpoint=ftp://h", "http://b/x", "s3://b?endpoint=a/b/c",
	} {
		if s, err := archive.OpenStore(bad); err == nil {
			t.Errorf("%q is %s", bad, s)
		}
	}
	for good, want := range map[string]string{
		"file:///a/b/": "/a/b", "s3://b": "s3://b", "s3://b/p/q/?endpoint=http://localhost:1&region=r": "s3://b/p/q", "s3://b/p?endpoint=minio:9000": "s3://b/p",
	} {
		s, err := archive.OpenStore(good)
		if err != nil || s.String() != want {
			t.Errorf("%q is %v, %v; want %s", good, s, err, want)
		}
	}
}
