package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// rebuild makes a manifest anew, as kevy restore --rebuild-manifest does.
func rebuild(s archive.Store, dryRun bool) (*archive.Rebuilt, error) {
	lost, dir, err := archive.OpenLost(context.Background(), s, nil)
	if err != nil {
		return nil, err
	}
	defer lost.Close()
	src, ends, err := history.Proven(history.Source{FS: lost, Dir: dir}, nil)
	if err != nil {
		return nil, err
	}
	return lost.Rebuild(src.FS, ends, dryRun)
}

// copyStore returns a store with the same objects.
func copyStore(t testing.TB, from archive.Store) archive.Store {
	t.Helper()
	to := archive.NewFileStore(vfs.NewMem(), place)
	for _, name := range names(t, from) {
		b := content(t, from, name)
		must(t, to.Put(t.Context(), name, bytes.NewReader(b), int64(len(b))))
	}
	return to
}

// TestLost makes the manifest of an archive anew that is lost or rotten: every point stays, and the archiver goes on.
func TestLost(t *testing.T) {
	for seed, o := range []archive.Options{{}, {Grace: 1}, {KeepSets: 1, Grace: 1}} {
		for _, lose := range []func(archive.Store){
			func(s archive.Store) { must(t, s.Delete(t.Context(), "ARCHIVE")) },
			func(s archive.Store) {
				b := content(t, s, "ARCHIVE")
				b[len(b)/2] ^= 1
				put(t, s, "ARCHIVE", b)
			},
		} {
			l := newLife(t, 300+uint64(seed), archive.NewFileStore(vfs.NewMem(), place))
			l.o = o
			l.restart()
			l.live(60)
			l.save()
			l.live(10)
			ends, n := fmt.Sprint(l.a.Status().Ends), l.check()
			lose(l.store)
			l.restart()
			if _, _, err := archive.OpenFS(t.Context(), l.store); err == nil || !strings.Contains(err.Error(), "--rebuild-manifest") {
				t.Errorf("without it: %v", err)
			}
			if err := l.a.Pass(t.Context()); !errors.Is(err, archive.ErrCorrupt) || !strings.Contains(err.Error(), "--rebuild-manifest") {
				t.Errorf("a pass without it: %v", err)
			}
			before := strings.Join(names(t, l.store), "\n")
			if _, err := rebuild(l.store, true); err != nil || strings.Join(names(t, l.store), "\n") != before {
				t.Errorf("a dry run: %v", err)
			}
			r, err := rebuild(l.store, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r.Ends); got != ends || len(r.Notes) > 0 {
				t.Errorf("made anew it ends at %s, before at %s; %v", got, ends, r.Notes)
			}
			if got := l.check(); got < n {
				t.Errorf("%d points could be restored, then %d", n, got)
			}
			if _, err := rebuild(l.store, false); err == nil || !strings.Contains(err.Error(), "nothing to make anew") {
				t.Errorf("once more: %v", err)
			}
			l.pass()
			l.live(30)
			l.check()
		}
	}
}

// powerOff runs the script until the power of the archive's machine fails before operation at, amid a pass.
func powerOff(t *testing.T, at int) (l *life, after *crashfs.FS) {
	t.Helper()
	ffs, left := powerFails(at)
	l = newLife(t, 31, archive.NewFileStore(ffs, place))
	l.o = archive.Options{KeepSets: 1, Grace: 1000}
	l.restart()
	script(l, func() {
		if left() == nil {
			_ = l.a.Pass(t.Context())
		}
	})
	return l, left()
}

// TestLostAmidPass loses the manifest after a crash amid a pass: what it is made of anew was there, whole in groups, or it is refused, and the server
// goes on with it.
func TestLostAmidPass(t *testing.T) {
	total, stride := sweeps(t, mutates), *strideFlag
	same, refused := 0, 0
	for at := total/3 + rand.IntN(stride); at <= total; at += stride {
		l, after := powerOff(t, at)
		if after == nil {
			continue
		}
		l.store = archive.NewFileStore(after, place)
		must(t, l.store.Delete(t.Context(), "ARCHIVE"))
		r, err := rebuild(l.store, false)
		if err != nil {
			refused++
			if !errors.Is(err, archive.ErrCorrupt) && !errors.Is(err, history.ErrDamaged) && !errors.Is(err, log.ErrGone) {
				t.Errorf("operation %d: %v", at, err)
			}
			continue
		}
		same++
		l.sound()
		latest(t, l, r.Ends)
		l.kill(false) // and goes on with what is left
		l.record()
		l.pass()
		if l.check() == 0 {
			t.Errorf("operation %d: nothing can be restored", at)
		}
	}
	t.Logf("%d of %d operations: %d made anew, %d refused", same+refused, total, same, refused)
	if same == 0 || refused > 2*same {
		t.Errorf("%d made anew, %d refused", same, refused)
	}
}

// latest compares the end of an archive with what the directory had at these cursors.
func latest(t *testing.T, l *life, ends []log.Cursor) {
	t.Helper()
	h := read(t, l.store)
	got, err := h.Build(history.Latest(), nil, nil)
	must(t, err)
	defer got.Release()
	if at := fmt.Sprint(got.Plan.Shards[0].To, got.Plan.Shards[1].To); at != fmt.Sprint(ends[0], ends[1]) || len(got.Found) > 0 {
		t.Errorf("the end is %s, not %v; %v", at, ends, got.Found)
	}
	for i := range l.instants {
		x := &l.instants[i]
		b, err := h.Build(history.At(x.cursors...), nil, nil)
		if errors.Is(err, history.ErrNoPoint) {
			continue
		}
		must(t, err)
		if _, sum := b.Digest(nil, x.ms); !strings.Contains(x.digest, sum) {
			t.Errorf("instant %d: digest %s, was %q", i, sum, x.digest)
		}
		b.Release()
	}
	want, err := history.BuildFrom(history.Source{FS: l.fs, Dir: gate.Dir}, history.At(ends...), nil, nil)
	if errors.Is(err, history.ErrNoPoint) {
		return // the directory has dropped that
	}
	must(t, err)
	defer want.Release()
	_, a := got.Digest(nil, 0)
	if _, b := want.Digest(nil, 0); a != b {
		t.Errorf("the end has digest %s, the directory had %s there", a, b)
	}
}

// lostArchive is an archive without its manifest, and its objects.
type lostArchive struct {
	l                   *life
	whole               archive.Store
	ends                string
	sealed, parts, sets []string // parts: of shard 1
}

func loseArchive(t *testing.T) *lostArchive {
	t.Helper()
	a := &lostArchive{whole: archive.NewFileStore(vfs.NewMem(), place)}
	l := newLife(t, 310, a.whole)
	a.l = l
	l.o.Grace = 1
	l.restart()
	for range 3 {
		l.write(200)
		l.s.Do("FLUSHALL") // the segments end
		l.pass()
	}
	l.save()
	l.write(150)
	l.record()
	l.s.Clock.Advance(10)
	l.pass()
	l.pass()
	l.check()
	a.ends = fmt.Sprint(l.a.Status().Ends)
	must(t, a.whole.Delete(t.Context(), "ARCHIVE"))
	for _, name := range names(t, a.whole) {
		switch {
		case strings.HasPrefix(name, "snapshots/"):
			a.sets = append(a.sets, name)
		case strings.HasSuffix(name, ".sealed"):
			a.sealed = append(a.sealed, name)
		case strings.HasPrefix(name, "shard-01/"):
			a.parts = append(a.parts, name)
		}
	}
	if len(a.sealed) < 6 || len(a.parts) < 1 || len(a.sets) != 3 {
		t.Fatal(a.sealed, a.parts, a.sets)
	}
	return a
}

// TestLostRefuses: what does not prove itself is refused, with the object's name, and nothing is written.
func TestLostRefuses(t *testing.T) {
	a := loseArchive(t)
	other := archive.NewFileStore(vfs.NewMem(), place)
	x := newLife(t, 311, other)
	x.write(400)
	x.s.Do("FLUSHALL") // the segments end
	x.pass()
	common := a.sealed[slices.IndexFunc(a.sealed, func(name string) bool { return slices.Contains(names(t, other), name) })]
	remove := func(all ...string) func(archive.Store) {
		return func(s archive.Store) {
			for _, name := range all {
				must(t, s.Delete(t.Context(), name))
			}
		}
	}
	for what, c := range map[string]struct {
		spoil func(s archive.Store)
		want  string
	}{
		"no set":                    {remove(a.sets...), "no snapshot set"},
		"a file of the set":         {remove(a.sets[1]), "no snapshot set"},
		"the set's description":     {remove(a.sets[0]), "no snapshot set"},
		"a segment in the middle":   {remove(a.sealed[1]), "is in no object"},
		"the segment being written": {remove(a.parts...), ""},
		"the first bytes of it":     {remove(a.parts[0]), ""},
		"another archive's segment": {func(s archive.Store) {
			put(t, s, common, content(t, other, common))
		}, ""},
		"a cut object": {func(s archive.Store) {
			b := content(t, s, a.parts[0])
			put(t, s, a.parts[0], b[:len(b)-1])
		}, a.parts[0]},
	} {
		s := copyStore(t, a.whole)
		c.spoil(s)
		r, err := rebuild(s, false)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", what, err, c.want)
			}
			continue
		}
		a.l.store = s
		a.l.sound()
		if latest(t, a.l, r.Ends); c.want != "" || fmt.Sprint(r.Ends) == a.ends {
			t.Errorf("%s: made anew with %+v", what, r)
		}
	}
	if _, err := rebuild(archive.NewFileStore(vfs.NewMem(), place), false); err == nil || !strings.Contains(err.Error(), "no archive") {
		t.Errorf("of nothing: %v", err)
	}
	flipObjects(t, a.l, a.whole)
}

// flipObjects flips a bit of each object in turn: it is refused, and nothing is written.
func flipObjects(t *testing.T, l *life, whole archive.Store) {
	t.Helper()
	for _, name := range names(t, whole) {
		s := copyStore(t, whole)
		b := content(t, s, name)
		b[l.rng.IntN(len(b))] ^= 1 << l.rng.IntN(8)
		put(t, s, name, b)
		before := len(names(t, s))
		if r, err := rebuild(s, false); err == nil {
			t.Errorf("a bit of %s is flipped: %+v", name, r)
		}
		if got := len(names(t, s)); got != before {
			t.Errorf("%d objects, then %d", before, got)
		}
	}
}
