package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

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
// FLUSHALL in them: all of it is there afterwards, or none, whoever looks.
func TestCrashAtEveryStepOfFlush(t *testing.T) {
	policies := []log.Policy{log.EverySec, log.Always}
	for _, shards := range []int{1, 3} {
		for i, line := range append([]string{"FLUSHALL"}, flushes...) {
			for p, policy := range policies {
				if *flushCrashes == 0 && (p != i%2 || shards == 1 && i%3 == 0) {
					continue
				}
				t.Run(fmt.Sprintf("%d shards/%d/%v", shards, i, policy), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(uint64(i), uint64(shards)))
					crashInFlush(t, line, shards, policy, max(*flushCrashes, 1), rng)
				})
			}
		}
	}
}

func crashInFlush(t *testing.T, line string, shards int, policy log.Policy, losses int, rng *rand.Rand) {
	base := crashfs.New()
	ffs := faultfs.New(base)
	s := gate.Open(t, ffs, shards, &gate.Clock{MS: 1_800_000_000_000})
	s.E.SetPolicy(log.Always)
	for i := range 20 {
		s.Do(fmt.Sprintf("MSET k%d 1 old%d 2 n 5", i, i))
	}
	s.E.SetPolicy(policy)
	before := s.Digest() + s.Libraries()
	var mu sync.Mutex
	var clones []*crashfs.FS
	var steps []string
	ffs.Inject(func(op faultfs.Op) error {
		if op.Kind.IsWrite() {
			mu.Lock()
			defer mu.Unlock()
			clones, steps = append(clones, base.KillClone()), append(steps, op.String())
			for range losses {
				clones, steps = append(clones, base.CrashClone(rng)), append(steps, op.String())
			}
		}
		return nil
	})
	if reply := s.Do(line); strings.HasPrefix(reply, "-") {
		t.Fatal(reply)
	}
	ffs.Inject(nil)
	after := s.Digest() + s.Libraries()
	mu.Lock() // the committer may still be inside of the injected function
	crashed, at := append(clones, base.KillClone()), append(steps, "the end")
	mu.Unlock()
	seen := make(map[string]int)
	for i, c := range crashed {
		seen[flushCrashed(t, c, s, shards, at[i], before, after)]++
	}
	if seen[before] == 0 || seen[after] == 0 {
		t.Errorf("%d crashes: %d times before, %d times after", len(crashed), seen[before], seen[after])
	}
	s.Close()
}

// flushCrashed opens what a crash has left, and returns the state that was found.
func flushCrashed(t *testing.T, c *crashfs.FS, s *gate.Store, shards int, step, before, after string) string {
	t.Helper()
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
