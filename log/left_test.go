package log

import (
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
)

// TestReadersGoOn: consumers that ask again and again, in steps that end inside groups and between them, get every
// frame once, from the places where they have stopped.
func TestReadersGoOn(t *testing.T) {
	o := testOptions(crashfs.New())
	o.Window = 1 << 20
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	const groups = 200
	for i := range groups {
		put(t, l, 1+i%3)
	}
	tail := l.Tail()
	for step := 1; step <= 7; step++ {
		at := Cursor{Generation: tail.Generation}
		for at.Offset < tail.Offset {
			r, err := l.NewReader(at, ReaderOptions{Feed: true})
			if err != nil {
				t.Fatal(err)
			}
			for range step {
				if at.Offset == tail.Offset {
					break
				}
				f, err := r.Next()
				if err != nil {
					t.Fatalf("step %d, at %v: %v", step, at, err)
				}
				if f.Cursor != at || f.Group > at.Offset || f.GroupFirst != (f.Group == at.Offset) {
					t.Fatalf("step %d, at %v: frame %v of group %d", step, at, f.Cursor, f.Group)
				}
				at.Offset++
			}
			if got := r.Cursor(); got != at {
				t.Fatalf("cursor %v, want %v", got, at)
			}
			r.Close()
		}
	}
	kept := 0
	for _, p := range l.w.seg.left {
		if p.pos != 0 {
			kept++
		}
	}
	if kept == 0 {
		t.Fatal("no place was remembered")
	}
}

// TestMarkIsRecent: the durable mark is not written at every sync, and does not fall behind by more than markEvery.
func TestMarkIsRecent(t *testing.T) {
	d, _ := mustOpen(t, testOptions(crashfs.New()))
	l := d.Log(0)
	put(t, l, 1)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	first := l.marked
	put(t, l, 1)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if l.markedAt = l.markedAt.Add(-markPause); l.marked != first && l.Durable() != 2 {
		t.Fatalf("mark %v after %v", l.marked, first)
	}
	put(t, l, 1)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if m, err := readMark(l.fs, l.path); err != nil || m.cursor.Offset != 3 {
		t.Fatalf("mark %v, %v; durable %d", m, err, l.Durable())
	}
}
