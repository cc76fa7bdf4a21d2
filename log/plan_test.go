package log

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// facts are six segments: 1 and 2 of generation 5, 3 to 6 of 9, each of 100 frames, 1000 bytes in the log and 300 on
// disk, whose last frame is at 1000 ms times its number.
func facts() *retention {
	r := &retention{current: 9, window: 1 << 40}
	for i := range 6 {
		f := segmentFacts{number: uint64(i + 1), start: Cursor{5, uint64(100 * i)}, genEnd: int64(1000 * (i + 1)), disk: 300, lastMS: int64(1000 * (i + 1))}
		if i >= 2 {
			f.start, f.genEnd = Cursor{9, uint64(100 * (i - 2))}, int64(1000*(i-1))
		}
		r.segments = append(r.segments, f)
	}
	return r
}

func TestRetentionPlan(t *testing.T) {
	at := func(gen, off uint64) *Cursor { return &Cursor{gen, off} }
	for _, c := range []struct {
		name string
		set  func(r *retention)
		keep uint64
		why  string
	}{
		{"no snapshot", func(*retention) {}, 1, "no snapshot"},
		{"in memory", func(r *retention) { r.rebuilt = true }, 6, "newest"},
		{"in memory with a window", func(r *retention) { r.rebuilt, r.window = true, 2999 }, 5, "feed window"},
		{"snapshot at the tail", func(r *retention) { r.snapshot = at(9, 350) }, 6, "newest"},
		{"snapshot in the middle", func(r *retention) { r.snapshot = at(9, 150) }, 4, "snapshot"},
		{"snapshot at a segment's first frame", func(r *retention) { r.snapshot = at(9, 200) }, 5, "snapshot"},
		{"snapshot before a segment's first frame", func(r *retention) { r.snapshot = at(9, 199) }, 4, "snapshot"},
		{"snapshot in the parent generation", func(r *retention) { r.snapshot = at(5, 120) }, 2, "snapshot"},
		{"snapshot at the parent's end", func(r *retention) { r.snapshot = at(5, 200) }, 2, "snapshot"},
		{"snapshot of a generation nobody knows", func(r *retention) { r.snapshot = at(7, 0) }, 1, "snapshot"},
		{"window", func(r *retention) { r.snapshot, r.window = at(9, 350), 1500 }, 4, "feed window"},
		{"window reaches back to its own generation only", func(r *retention) { r.snapshot, r.window = at(9, 350), -50 }, 3, "feed window"},
		{"reader", func(r *retention) { r.snapshot, r.pins = at(9, 350), []uint64{5, 2} }, 2, "reader"},
		{"archive has taken two", func(r *retention) {
			r.snapshot, r.floors = at(9, 350), map[string]Cursor{"archive": {9, 0}}
		}, 3, "floor archive"},
		{"archive has taken nothing", func(r *retention) {
			r.snapshot, r.floors = at(9, 350), map[string]Cursor{"archive": {}}
		}, 1, "floor archive"},
		{"two floors", func(r *retention) {
			r.snapshot, r.floors = at(9, 350), map[string]Cursor{"archive": {9, 120}, "mirror": {5, 150}}
		}, 2, "floor mirror"},
		{"keep_bytes of less than the newest", func(r *retention) { r.snapshot, r.bytes = at(9, 350), 300 }, 6, "newest"},
		{"keep_bytes", func(r *retention) { r.snapshot, r.bytes = at(9, 350), 301 }, 5, "keep_bytes"},
		{"keep_bytes of all", func(r *retention) { r.snapshot, r.bytes = at(9, 350), 1<<50 }, 1, "keep_bytes"},
		{"keep_time", func(r *retention) { r.snapshot, r.since = at(9, 350), 3000 }, 3, "keep_time"},
		{"keep_time, a moment less", func(r *retention) { r.snapshot, r.since = at(9, 350), 3001 }, 4, "keep_time"},
		{"the farthest counts", func(r *retention) {
			r.snapshot, r.window, r.bytes, r.since, r.pins = at(9, 250), 2000, 400, 3000, []uint64{4}
		}, 3, "keep_time"},
	} {
		r := facts()
		c.set(r)
		p := r.plan()
		var drop []uint64
		for n := uint64(1); n < c.keep; n++ {
			drop = append(drop, n)
		}
		if p.keep != c.keep || p.why != c.why || !slices.Equal(p.drop, drop) {
			t.Errorf("%s: %+v, want to keep from %d on because of %q", c.name, p, c.keep, c.why)
		}
		// Carried out, in whole or in part, the plan is the same.
		for n := range p.drop {
			again := *r
			again.segments = r.segments[n:]
			if q := again.plan(); q.keep != p.keep {
				t.Errorf("%s: after dropping %d: %+v, before %+v", c.name, n, q, p)
			}
		}
	}
}

// TestPruneCrash ends the process, or takes the power, after each write of a sealing and dropping Dir: what the snapshot and
// the floor need is there, the rest may be gone, and dropping again ends in the same state.
func TestPruneCrash(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for n := 0; ; n++ {
		fsys := crashfs.New()
		o, frames := sealable(t, fsys)
		o.Window = 1
		faulty := faultfs.New(fsys)
		o.FS = faulty
		d, _, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		l := d.Log(0)
		if n%2 == 0 { // drop sealed ones
			if _, err := d.Seal(); err != nil {
				t.Fatal(err)
			}
		}
		segs := l.segments()
		floor := segs[3].start()
		needed := slices.IndexFunc(frames, func(s seen) bool { return s.cursor == floor })
		if err := errors.Join(l.Sync(), d.SetSnapshot("s", []Cursor{l.Tail()}), d.SetFloor("archive", []Cursor{floor})); err != nil {
			t.Fatal(err)
		}
		faulty.Inject(stopAfter(n/2, errStop))
		dropped, err := d.DropUnneeded()
		if err == nil && dropped != 3 {
			t.Fatalf("dropped %d of 3", dropped)
		}
		for _, after := range []vfs.FS{fsys.Crash(r), fsys.Crash(r), fsys.KillClone()} {
			pruned(t, o, after, frames, needed)
		}
		faulty.Inject(nil)
		_ = d.Close(false)
		if err == nil && n%2 == 1 {
			if n < 10 {
				t.Fatalf("%d writes only", n/2)
			}
			return
		}
		if err != nil && !errors.Is(err, errStop) {
			t.Fatal(err)
		}
	}
}

// pruned opens what a crash left of dropping the frames before number needed.
func pruned(t *testing.T, o Options, fsys vfs.FS, frames []seen, needed int) {
	t.Helper()
	o.FS = fsys
	d, _, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(false) //nolint:errcheck // the end of the process
	l := d.Log(0)
	for range 2 {
		got := mustRead(t, l, l.Oldest(), ReaderOptions{Limit: LimitWritten, Follow: true})
		if len(got) < len(frames)-needed {
			t.Fatalf("%d frames, %d are needed", len(got), len(frames)-needed)
		}
		same(t, "after a crash", frames[len(frames)-len(got):], got)
		if _, err := d.DropUnneeded(); err != nil {
			t.Fatal(err)
		}
	}
	if l.Oldest() != frames[needed].cursor {
		t.Fatalf("the oldest is %v, want %v", l.Oldest(), frames[needed].cursor)
	}
	if files, err := fsys.ReadDir("data/shard-00"); err != nil || len(files) > l.Segments()+2 { // DURABLE, cut
		t.Fatalf("%d segments, files %q: %v", l.Segments(), files, err)
	}
	// What was dropped is gone for good: nobody gets frames behind it in its place.
	if r, err := l.NewReader(frames[0].cursor, ReaderOptions{Limit: LimitWritten, Follow: true}); !errors.Is(err, ErrGone) {
		if err == nil {
			r.Close()
		}
		t.Fatalf("a reader of dropped frames: %v", err)
	}
}

// A floor survives restarts until it is cleared; a reader keeps what it still has to read, sealed or not.
func TestFloorsAndPins(t *testing.T) {
	mem := vfs.NewMem()
	o, frames := sealable(t, mem)
	o.Window = 1
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	if err := errors.Join(l.Sync(), d.SetSnapshot("s", []Cursor{l.Tail()}), d.SetFloor("archive", []Cursor{{}})); err != nil {
		t.Fatal(err)
	}
	for i, from := range [][]Cursor{nil, {{}, {}}} {
		if err := d.SetFloor("bad", from); err == nil {
			t.Errorf("%d: accepted", i)
		}
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	d, _ = mustOpen(t, o)
	l = d.Log(0)
	if f := d.Floors()["archive"]; len(f) != 1 || f[0] != (Cursor{}) {
		t.Fatalf("floors %v", d.Floors())
	}
	if n, err := d.DropUnneeded(); n != 0 || err != nil {
		t.Fatalf("dropped %d, %v", n, err)
	}
	if err := errors.Join(d.ClearFloor("archive"), d.ClearFloor("archive")); err != nil {
		t.Fatal(err)
	}
	r, err := l.NewReader(frames[0].cursor, ReaderOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dropped := 0
	for i := range frames {
		if f, err := r.Next(); err != nil || sight(f) != frames[i] {
			t.Fatalf("frame %d: %v", i, err)
		}
		n, err := d.DropUnneeded()
		if err != nil {
			t.Fatal(err)
		}
		dropped += n
		if i == len(frames)/2 {
			if _, err := d.Seal(); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Close()
	n, err := d.DropUnneeded()
	if err != nil || dropped+n == 0 || l.Segments() != 1 {
		t.Fatalf("dropped %d and %d, %d segments are left: %v", dropped, n, l.Segments(), err)
	}
}

// A generation begins while segments are being removed: there may be very many of them, and who begins one holds up all writers.
func TestGenerationBeginsAmidDrop(t *testing.T) {
	d, faulty, _ := droppable(t)
	l := d.Log(0)
	removing, goOn := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(removing) })
	faulty.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpRemove && strings.HasSuffix(op.Path, segmentSuffix) {
			first()
			<-goOn
		}
		return nil
	})
	dropped, begun := make(chan int, 1), make(chan error, 1)
	go func() {
		n, err := d.DropUnneeded()
		if err != nil {
			t.Error(err)
		}
		dropped <- n
	}()
	<-removing
	go func() { begun <- d.NewGeneration(CauseFlush) }()
	select {
	case err := <-begun:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a generation waits for segments to be removed")
	}
	close(goOn)
	if n := <-dropped; n == 0 {
		t.Error("nothing was dropped")
	}
	if lin := d.Lineage(0); lin[len(lin)-1].Generation != l.Generation() {
		t.Errorf("the lineage ends with %v, the log is in %d", lin[len(lin)-1], l.Generation())
	}
}

// A reader that begins while segments are being dropped, after it was decided which, keeps its own all the same.
func TestReaderBeginsAmidDrop(t *testing.T) {
	d, faulty, frames := droppable(t)
	l := d.Log(0)
	var r *Reader
	faulty.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpRename && r == nil {
			r, _ = l.NewReader(frames[0].cursor, ReaderOptions{Follow: true})
		}
		return nil
	})
	if n, err := d.DropUnneeded(); n != 0 || err != nil || r == nil {
		t.Fatalf("dropped %d under the reader %v: %v", n, r, err)
	}
	for i := range frames {
		if f, err := r.Next(); err != nil || sight(f) != frames[i] {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	r.Close()
	if n, err := d.DropUnneeded(); n == 0 || err != nil || l.Segments() != 1 {
		t.Fatalf("dropped %d afterwards, %d are left: %v", n, l.Segments(), err)
	}
}

// A feed reader keeps nothing from being dropped. When what it has to read next is gone, it has to resync: that is no
// damage, in raw segments and in sealed ones.
func TestDroppedUnderFeed(t *testing.T) {
	for _, seal := range []bool{false, true} {
		o := sealOptions(vfs.NewMem(), tinySeals)
		d, l := mixedLog(t, o, 11, 60)
		g := l.Lineage()[1].Generation
		for range 3 {
			put(t, l, 5)
			if err := l.roll(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := l.NewReader(Cursor{g, 0}, ReaderOptions{Feed: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if seal {
			mustSeal(t, d)
		}
		d.mu.Lock()
		l.mu.Lock()
		l.win.size = 1
		l.mu.Unlock()
		d.mu.Unlock()
		if err := errors.Join(l.Sync(), d.SetSnapshot("s", []Cursor{l.Tail()})); err != nil {
			t.Fatal(err)
		}
		if n, err := d.DropUnneeded(); n < 3 || err != nil {
			t.Fatalf("dropped %d, %v", n, err)
		}
		for err == nil {
			_, err = r.Next()
		}
		var resync *ResyncError
		if !errors.As(err, &resync) || resync.Generation != g || resync.Tail != l.Appended() || l.Stats().Damaged > 0 {
			t.Errorf("sealed %v: %v, %+v", seal, err, l.Stats())
		}
	}
}

// Disk use is bounded while a store is written to for ever: KeepBytes, the window and two segments.
func TestKeepBytesBounds(t *testing.T) {
	now := int64(1000)
	o := testOptions(vfs.NewMem())
	o.SegmentBytes, o.Window, o.KeepBytes, o.sealSizes = 1<<30, 2000, 8000, tinySeals
	o.Now = func() int64 { return now }
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	most, least := int64(0), int64(1<<40)
	for i := range 200 {
		put(t, l, 10)
		now += 1000
		if i%2 == 1 {
			if err := l.roll(); err != nil {
				t.Fatal(err)
			}
		}
		if i%20 == 19 {
			if err := errors.Join(l.Sync(), d.SetSnapshot(fmt.Sprint(i), []Cursor{l.Tail()})); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Seal(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.DropUnneeded(); err != nil {
			t.Fatal(err)
		}
		if i > 100 {
			most, least = max(most, l.Stats().Bytes), min(least, l.Stats().Bytes)
		}
	}
	// Between two snapshots the log since the last one is kept as well.
	if most > 20_000 || least < 8000 {
		t.Errorf("%d to %d bytes on disk", least, most)
	}
	d.SetKeep(0, 0)
	if _, err := d.DropUnneeded(); err != nil || l.Stats().Bytes > 5000 {
		t.Errorf("without KeepBytes: %d bytes, %v", l.Stats().Bytes, err)
	}
}

// With KeepTime, what is younger is all there, and hardly more.
func TestKeepTimeBounds(t *testing.T) {
	now := int64(1_000_000)
	o := testOptions(vfs.NewMem())
	o.SegmentBytes, o.Window, o.KeepTime = 1<<30, 1, 10*time.Second
	o.Now = func() int64 { return now }
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	for i := range 100 {
		now += 1000
		l.Begin(now, ByClient, 0, 0)
		l.Append(set("k", "v"))
		l.End()
		if err := errors.Join(l.roll(), d.SetSnapshot(fmt.Sprint(i), []Cursor{l.Tail()})); err != nil {
			t.Fatal(err)
		}
		if _, err := d.DropUnneeded(); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, l, l.Oldest(), ReaderOptions{Limit: LimitWritten}); len(got) != min(i+1, 11) {
			t.Fatalf("after %d s: %d frames of the last 10 s", i+1, len(got))
		}
	}
}
