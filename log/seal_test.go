package log

import (
	"errors"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// sealable makes a directory of several ended segments and a newest one, closed cleanly, and returns what is in it.
func sealable(t testing.TB, fsys vfs.FS) (Options, []seen) {
	t.Helper()
	o := sealOptions(fsys, tinySeals)
	d, l := mixedLog(t, o, 11, 60)
	frames := mustRead(t, l, l.Oldest(), ReaderOptions{Follow: true})
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	return o, frames
}

func sealedPath(n uint64) string { return path.Join("data/shard-00", sealedName(n)) }

// whole opens a directory and wants exactly the given frames, then seals what is not sealed and wants them again.
func whole(t *testing.T, o Options, frames []seen) {
	t.Helper()
	d, rec, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(false) //nolint:errcheck // the end of the process
	if !rec.Clean && rec.Shards[0].CutBytes != 0 {
		t.Fatalf("%+v", rec)
	}
	l := d.Log(0)
	same(t, "after a crash", frames, mustRead(t, l, l.Oldest(), ReaderOptions{Limit: LimitWritten, Follow: true}))
	names, err := o.FS.ReadDir("data/shard-00")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		raw := strings.TrimSuffix(n, sealedSuffix) + segmentSuffix
		if strings.HasSuffix(n, tempSuffix) || (strings.HasSuffix(n, sealedSuffix) && slices.Contains(names, raw)) {
			t.Errorf("%s was left", n)
		}
	}
	if _, err := d.Seal(); err != nil {
		t.Fatal(err)
	}
	same(t, "sealed then", frames, mustRead(t, l, l.Oldest(), ReaderOptions{Limit: LimitWritten, Follow: true}))
	segs := l.segments()
	for _, s := range segs[:len(segs)-1] {
		if raw := path.Join(s.dir, segmentName(s.number)); s.sealed.Load() == there(o.FS, raw) {
			t.Errorf("segment %d: sealed %v, its raw file is there %v", s.number, s.sealed.Load(), there(o.FS, raw))
		}
	}
}

func there(fsys vfs.FS, name string) bool {
	_, err := fsys.Stat(name)
	return err == nil
}

// TestSealInBackground: the work of sealing goes where the options say, and gives way all along, writing and reading back.
func TestSealInBackground(t *testing.T) {
	o, frames := sealable(t, crashfs.New())
	runs, ways := 0, 0
	o.Background = func(fn func(giveWay func())) {
		runs++
		fn(func() { ways++ })
	}
	d, _ := mustOpen(t, o)
	least := 0
	for _, l := range d.logs {
		for _, s := range l.segs[:len(l.segs)-1] {
			least += 2 * (int(l.after(s).parentOff-s.base) / giveWayEvery)
		}
	}
	n, err := d.Seal()
	if err != nil || n == 0 || runs != n {
		t.Errorf("%d segments were sealed in %d runs: %v", n, runs, err)
	}
	if least == 0 || ways != least {
		t.Errorf("gave way %d times, want %d", ways, least)
	}
	_ = d.Close(false)
	whole(t, o, frames)
}

// TestSealCrash ends the process, or takes the power, after each write of sealing three segments: no frame is
// lost, and sealing starts over.
func TestSealCrash(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for n := 0; ; n++ {
		fsys := crashfs.New()
		o, frames := sealable(t, fsys)
		faulty := faultfs.New(fsys)
		o.FS = faulty
		d, _, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		faulty.Inject(stopAfter(n, errStop))
		_, err = d.Seal()
		for range 3 {
			o.FS = fsys.Crash(r)
			whole(t, o, frames)
		}
		o.FS = fsys.KillClone()
		whole(t, o, frames)
		faulty.Inject(nil)
		_ = d.Close(false)
		if err == nil {
			if n < 15 {
				t.Fatalf("sealing took %d writes only", n)
			}
			return
		}
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
	}
}

// TestSealFaults lets each operation of sealing fail once, with several errors: the log goes on taking frames, its
// frames are all there, what failed shows, and the next try succeeds.
func TestSealFaults(t *testing.T) {
	for name, cause := range map[string]error{"io": syscall.EIO, "full": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				mem := vfs.NewMem()
				o, frames := sealable(t, mem)
				faulty := faultfs.New(mem)
				o.FS = faulty
				d, _, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				var count atomic.Int64
				faulty.Inject(func(op faultfs.Op) error {
					if count.Add(1) == int64(n+1) && (cause != syscall.ENOSPC || op.Kind.IsWrite()) {
						return cause
					}
					return nil
				})
				l := d.Log(0)
				_, err = d.Seal()
				all := count.Load() <= int64(n)
				faulty.Inject(nil)
				if want := err != nil && name == "io"; (l.Stats().SealFailures > 0) != want {
					t.Errorf("operation %d: %v: %+v", n, err, l.Stats())
				}
				if l.Err() != nil || l.Stats().Damaged > 0 {
					t.Fatalf("operation %d: %v, %+v", n, l.Err(), l.Stats())
				}
				same(t, "after a fault", frames, mustRead(t, l, l.Oldest(), ReaderOptions{Follow: true}))
				put(t, l, 1)
				if err := d.Close(true); err != nil {
					t.Fatal(err)
				}
				o.FS = mem
				d, _ = mustOpen(t, o)
				l = d.Log(0)
				same(t, "later", frames, mustRead(t, l, l.Oldest(), ReaderOptions{Follow: true})[:len(frames)])
				if _, err := d.Seal(); err != nil {
					t.Fatal(err)
				}
				_ = d.Close(false)
				if all {
					return
				}
			}
		})
	}
}

// A read-only Dir goes on reading when the process that uses the directory seals under it, and both are there
// when the raw file comes back.
func TestSealUnderReader(t *testing.T) {
	mem := vfs.NewMem()
	o, frames := sealable(t, mem)
	ro, _, err := OpenReadOnly(mem, "data")
	if err != nil {
		t.Fatal(err)
	}
	raw := fileBytes(t, mem, segmentPath(1))
	d, _ := mustOpen(t, o)
	if _, err := d.Seal(); err != nil {
		t.Fatal(err)
	}
	same(t, "read-only", frames, mustRead(t, ro.Log(0), frames[0].cursor, ReaderOptions{Limit: LimitWritten, Follow: true}))
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	setBytes(t, mem, segmentPath(1), raw)
	whole(t, o, frames)
}

// TestSealConcurrently appends, rolls, seals and drops beside readers of all kinds.
func TestSealConcurrently(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SegmentBytes, o.Window, o.Shards, o.sealSizes, o.SealAfter = 4000, 3000, 2, tinySeals, -time.Millisecond
	d, _ := mustOpen(t, o)
	d.Maintain()
	r := rand.New(rand.NewPCG(5, 5))
	var locks [2]sync.Mutex
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		l := d.Log(i % 2)
		c := l.Tail()
		wg.Go(func() { tailTo(t, l, c, i >= 2, stop) })
	}
	for n := range 2500 {
		shard := n % 2
		l := d.Log(shard)
		locks[shard].Lock()
		if err := l.Reserve(1 << 20); err != nil {
			t.Error(err)
		}
		l.Begin(int64(n), ByClient, 0, 0)
		for range 1 + r.IntN(3) {
			l.Append(set(mixedKey(r), "value"))
		}
		l.End()
		locks[shard].Unlock()
		if n%7 == 0 {
			if err := l.Flush(); err != nil {
				t.Error(err)
			}
		}
		if n%500 == 499 {
			if err := errors.Join(d.Log(0).Sync(), d.Log(1).Sync(), d.SetSnapshot("s", []Cursor{d.Log(0).Tail(), d.Log(1).Tail()})); err != nil {
				t.Error(err)
			}
			d.kickKeeper()
		}
	}
	close(stop)
	for i := range 2 {
		if err := d.Log(i).Sync(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	waitFor(t, func() bool {
		d.kickKeeper()
		st := d.Log(0).Stats()
		st.Add(d.Log(1).Stats())
		return st.Sealed > 0 && st.Sealed >= st.Segments-6 && st.Segments < 20
	})
}

// tailTo reads a log from c until stop is closed and all is read, checking that no offset is left out.
func tailTo(t *testing.T, l *Log, c Cursor, filtered bool, stop chan struct{}) {
	o := ReaderOptions{}
	if filtered {
		o.Prefixes = [][]byte{[]byte("user:"), []byte("hot")}
	}
	r, err := l.NewReader(c, o)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	for next := c.Offset; ; {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			select {
			case <-stop:
				if l.Visible() == l.Appended() && r.Cursor() == l.Tail() {
					return
				}
			case <-time.After(time.Millisecond):
			}
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		if f.Cursor.Offset < next || (!filtered && f.Cursor.Offset != next) {
			t.Errorf("frame %v, expected %d", f.Cursor, next)
			return
		}
		next = f.Cursor.Offset + 1
	}
}
