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

// readAll reads from c to the limit, checks that offsets have no holes, and returns the number of
// frames and the reader's last cursor.
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
