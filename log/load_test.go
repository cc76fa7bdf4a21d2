package log

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// TestReadersUnderLoad: readers that follow a writer over rolling segments see every frame in order and
// none beyond what is visible.
func TestReadersUnderLoad(t *testing.T) {
	for _, policy := range []Policy{EverySec, Always} {
		o := Options{FS: vfs.OS(), Dir: t.TempDir() + "/data", SegmentBytes: 4096, Policy: policy, Window: 1 << 30}
		d, _ := mustOpen(t, o)
		l := d.Log(0)
		start := l.Tail()
		const frames = 6000
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				o := ReaderOptions{Feed: i%2 == 0}
				follow(t, l, start, o, frames)
			})
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for n := 0; n < frames; {
			k := min(1+rng.IntN(5), frames-n)
			if err := l.Reserve(k * 100); err != nil {
				t.Fatal(err)
			}
			l.Begin(1, ByClient, 0, 0)
			for range k {
				l.Append(set("key", strings.Repeat("v", rng.IntN(100))))
			}
			next := l.End()
			if n += k; n/500 != (n-k)/500 { // the committer may have had no time to
				if err := l.roll(); err != nil {
					t.Fatal(err)
				}
			}
			switch rng.IntN(6) {
			case 0:
				l.SyncThrough(next)
				time.Sleep(100 * time.Microsecond)
			case 1, 2:
				if err := l.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if l.Segments() < 10 {
			t.Errorf("%d segments", l.Segments())
		}
		if err := d.Close(true); err != nil {
			t.Fatal(err)
		}
		d, rec := mustOpen(t, o)
		if !rec.Clean {
			t.Fatalf("%+v", rec)
		}
		if n, _ := readAll(t, d.Log(0), start, ReaderOptions{Feed: true}); n != frames {
			t.Fatalf("%d frames", n)
		}
	}
}

// awaken waits for wake, however long the machine takes to make it due. It returns false if wake has been due for 10 seconds.
func awaken(wake chan struct{}, due func() bool) bool {
	for was := false; ; was = due() {
		select {
		case <-wake:
			return true
		case <-time.After(10 * time.Second):
			if was {
				return false
			}
		}
	}
}

func follow(t *testing.T, l *Log, c Cursor, o ReaderOptions, frames int) {
	r, err := l.NewReader(c, o)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { r.Close() }()
	for n := range frames {
		f, err := r.Next()
		for err == io.EOF {
			wake := make(chan struct{})
			r.OnAdvance(func() { close(wake) })
			if !awaken(wake, func() bool { return l.Visible() > r.Cursor().Offset }) {
				t.Errorf("lost wake-up at %v, visible %d", r.Cursor(), l.Visible())
				return
			}
			f, err = r.Next()
		}
		if err != nil {
			t.Error(err)
			return
		}
		if f.Cursor.Offset != uint64(n) || f.Cursor.Offset >= l.Visible() {
			t.Errorf("frame %v at %d, visible %d", f.Cursor, n, l.Visible())
			return
		}
		if n%997 == 0 { // somewhere in the middle, with another reader
			at := r.Cursor()
			r.Close()
			if r, err = l.NewReader(at, o); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// TestHandOver: whoever registers while the log advances is called, exactly once.
func TestHandOver(t *testing.T) {
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	const n = 3000
	var calls, cancelled atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range uint64(n) {
				done := make(chan struct{})
				cancel := l.OnAdvance(i, func() { calls.Add(1); close(done) })
				if w == 0 && i%3 == 0 {
					cancel()
					cancel()
					select {
					case <-done:
					default:
						cancelled.Add(1)
						continue
					}
				}
				if !awaken(done, func() bool { return l.Visible() > i }) {
					t.Errorf("waiter for %d was not called, visible %d", i, l.Visible())
					return
				}
			}
		})
	}
	for range n {
		l.Begin(1, ByClient, 0, 0)
		l.Append(set("a", "b"))
		l.End()
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if calls.Load()+cancelled.Load() != 8*n {
		t.Fatal(calls.Load(), cancelled.Load())
	}
	if len(l.marks.visible.list) != 0 {
		t.Fatal("waiters left behind")
	}
}

// TestManyShardsUnderLoad: groups over several shards while tiny segments roll, then a crash.
func TestManyShardsUnderLoad(t *testing.T) {
	fsys := crashfs.New()
	o := testOptions(fsys)
	o.Shards, o.SegmentBytes = 4, 2000
	d, _ := mustOpen(t, o)
	var locks [4]sync.Mutex
	var txn atomic.Uint64
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Go(func() { crossShardLoad(t, d, &locks, &txn, w) })
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	for i, running := 0, true; running; i++ {
		if err := d.Log(i % 4).roll(); err != nil && !errors.Is(err, errUnsettled) {
			t.Error(err)
		}
		select {
		case <-finished:
			running = false
		default:
		}
	}
	rng := rand.New(rand.NewPCG(9, 9))
	for range 20 {
		o.FS = fsys.CrashClone(rng)
		d, _, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		mustBeWhole(t, d)
		_ = d.Close(false)
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
}

// crossShardLoad appends 500 groups over random sets of the four shards, each under their locks.
func crossShardLoad(t *testing.T, d *Dir, locks *[4]sync.Mutex, txn *atomic.Uint64, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 500 {
		mask := rng.Uint64N(16)
		each := func(f func(i int)) {
			for i := range 4 {
				if mask&(1<<i) != 0 {
					f(i)
				}
			}
		}
		each(func(i int) { locks[i].Lock() })
		id := txn.Add(1)
		each(func(i int) {
			l := d.Log(i)
			l.Begin(1, ByClient, id, mask)
			l.Append(set("key", "value of some length"))
			l.End()
		})
		each(func(i int) { locks[i].Unlock() })
		each(func(i int) {
			if err := d.Log(i).Flush(); err != nil {
				t.Error(err)
			}
		})
	}
}

// mustBeWhole checks that every group is on all of its shards.
func mustBeWhole(t *testing.T, d *Dir) {
	t.Helper()
	parts := map[uint64]uint64{}
	masks := map[uint64]uint64{}
	for i := range 4 {
		l := d.Log(i)
		r, err := l.NewReader(l.Oldest(), ReaderOptions{Limit: LimitWritten, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		for {
			f, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			parts[f.Txn] |= 1 << i
			masks[f.Txn] = f.Mask
		}
		r.Close()
	}
	for id, mask := range masks {
		if parts[id] != mask {
			t.Fatalf("group %d on %b, want %b", id, parts[id], mask)
		}
	}
}
