package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// lean opens a store that keeps one set, and no log that the set makes unneeded.
func lean(t *testing.T, fs vfs.FS, clock *gate.Clock) *gate.Store {
	t.Helper()
	e, _, err := engine.Open(engine.Options{
		Now: clock.Now, Snapshots: &engine.SnapshotPolicy{Keep: 1},
		Log: log.Options{FS: fs, Dir: gate.Dir, Shards: 2, Policy: log.EverySec, SegmentBytes: 66 << 10, Window: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.SetActiveExpire(false)
	return gate.Over(t, e, fs, clock)
}

// saved is a store about to take a snapshot: there is one already, and behind it what must not be applied twice, what must stay
// deleted, and sealed segments.
func saved(t *testing.T, fs vfs.FS) *gate.Store {
	t.Helper()
	s := lean(t, fs, &gate.Clock{MS: 1_800_000_000_000})
	some := func(round int) {
		for i := range 6 {
			for _, c := range []string{"INCR n%d", "APPEND s%d x", "RPUSH l%d e", "ZINCRBY z%d 1 m", "XADD x%d * f v", "HINCRBY h%d f 1", "SADD t%d a b c"} {
				s.Do(fmt.Sprintf(c, i))
			}
		}
		s.Do(fmt.Sprintf("MSET big%d %s doomed%d 1 doomed-too%d 2", round, strings.Repeat("v", 40_000), round, round))
		s.Clock.Advance(7)
	}
	s.Do("FUNCTION LOAD '#!lua name=lib\nredis.register_function(\"f\", function() return 1 end)'")
	some(0)
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	some(1)
	s.Do("DEL doomed0 doomed-too1")
	some(2)
	s.Do("FLUSHALL")
	some(3)
	some(4)
	if _, err := s.E.Dir().Seal(); err != nil {
		t.Fatal(err)
	}
	s.Do("DEL doomed3 doomed-too4")
	for i := range s.E.Dir().Shards() {
		if err := s.E.Dir().Log(i).Sync(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// counted calls f with the number of each operation that changes a file.
func counted(f func(n int) error) faultfs.Injector {
	var mu sync.Mutex
	n := 0
	return func(op faultfs.Op) error {
		if !op.Kind.IsWrite() {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		n++
		return f(n)
	}
}

// TestSaveCrash ends the process, or takes the power, before each operation of a snapshot that changes a file: until it is written,
// published, and what it made unneeded is gone. The state is the same each time, the tools find nothing wrong, and the
// next snapshot removes what was left.
func TestSaveCrash(t *testing.T) {
	for at := 1; ; at++ {
		rng := rand.New(rand.NewPCG(uint64(at), 9))
		base := crashfs.New()
		ffs := faultfs.New(base)
		s := saved(t, ffs)
		want, libraries := s.Digest(), s.Libraries()
		var after []*crashfs.FS
		ffs.Inject(counted(func(n int) error {
			if n < at {
				return nil
			}
			if after == nil {
				after = []*crashfs.FS{base.KillClone(), base.CrashClone(rng), base.CrashClone(rng)}
			}
			return syscall.EIO
		}))
		err := s.E.Save()
		ffs.Inject(nil)
		_ = s.E.Close(false)
		if after == nil {
			if err != nil || at < 30 {
				t.Fatalf("a snapshot took %d operations: %v", at-1, err)
			}
			t.Logf("%d operations", at-1)
			return
		}
		for _, fs := range after {
			goesOn(t, fs, s.Clock, want, libraries)
		}
		if t.Failed() {
			t.Fatalf("at operation %d", at)
		}
	}
}

// goesOn opens what is left of a store and wants its state, before and after another snapshot.
func goesOn(t *testing.T, fs vfs.FS, clock *gate.Clock, want, libraries string) {
	t.Helper()
	same := func(what string, s *gate.Store) {
		t.Helper()
		if got := s.Digest(); got != want {
			t.Errorf("%s: digest %q, want %q", what, got, want)
		}
		if got := s.Libraries(); got != libraries {
			t.Errorf("%s: libraries %q, want %q", what, got, libraries)
		}
	}
	src := history.Source{FS: fs, Dir: gate.Dir}
	if v, err := history.Verify(src, history.VerifyOptions{Deep: true}); err != nil || len(v.Damage) > 0 {
		t.Errorf("verify: %v, %+v", err, v)
	}
	b, err := history.BuildFrom(src, history.Latest(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, sum := b.Digest(nil, clock.Now()); !strings.Contains(want, sum) {
		t.Errorf("the tools see digest %s, want %q", sum, want)
	}
	b.Release()
	s := lean(t, fs, clock)
	same("after a crash", s)
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	names, err := fs.ReadDir(gate.Dir + "/snapshots")
	if err != nil || len(names) != 1 || names[0] != s.E.SaveStatus().LastID {
		t.Errorf("after the next snapshot there are %v: %v", names, err)
	}
	s.Close()
	s = lean(t, fs, clock)
	same("restarted", s)
	s.Close()
}

// TestSaveFaults lets each operation of a snapshot that changes a file fail once: what it says is true, the state is the same, and
// the next one is good, in this process or, when the log has failed, in another.
func TestSaveFaults(t *testing.T) {
	for at := 1; ; at++ {
		base := vfs.NewMem()
		ffs := faultfs.New(base)
		s := saved(t, ffs)
		before := s.E.SaveStatus().LastID
		want, libraries := s.Digest(), s.Libraries()
		met := false
		ffs.Inject(counted(func(n int) error {
			if n != at {
				return nil
			}
			met = true
			return syscall.EIO
		}))
		err := s.E.Save()
		ffs.Inject(nil)
		st := s.E.SaveStatus()
		inForce, _ := s.E.Dir().Snapshot()
		if (err != nil) != (st.LastErr() != nil) || (err == nil) != (st.LastID != before) || err == nil && inForce != st.LastID {
			t.Errorf("%v: %+v, in force is %s, before %s", err, st, inForce, before)
		}
		if got := s.Digest(); got != want {
			t.Errorf("after a fault: digest %q, want %q", got, want)
		}
		if err := s.E.Dir().Err(); err != nil {
			_ = s.E.Close(false)
		} else {
			if err := s.E.Save(); err != nil {
				t.Errorf("the next snapshot: %v", err)
			}
			s.Close()
		}
		goesOn(t, base, s.Clock, want, libraries)
		if t.Failed() {
			t.Fatalf("at operation %d", at)
		}
		if !met {
			return
		}
	}
}

// TestUnreadableSet refuses to start, and leaves everything as it is, when the set on record can't be read, in whatever way.
func TestUnreadableSet(t *testing.T) {
	fs := crashfs.New()
	s := saved(t, fs)
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	want, id := s.Digest(), s.E.SaveStatus().LastID
	s.Close()
	name := snapshot.ShardPath(snapshot.Dir(gate.Dir, id), 1)
	for what, spoil := range map[string]func(fs *crashfs.FS) vfs.FS{
		"missing":       func(fs *crashfs.FS) vfs.FS { must(t, fs.Remove(name)); return fs },
		"a set missing": func(fs *crashfs.FS) vfs.FS { must(t, fs.RemoveAll(snapshot.Dir(gate.Dir, id))); return fs },
		"denied":        func(fs *crashfs.FS) vfs.FS { return denied(fs, name) },
		"of another one": func(fs *crashfs.FS) vfs.FS {
			must(t, fs.Rename(snapshot.ShardPath(snapshot.Dir(gate.Dir, id), 0), name))
			return fs
		},
		"cut":             func(fs *crashfs.FS) vfs.FS { truncate(t, fs, name); return fs },
		"manifest denied": func(fs *crashfs.FS) vfs.FS { return denied(fs, gate.Dir+"/MANIFEST") },
		"manifest gone":   func(fs *crashfs.FS) vfs.FS { must(t, fs.Remove(gate.Dir+"/MANIFEST")); return fs },
	} {
		broken := fs.KillClone()
		on := spoil(broken)
		files := tree(t, broken)
		for range 2 {
			if e, _, err := engine.Open(engine.Options{Now: s.Clock.Now, Log: log.Options{FS: on, Dir: gate.Dir}}); err == nil {
				t.Errorf("%s: it starts, with %d keys", what, e.Stats().Keys)
				_ = e.Close(false)
			}
		}
		if got := tree(t, broken); got != files {
			t.Errorf("%s: files were\n%s, are\n%s", what, files, got)
		}
	}
	again := lean(t, fs, s.Clock)
	if got := again.Digest(); got != want {
		t.Errorf("whole: digest %q, want %q", got, want)
	}
	again.Close()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// denied refuses to open a file.
func denied(fs vfs.FS, name string) vfs.FS {
	ffs := faultfs.New(fs)
	ffs.Inject(func(op faultfs.Op) error {
		if op.Path == name && (op.Kind == faultfs.OpOpen || op.Kind == faultfs.OpOpenReadWrite) {
			return syscall.EACCES
		}
		return nil
	})
	return ffs
}

func truncate(t *testing.T, fs vfs.FS, name string) {
	t.Helper()
	f, err := fs.OpenReadWrite(name)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	must(t, f.Truncate(size/2))
	must(t, f.Close())
}

// tree lists all files with their sizes, but for the lock's.
func tree(t *testing.T, fs vfs.FS) string {
	t.Helper()
	var b strings.Builder
	var walk func(dir string)
	walk = func(dir string) {
		names, err := fs.ReadDir(dir)
		must(t, err)
		for _, n := range names {
			fi, err := fs.Stat(dir + "/" + n)
			must(t, err)
			if fi.IsDir() {
				walk(dir + "/" + n)
			} else if n != "LOCK" {
				fmt.Fprintf(&b, "%s/%s %d\n", dir, n, fi.Size())
			}
		}
	}
	walk(gate.Dir)
	return b.String()
}
