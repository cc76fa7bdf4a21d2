package log

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
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
		if strings.HasSuffix(n, tempSuffix) {
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

// sealedDir is a directory whose ended segments are all sealed.
func sealedDir(t testing.TB, fsys vfs.FS) (Options, []seen) {
	t.Helper()
	o, frames := sealable(t, fsys)
	d, _ := mustOpen(t, o)
	if _, err := d.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	return o, frames
}

// prefixOrRefused opens a directory that was damaged: it is refused, or readers give a correct prefix and then
// damage, filtered ones too. It reports whether damage was found.
func prefixOrRefused(t *testing.T, o Options, frames []seen, what string) (found bool) {
	t.Helper()
	d, _, err := Open(o)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatalf("%s: %v", what, err)
		}
		return true
	}
	defer d.Close(false) //nolint:errcheck // the end of the process
	l := d.Log(0)
	for _, prefixes := range [][][]byte{nil, {[]byte("user:")}, {[]byte("a")}, {[]byte("nosuch")}} {
		for _, groups := range []bool{false, true} {
			got, err := read(t, l, frames[0].cursor, ReaderOptions{Limit: LimitWritten, Follow: true, Prefixes: prefixes, Groups: groups})
			want := wanted(frames, prefixes)
			n := 0
			for _, g := range got {
				f := Frame{Single: g.single, Key: []byte(g.key)}
				if !f.Wanted(prefixes) {
					continue
				}
				if n == len(want) || g.cursor != want[n].cursor || g.payload != want[n].payload {
					t.Fatalf("%s: prefixes %q: frame %v comes as number %d", what, prefixes, g.cursor, n)
				}
				n++
			}
			switch {
			case errors.Is(err, io.EOF) && n == len(want):
			case errors.Is(err, ErrCorrupt):
				found = true
				if st := l.Stats(); st.Damaged == 0 || st.LastDamage == nil {
					t.Fatalf("%s: %v, and no alarm: %+v", what, err, st)
				}
			default:
				t.Fatalf("%s: prefixes %q: ended after %d of %d: %v", what, prefixes, n, len(want), err)
			}
		}
	}
	// Damage in what is past keeps nothing from going on.
	put(t, l, 1)
	if err := d.SetSnapshot("s", []Cursor{l.Tail()}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := l.Sync(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return found
}

// TestSealedBitFlips flips 200 random bits in sealed segments, one at a time.
func TestSealedBitFlips(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	mem := vfs.NewMem()
	o, frames := sealedDir(t, mem)
	manifest := fileBytes(t, mem, "data/MANIFEST")
	newest := fileBytes(t, mem, segmentPath(uint64(segmentsOf(t, mem))))
	found := 0
	for i := range 200 {
		name := sealedPath(uint64(1 + r.IntN(segmentsOf(t, mem)-1)))
		good := fileBytes(t, mem, name)
		bad := bytes.Clone(good)
		bit := r.IntN(len(bad) * 8)
		bad[bit/8] ^= 1 << (bit % 8)
		setBytes(t, mem, name, bad)
		if prefixOrRefused(t, o, frames, fmt.Sprintf("flip %d: bit %d of %s", i, bit, name)) {
			found++
		}
		setBytes(t, mem, name, good)
		setBytes(t, mem, "data/MANIFEST", manifest)
		setBytes(t, mem, segmentPath(uint64(segmentsOf(t, mem))), newest)
		for n := segmentsOf(t, mem); there(mem, segmentPath(uint64(n+1))); {
			if err := mem.Remove(segmentPath(uint64(n + 1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found != 200 {
		t.Errorf("%d of 200 flipped bits were found", found)
	}
}

// segmentsOf is how many segments sealable makes.
func segmentsOf(t *testing.T, fsys vfs.FS) int {
	t.Helper()
	n := 0
	for there(fsys, sealedPath(uint64(n+1))) {
		n++
	}
	return n + 1
}

// TestSealedFiles damages whole files: each is refused, and nothing is changed.
func TestSealedFiles(t *testing.T) {
	other := vfs.NewMem()
	o, _ := sealable(t, other)
	o.HashSeed = 8
	d, _ := mustOpen(t, o)
	if _, err := d.Seal(); err != nil {
		t.Fatal(err)
	}
	_ = d.Close(false)
	for name, damage := range map[string]func(fsys vfs.FS, n int){
		"missing": func(fsys vfs.FS, _ int) { _ = fsys.Remove(sealedPath(2)) },
		"swapped": func(fsys vfs.FS, _ int) {
			a, b := fileBytes(t, fsys, sealedPath(2)), fileBytes(t, fsys, sealedPath(3))
			setBytes(t, fsys, sealedPath(2), b)
			setBytes(t, fsys, sealedPath(3), a)
		},
		"foreign":        func(fsys vfs.FS, _ int) { setBytes(t, fsys, sealedPath(2), fileBytes(t, other, sealedPath(2))) },
		"empty":          func(fsys vfs.FS, _ int) { setBytes(t, fsys, sealedPath(2), nil) },
		"newest missing": func(fsys vfs.FS, n int) { _ = fsys.Remove(segmentPath(uint64(n))) },
		"newest is sealed, short": func(fsys vfs.FS, n int) {
			_ = fsys.Remove(segmentPath(uint64(n)))
			setBytes(t, fsys, sealedPath(uint64(n)), fileBytes(t, fsys, sealedPath(2))[:100])
		},
		"raw name": func(fsys vfs.FS, _ int) { _ = fsys.Rename(sealedPath(2), segmentPath(2)) },
		"sealed name": func(fsys vfs.FS, n int) {
			_ = fsys.Rename(segmentPath(uint64(n)), sealedPath(uint64(n)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			sealedDir(t, fsys)
			damage(fsys, segmentsOf(t, fsys))
			mustRefuse(t, fsys, ErrCorrupt)
		})
	}
	t.Run("version", func(t *testing.T) {
		fsys := vfs.NewMem()
		sealedDir(t, fsys)
		b := fileBytes(t, fsys, sealedPath(2))
		b[8] = sealedVersion + 1
		setBytes(t, fsys, sealedPath(2), b)
		mustRefuse(t, fsys, ErrVersion)
	})
	// A shorter file, or one with more behind, has its header in place: reading it finds out.
	for name, change := range map[string]func(b []byte) []byte{
		"shorter": func(b []byte) []byte { return b[:len(b)-1] },
		"header":  func(b []byte) []byte { return b[:headerBytes] },
		"longer":  func(b []byte) []byte { return append(b, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			o, frames := sealedDir(t, fsys)
			setBytes(t, fsys, sealedPath(2), change(fileBytes(t, fsys, sealedPath(2))))
			if !prefixOrRefused(t, o, frames, name) {
				t.Error("not found")
			}
		})
	}
}

// A raw segment that is damaged is not sealed: it stays, the alarm is raised, and the others are sealed.
func TestSealDamagedRaw(t *testing.T) {
	mem := vfs.NewMem()
	o, frames := sealable(t, mem)
	b := fileBytes(t, mem, segmentPath(2))
	b[len(b)/2] ^= 1
	setBytes(t, mem, segmentPath(2), b)
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	for range 2 {
		n, err := d.Seal()
		if st := l.Stats(); st.Damaged != 1 || !errors.Is(st.LastDamage, ErrCorrupt) || st.Sealed != l.Segments()-2 {
			t.Fatalf("sealed %d, %v: %+v", n, err, st)
		}
	}
	if got := fileBytes(t, mem, segmentPath(2)); !bytes.Equal(got, b) {
		t.Error("the damaged file was touched")
	}
	if got, err := read(t, l, frames[0].cursor, ReaderOptions{Follow: true}); !errors.Is(err, ErrCorrupt) || len(got) == 0 {
		t.Errorf("%d frames, %v", len(got), err)
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
	o.SegmentBytes, o.Window, o.Shards, o.sealSizes = 4000, 3000, 2, tinySeals
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

// FuzzSealed: whatever a sealed segment's file holds, with its checksums made right, reading it ends with frames
// that were there in their order or with damage.
func FuzzSealed(f *testing.F) {
	mem := vfs.NewMem()
	o, frames := sealable(f, mem)
	d, _ := mustOpen(f, o)
	if _, err := d.Seal(); err != nil {
		f.Fatal(err)
	}
	s := d.Log(0).segments()[0]
	good := fileBytes(f, mem, s.path())
	end := slices.IndexFunc(frames, func(x seen) bool { return x.cursor == d.Log(0).segments()[1].start() })
	frames = frames[:end]
	f.Add([]byte{}, 0, 0)
	f.Add([]byte{0xff, 3}, headerBytes+14, 1)
	f.Add([]byte{1, 2, 3}, len(good)-20, 2)
	f.Fuzz(func(t *testing.T, patch []byte, at, mode int) {
		b := bytes.Clone(good)
		if at >= 0 && at < len(b) {
			copy(b[at:], patch)
		}
		if mode == 1 {
			fixBlocks(b, s)
		}
		fsys := vfs.NewMem()
		_ = fsys.MkdirAll(s.dir)
		setBytes(t, fsys, s.path(), b)
		x := &segment{segmentHeader: s.segmentHeader, fs: fsys, dir: s.dir, cache: &chunkCache{}}
		x.end.Store(s.end.Load())
		x.sealed.Store(true)
		h, err := x.acquire()
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		defer h.release()
		st := NewStream(h.src, h.name, s.shard, s.start(), headerBytes, x.end.Load())
		defer st.Close()
		for i := 0; ; i++ {
			fr, err := st.Next()
			if errors.Is(err, io.EOF) && i == len(frames) || errors.Is(err, ErrCorrupt) {
				break
			}
			if err != nil || sight(fr) != frames[i] {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
		q := hits{prefixes: [][]byte{[]byte("user:")}}
		q.open(h.view)
		for off := s.base; ; {
			at, _, err := q.next(off)
			if errors.Is(err, io.EOF) || errors.Is(err, ErrCorrupt) {
				return
			}
			if err != nil || at < off {
				t.Fatalf("hit %d from %d: %v", at, off, err)
			}
			off = at + 1
		}
	})
}

// fixBlocks makes the checksums of what could be blocks from the start of the file on right.
func fixBlocks(b []byte, s *segment) {
	le.PutUint32(b[124:], headerSum(b))
	for pos := headerBytes; pos+BlockHeader <= len(b); {
		n, _, err := BlockSize(b[pos:])
		if err != nil || pos+n > len(b) {
			return
		}
		le.PutUint32(b[pos:], BlockPlace{s.blockFile(), int64(pos)}.sum(b[pos:pos+n]))
		pos += n
	}
}

func headerSum(b []byte) uint32 { return crc32.Checksum(b[:124], castagnoli) }
