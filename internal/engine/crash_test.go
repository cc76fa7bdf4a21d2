package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
)

// writer runs commands on one goroutine and remembers what was acknowledged.
type writer struct {
	id    int
	e     *engine.Engine
	acked atomic.Int64 // last acknowledged round
}

// keys of a round: several of them, so that they lie on several shards.
func (w *writer) keys() (ks []string) {
	for i := range 5 {
		ks = append(ks, fmt.Sprintf("w%d-%d", w.id, i))
	}
	return ks
}

// round writes n to all of the writer's keys in one MSET, and to one alone.
func (w *writer) round(t *testing.T, s *gate.Store, n int) error {
	args := []string{"MSET"}
	for _, k := range w.keys() {
		args = append(args, k, fmt.Sprint(n))
	}
	if _, err := s.Try(strings.Join(args, " ")); err != nil {
		return err
	}
	if _, err := s.Try(fmt.Sprintf("SET single-%d %d", w.id, n)); err != nil {
		return err
	}
	w.acked.Store(int64(n))
	return nil
}

// check compares a recovered store with what was acknowledged: every group whole, nothing
// acknowledged lost.
func (w *writer) check(t *testing.T, s *gate.Store, acked int64) {
	t.Helper()
	first := value(s.Do("GET " + w.keys()[0]))
	for _, k := range w.keys() {
		if v := value(s.Do("GET " + k)); v != first {
			t.Errorf("group torn: %s is %d, %s is %d", w.keys()[0], first, k, v)
		}
	}
	if first < acked {
		t.Errorf("writer %d: acknowledged %d, recovered %d", w.id, acked, first)
	}
	if v := value(s.Do(fmt.Sprintf("GET single-%d", w.id))); v < acked || v > first {
		t.Errorf("writer %d: single key %d, acknowledged %d, group %d", w.id, v, acked, first)
	}
}

func value(reply string) (n int64) {
	_, body, _ := strings.Cut(reply, "\r\n")
	_, _ = fmt.Sscan(body, &n)
	return n
}

// TestCrashKeepsAcknowledgedGroups kills a store (everysec: the process; always: the power) at random
// moments under load from several writers, many times over.
func TestCrashKeepsAcknowledgedGroups(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for _, policy := range []log.Policy{log.EverySec, log.Always} {
		t.Run(policy.String(), func(t *testing.T) {
			for seed := range rounds {
				crashRound(t, policy, uint64(seed))
			}
		})
	}
}

func crashRound(t *testing.T, policy log.Policy, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	fs := crashfs.New()
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, fs, 3, clock)
	s.E.SetPolicy(policy)
	writers := make([]*writer, 4)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range writers {
		writers[i] = &writer{id: i, e: s.E}
		wg.Go(func() {
			own := s.Session()
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := writers[i].round(t, own, n); err != nil {
					return
				}
			}
		})
	}
	for writers[rng.IntN(len(writers))].acked.Load() < int64(1+rng.IntN(40)) {
	}
	// What is acknowledged before the crash must be there after it.
	acked := make([]int64, len(writers))
	for i, w := range writers {
		acked[i] = w.acked.Load()
	}
	var after *crashfs.FS
	if policy == log.Always {
		after = fs.CrashClone(rng)
	} else {
		after = fs.KillClone()
	}
	close(stop)
	wg.Wait()
	if err := s.E.Close(false); err != nil {
		t.Fatal(err)
	}
	r := gate.Open(t, after, 3, clock)
	for i, w := range writers {
		w.check(t, r, acked[i])
	}
	for _, g := range r.Cursors() {
		if g.Offset != 0 {
			t.Errorf("seed %d: cursor %v after a crash", seed, g)
		}
	}
	r.Close()
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}
