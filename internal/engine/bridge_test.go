package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
)

// flushes are transactions with a FLUSHALL in the middle.
var flushes = []string{
	"MULTI ; SET a 1 ; RPUSH l x ; FLUSHALL ; SET b 2",
	"MULTI ; FLUSHALL ; MSET a 10 b 20 c 30 d 40 ; INCR n ; RPUSH l 1 2 3",
	"MULTI ; SET old 2 ; DEL k1 k2 k3 ; FLUSHALL ; SET x 1 ; FLUSHALL ; APPEND y z ; INCR n",
	"MULTI ; FLUSHALL ; FLUSHALL ; SET x 1",
	"MULTI ; FLUSHALL ; SET x 1 ; FLUSHALL",
	"MULTI ; FLUSHALL ; FUNCTION LOAD " + bridgeLibrary + " ; FLUSHALL ; FCALL put 2 a b 7",
	`EVAL 'redis.call("SET", KEYS[1], 1) redis.call("FLUSHALL") redis.call("MSET", "p", 1, "q", 2, "r", 3)' 1 a`,
}

const bridgeLibrary = `'#!lua name=lib\n redis.register_function("put", function(k, a) redis.call("SET", k[1], a[1]) redis.call("RPUSH", k[2], a[1]) return 1 end)'`

var flushCrashes = flag.Int("engine.crashes", 0,
	"losses of power at every step of a FLUSHALL, in every case; 0: one, in a part of them")

// TestCrashAtEveryStepOfFlush ends the process, or the power, before every step of a FLUSHALL and of transactions with a
// FLUSHALL in them, on a primary and on a replica: all of it is there afterwards, or none, whoever looks.
func TestCrashAtEveryStepOfFlush(t *testing.T) {
	policies := []log.Policy{log.EverySec, log.Always}
	for role, open := range []func(testing.TB, *faultfs.FS, int, string) *flushing{flushOnPrimary, flushOnReplica} {
		for _, shards := range []int{1, 3} {
			for i, line := range append([]string{"FLUSHALL"}, flushes...) {
				for p, policy := range policies {
					if *flushCrashes == 0 && (p != (i+role)%2 || shards == 1 && i%3 == 0) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d shards/%d/%v", []string{"primary", "replica"}[role], shards, i, policy), func(t *testing.T) {
						rng := rand.New(rand.NewPCG(uint64(i), uint64(shards)))
						base := crashfs.New()
						ffs := faultfs.New(base)
						crashInFlush(t, base, ffs, open(t, ffs, shards, line), policy, max(*flushCrashes, 1), rng)
					})
				}
			}
		}
	}
}

// flushing is a store that is about to run, or apply, something with a FLUSHALL in it.
type flushing struct {
	s      *gate.Store
	source *gate.Store // that s follows; nil: s is a primary
	run    func()
}

func flushOnPrimary(t testing.TB, fs *faultfs.FS, shards int, line string) *flushing {
	s := gate.Open(t, fs, shards, &gate.Clock{MS: 1_800_000_000_000})
	s.E.SetPolicy(log.Always)
	beforeFlush(s)
	return &flushing{s: s, run: func() {
		if reply := s.Do(line); strings.HasPrefix(reply, "-") {
			t.Fatal(reply)
		}
	}}
}

// beforeFlush is what FLUSHALL finds.
func beforeFlush(s *gate.Store) {
	for i := range 20 {
		s.Do(fmt.Sprintf("MSET k%d 1 old%d 2 n 5", i, i))
	}
}

func flushOnReplica(t testing.TB, fs *faultfs.FS, shards int, line string) *flushing {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	source := gate.Open(t, crashfs.New(), shards, clock)
	t.Cleanup(source.Close)
	beforeFlush(source)
	r := followOn(t, fs, source, clock, 0)
	apply(t, source, r)
	for i := range shards {
		if err := r.E.Dir().Log(i).Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if reply := source.Do(line); strings.HasPrefix(reply, "-") {
		t.Fatal(reply)
	}
	return &flushing{r, source, func() { apply(t, source, r) }}
}

// followsOn checks that a replica of source goes on from what a crash has left.
func followsOn(t testing.TB, source *gate.Store, step string, c *crashfs.FS) {
	t.Helper()
	r := openFollower(t, c, source.Clock, 0)
	apply(t, source, r)
	if r.Digest() != source.Digest() || r.Libraries() != source.Libraries() || !slices.Equal(r.Cursors(), source.Cursors()) {
		t.Errorf("before %s: the replica goes on to %v, its source is at %v", step, r.Cursors(), source.Cursors())
	}
	r.Close()
}

// apply brings r, which follows s, to where s is.
func apply(t testing.TB, s, r *gate.Store) {
	t.Helper()
	if err := tryApply(s, r); err != nil {
		t.Fatal(err)
	}
}

// tryApply is apply, a frame at a time.
func tryApply(s, r *gate.Store) error {
	a := r.E.NewApplier()
	parts := s.FramesFor(r)
	for i := range parts {
		if err := a.Apply(parts[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

func crashInFlush(t *testing.T, base *crashfs.FS, ffs *faultfs.FS, f *flushing, policy log.Policy, losses int, rng *rand.Rand) {
	s := f.s
	s.E.SetPolicy(policy)
	before := s.Digest() + s.Libraries()
	crashes := crashesOf(ffs, base, losses, rng, f.run)
	after := s.Digest() + s.Libraries()
	crashes = append(crashes, crashed{base.KillClone(), "the end"})
	seen := make(map[string]int)
	for _, c := range crashes {
		if f.source != nil {
			followsOn(t, f.source, c.step, c.fs.KillClone())
		}
		seen[flushCrashed(t, c.fs, s, c.step, before, after)]++
	}
	if seen[before] == 0 || seen[after] == 0 {
		t.Errorf("%d crashes: %d times before, %d times after", len(crashes), seen[before], seen[after])
	}
	s.Close()
}

// crashed is what a crash before a step has left.
type crashed struct {
	fs   *crashfs.FS
	step string
}

// crashesOf returns what a killed process, and so many losses of power, leave before each step of run.
func crashesOf(ffs *faultfs.FS, base *crashfs.FS, losses int, rng *rand.Rand, run func()) (all []crashed) {
	var mu sync.Mutex
	ended := false
	ffs.Inject(func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.IsWrite() && !ended {
			all = append(all, crashed{base.KillClone(), op.String()})
			for range losses {
				all = append(all, crashed{base.CrashClone(rng), op.String()})
			}
		}
		return nil
	})
	run()
	ffs.Inject(nil)
	mu.Lock()
	defer mu.Unlock()
	ended = true // the committer may still be inside of the injected function
	return all
}

// flushCrashed opens what a crash has left, to be written to, and returns the state that was found.
func flushCrashed(t *testing.T, c *crashfs.FS, s *gate.Store, step, before, after string) string {
	t.Helper()
	shards := s.E.Shards()
	// Tools that only read see the same.
	res, err := history.Restore(history.RestoreOptions{From: history.Source{FS: c, Dir: gate.Dir}, FS: c, To: "restored", Now: s.Clock.Now})
	if err != nil {
		t.Errorf("before %s: restore: %v", step, err)
	}
	r := gate.Open(t, c, shards, s.Clock)
	digest := r.Digest()
	found := digest + r.Libraries()
	if found != before && found != after {
		t.Errorf("before %s: torn: %s", step, r.Do("KEYS *"))
	}
	if err == nil && !strings.Contains(digest, res.Digest) {
		t.Errorf("before %s: restored %s, recovered %s", step, res.Digest, digest)
	}
	r.Do("MSET later 1 later2 2 later3 3")
	want := r.Digest()
	_ = r.E.Close(false)
	again := gate.Open(t, c.KillClone(), shards, s.Clock)
	if got := again.Digest(); got != want {
		t.Errorf("before %s: once more: %s, want %s", step, got, want)
	}
	again.Close()
	return found
}

// TestFlushThenCrashOnReplica: a primary that was killed behind its FLUSHALL, before the generation of that, has begun one of cause crash. What its first
// group did is no part of the FLUSHALL, though it has its time, and a replica that is killed while it applies both goes on.
func TestFlushThenCrashOnReplica(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	base := crashfs.New()
	ffs := faultfs.New(base)
	s := gate.Open(t, ffs, 2, clock)
	s.E.SetPolicy(log.Always)
	beforeFlush(s)
	full, killed := s.Digest(), (*crashfs.FS)(nil)
	for _, x := range crashesOf(ffs, base, 0, nil, func() { s.Do("FLUSHALL") }) {
		c := gate.Open(t, x.fs.KillClone(), 2, clock)
		if lin := c.E.Dir().Lineage(0); lin[len(lin)-1].Cause == log.CauseCrash && lin[len(lin)-2].Cause == log.CauseCreate && c.Digest() != full {
			killed = x.fs
		}
		c.Close()
	}
	s.Close()
	if killed == nil {
		t.Fatal("no crash leaves the FLUSHALL without its generation")
	}
	source := gate.Open(t, killed, 2, clock)
	defer source.Close()
	source.Do("MSET a 1 b 2 c 3 d 4")
	base = crashfs.New()
	ffs = faultfs.New(base)
	r := followOn(t, ffs, source, clock, 0)
	for _, x := range crashesOf(ffs, base, 0, nil, func() { apply(t, source, r) }) {
		followsOn(t, source, x.step, x.fs)
	}
	r.Close()
}

// TestFlushOnFullReplica: a replica whose disk is full applies nothing of a transaction with a FLUSHALL, and all of it when there is space.
func TestFlushOnFullReplica(t *testing.T) {
	for _, line := range append([]string{"FLUSHALL"}, flushes...) {
		ffs := faultfs.New(crashfs.New())
		f := flushOnReplica(t, ffs, 2, line)
		source := f.source
		before, at := f.s.Digest()+f.s.Libraries(), f.s.Cursors()
		ffs.SetFull(true)
		if err := tryApply(source, f.s); !errors.Is(err, log.ErrDiskFull) {
			t.Errorf("%.60s: %v", line, err)
		}
		if got := f.s.Digest() + f.s.Libraries(); got != before || !slices.Equal(f.s.Cursors(), at) {
			t.Errorf("%.60s: refused at %v, and the replica is at %v", line, at, f.s.Cursors())
		}
		ffs.SetFull(false)
		var err error
		for range 100 {
			if err = tryApply(source, f.s); !errors.Is(err, log.ErrDiskFull) {
				break
			}
			time.Sleep(10 * time.Millisecond) // a full disk is not asked again at once
		}
		if err != nil || f.s.Digest()+f.s.Libraries() != source.Digest()+source.Libraries() || !slices.Equal(f.s.Cursors(), source.Cursors()) {
			t.Errorf("%.60s: %v; at %v, the source at %v", line, err, f.s.Cursors(), source.Cursors())
		}
		f.s.Close()
	}
}

// TestFlushInTransactionUndone: a transaction with a FLUSHALL that the log refuses, or a script that ends in a panic of the
// server, leaves everything as it was: keys of all sizes, deadlines, libraries.
func TestFlushInTransactionUndone(t *testing.T) {
	for _, line := range flushes {
		fs := faultfs.New(crashfs.New())
		s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
		s.Do("FUNCTION LOAD " + bridgeLibrary)
		for i := range 300 {
			s.Do(fmt.Sprintf("RPUSH big e%d", i))
			s.Do(fmt.Sprintf("MSET a 1 b%d 2", i))
		}
		s.Do("PEXPIRE a 100000")
		fs.SetFull(true)
		for range 1000 {
			if strings.HasPrefix(s.Do("SET filler "+strings.Repeat("x", 10<<10)), "-MISCONF ") {
				break
			}
		}
		before := s.Digest() + s.Libraries()
		line = strings.ReplaceAll(line, "FUNCTION LOAD", "FUNCTION LOAD REPLACE")
		big := " ; SET later " + strings.Repeat("x", 20<<10)
		if strings.HasPrefix(line, "EVAL") {
			line, big = strings.Replace(line, `"r", 3`, `"r", string.rep("x", 20000)`, 1), ""
		}
		if reply := s.Do(line + big); !strings.Contains(reply, "MISCONF ") {
			t.Errorf("%.60s: %.80s", line, reply)
		}
		if got := s.Digest() + s.Libraries(); got != before {
			t.Errorf("%.60s: refused, and the state is another one", line)
		}
		fs.SetFull(false)
		s.Close()
	}
}
