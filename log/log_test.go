package log

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

func TestRestartsAndGenerations(t *testing.T) {
	fsys := vfs.NewMem()
	o := testOptions(fsys)
	d, rec := mustOpen(t, o)
	if !rec.Created || !rec.Clean || d.HashSeed() != 7 || d.Shards() != 1 || d.Path() != "data" {
		t.Fatalf("%+v", rec)
	}
	if _, _, err := Open(o); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("second Open: %v", err)
	}
	l := d.Log(0)
	start := l.Tail()
	put(t, l, 4)
	if n, end := readAll(t, l, start, ReaderOptions{}); n != 4 || end != l.Tail() {
		t.Fatalf("%d frames, end %v", n, end)
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	o.Shards, o.HashSeed = 3, 9 // only for new directories
	d, rec = mustOpen(t, o)
	l = d.Log(0)
	if !rec.Clean || rec.Created || l.Tail() != (Cursor{start.Generation, 4}) || d.Shards() != 1 || d.HashSeed() != 7 {
		t.Fatalf("%+v tail %v", rec, l.Tail())
	}
	put(t, l, 2)
	if n, _ := readAll(t, l, start, ReaderOptions{Feed: true}); n != 6 {
		t.Fatalf("%d frames", n)
	}
	fired := 0
	l.OnAdvance(6, func() { fired++ })
	l.OnDurable(7, func() { fired++ })
	if err := d.NewGeneration(CauseFlush); err != nil {
		t.Fatal(err)
	}
	if fired != 2 || l.Tail().Offset != 0 || l.Generation() <= start.Generation {
		t.Fatalf("fired %d, tail %v", fired, l.Tail())
	}
	put(t, l, 1)
	if n, end := readAll(t, l, start, ReaderOptions{Follow: true}); n != 7 || end != l.Tail() {
		t.Fatalf("%d frames, end %v", n, end)
	}
	_ = d.Close(false)
	d, rec = mustOpen(t, o)
	l = d.Log(0)
	if rec.Clean || rec.Shards[0].Found.Offset != 1 {
		t.Fatalf("%+v", rec)
	}
	if n, _ := readAll(t, l, start, ReaderOptions{Follow: true}); n != 7 {
		t.Fatalf("%d frames", n)
	}
	if lin := d.Lineage(0); len(lin) != 3 || lin[0].Cause != CauseCreate || lin[1].Cause != CauseFlush || lin[2].Cause != CauseCrash ||
		lin[1].Parent != start.Generation || lin[1].ParentOffset != 6 || lin[2].ParentOffset != 1 {
		t.Fatalf("%+v", lin)
	}
}

func TestHoldAndPolicies(t *testing.T) {
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	put(t, l, 2)
	l.SetHold(l.Appended())
	woken := 0
	l.OnAdvance(2, func() { woken++ })
	put(t, l, 2)
	put(t, l, 2)
	if l.Visible() != 2 || l.Written() != 6 || woken != 0 {
		t.Fatalf("visible %d written %d woken %d", l.Visible(), l.Written(), woken)
	}
	if n, _ := readAll(t, l, Cursor{l.Generation(), 0}, ReaderOptions{Feed: true}); n != 2 {
		t.Fatalf("%d frames", n)
	}
	if n, _ := readAll(t, l, Cursor{l.Generation(), 5}, ReaderOptions{Feed: true}); n != 0 {
		t.Fatalf("%d frames", n)
	}
	l.SetHold(4)
	if l.Visible() != 4 || woken != 1 {
		t.Fatalf("visible %d woken %d", l.Visible(), woken)
	}
	l.SetHold(noHold)
	if l.Visible() != 6 {
		t.Fatalf("visible %d", l.Visible())
	}
	d.SetPolicy(Always)
	waitFor(t, func() bool { return l.Durable() == 6 })
	l.Begin(1, ByClient, 0, 0)
	l.Append(set("a", "b"))
	next := l.End()
	if l.Visible() != 6 || l.Written() != 6 {
		t.Fatal("visible before written")
	}
	done := make(chan struct{})
	l.OnDurable(next, func() { close(done) })
	l.SyncThrough(next)
	<-done
	if l.Visible() != next || l.Durable() != next {
		t.Fatalf("visible %d durable %d", l.Visible(), l.Durable())
	}
}

// TestSetHoldCallsNobodyWhoWaitsForDurable moves the hold between the two steps of a sync, when what waits for the sync could be called
// already. The caller of SetHold may hold a lock that those need.
func TestSetHoldCallsNobodyWhoWaitsForDurable(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Policy = No
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	put(t, l, 2)
	var lock sync.Mutex // as of package engine's transactions
	called := false
	lock.Lock()
	l.OnDurable(2, func() {
		if !lock.TryLock() {
			t.Error("called by SetHold")
			return
		}
		called = true
		lock.Unlock()
	})
	g := l.gen.Load()
	g.durable.Store(2) // as sync does, before it calls those who wait
	l.SetHold(1)
	l.SetHold(noHold)
	lock.Unlock()
	l.marks.advance(g)
	if !called {
		t.Error("not called")
	}
}

// TestSyncThrough: who asks for a sync gets it whatever the policy is, and also when that changes meanwhile.
func TestSyncThrough(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	o := testOptions(fs)
	o.Policy = No
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	durable := func(next uint64) chan struct{} {
		done := make(chan struct{})
		l.OnDurable(next, func() { close(done) })
		l.SyncThrough(next)
		return done
	}
	<-durable(put(t, l, 2))
	d.SetPolicy(Always)
	syncs := make(chan chan struct{}, 8)
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpSync {
			goOn := make(chan struct{})
			syncs <- goOn
			<-goOn
		}
		return nil
	})
	first := durable(put(t, l, 1))
	running := <-syncs
	second := durable(put(t, l, 1)) // not covered by the sync that is running
	d.SetPolicy(No)
	fs.Inject(nil)
	close(running)
	<-first
	<-second
}

func TestEverySecond(t *testing.T) {
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	put(t, l, 2)
	waitFor(t, func() bool { return l.Durable() == 2 })
	if c := l.DurableTail(); c != l.Tail() {
		t.Fatal(c)
	}
}

func TestGroups(t *testing.T) {
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	l.Begin(5, ByScript, 0, 0)
	l.Append(set("gone", "x"))
	l.Abort()
	l.Begin(5, ByScript, 0, 0)
	if next := l.End(); next != 0 || l.Appended() != 0 {
		t.Fatal(next)
	}
	l.Begin(50, ByClient, 77, 1)
	l.Append(set("a", "1"))
	l.SetCause(ByExpiry)
	l.Append(&effect.Effect{Op: effect.Del, Args: [][]byte{[]byte("b"), []byte("c")}})
	l.Append(&effect.Effect{Op: effect.FlushAll})
	l.End()
	l.Begin(40, ByEviction, 0, 0) // the clock went back
	l.Append(&effect.Effect{Op: effect.Del, Args: [][]byte{[]byte("d")}})
	l.End()
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	want := []Frame{
		{TimeMS: 50, Txn: 77, Mask: 1, Op: effect.Set, Single: true, Key: []byte("a"), GroupFirst: true},
		{TimeMS: 50, Txn: 77, Mask: 1, Op: effect.Del, Cause: ByExpiry},
		{TimeMS: 50, Txn: 77, Mask: 1, Op: effect.FlushAll, Cause: ByExpiry, GroupLast: true},
		{TimeMS: 50, Group: 3, Op: effect.Del, Cause: ByEviction, Single: true, Key: []byte("d"), GroupFirst: true, GroupLast: true},
	}
	for start := range want {
		r, err := l.NewReader(Cursor{l.Generation(), uint64(start)}, ReaderOptions{Feed: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := start; i < len(want); i++ {
			f, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			w := want[i]
			if f.Cursor.Offset != uint64(i) || f.TimeMS != w.TimeMS || f.Txn != w.Txn || f.Mask != w.Mask || f.Group != w.Group ||
				f.Op != w.Op || f.Cause != w.Cause || f.Single != w.Single || string(f.Key) != string(w.Key) ||
				f.GroupFirst != w.GroupFirst || f.GroupLast != w.GroupLast {
				t.Fatalf("from %d, frame %d: %+v, want %+v", start, i, f, w)
			}
			var e effect.Effect
			if err := effect.Decode(f.Payload, &e); err != nil || e.Op != f.Op {
				t.Fatal(err)
			}
		}
		r.Close()
	}
	if st := l.Stats(); st.Bytes != l.segs[0].end.Load() || st.OldestMS != 50 {
		t.Fatalf("%+v", st)
	}
}

// TestTimeNeverFalls: not over restarts either, also when the newest segment is empty.
func TestTimeNeverFalls(t *testing.T) {
	fsys := vfs.NewMem()
	for round := range 4 {
		d, _ := mustOpen(t, testOptions(fsys))
		l := d.Log(0)
		if round == 0 {
			l.Begin(9000, ByClient, 0, 0)
			l.Append(set("a", "b"))
			l.End()
			if err := l.roll(); err != nil {
				t.Fatal(err)
			}
		} else {
			put(t, l, 1) // at 1000
		}
		r, err := l.NewReader(Cursor{l.Generation(), l.Appended() - 1}, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if f, err := r.Next(); err != nil || f.TimeMS != 9000 {
			t.Fatalf("%+v %v", f, err)
		}
		r.Close()
		_ = d.Close(round%2 == 0)
	}
}

func TestReadOnly(t *testing.T) {
	fsys := crashfs.New()
	o := testOptions(fsys)
	o.Shards, o.Policy = 2, No
	d, _ := mustOpen(t, o)
	for i := range 2 {
		for n := range 30 {
			put(t, d.Log(i), 2)
			if n%10 == 9 {
				if err := d.Log(i).roll(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	l := d.Log(0)
	l.Begin(1, ByClient, 1, 3) // not yet on shard 1
	l.Append(set("half", "x"))
	l.End()
	_ = l.Flush()
	before := listing(t, fsys)
	ro, rec, err := OpenReadOnly(fsys, "data")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		rl := ro.Log(i)
		if n, end := readAll(t, rl, rl.Oldest(), ReaderOptions{Follow: true}); n != 60 || end.Offset != 60 {
			t.Fatalf("shard %d: %d frames to %v", i, n, end)
		}
		end := Cursor{rl.Generation(), 17}
		if n, _ := readAll(t, rl, rl.Oldest(), ReaderOptions{Limit: LimitEnd, End: end, Follow: true}); n != 17 {
			t.Fatalf("%d frames", n)
		}
		if err := rl.Reserve(1); !errors.Is(err, ErrReadOnly) {
			t.Fatal(err)
		}
	}
	if rec.Clean || rec.Shards[0].CutFrames != 1 || rec.Shards[1].CutFrames != 0 {
		t.Fatalf("%+v", rec)
	}
	if err := ro.SetSnapshot("x", []Cursor{{}, {}}); !errors.Is(err, ErrReadOnly) {
		t.Fatal(err)
	}
	if err := ro.Close(true); err != nil {
		t.Fatal(err)
	}
	if listing(t, fsys) != before {
		t.Fatal("something was changed")
	}
	if _, _, err := OpenReadOnly(fsys, "elsewhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestTypes(t *testing.T) {
	c := Cursor{1<<53 - 1, 1<<64 - 1}
	if got, err := ParseCursor(c.String()); err != nil || got != c {
		t.Fatal(got, err)
	}
	for _, bad := range []string{"", "1", "1:", ":1", "-1:2", "1:2:3", "1: 2", "18446744073709551616:0"} {
		if _, err := ParseCursor(bad); err == nil {
			t.Errorf("%q", bad)
		}
	}
	for _, p := range []Policy{Always, EverySec, No} {
		if got, err := ParsePolicy(strings.ToUpper(p.String())); err != nil || got != p {
			t.Error(got, err)
		}
	}
	if _, err := ParsePolicy("sometimes"); err == nil {
		t.Error("sometimes")
	}
	for c := CauseCreate; c <= CauseRepair; c++ {
		if got, err := ParseCause(c.String()); err != nil || got != c {
			t.Error(got, err)
		}
	}
	if _, err := ParseCause(""); err == nil {
		t.Error("empty cause")
	}
	if Cause(99).String() != "cause(99)" || ByExpiry.String() != "expired" {
		t.Error(Cause(99), ByExpiry)
	}
	last := uint64(0)
	for _, now := range []int64{0, generationEpoch + 5, generationEpoch + 5, 1} {
		g := newGeneration(now, ^uint64(0), last)
		if g <= last || g > maxGeneration {
			t.Errorf("%d after %d", g, last)
		}
		last = g
	}
	for _, o := range []Options{{}, {Dir: "x", Shards: 65}, {Dir: "x", SegmentBytes: 1}, {Dir: "x", Window: -1}, {Dir: "x", Policy: 7}} {
		if _, _, err := Open(o); err == nil {
			t.Errorf("%+v", o)
		}
	}
}
