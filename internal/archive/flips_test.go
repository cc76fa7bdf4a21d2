package archive_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

var flips = flag.Int("flips", 200, "bits to flip, one at a time")

// spoiled is a store in which some objects have other bytes, or can't be read (nil). It is no store of files: objects are fetched.
type spoiled struct {
	archive.Store
	objects map[string][]byte
}

func (s *spoiled) Get(ctx context.Context, name string, off, size int64) (io.ReadCloser, error) {
	b, ok := s.objects[name]
	if !ok {
		return s.Store.Get(ctx, name, off, size)
	}
	if b == nil {
		return nil, &fs.PathError{Op: "get", Path: name, Err: fs.ErrPermission}
	}
	b = b[min(off, int64(len(b))):]
	if size >= 0 {
		b = b[:min(size, int64(len(b)))]
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// wounded checks what the tools make of a damaged archive: verify names one of the objects, and a restore is refused or gives what was there.
type wounded struct {
	l       *life
	refused int
	right   int
}

func (w *wounded) check(what string, s archive.Store, named ...string) {
	t := w.l.t
	t.Helper()
	if got := problems(s); !slices.ContainsFunc(named, func(n string) bool { return strings.Contains(got, n) }) {
		t.Errorf("%s: verify says %q, which names none of %v", what, got, named)
	}
	fsys, dir, err := archive.OpenFS(t.Context(), s)
	if err != nil {
		w.refused++
		return
	}
	defer fsys.Close()
	h, err := history.Open(history.Source{FS: fsys, Dir: dir})
	if err != nil {
		w.refused++
		return
	}
	defer h.Close()
	h.List()
	all := w.l.instants
	w.point(what, h, history.Latest(), &all[len(all)-1])
	for range 3 {
		x := &all[w.l.rng.IntN(len(all))]
		w.point(what, h, history.At(x.cursors...), x)
		w.point(what, h, history.AtTime(x.ms), x)
	}
}

// swapHeaders swaps objects that are a segment's header and no more. A header ends with the CRC32C of the rest of it, so that the
// objects all have one checksum; the header tells whose it is, and what is named is the segment's file.
func (w *wounded) swapHeaders(files archive.Store, objects []string) {
	t := w.l.t
	t.Helper()
	if len(objects) < 2 {
		t.Fatalf("%d objects are a header only", len(objects))
	}
	for i, other := range objects[1:] {
		name := objects[i]
		o := map[string][]byte{name: content(t, files, other), other: content(t, files, name)}
		w.check("swapped headers "+name, &spoiled{files, o}, strings.TrimSuffix(name, bareParts), strings.TrimSuffix(other, bareParts))
	}
}

// bareParts ends the name of an object that is a segment's header and no more, after the file's name.
var bareParts = fmt.Sprintf(".0-%d", log.HeaderBytes)

func bareHeader(object string) bool { return strings.HasSuffix(object, ".seg"+bareParts) }

func (w *wounded) point(what string, h *history.History, p history.Point, x *instant) {
	t := w.l.t
	t.Helper()
	b, err := h.Build(p, nil, nil)
	if err != nil {
		w.refused++
		for _, class := range []error{history.ErrNoPoint, history.ErrDamaged, log.ErrCorrupt, log.ErrVersion, snapshot.ErrCorrupt, fs.ErrPermission} {
			if errors.Is(err, class) {
				return
			}
		}
		t.Errorf("%s: %s: %v", what, p, err)
		return
	}
	defer b.Release()
	w.right++
	if _, sum := b.Digest(nil, x.ms); !strings.Contains(x.digest, sum) {
		t.Errorf("%s: %s: digest %s, was %q", what, p, sum, x.digest)
	}
}

// wound makes an archive whose objects are all in use, and whose end is an instant.
func wound(t *testing.T, seed uint64, store archive.Store) *wounded {
	t.Helper()
	l := newLife(t, seed, store)
	l.o.Grace = 1
	l.open2()
	l.live(60)
	l.s.Do("SET k " + noise(l, 150_000)) // an object that is not fetched for a look at its headers
	l.record()
	l.pass()
	l.save()
	for range 2 {
		l.kill(false) // what begins anew has a segment of a header only
		l.pass()
	}
	l.write(5)
	l.record()
	l.s.Clock.Advance(10)
	l.pass()
	l.pass()
	return &wounded{l: l}
}

// TestFlips flips bits of objects, one at a time, in a store of files and in one whose objects are fetched.
func TestFlips(t *testing.T) {
	files := archive.NewFileStore(vfs.NewMem(), place)
	w := wound(t, 23, files)
	objects := names(t, files)
	for n := range *flips {
		name := objects[w.l.rng.IntN(len(objects))]
		whole := content(t, files, name)
		b := bytes.Clone(whole)
		at, bit := w.l.rng.IntN(len(b)), byte(1)<<w.l.rng.IntN(8)
		b[at] ^= bit
		if n%2 == 0 {
			w.check(name, &spoiled{files, map[string][]byte{name: b}}, name)
			continue
		}
		put(t, files, name, b)
		w.check(name, files, name)
		put(t, files, name, whole)
	}
	t.Logf("%d objects, %d restores refused, %d right", len(objects), w.refused, w.right)
}

func put(t *testing.T, s archive.Store, name string, b []byte) {
	t.Helper()
	if err := s.Put(t.Context(), name, bytes.NewReader(b), int64(len(b))); err != nil {
		t.Fatal(err)
	}
}

// TestObjects makes each object unreadable, takes half of it, all of it, and swaps it with another one.
func TestObjects(t *testing.T) {
	files := archive.NewFileStore(vfs.NewMem(), place)
	w := wound(t, 24, files)
	objects := names(t, files)
	for i, name := range objects {
		whole := content(t, files, name)
		other := objects[(i+1+w.l.rng.IntN(len(objects)-1))%len(objects)]
		for what, o := range map[string]map[string][]byte{
			"unreadable": {name: nil},
			"half of":    {name: whole[:len(whole)/2]},
			"nothing of": {name: {}},
			"swapped":    {name: content(t, files, other), other: whole},
		} {
			if what == "swapped" && bareHeader(name) && bareHeader(other) {
				continue // swapHeaders
			}
			w.check(what+" "+name, &spoiled{files, o}, name, other)
		}
	}
	w.swapHeaders(files, slices.DeleteFunc(objects, func(name string) bool { return !bareHeader(name) }))
	t.Logf("%d objects, %d restores refused, %d right", len(objects), w.refused, w.right)
}
