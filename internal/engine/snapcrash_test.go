package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// savedStore is a store with a snapshot set, and changes and deletions behind it, all of it durable.
func savedStore(t *testing.T, fsys vfs.FS) *gate.Store {
	t.Helper()
	s := gate.Open(t, fsys, 2, &gate.Clock{MS: 1_800_000_000_000})
	s.E.SetPolicy(log.Always)
	for i := range 60 {
		s.Do(fmt.Sprintf("SET k%d %s", i, strings.Repeat("v", 2000)))
		s.Do(fmt.Sprintf("RPUSH l%d a b c", i))
	}
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		s.Do(fmt.Sprintf("DEL k%d l%d", i, i))
		s.Do(fmt.Sprintf("MSET m%d x n%d %d", i, i, i))
	}
	return s
}

// TestCrashAtEveryStepOfSnapshot ends the process, or the power, before every step of writing a set, publishing it
// and removing the one before: what comes up is the same, with one of the two sets in force, goes on, and
// cleans up with its next snapshot.
func TestCrashAtEveryStepOfSnapshot(t *testing.T) {
	base := crashfs.New()
	ffs := faultfs.New(base)
	s := savedStore(t, ffs)
	want, first := s.Digest(), s.E.SaveStatus().LastID
	s.Clock.Advance(1000)
	var mu sync.Mutex
	var clones []*crashfs.FS
	var steps []string
	rng := rand.New(rand.NewPCG(1, 2))
	ffs.Inject(func(op faultfs.Op) error {
		if op.Kind.IsWrite() {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range []*crashfs.FS{base.KillClone(), base.CrashClone(rng), base.CrashClone(rng)} {
				clones, steps = append(clones, c), append(steps, op.String())
			}
		}
		return nil
	})
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	ffs.Inject(nil)
	second := s.E.SaveStatus().LastID
	s.Close()
	old := 0
	for i, c := range clones {
		if afterCrash(t, c, s.Clock, steps[i], want, first, second) == first {
			old++
		}
	}
	if len(clones) < 60 || old == 0 || old == len(clones) {
		t.Errorf("%d crashes, after %d the old set was in force", len(clones), old)
	}
}

// afterCrash opens what a crash has left, and returns the set that was in force.
func afterCrash(t *testing.T, c *crashfs.FS, clock *gate.Clock, step, want, first, second string) (inForce string) {
	t.Helper()
	r := gate.Open(t, c, 2, clock)
	inForce, _ = r.E.Dir().Snapshot()
	if got := r.Digest(); got != want || inForce != first && inForce != second {
		t.Errorf("before %s: digest %s, want %s; set %s", step, got, want, inForce)
	}
	r.Do("SET later 1")
	r.Do("DEL k40")
	after := r.Digest()
	if err := r.E.Save(); err != nil {
		t.Errorf("before %s: %v", step, err)
	}
	r.Close()
	names, err := c.ReadDir(path.Join(gate.Dir, "snapshots"))
	if err != nil || len(names) != 1 {
		t.Errorf("before %s: sets left: %v %v", step, names, err)
	}
	again := gate.Open(t, c, 2, clock)
	if got := again.Digest(); got != after {
		t.Errorf("before %s: once more: digest %s, want %s", step, got, after)
	}
	again.Close()
	return inForce
}

// TestFaultAtEveryStepOfSnapshot lets every step fail: nothing is lost, the failure is told, and the next snapshot is good.
func TestFaultAtEveryStepOfSnapshot(t *testing.T) {
	failed := 0
	for n := 1; ; n++ {
		base := crashfs.New()
		ffs := faultfs.New(base)
		s := savedStore(t, ffs)
		want, first := s.Digest(), s.E.SaveStatus().LastID
		s.Clock.Advance(1000)
		hit := ""
		seen := 0
		ffs.Inject(func(op faultfs.Op) error {
			if !op.Kind.IsWrite() || !strings.Contains(op.Path, "snapshots") && !strings.Contains(op.Path, "MANIFEST") {
				return nil
			}
			if seen++; seen == n {
				hit = op.String()
				return faultfs.ErrInjected
			}
			return nil
		})
		err := s.E.Save()
		ffs.Inject(nil)
		if hit == "" {
			if failed < 15 {
				t.Errorf("only %d steps have failed", failed)
			}
			s.Close()
			return
		}
		st := s.E.SaveStatus()
		if (err == nil) != (st.Failures == 0) || err == nil && st.PruneError == nil || err != nil && st.LastID != first {
			t.Errorf("%s failed: %v, status %+v", hit, err, st)
		}
		if err != nil {
			failed++
		}
		if got := s.Digest(); got != want {
			t.Errorf("%s failed: digest %s, want %s", hit, got, want)
		}
		r := gate.Open(t, base.KillClone(), 2, s.Clock)
		if got := r.Digest(); got != want {
			t.Errorf("%s failed, then killed: digest %s, want %s", hit, got, want)
		}
		r.Close()
		if err := s.E.Save(); err != nil {
			t.Errorf("%s failed, and then: %v", hit, err)
		}
		if st := s.E.SaveStatus(); st.Sets != 1 || st.PruneError != nil {
			t.Errorf("%s failed; after the next snapshot: %+v", hit, st)
		}
		s.Close()
	}
}

// content is what a directory holds.
func content(t *testing.T, fsys vfs.FS) map[string]string {
	t.Helper()
	files := make(map[string]string)
	var walk func(dir string)
	walk = func(dir string) {
		names, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			p := path.Join(dir, n)
			if fi, err := fsys.Stat(p); err == nil && fi.IsDir() {
				walk(p)
				continue
			}
			f, err := fsys.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			size, _ := f.Size()
			b := make([]byte, size)
			_, _ = f.ReadAt(b, 0)
			_ = f.Close()
			files[p] = string(b)
		}
	}
	walk(gate.Dir)
	return files
}

// loss is a way in which a snapshot set can be out of reach.
type loss struct {
	damage func(f *crashfs.FS) error // nil: none, the file system fails
	inject faultfs.Injector
	names  string // in the error
}

func losses(t *testing.T) map[string]loss {
	shard := func(fsys vfs.FS, n int) string {
		ids, err := snapshot.List(fsys, gate.Dir)
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.ShardPath(snapshot.Dir(gate.Dir, ids[len(ids)-1]), n)
	}
	return map[string]loss{
		"not permitted":    {inject: faultfs.OnPath(".snap", faultfs.FailFrom(faultfs.OpOpen, 1, fs.ErrPermission)), names: ".snap"},
		"read error":       {inject: faultfs.OnPath("shard-01.snap", faultfs.FailFrom(faultfs.OpReadAt, 2, errors.New("bad block"))), names: "shard-01.snap"},
		"file missing":     {damage: func(f *crashfs.FS) error { return f.Remove(shard(f, 1)) }, names: "shard-01.snap"},
		"set missing":      {damage: func(f *crashfs.FS) error { return f.RemoveAll(path.Dir(shard(f, 0))) }, names: ".snap"},
		"all missing":      {damage: func(f *crashfs.FS) error { return f.RemoveAll(path.Join(gate.Dir, "snapshots")) }, names: ".snap"},
		"manifest missing": {damage: func(f *crashfs.FS) error { return f.Remove(path.Join(gate.Dir, "MANIFEST")) }, names: gate.Dir},
		"swapped files": {damage: func(f *crashfs.FS) error {
			return errors.Join(f.Rename(shard(f, 0), "x"), f.Rename(shard(f, 1), shard(f, 0)), f.Rename("x", shard(f, 1)))
		}, names: ".snap"},
		"other store's": {damage: func(f *crashfs.FS) error { return swapSets(t, f, shard(f, 0)) }, names: ".snap"},
	}
}

// TestUnreadableSnapshotRefuses: a set that is there but can't be read, is missing, damaged or another one's, is never
// taken for empty: the start refuses, names it, and changes nothing; no log or set is lost by it, and no cursor.
func TestUnreadableSnapshotRefuses(t *testing.T) {
	for name, c := range losses(t) {
		t.Run(name, func(t *testing.T) {
			base := crashfs.New()
			s := savedStore(t, base)
			clock, want, cursors := s.Clock, s.Digest(), s.Cursors()
			s.Close()
			whole := base.KillClone()
			if c.damage != nil {
				if err := c.damage(base); err != nil {
					t.Fatal(err)
				}
			}
			before := content(t, base)
			for range 2 {
				refused(t, base, clock, &c)
			}
			sameSnapshots(t, before, content(t, base))
			if c.damage == nil { // refused, and then readable again
				whole = base
			}
			r := gate.Open(t, whole, 2, clock)
			if got := r.Digest(); got != want || !slices.Equal(r.Cursors(), cursors) {
				t.Errorf("the whole one: %s at %v, want %s at %v", got, r.Cursors(), want, cursors)
			}
			r.Close()
		})
	}
}

func refused(t *testing.T, base *crashfs.FS, clock *gate.Clock, c *loss) {
	t.Helper()
	ffs := faultfs.New(base)
	ffs.Inject(c.inject)
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: ffs, Dir: gate.Dir}})
	if err == nil {
		_ = e.Close(false)
		t.Fatal("it opened")
	}
	if !strings.Contains(err.Error(), c.names) {
		t.Errorf("the error does not name %s: %v", c.names, err)
	}
}

// swapSets replaces a shard's file by that of another store with the same keys.
func swapSets(t *testing.T, f *crashfs.FS, file string) error {
	other := crashfs.New()
	s := savedStore(t, other)
	s.Close()
	ids, err := snapshot.List(other, gate.Dir)
	if err != nil {
		return err
	}
	b := content(t, other)[snapshot.ShardPath(snapshot.Dir(gate.Dir, ids[0]), 0)]
	if err := f.Remove(file); err != nil {
		return err
	}
	out, err := f.Create(file)
	if err != nil {
		return err
	}
	_, err = out.WriteAt([]byte(b), 0)
	return errors.Join(err, out.Sync(), out.Close())
}

// sameSnapshots checks that refused starts have left everything that holds data as it was.
func sameSnapshots(t *testing.T, before, after map[string]string) {
	t.Helper()
	for p, b := range before {
		if strings.HasSuffix(p, ".snap") || strings.HasSuffix(p, "SET") {
			if after[p] != b {
				t.Errorf("%s has changed", p)
			}
		}
		if strings.HasSuffix(p, ".seg") && !strings.HasPrefix(after[p], strings.TrimRight(b, "\x00")) {
			t.Errorf("%s has lost frames", p)
		}
	}
}
