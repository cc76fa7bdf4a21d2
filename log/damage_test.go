package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// build makes a directory with the given groups (frames each) in one shard, three segments if
// segments is set, killed at the end. It returns the file system and the values of all frames.
func build(t testing.TB, groups []int, rollAfter ...int) (*crashfs.FS, []item) {
	t.Helper()
	fsys := crashfs.New()
	d, _ := mustOpen(t, testOptions(fsys))
	l := d.Log(0)
	var items []item
	n := 0
	for g, frames := range groups {
		l.Begin(int64(g), ByClient, 0, 0)
		for i := range frames {
			n++
			v := fmt.Sprintf("value-%d", n)
			l.Append(set("key", v))
			items = append(items, item{v, 0, i == frames-1})
		}
		l.End()
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, r := range rollAfter {
			if r == g {
				if err := l.roll(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	killed := fsys.KillClone()
	fsys.Freeze()
	_ = d.Close(false)
	return killed, items
}

func segmentPath(n uint64) string { return path.Join("data/shard-00", segmentName(n)) }

func fileBytes(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	b, err := readFile(fsys, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func setBytes(t testing.TB, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	if err := writeFile(fsys, name, b); err != nil {
		t.Fatal(err)
	}
}

// reopen opens, checks that a prefix of items is there (with at least min), writes, restarts twice,
// and checks that the new frames are there too.
func reopen(t testing.TB, fsys vfs.FS, items []item, atLeast int) *Recovery {
	t.Helper()
	d, rec, err := Open(testOptions(fsys))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	for round := range 3 {
		l := d.Log(0)
		got := history(t, l, l.Oldest())
		if len(got) < atLeast || (round == 0 && len(got) > len(items)) {
			t.Fatalf("round %d: %d frames, want %d..%d", round, len(got), atLeast, len(items))
		}
		for i := range got[:min(len(got), len(items))] {
			if i < atLeast && got[i] != items[i] {
				t.Fatalf("frame %d: %v, want %v", i, got[i], items[i])
			}
		}
		if round == 0 && len(got) > 0 && !got[len(got)-1].last {
			t.Fatal("torn group")
		}
		items, atLeast = append(got, item{"value", 0, false}, item{"value", 0, true}), len(got)+2
		put(t, l, 2)
		if err := d.Close(round == 1); err != nil {
			t.Fatal(err)
		}
		var e error
		if d, _, e = Open(testOptions(fsys)); e != nil {
			t.Fatalf("restart: %v", e)
		}
	}
	_ = d.Close(true)
	return rec
}

func mustRefuse(t testing.TB, fsys vfs.FS, class error) {
	t.Helper()
	before := listing(t, fsys)
	d, _, err := Open(testOptions(fsys))
	if err == nil {
		_ = d.Close(false)
		t.Fatal("Open accepted it")
	}
	if !errors.Is(err, class) {
		t.Fatalf("Open: %v, want %v", err, class)
	}
	if class == ErrVersion && errors.Is(err, ErrCorrupt) {
		t.Fatalf("an unknown version is called corrupt: %v", err)
	}
	if after := listing(t, fsys); after != before {
		t.Fatalf("refused, but changed\n%s\nto\n%s", before, after)
	}
}

func listing(t testing.TB, fsys vfs.FS) string {
	t.Helper()
	var b bytes.Buffer
	for _, dir := range []string{"data", "data/shard-00"} {
		names, err := fsys.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, n := range names {
			if fi, err := fsys.Stat(path.Join(dir, n)); err == nil && !fi.IsDir() && n != "LOCK" {
				fmt.Fprintf(&b, "%s/%s %x\n", dir, n, fileBytes(t, fsys, path.Join(dir, n)))
			}
		}
	}
	return b.String()
}

// TestCutAtEveryByte cuts the newest segment at every byte of its last three groups.
func TestCutAtEveryByte(t *testing.T) {
	groups := []int{3, 2, 1, 4, 2}
	fsys, items := build(t, groups)
	size := int64(len(fileBytes(t, fsys, segmentPath(1))))
	frame := (size - headerBytes) / 12
	for cut := headerBytes + 5*frame; cut <= size; cut++ {
		cloned, err := fsys.TruncateClone(segmentPath(1), cut)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for at, i := int64(headerBytes), 0; i < len(groups); i++ {
			if at += frameBytes(items[want : want+groups[i]]); at > cut {
				break
			}
			want += groups[i]
		}
		rec := reopen(t, cloned, items[:want], want)
		if rec.Shards[0].Found.Offset != uint64(want) {
			t.Fatalf("cut at %d: %+v, want %d frames", cut, rec.Shards[0], want)
		}
	}
}

func frameBytes(items []item) (n int64) {
	e := NewEncoder(0, Cursor{1, 0}, 0)
	e.Begin(0, ByClient, 0, 0)
	for _, it := range items {
		e.Append(set("key", it.value))
	}
	e.End()
	return int64(len(e.Buf))
}

// TestJunkTails appends zeros, ones and random bytes of several lengths, to a killed directory and
// to one that was closed cleanly.
func TestJunkTails(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1})
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{1, 37, 4096, 1 << 20} {
		for kind := range 3 {
			for _, clean := range []bool{false, true} {
				fsys := killed.KillClone()
				if clean {
					d, _ := mustOpen(t, testOptions(fsys))
					_ = d.Close(true)
				}
				junk := make([]byte, size)
				for i := range junk {
					junk[i] = [3]byte{0, 0xff, byte(rng.Uint32())}[kind]
				}
				if kind == 2 {
					junk[size-1] |= 1
				}
				names, _ := fsys.ReadDir("data/shard-00")
				newest := names[len(names)-1]
				for _, n := range names {
					if _, _, ok := segmentNumber(n); ok {
						newest = n
					}
				}
				name := path.Join("data/shard-00", newest)
				setBytes(t, fsys, name, append(fileBytes(t, fsys, name), junk...))
				rec := reopen(t, fsys, items, len(items))
				r := rec.Shards[0]
				if rec.Clean || r.CutBytes != int64(size) || r.Reason == "" || (r.CutFile == "") != (kind == 0) {
					t.Fatalf("size %d kind %d clean %v: %+v", size, kind, clean, r)
				}
				if kind != 0 && !bytes.Equal(fileBytes(t, fsys, r.CutFile), junk) {
					t.Fatal("cut bytes are not kept")
				}
			}
		}
	}
}

// TestBitFlips flips one bit anywhere in three segments: what opens is a prefix, what does not is
// refused, by Open or by the reader, and in no case are frames missing in the middle.
func TestBitFlips(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1, 4, 2, 3, 3, 2, 5}, 2, 5)
	rng := rand.New(rand.NewPCG(2, 2))
	outcomes := map[string]int{}
	for range 400 {
		fsys := killed.KillClone()
		name := segmentPath(1 + rng.Uint64N(3))
		b := fileBytes(t, fsys, name)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		setBytes(t, fsys, name, b)
		d, _, err := Open(testOptions(fsys))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			outcomes["refused"]++
			continue
		}
		l := d.Log(0)
		r, err := l.NewReader(l.Oldest(), ReaderOptions{Limit: LimitWritten, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			f, err := r.Next()
			if err == io.EOF {
				outcomes["prefix"]++
				break
			}
			if err != nil {
				var c *CorruptError
				if !errors.As(err, &c) || c.File != name {
					t.Fatal(err)
				}
				outcomes["reader refused"]++
				break
			}
			if !bytes.Contains(f.Payload, []byte(items[n].value+"\r\n")) {
				t.Fatalf("frame %d: %q", n, f.Payload)
			}
			n++
		}
		r.Close()
		_ = d.Close(false)
	}
	if len(outcomes) != 3 {
		t.Fatal(outcomes)
	}
}

type damage struct {
	do    func(fsys vfs.FS)
	class error
}

// damagedSegments are things that can happen to three segment files.
func damagedSegments(t *testing.T) map[string]damage {
	return map[string]damage{
		"missing":        {func(fsys vfs.FS) { _ = fsys.Remove(segmentPath(2)) }, ErrCorrupt},
		"oldest missing": {func(fsys vfs.FS) { _ = fsys.Remove(segmentPath(1)) }, ErrCorrupt},
		"newest missing": {func(fsys vfs.FS) {
			_ = fsys.Remove(segmentPath(3))
		}, nil},
		"all missing": {func(fsys vfs.FS) {
			for i := range uint64(3) {
				_ = fsys.Remove(segmentPath(i + 1))
			}
		}, ErrCorrupt},
		"swapped": {func(fsys vfs.FS) {
			a, b := fileBytes(t, fsys, segmentPath(1)), fileBytes(t, fsys, segmentPath(2))
			setBytes(t, fsys, segmentPath(1), b)
			setBytes(t, fsys, segmentPath(2), a)
		}, ErrCorrupt},
		"short": {func(fsys vfs.FS) {
			b := fileBytes(t, fsys, segmentPath(2))
			setBytes(t, fsys, segmentPath(2), b[:len(b)-1])
		}, ErrCorrupt},
		"empty": {func(fsys vfs.FS) { setBytes(t, fsys, segmentPath(2), nil) }, ErrCorrupt},
		"header": {func(fsys vfs.FS) {
			b := fileBytes(t, fsys, segmentPath(3))
			b[50] ^= 1
			setBytes(t, fsys, segmentPath(3), b)
		}, ErrCorrupt},
	}
}

// damagedManifests are things that can happen to the manifest, and versions of the future.
func damagedManifests(t *testing.T) map[string]damage {
	return map[string]damage{
		"version": {func(fsys vfs.FS) {
			b := fileBytes(t, fsys, segmentPath(2))
			b[8] = 9
			setBytes(t, fsys, segmentPath(2), b)
		}, ErrVersion},
		"manifest version": {func(fsys vfs.FS) {
			m, err := readManifest(fsys, "data")
			if err != nil {
				t.Fatal(err)
			}
			m.Version = 2
			if _, err := writeManifest(fsys, "data", m); err != nil {
				t.Fatal(err)
			}
		}, ErrVersion},
		"manifest": {func(fsys vfs.FS) {
			b := fileBytes(t, fsys, "data/MANIFEST")
			b[30] ^= 1
			setBytes(t, fsys, "data/MANIFEST", b)
		}, ErrCorrupt},
		"no manifest": {func(fsys vfs.FS) { _ = fsys.Remove("data/MANIFEST") }, ErrNoManifest},
		"no shard":    {func(fsys vfs.FS) { _ = fsys.RemoveAll("data/shard-00") }, ErrCorrupt},
	}
}

func TestDamagedMiddleSegments(t *testing.T) {
	killed, _ := build(t, []int{3, 2, 1, 4, 2, 3}, 1, 3)
	tests := damagedSegments(t)
	maps.Copy(tests, damagedManifests(t))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fsys := killed.KillClone()
			tt.do(fsys)
			if tt.class == nil {
				tt.class = ErrCorrupt
				// Only the mark knows of the newest segment: make it say so.
				f, err := openMark(fsys, "data/shard-00")
				if err != nil {
					t.Fatal(err)
				}
				m, _ := readManifest(fsys, "data")
				var b [markBytes]byte
				mark{Cursor{m.Shards[0].current(), 15}, 3}.put(&b)
				_, _ = f.WriteAt(b[:], 0)
				_ = f.Close()
			}
			mustRefuse(t, fsys, tt.class)
		})
	}
}

// TestLengthBeyondFile sets a payload length to values far beyond the file: nothing is allocated for
// it, and it is a bad tail.
func TestLengthBeyondFile(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1})
	b := fileBytes(t, killed, segmentPath(1))
	last := len(b) - int(frameBytes(items[5:]))
	for _, n := range []uint32{0, 3, 1 << 20, MaxPayload, MaxPayload + 1, 1 << 31, 1<<32 - 1} {
		fsys := killed.KillClone()
		c := bytes.Clone(b)
		le.PutUint32(c[last+posLength:], n)
		setBytes(t, fsys, segmentPath(1), c)
		if allocs := testing.AllocsPerRun(1, func() { reopen(t, fsys.KillClone(), items[:5], 5) }); allocs > 1e5 {
			t.Fatal(allocs)
		}
	}
}

// TestRecycledBytes puts valid frames of another generation and of another place at the tail.
func TestRecycledBytes(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1})
	b := fileBytes(t, killed, segmentPath(1))
	fsys := killed.KillClone()
	setBytes(t, fsys, segmentPath(1), append(bytes.Clone(b), b[headerBytes:]...)) // another place
	if rec := reopen(t, fsys, items, len(items)); rec.Shards[0].CutBytes == 0 {
		t.Fatal("not cut")
	}
	e := NewEncoder(0, Cursor{12345, uint64(len(items))}, 0)
	e.Begin(1, ByClient, 0, 0)
	e.Append(set("key", "other"))
	e.End()
	fsys = killed.KillClone()
	setBytes(t, fsys, segmentPath(1), append(bytes.Clone(b), e.Buf...)) // another generation
	if rec := reopen(t, fsys, items, len(items)); rec.Shards[0].CutBytes == 0 {
		t.Fatal("not cut")
	}
}

// TestDamageBelowTheMark: what was durable is not a tail to cut.
func TestDamageBelowTheMark(t *testing.T) {
	fsys := crashfs.New()
	d, _ := mustOpen(t, testOptions(fsys))
	l := d.Log(0)
	put(t, l, 5)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	put(t, l, 5)
	killed := fsys.KillClone()
	_ = d.Close(true)
	b := fileBytes(t, killed, segmentPath(1))
	b[headerBytes+100] ^= 1
	below := killed.KillClone()
	setBytes(t, below, segmentPath(1), b)
	mustRefuse(t, below, ErrCorrupt)
	b[headerBytes+100] ^= 1
	b[len(b)-100] ^= 1
	setBytes(t, killed, segmentPath(1), b)
	d, rec := mustOpen(t, testOptions(killed))
	if r := rec.Shards[0]; r.Found.Offset != 5 || r.CutBytes == 0 || r.CutFile == "" {
		t.Fatalf("%+v", r)
	}
	_ = d.Close(true)
}

// TestCleanEndMustBeThere: a cleanly closed directory whose newest segment is shorter or longer by
// valid frames is refused.
func TestCleanEndMustBeThere(t *testing.T) {
	fsys := crashfs.New()
	d, _ := mustOpen(t, testOptions(fsys))
	put(t, d.Log(0), 5)
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	b := fileBytes(t, fsys, segmentPath(1))
	manifest := fileBytes(t, fsys, "data/MANIFEST")
	short := fsys.KillClone()
	setBytes(t, short, segmentPath(1), b[:len(b)-1])
	mustRefuse(t, short, ErrCorrupt)
	d, _ = mustOpen(t, testOptions(fsys))
	put(t, d.Log(0), 5)
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	setBytes(t, fsys, "data/MANIFEST", manifest)
	mustRefuse(t, fsys, ErrCorrupt)
}

// TestHalfMadeSegment: a newest segment whose header a crash took is removed; one with frames is not.
func TestHalfMadeSegment(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1}, 1)
	for _, size := range []int{0, 1, 100, 128} {
		fsys := killed.KillClone()
		setBytes(t, fsys, segmentPath(3), make([]byte, size))
		reopen(t, fsys, items, len(items))
	}
	fsys := killed.KillClone()
	setBytes(t, fsys, segmentPath(3), make([]byte, 129))
	mustRefuse(t, fsys, ErrCorrupt)
}
