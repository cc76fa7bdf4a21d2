package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
)

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
