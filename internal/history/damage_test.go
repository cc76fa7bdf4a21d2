package history_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

var flips = flag.Int("flips", 200, "bits to flip, one at a time")

// files lists the files below dir that hold data.
func files(t testing.TB, f vfs.FS, dir string) (names []string) {
	t.Helper()
	entries, err := f.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range entries {
		name := path.Join(dir, n)
		fi, err := f.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case fi.IsDir() && n != "cut":
			names = append(names, files(t, f, name)...)
		case !fi.IsDir() && n != "LOCK" && n != "DURABLE" && fi.Size() > 0:
			names = append(names, name)
		}
	}
	return names
}

func read(t testing.TB, f vfs.FS, name string) []byte {
	t.Helper()
	h, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	n, err := h.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if m, err := h.ReadAt(b, 0); m < len(b) {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, f vfs.FS, name string, b []byte) {
	t.Helper()
	if err := f.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	h, err := f.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// place is how a file must be named: by its shard or snapshot set, and its name; a segment whatever its form.
func place(name string) string {
	base, _ := strings.CutSuffix(path.Base(name), ".sealed")
	return path.Join(path.Base(path.Dir(name)), strings.TrimSuffix(base, ".seg"))
}

// wounded checks what the tools make of a damaged copy of a past: a restore refuses or gives what was there, and
// verify names one of the files.
type wounded struct {
	p       *past
	whole   *history.History // the past without damage
	latest  *instant
	refused int
	named   int
}

// check looks at a damaged copy. With noticed, verify must find something.
func (w *wounded) check(what string, f vfs.FS, noticed bool, named ...string) {
	t := w.p.t
	t.Helper()
	src := history.Source{FS: f, Dir: gate.Dir}
	v, err := history.Verify(src, history.VerifyOptions{})
	switch {
	case err != nil:
		w.names(what, err.Error(), named)
	case len(v.Damage) == 0 && len(v.Notes) == 0 && noticed:
		t.Errorf("%s: verify finds nothing", what)
	case noticed:
		var all strings.Builder
		for _, d := range v.Damage {
			all.WriteString(d.Problem + "\n")
		}
		w.names(what, all.String()+strings.Join(v.Notes, "\n"), named)
	}
	h, err := history.Open(src)
	if err != nil {
		w.refused++
		return
	}
	defer h.Close()
	h.List()
	points := []history.Point{history.Latest(), history.BeforeDamage(), history.AtTime(w.latest.ms)}
	for range 4 {
		at := &w.p.instants[w.p.rng.IntN(len(w.p.instants))]
		points = append(points, history.At(at.cursors...), history.AtTime(at.ms))
	}
	for _, pt := range points {
		w.point(what, h, pt)
	}
}

func (w *wounded) names(what, text string, named []string) {
	if !slices.ContainsFunc(named, func(n string) bool { return strings.Contains(text, n) }) {
		w.p.t.Errorf("%s: %q names none of %v", what, text, named)
		return
	}
	w.named++
}

// point builds a point from the damaged copy: what comes out must be what the whole past has at the plan's cursors, and
// for a point that names a state, that state.
func (w *wounded) point(what string, h *history.History, pt history.Point) {
	t := w.p.t
	t.Helper()
	b, err := h.Build(pt, nil, nil)
	if err != nil {
		w.refused++
		if errors.Is(err, history.ErrNoPoint) || errors.Is(err, history.ErrDamaged) || errors.Is(err, log.ErrCorrupt) ||
			errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, log.ErrVersion) ||
			errors.Is(err, syscall.EIO) {
			return
		}
		t.Errorf("%s: %s: %v", what, pt, err)
		return
	}
	defer b.Release()
	var at []log.Cursor
	for _, s := range b.Plan.Shards {
		at = append(at, s.To)
	}
	ref, err := w.whole.Build(history.At(at...), nil, nil)
	if err != nil {
		t.Errorf("%s: %s gives %v, which never was: %v", what, pt, at, err)
		return
	}
	defer ref.Release()
	keys, sum := b.Digest(nil, 0)
	if k, s := ref.Digest(nil, 0); k != keys || s != sum {
		t.Errorf("%s: %s: %d keys with digest %s at %v, were %d with %s", what, pt, keys, sum, at, k, s)
	}
	noted := strings.Contains(strings.Join(b.Plan.Notes, "\n"), "unclean tail")
	if pt.String() == "latest" && !w.latest.is(b) && !noted {
		t.Errorf("%s: the latest state is another one, and nothing says so", what)
	}
}

// TestFlips flips bits of segments, snapshots and the manifest.
func TestFlips(t *testing.T) {
	for _, clean := range []bool{true, false} {
		p := live(t, 51, 500)
		w := &wounded{p: p, latest: &p.instants[len(p.instants)-1]}
		p.seal()
		whole := p.fs
		if clean {
			p.s.Close()
		} else {
			whole = p.fs.KillClone()
		}
		w.whole = open(t, whole)
		names := files(t, whole, gate.Dir)
		for range *flips / 2 {
			f := whole.KillClone()
			name := names[p.rng.IntN(len(names))]
			b := read(t, f, name)
			at, bit := p.rng.IntN(len(b)), byte(1)<<p.rng.IntN(8)
			b[at] ^= bit
			write(t, f, name, b)
			// In a directory that was not closed, a tail behind the durable mark is cut as a crash leaves it: it is
			// noted. Zeros written ahead are no data.
			w.check(fmt.Sprintf("bit %d of byte %d of %d of %s", bit, at, len(b), name), f, clean || b[at] != bit, place(name))
		}
		t.Logf("%d restores refused, %d places named, in %d files", w.refused, w.named, len(names))
	}
}

// TestEmptySegmentDamaged: a newest segment without frames takes nothing with it when its header is damaged, but it is told.
func TestEmptySegmentDamaged(t *testing.T) {
	p := live(t, 161, 10)
	var f *crashfs.FS
	var last log.SegmentInfo
	for i := 0; f == nil; i++ {
		before := p.segmentFile(0, -1)
		p.s.Do(fmt.Sprintf("SET filler%d %s", i, strings.Repeat("v", 20_000)))
		for end := time.Now().Add(20 * time.Millisecond); p.segmentFile(0, -1) == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		list := p.s.E.Dir().Log(0).SegmentList()
		if last = list[len(list)-1]; last.File != before && last.End == last.Start.Offset {
			f = p.fs.KillClone()
		}
	}
	want := p.s.Digest()
	h := read(t, f, last.File)[:log.HeaderBytes] // without zeros written ahead
	h[20] ^= 1
	write(t, f, last.File, h)
	src := history.Source{FS: f, Dir: gate.Dir}
	v, err := history.Verify(src, history.VerifyOptions{})
	if notes := strings.Join(v.Notes, "\n"); err != nil || len(v.Damage) > 0 || !strings.Contains(notes, last.File) {
		t.Errorf("%v, %+v; want a note with %s", err, v, last.File)
	}
	b, err := history.BuildFrom(src, history.Latest(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if _, sum := b.Digest(nil, p.s.Clock.Now()); !strings.Contains(want, sum) {
		t.Errorf("digest %s, want %q", sum, want)
	}
	p.s.Close()
}

// denied is a file system that refuses to open one file.
type denied struct {
	*crashfs.FS
	name string
}

func (d denied) Open(name string) (vfs.File, error) {
	if name == d.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

// TestFiles takes every file away, cuts it, empties it, makes it unreadable, and puts others in its place.
func TestFiles(t *testing.T) {
	p := live(t, 61, 400)
	p.seal()
	p.s.Close()
	w := &wounded{p: p, latest: &p.instants[len(p.instants)-1], whole: open(t, p.fs)}
	names := files(t, p.fs, gate.Dir)
	for i, name := range names {
		base := place(name)
		f := p.fs.KillClone()
		if err := f.Remove(name); err != nil {
			t.Fatal(err)
		}
		w.check("missing "+name, f, true, base)
		w.check("unreadable "+name, denied{p.fs, name}, true, base)
		b := read(t, p.fs, name)
		f = p.fs.KillClone()
		write(t, f, name, b[:len(b)/2])
		w.check("half of "+name, f, true, base)
		f = p.fs.KillClone()
		write(t, f, name, nil)
		w.check("nothing of "+name, f, true, base)
		other := names[(i+1+p.rng.IntN(len(names)-1))%len(names)]
		f = p.fs.KillClone()
		write(t, f, name, read(t, p.fs, other))
		write(t, f, other, b)
		w.check("swapped "+name+" and "+other, f, true, base, place(other))
	}
	t.Logf("%d files, %d restores refused, %d places named", len(names), w.refused, w.named)
}

// TestBadSector: where the disk can't read a sector, verify names the file, nothing else is taken for what was there, and what needs no damaged
// frame is made.
func TestBadSector(t *testing.T) {
	p := live(t, 62, 400)
	p.seal()
	p.s.Close()
	w := &wounded{p: p, latest: &p.instants[len(p.instants)-1], whole: open(t, p.fs)}
	for _, name := range files(t, p.fs, gate.Dir) {
		at := int64(len(read(t, p.fs, name)) * 2 / 3)
		f := faultfs.New(p.fs)
		f.Inject(func(op faultfs.Op) error {
			if op.Kind == faultfs.OpReadAt && op.Path == name && op.Offset <= at && at < op.Offset+op.N {
				return syscall.EIO
			}
			return nil
		})
		w.check("a bad sector of "+name, f, true, place(name))
		if path.Base(name) == "MANIFEST" {
			continue
		}
		b, err := history.BuildFrom(history.Source{FS: f, Dir: gate.Dir}, history.BeforeDamage(), nil, nil)
		if err != nil {
			t.Errorf("before the bad sector of %s: %v", name, err)
			continue
		}
		b.Release()
	}
	t.Logf("%d restores refused, %d places named", w.refused, w.named)
}

// TestRestoreNotVerified: a new directory that does not read as it was written goes again.
func TestRestoreNotVerified(t *testing.T) {
	p := live(t, 171, 60)
	p.s.Close()
	for _, there := range []bool{false, true} {
		to := faultfs.New(crashfs.New())
		to.Inject(faultfs.OnPath(".snap", func(op faultfs.Op) error {
			if op.Kind == faultfs.OpReadAt {
				return syscall.EIO
			}
			return nil
		}))
		if there {
			must(t, to.MkdirAll("to"))
		}
		r, err := history.Restore(history.RestoreOptions{From: history.Source{FS: p.fs, Dir: gate.Dir}, FS: to, To: "to"})
		if err == nil || !strings.Contains(err.Error(), "verifying") {
			t.Errorf("it can't be read: %+v, %v", r, err)
		}
		if names, err := to.ReadDir("to"); len(names) > 0 || (err == nil) != there {
			t.Errorf("left is %v, %v; it was there before: %v", names, err, there)
		}
	}
}
