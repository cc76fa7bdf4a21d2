package log

import (
	"fmt"
	"io"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

func set(k, v string) *effect.Effect {
	return &effect.Effect{Op: effect.Set, Args: [][]byte{[]byte(k), []byte(v)}}
}

func testOptions(fsys vfs.FS) Options {
	return Options{FS: fsys, Dir: "data", Shards: 1, HashSeed: 7}
}

func mustOpen(t testing.TB, o Options) (*Dir, *Recovery) {
	t.Helper()
	d, rec, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = d.Close(false) })
	return d, rec
}

// put appends one group of n frames and flushes it.
func put(t testing.TB, l *Log, n int) uint64 {
	t.Helper()
	if err := l.Reserve(n * 100); err != nil {
		t.Fatal(err)
	}
	l.Begin(1000, ByClient, 0, 0)
	for i := range n {
		l.Append(set(fmt.Sprintf("key:%d", i), "value"))
	}
	next := l.End()
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	return next
}

func readAll(t testing.TB, l *Log, c Cursor, o ReaderOptions) (frames int, end Cursor) {
	t.Helper()
	r, err := l.NewReader(c, o)
	if err != nil {
		t.Fatalf("NewReader(%v): %v", c, err)
	}
	defer r.Close()
	want := c
	for {
		f, err := r.Next()
		if err == io.EOF {
			return frames, r.Cursor()
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Cursor.Generation == want.Generation && f.Cursor.Offset != want.Offset {
			t.Fatalf("frame %v, want %v", f.Cursor, want)
		}
		want = Cursor{f.Cursor.Generation, f.Cursor.Offset + 1}
		frames++
	}
}

func TestHappyPath(t *testing.T) {
	fsys := vfs.NewMem()
	o := testOptions(fsys)
	d, rec := mustOpen(t, o)
	if !rec.Created || !rec.Clean {
		t.Fatalf("%+v", rec)
	}
	l := d.Log(0)
	start := l.Tail()
	put(t, l, 3)
	put(t, l, 1)
	if n, end := readAll(t, l, start, ReaderOptions{}); n != 4 || end != l.Tail() {
		t.Fatalf("%d frames, end %v", n, end)
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	d, rec = mustOpen(t, o)
	l = d.Log(0)
	if !rec.Clean || rec.Created || l.Tail() != (Cursor{start.Generation, 4}) {
		t.Fatalf("%+v tail %v", rec, l.Tail())
	}
	put(t, l, 2)
	if n, _ := readAll(t, l, start, ReaderOptions{Feed: true}); n != 6 {
		t.Fatalf("%d frames", n)
	}
	if err := d.NewGeneration(CauseFlush); err != nil {
		t.Fatal(err)
	}
	put(t, l, 1)
	if n, end := readAll(t, l, start, ReaderOptions{Follow: true}); n != 7 || end != l.Tail() {
		t.Fatalf("%d frames, end %v", n, end)
	}
	_ = d.Close(false)
	d, rec = mustOpen(t, o)
	l = d.Log(0)
	if rec.Clean {
		t.Fatalf("%+v", rec)
	}
	if n, _ := readAll(t, l, start, ReaderOptions{Follow: true}); n != 7 {
		t.Fatalf("%d frames", n)
	}
	if lin := l.Lineage(); len(lin) != 3 || lin[1].Cause != CauseFlush || lin[2].Cause != CauseCrash {
		t.Fatalf("%+v", lin)
	}
}
