package log

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
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

// clonesAtWrites has ffs make two copies of fs before each write, as a kill and as a loss of power leave it, and returns what there are so far.
func clonesAtWrites(ffs *faultfs.FS, fs *crashfs.FS, rng *rand.Rand) func() []*crashfs.FS {
	var mu sync.Mutex
	var clones []*crashfs.FS
	ffs.Inject(func(op faultfs.Op) error {
		if op.Kind.IsWrite() {
			mu.Lock()
			defer mu.Unlock()
			clones = append(clones, fs.KillClone(), fs.CrashClone(rng))
		}
		return nil
	})
	return func() []*crashfs.FS {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(clones)
	}
}

// droppable opens a log all of whose segments but the newest are behind a snapshot and any window, on a file system that can be made to fail.
func droppable(t *testing.T) (*Dir, *faultfs.FS, []seen) {
	t.Helper()
	mem := vfs.NewMem()
	o, frames := sealable(t, mem)
	faulty := faultfs.New(mem)
	o.FS, o.Window = faulty, 1
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	if err := errors.Join(l.Sync(), d.SetSnapshot("s", []Cursor{l.Tail()})); err != nil {
		t.Fatal(err)
	}
	return d, faulty, frames
}
