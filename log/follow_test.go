package log

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

// copyGroups appends the groups of from, from c on, to the log to, as they are.
func copyGroups(t *testing.T, to, from *Log, c Cursor) {
	t.Helper()
	r, err := from.NewReader(c, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var group []byte
	at := c
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if group = append(group, r.Raw()...); !f.GroupLast {
			continue
		}
		if err := to.Reserve(len(group)); err != nil {
			t.Fatal(err)
		}
		next, err := to.AppendRaw(at, group)
		if err != nil || next != f.Cursor.Offset+1 {
			t.Fatalf("AppendRaw(%v): %d, %v", at, next, err)
		}
		at, group = Cursor{c.Generation, next}, nil
	}
	if err := to.Flush(); err != nil {
		t.Fatal(err)
	}
}

// following opens a directory whose log is a copy of d's first 30 frames.
func following(t *testing.T, fsys vfs.FS, d *Dir) *Dir {
	t.Helper()
	o := testOptions(fsys)
	o.Follower = true
	f, _ := mustOpen(t, o)
	if err := f.Follow(); err != nil {
		t.Fatal(err)
	}
	base := &Base{HashSeed: d.HashSeed(), Set: "set", Cursors: []Cursor{{d.Log(0).Generation(), 0}}, Lineage: [][]Lineage{d.Lineage(0)}}
	f, _, err := f.Replace(base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close(false) })
	return f
}

func TestAppendRaw(t *testing.T) {
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	for _, n := range []int{1, 3, 1, 7} {
		put(t, l, n)
	}
	f := following(t, vfs.NewMem(), d)
	copyGroups(t, f.Log(0), l, Cursor{l.Generation(), 0})
	if f.Log(0).Tail() != l.Tail() {
		t.Fatalf("tail %v, want %v", f.Log(0).Tail(), l.Tail())
	}
	want, got := rawFrames(t, l), rawFrames(t, f.Log(0))
	if !bytes.Equal(want, got) {
		t.Error("the frames are not the same bytes")
	}
	g := l.Generation()
	for _, c := range []Cursor{{g, 0}, {g, 11}, {g, 13}, {g + 1, 12}, {g, ^uint64(0)}} {
		if _, err := f.Log(0).AppendRaw(c, want[:1]); err == nil {
			t.Errorf("AppendRaw(%v) at tail %v is accepted", c, f.Log(0).Tail())
		}
	}
	if _, err := f.Log(0).AppendRaw(l.Tail(), want[:40]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("half a frame: %v", err)
	}
	if f.Log(0).Tail() != l.Tail() {
		t.Error("what was refused has changed the tail")
	}
	if err := f.FollowGenerations([]Lineage{{Generation: g + 5, Cause: CauseFlush, Parent: g, ParentOffset: 11}}, nil); err == nil {
		t.Error("a generation that forks off before the tail is accepted")
	}
	child := Lineage{Generation: g + 5, Cause: CauseFlush, Parent: g, ParentOffset: 12, TimeMS: 5}
	if err := f.FollowGenerations([]Lineage{child}, nil); err != nil {
		t.Fatal(err)
	}
	if lin := f.Lineage(0); lin[len(lin)-1] != child {
		t.Errorf("lineage %v, want %v", lin, child)
	}
}

// rawFrames returns the bytes of the frames of the log's generation.
func rawFrames(t *testing.T, l *Log) []byte {
	t.Helper()
	raw, _ := readFrames(t, l, Cursor{l.Generation(), 0}, ReaderOptions{})
	return raw
}

// readFrames returns the bytes of the frames from c on, and the error behind them.
func readFrames(t *testing.T, l *Log, c Cursor, o ReaderOptions) (raw []byte, err error) {
	t.Helper()
	r, err := l.NewReader(c, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		if _, err := r.Next(); err != nil {
			return raw, err
		}
		raw = append(raw, r.Raw()...)
	}
}

// TestFollowerReopens: a follower goes on in its generation however it ended, and begins one when it follows no more.
func TestFollowerReopens(t *testing.T) {
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	for range 10 {
		put(t, l, 3)
	}
	fsys := crashfs.New()
	f := following(t, fsys, d)
	copyGroups(t, f.Log(0), l, Cursor{l.Generation(), 0})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		o := testOptions(fsys.CrashClone(rng))
		o.Follower = true
		again, rec := mustOpen(t, o)
		tail := again.Log(0).Tail()
		if tail.Generation != l.Generation() || tail.Offset%3 != 0 || rec.Clean {
			t.Fatalf("after a crash the tail is %v", tail)
		}
		copyGroups(t, again.Log(0), l, tail)
		if !bytes.Equal(rawFrames(t, again.Log(0)), rawFrames(t, l)) {
			t.Fatal("the frames differ after a crash")
		}
		_ = again.Close(false)
	}
	promoted, _ := mustOpen(t, testOptions(fsys.KillClone()))
	lin := promoted.Lineage(0)
	if last := lin[len(lin)-1]; last.Cause != CausePromotion || last.Parent != l.Generation() || last.ParentOffset != 30 || promoted.Follower() {
		t.Errorf("opened as no follower: %+v", last)
	}
}

// TestReplaceCrash: a crash at any write leaves the one state or the other.
func TestReplaceCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	mem := crashfs.New()
	ffs := faultfs.New(mem)
	o := testOptions(ffs)
	o.Follower = true
	d, _ := mustOpen(t, o)
	put(t, d.Log(0), 5)
	if err := d.Log(0).Sync(); err != nil {
		t.Fatal(err)
	}
	before := d.Log(0).Tail()
	// A generation that is older than the directory's own: a store can be taken back, or follow one that is older.
	after := Cursor{before.Generation - 1, 77}
	base := &Base{HashSeed: 99, LastTxn: 12, Set: "set", Cursors: []Cursor{after}, Lineage: [][]Lineage{{{Generation: after.Generation, Cause: CauseCreate}}}, Aside: []Cursor{{before.Generation, 2}}}
	clones := clonesAtWrites(ffs, mem, rng)
	next, aside, err := d.Replace(base)
	ffs.Inject(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close(false)
	if next.Log(0).Tail() != after || next.HashSeed() != 99 || len(aside) != 1 {
		t.Fatalf("tail %v, seed %d, kept %v", next.Log(0).Tail(), next.HashSeed(), aside)
	}
	seen := make(map[string]int)
	for _, c := range append(clones(), mem.KillClone()) {
		o := testOptions(c)
		o.Follower = true
		got, _ := mustOpen(t, o)
		switch tail := got.Log(0).Tail(); {
		case tail == after && got.HashSeed() == 99 && got.LastTxn() == 12:
			seen["after"]++
		case got.HashSeed() == 7 && (tail == before || got.Lineage(0)[0].Generation == before.Generation):
			seen["before"]++
			if n, _ := readAll(t, got.Log(0), Cursor{before.Generation, 0}, ReaderOptions{}); n != 5 {
				t.Errorf("%d frames are left", n)
			}
		default:
			t.Fatalf("tail %v, seed %d", tail, got.HashSeed())
		}
		_ = got.Close(false)
	}
	if seen["before"] == 0 || seen["after"] == 0 {
		t.Errorf("crashes: %v", seen)
	}
}

// TestAsideOfDropped: frames to be kept aside whose oldest ones retention has dropped are kept as far as they are there.
func TestAsideOfDropped(t *testing.T) {
	mem := vfs.NewMem()
	o, frames := sealable(t, mem)
	o.Window, o.Follower = 1, true
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	segs := l.segments()
	floor := segs[2].start()
	if err := errors.Join(l.Sync(), d.SetSnapshot("s", []Cursor{l.Tail()}), d.SetFloor("archive", []Cursor{floor})); err != nil {
		t.Fatal(err)
	}
	if n, err := d.DropUnneeded(); n != 2 || err != nil {
		t.Fatalf("dropped %d, %v", n, err)
	}
	from := frames[0].cursor
	base := &Base{HashSeed: d.HashSeed(), Set: "set", Cursors: []Cursor{from}, Lineage: [][]Lineage{d.Lineage(0)[:1]}, Aside: []Cursor{from}}
	_, aside, err := d.Replace(base)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, s := range segs[2:] {
		if s.end.Load() > headerBytes {
			kept++
		}
	}
	if len(aside) != kept {
		t.Errorf("%d files are kept aside of %d: %v", len(aside), kept, aside)
	}
	for _, name := range aside {
		if _, err := mem.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// TestTimeBehindBase: frames that are appended behind a base are not older than it, though this store's clock is late and no
// frame of the other store has come since.
func TestTimeBehindBase(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Follower = true
	d, _ := mustOpen(t, o)
	const at = 5000 // put's clock says 1000
	d, _, err := d.Replace(&Base{HashSeed: 7, Set: "set", TimeMS: at, Cursors: []Cursor{{9, 3}}, Lineage: [][]Lineage{{{Generation: 9}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	d, _ = mustOpen(t, o) // it is on record
	if err := d.Promote(); err != nil {
		t.Fatal(err)
	}
	put(t, d.Log(0), 1)
	r, err := d.Log(0).NewReader(Cursor{d.Log(0).Generation(), 0}, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if f, err := r.Next(); err != nil || f.TimeMS < at {
		t.Errorf("a frame of %d behind a base of %d, %v", f.TimeMS, at, err)
	}
}

// TestPeekKey: keys of raw frames, whole ones only.
func TestPeekKey(t *testing.T) {
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	l.Begin(1, ByClient, 0, 0)
	l.Append(set("one", "value"))
	l.Append(&effect.Effect{Op: effect.Del, Args: [][]byte{[]byte("a"), []byte("b")}})
	l.End()
	l.Begin(1, ByClient, 7, 3)
	l.Append(set("two", "v"))
	l.End()
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	raw := rawFrames(t, l)
	for i, want := range []string{"one", "", "two"} {
		key, size := PeekKey(raw)
		if string(key) != want || size == 0 {
			t.Fatalf("frame %d: key %q, %d bytes", i, key, size)
		}
		for n := range size {
			if key, part := PeekKey(raw[:n]); key != nil || part != 0 {
				t.Fatalf("frame %d, %d bytes of it: key %q, %d bytes", i, n, key, part)
			}
		}
		raw = raw[size:]
	}
	if len(raw) != 0 {
		t.Errorf("%d bytes are left", len(raw))
	}
	r, err := l.NewReader(Cursor{Generation: l.Generation()}, ReaderOptions{Limit: LimitWritten})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, want := range []string{"", "two", ""} { // what a reader has at hand behind each frame
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if key, _ := PeekKey(r.Ahead()); string(key) != want {
			t.Errorf("ahead of the reader is key %q, want %q", key, want)
		}
	}
	if n := len(r.Ahead()); n > 0 {
		t.Errorf("%d bytes are ahead of the end", n)
	}
}
