package history_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

const manifest = gate.Dir + "/MANIFEST"

// rebuilt opens a directory with a MANIFEST made anew.
func rebuilt(t *testing.T, f *crashfs.FS) (*history.History, error) {
	t.Helper()
	before := contents(t, f)
	src, err := history.Rebuilt(history.Source{FS: f, Dir: gate.Dir}, nil)
	if after := contents(t, f); after != before {
		t.Errorf("the directory was\n%s, is\n%s", before, after)
	}
	if err != nil {
		return nil, err
	}
	h, err := history.Open(src)
	if err == nil {
		t.Cleanup(h.Close)
	}
	return h, err
}

// contents describes all files.
func contents(t *testing.T, f *crashfs.FS) string {
	t.Helper()
	var b strings.Builder
	for _, name := range files(t, f, gate.Dir) {
		fmt.Fprintf(&b, "%s %d\n", name, len(read(t, f, name)))
	}
	return b.String()
}

// TestRebuilt: of a directory without a MANIFEST, closed cleanly or not, every point can be restored as of the whole one.
func TestRebuilt(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, lose := range []func(f *crashfs.FS){
			func(f *crashfs.FS) { _ = f.Remove(manifest) },
			func(f *crashfs.FS) { write(t, f, manifest, []byte("{}\ncrc32c 00000000\n")) },
		} {
			p := live(t, 141, 300)
			p.seal()
			if err := p.s.E.Save(); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				p.step()
			}
			f := p.fs.KillClone()
			p.s.Close()
			if clean {
				f = p.fs
			}
			lose(f)
			if _, err := history.Open(history.Source{FS: f, Dir: gate.Dir}); err == nil || !strings.Contains(err.Error(), "--rebuild-manifest") {
				t.Errorf("without it: %v", err)
			}
			h, err := rebuilt(t, f)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.instants {
				x := &p.instants[i]
				p.must(h, history.At(x.cursors...), x)
				if x.last {
					p.must(h, history.AtTime(x.ms), x)
				}
			}
			plan := p.must(h, history.Latest(), &p.instants[len(p.instants)-1])
			if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, "made anew") {
				t.Errorf("notes: %s", notes)
			}
		}
	}
}

// segmentFile returns the file of the n-th segment of a shard, from the end if negative.
func (p *past) segmentFile(shard, n int) string {
	list := p.s.E.Dir().Log(shard).SegmentList()
	return list[(n+len(list))%len(list)].File
}

// TestRebuiltRefuses: what does not prove whole stays refused.
func TestRebuiltRefuses(t *testing.T) {
	p := live(t, 151, 200)
	p.s.Do("FLUSHALL")
	p.s.Do(gate.Wide("1"))
	if err := p.s.E.Save(); err != nil {
		t.Fatal(err)
	}
	p.s.Do(gate.Wide("1"))
	p.s.Do("FLUSHALL")
	p.s.Do(gate.Wide("1"))
	newest, first := p.segmentFile(1, -1), p.segmentFile(1, -2)
	p.s.Close()
	other := live(t, 152, 20)
	if err := other.s.E.Save(); err != nil {
		t.Fatal(err)
	}
	foreign := snapshot.Dir(gate.Dir, other.s.E.SaveStatus().LastID)
	other.s.Close()
	remove := func(names ...string) func(f *crashfs.FS) {
		return func(f *crashfs.FS) {
			for _, name := range names {
				must(t, f.Remove(name))
			}
		}
	}
	mark := path.Join(path.Dir(newest), "DURABLE")
	for what, c := range map[string]struct {
		spoil func(f *crashfs.FS)
		want  string
	}{
		"no set":                   {func(f *crashfs.FS) { must(t, f.RemoveAll(gate.Dir+"/snapshots")) }, "no snapshot set"},
		"a shard is gone":          {func(f *crashfs.FS) { must(t, f.RemoveAll(gate.Dir+"/shard-02")) }, "directories of 2 shards"},
		"a shard too many":         {func(f *crashfs.FS) { must(t, f.MkdirAll(gate.Dir+"/shard-03")) }, "directories of 4 shards"},
		"the newest is":            {remove(newest), "were durable"},
		"one in the middle":        {remove(first), "has no segment of"},
		"the newest, and the mark": {remove(newest, mark), "missing"},
		"a flipped bit":            {func(f *crashfs.FS) { flipBit(t, f, first) }, "places are not"},
		"a set of another directory": {func(f *crashfs.FS) {
			must(t, f.MkdirAll(foreign))
			for _, name := range files(t, other.fs, foreign) {
				write(t, f, name, read(t, other.fs, name))
			}
		}, ""},
	} {
		f := p.fs.KillClone()
		must(t, f.Remove(manifest))
		c.spoil(f)
		if h, err := rebuilt(t, f); err == nil {
			b, err := h.Build(history.Latest(), nil, nil)
			t.Errorf("%s: %+v, %v", what, b, err)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	if _, err := history.Rebuilt(history.Source{FS: p.fs, Dir: gate.Dir}, nil); err == nil || !strings.Contains(err.Error(), "nothing to make anew") {
		t.Errorf("a directory that is whole: %v", err)
	}
}

func flipBit(t *testing.T, f *crashfs.FS, name string) {
	t.Helper()
	b := read(t, f, name)
	b[len(b)-3] ^= 1
	write(t, f, name, b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// killedAt runs changes of generations, alone and in a transaction, a snapshot and a recovery, and returns what is on disk when the
// process ends before write number at of them; nil: there are not so many.
func killedAt(t *testing.T, at int) (after *crashfs.FS) {
	t.Helper()
	clock := &gate.Clock{MS: 1_800_000_000_000}
	base := crashfs.New()
	ffs := faultfs.New(base)
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: ffs, Dir: gate.Dir, Shards: 2, Policy: log.Always}})
	must(t, err)
	e.SetActiveExpire(false)
	s := gate.Over(t, e, ffs, clock)
	s.Do("MSET a 1 b 2 c 3 d 4")
	must(t, s.E.Save())
	var mu sync.Mutex
	n := 0
	ffs.Inject(func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if !op.Kind.IsWrite() {
			return nil
		}
		if n++; n < at {
			return nil
		}
		if after == nil {
			after = base.KillClone()
		}
		return syscall.EIO
	})
	for _, c := range []string{"MSET a 5 b 6 c 7 d 8 e 9", "FLUSHALL", "MSET a 5 b 6 c 7 d 8", "MULTI ; SET x 1 ; FLUSHALL ; MSET a 9 b 9 c 9"} {
		_, _ = s.Try(c)
	}
	_ = s.E.Save()
	_, _ = s.Try("MSET a 3 b 4 c 5 d 6")
	_ = s.E.Close(false)
	if e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: ffs, Dir: gate.Dir}}); err == nil {
		_ = e.Close(false)
	}
	mu.Lock()
	defer mu.Unlock()
	return after
}

// TestRebuiltAfterCrash: whatever write a process was killed before, what a MANIFEST made anew leads to is what the old one does, or
// it is refused.
func TestRebuiltAfterCrash(t *testing.T) {
	same, refused := 0, 0
	for at := 1; ; at++ {
		after := killedAt(t, at)
		if after == nil {
			break
		}
		b, err := history.BuildFrom(history.Source{FS: after, Dir: gate.Dir}, history.Latest(), nil, nil)
		must(t, err)
		_, want := b.Digest(nil, 0)
		b.Release()
		must(t, after.Remove(manifest))
		h, err := rebuilt(t, after)
		if err != nil {
			refused++
			if !errors.Is(err, history.ErrDamaged) && !errors.Is(err, log.ErrCorrupt) && !errors.Is(err, log.ErrGone) {
				t.Errorf("operation %d: %v", at, err)
			}
			continue
		}
		if b, err = h.Build(history.Latest(), nil, nil); err != nil {
			t.Errorf("operation %d: %v", at, err)
			continue
		}
		if _, got := b.Digest(nil, 0); got != want {
			t.Errorf("operation %d: digest %s, with the MANIFEST %s", at, got, want)
		}
		b.Release()
		same++
	}
	t.Logf("%d the same, %d refused", same, refused)
	if same < 40 || refused > same/2 {
		t.Errorf("%d are the same, %d are refused", same, refused)
	}
}
