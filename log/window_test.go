package log

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// positions reads the current generation and returns the bytes before each frame, and all of them.
func positions(t *testing.T, l *Log) (at []int64, total int64) {
	t.Helper()
	r, err := l.NewReader(Cursor{l.Generation(), l.oldestOfCurrent()}, ReaderOptions{Limit: LimitWritten})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if err == io.EOF {
			return at, total
		}
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, total)
		total += int64(frameHeader + len(f.Payload))
	}
}

// checkBase compares Base with its definition.
func checkBase(t *testing.T, d *Dir, window int64) {
	t.Helper()
	granule := max(window/1024, 1)
	l := d.Log(0)
	oldest := l.oldestOfCurrent()
	at, total := positions(t, l)
	base := l.Base()
	if len(at) == 0 {
		if base != oldest {
			t.Fatalf("base %d of nothing", base)
		}
		return
	}
	if base < oldest || base-oldest >= uint64(len(at)) {
		t.Fatalf("base %d, frames %d..%d", base, oldest, oldest+uint64(len(at)))
	}
	served := total - at[base-oldest]
	next := total
	if i := int(base-oldest) + 1; i < len(at) {
		next = at[i]
	}
	frame := next - at[base-oldest]
	if served < window && base > oldest {
		t.Fatalf("%d bytes served, window %d", served, window)
	}
	if over := served - window; over >= max(granule, frame) {
		t.Fatalf("%d bytes too many served, granule %d, frame %d", over, granule, frame)
	}
	n, _ := readAll(t, l, Cursor{l.Generation(), base}, ReaderOptions{Feed: true})
	if uint64(n) != oldest+uint64(len(at))-base {
		t.Fatalf("%d frames from base %d", n, base)
	}
}

// putRandom appends a group of random size, or drops it, and flushes.
func putRandom(t *testing.T, l *Log, rng *rand.Rand) {
	t.Helper()
	l.Begin(1, ByClient, 0, 0)
	for range 1 + rng.IntN(8) {
		l.Append(set("key", string(make([]byte, rng.IntN(400)))))
	}
	if rng.IntN(5) == 0 {
		l.Abort()
	} else {
		l.End()
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestWindowRules checks Base against its definition, while the log grows, after clean restarts
// and after segments were dropped.
func TestWindowRules(t *testing.T) {
	for _, window := range []int64{1, 100, 1000, 5000, 200_000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(window), 1))
			fsys := vfs.NewMem()
			o := testOptions(fsys)
			o.Window, o.SegmentBytes = window, 1<<20
			d, _ := mustOpen(t, o)
			checkBase(t, d, window)
			for i := range 120 {
				l := d.Log(0)
				putRandom(t, l, rng)
				checkBase(t, d, window)
				switch {
				case i%17 == 3:
					if err := l.roll(); err != nil {
						t.Fatal(err)
					}
				case i%29 == 4:
					tail, base := l.Tail(), l.Base()
					if err := d.Close(true); err != nil {
						t.Fatal(err)
					}
					d, _ = mustOpen(t, o)
					if l = d.Log(0); l.Tail() != tail || l.Base() != base {
						t.Fatalf("after restart: base %d tail %v, before %d %v", l.Base(), l.Tail(), base, tail)
					}
				case i%23 == 5:
					if err := d.SetSnapshot("s", []Cursor{l.Tail()}); err != nil {
						t.Fatal(err)
					}
					base := l.Base()
					if _, err := d.DropUnneeded(); err != nil {
						t.Fatal(err)
					}
					if l.Base() != base {
						t.Fatal("dropping segments moved the base")
					}
				}
				checkBase(t, d, window)
			}
			if err := d.NewGeneration(CauseFlush); err != nil {
				t.Fatal(err)
			}
			checkBase(t, d, window)
			put(t, d.Log(0), 3)
			checkBase(t, d, window)
		})
	}
}

func TestServeAll(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Window, o.ServeAll = 1, true
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	put(t, l, 5)
	if err := l.roll(); err != nil {
		t.Fatal(err)
	}
	put(t, l, 5)
	if l.Base() != 0 {
		t.Fatal(l.Base())
	}
	_ = d.SetSnapshot("s", []Cursor{l.Tail()})
	if n, err := d.DropUnneeded(); n != 1 || err != nil || l.Base() != 5 {
		t.Fatal(n, err, l.Base())
	}
}

// sixSegments makes a log of six segments with four frames each, a generation begins with the
// fourth, and an empty one. at are the cursors where the six begin.
func sixSegments(t *testing.T) (fsys *crashfs.FS, o Options, d *Dir, at []Cursor) {
	fsys = crashfs.New()
	o = testOptions(fsys)
	o.Window = 1
	d, _ = mustOpen(t, o)
	l := d.Log(0)
	for i := range 6 {
		at = append(at, l.Tail())
		put(t, l, 4)
		if i == 2 {
			if err := d.NewGeneration(CauseFlush); err != nil {
				t.Fatal(err)
			}
		} else if err := l.roll(); err != nil {
			t.Fatal(err)
		}
	}
	return fsys, o, d, at
}

// mustDrop calls DropUnneeded twice: the second time there is nothing to do.
func mustDrop(t *testing.T, d *Dir, want int) {
	t.Helper()
	for _, want := range []int{want, 0} {
		if n, err := d.DropUnneeded(); n != want || err != nil {
			t.Fatalf("dropped %d, want %d (%v)", n, want, err)
		}
	}
}

// TestDropUnneeded: what a snapshot, the window, or an open reader needs stays.
func TestDropUnneeded(t *testing.T) {
	_, _, d, at := sixSegments(t)
	l := d.Log(0)
	mustDrop(t, d, 0) // no snapshot
	if err := d.SetSnapshot("s1", []Cursor{at[1]}); err != nil {
		t.Fatal(err)
	}
	r, err := l.NewReader(at[0], ReaderOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	mustDrop(t, d, 0) // the reader stands in the first
	for range 5 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	mustDrop(t, d, 1) // and now in the second
	if l.Oldest() != at[1] {
		t.Fatal(l.Oldest())
	}
	r.Close()
	if _, err := l.NewReader(at[0], ReaderOptions{Follow: true}); !errors.Is(err, ErrGone) {
		t.Fatal(err)
	}
}

// TestDropAndRestart: what was dropped stays dropped, also when the files come back.
func TestDropAndRestart(t *testing.T) {
	fsys, o, d, at := sixSegments(t)
	l := d.Log(0)
	if err := d.SetSnapshot("s2", []Cursor{at[4]}); err != nil {
		t.Fatal(err)
	}
	copied := fsys.KillClone()
	mustDrop(t, d, 4)
	if id, c := d.Snapshot(); id != "s2" || c[0] != at[4] {
		t.Fatal(id, c)
	}
	if n, _ := readAll(t, l, at[4], ReaderOptions{Follow: true}); n != 8 {
		t.Fatal(n)
	}
	_ = d.Close(true)
	d, _ = mustOpen(t, o)
	if id, c := d.Snapshot(); id != "s2" || c[0] != at[4] {
		t.Fatal(id, c)
	}
	if n, _ := readAll(t, d.Log(0), at[4], ReaderOptions{Follow: true}); n != 8 {
		t.Fatal(n)
	}
	// A crash between the manifest and the removal: files that come back are removed at the next start.
	name := segmentPath(2)
	setBytes(t, fsys, name, fileBytes(t, copied, name))
	_ = d.Close(true)
	d, _ = mustOpen(t, o)
	if names, _ := fsys.ReadDir("data/shard-00"); names[1] == segmentName(2) {
		t.Fatal(names)
	}
	if n, _ := readAll(t, d.Log(0), at[4], ReaderOptions{Follow: true}); n != 8 {
		t.Fatal(n)
	}
}

func TestEphemeral(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Ephemeral, o.Window, o.SegmentBytes = true, 2000, 500
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	for range 300 {
		put(t, l, 3)
	}
	waitFor(t, func() bool { put(t, l, 1); return l.Segments() < 12 && l.Oldest().Offset > 0 })
	if n, _ := readAll(t, l, Cursor{l.Generation(), l.Base()}, ReaderOptions{Feed: true}); n < 20 {
		t.Fatal(n)
	}
}

// TestLineageIsTrimmed: generations of which nothing is left are forgotten in the end, but for how many frames they had.
func TestLineageIsTrimmed(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Ephemeral = true
	d, _ := mustOpen(t, o)
	for i := range keepLineage + 20 {
		for range i % 3 {
			put(t, d.Log(0), 1)
		}
		if err := d.NewGeneration(CauseFlush); err != nil {
			t.Fatal(err)
		}
	}
	frames := func() (n uint64) {
		for _, g := range d.Lineage(0) {
			n += g.Earlier + g.ParentOffset
		}
		return n
	}
	all := frames()
	if _, err := d.DropUnneeded(); err != nil {
		t.Fatal(err)
	}
	if n := len(d.Lineage(0)); n != keepLineage {
		t.Fatal(n)
	}
	if n := frames(); n != all || n != (keepLineage+20)/3*3 {
		t.Errorf("%d frames in the history, %d before", n, all)
	}
	if n := d.Log(0).Segments(); n != 1 {
		t.Fatal(n)
	}
	_ = d.Close(true)
	d, _ = mustOpen(t, o)
	if n := frames(); n != all {
		t.Errorf("%d frames in the history after a restart, %d before", n, all)
	}
}

// TestBaseIsOnDisk: the base can be read at any time while segments are dropped behind the window, also where the window's index names a
// frame before it.
func TestBaseIsOnDisk(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Ephemeral, o.SegmentBytes, o.Window = true, 4000, 256<<10 // the index has an entry every 256 bytes
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	rng := rand.New(rand.NewPCG(4, 2))
	for range 300 {
		for range 20 + rng.IntN(10) {
			put(t, l, 1)
		}
		if err := l.roll(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.DropUnneeded(); err != nil {
			t.Fatal(err)
		}
		base := l.Base()
		r, err := l.NewReader(Cursor{l.Generation(), base}, ReaderOptions{Feed: true})
		if err != nil {
			t.Fatal(err)
		}
		if f, err := r.Next(); err != nil || f.Cursor.Offset != base {
			t.Fatalf("at the base %d: %v; the oldest frame on disk is %d", base, err, l.oldestOfCurrent())
		}
		r.Close()
	}
	if l.oldestOfCurrent() == 0 {
		t.Error("nothing was dropped")
	}
}
