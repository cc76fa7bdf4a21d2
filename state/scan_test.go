package state

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// scanner runs one SCAN over keyspaces that change between the calls.
type scanner struct {
	cursor uint64
	begun  bool
	seen   map[string]int
	most   int // entries of one call
}

// step scans once; false at the end.
func (s *scanner) step(ks *Keyspace, count int) bool {
	n := 0
	s.cursor = ks.Scan(s.cursor, count, func(e Entry) { s.seen[string(e.Key())]++; n++ })
	s.most = max(s.most, n)
	s.begun = true
	return s.cursor != 0
}

func TestScanVisitsEachKeyOnce(t *testing.T) {
	for _, n := range []int{0, 1, 10, 1000, 100000} {
		ks := New(9)
		for i := range n {
			mustFold(t, ks, eff(effect.Set, strconv.Itoa(i), "v"))
		}
		for _, count := range []int{1, 10, 1000} {
			s := scanner{seen: map[string]int{}}
			for s.step(ks, count) {
			}
			if len(s.seen) != n || s.most > count+3 {
				t.Fatalf("count %d: %d of %d keys, up to %d a call", count, len(s.seen), n, s.most)
			}
			for k, times := range s.seen {
				if times != 1 {
					t.Fatalf("count %d: %s seen %d times", count, k, times)
				}
			}
		}
		ks.Release()
	}
}

// TestScanGuarantee: whatever happens between the calls, a key present throughout is seen.
func TestScanGuarantee(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for round := range 12 {
		ks := New(9)
		const stay = 3000
		for i := range stay {
			mustFold(t, ks, eff(effect.Set, fmt.Sprint("stay", i), "v"))
		}
		others := 0
		s := scanner{seen: map[string]int{}}
		for s.step(ks, 1+rnd.IntN(200)) {
			switch rnd.IntN(6) {
			case 0: // grow
				for n := rnd.IntN(4000); n > 0 && others < 40000; n-- {
					mustFold(t, ks, eff(effect.Set, fmt.Sprint("other", others), "v"))
					others++
				}
			case 1: // shrink
				for n := rnd.IntN(4000); n > 0 && others > 0; n-- {
					others--
					mustFold(t, ks, eff(effect.Del, fmt.Sprint("other", others)))
				}
			case 2: // restart, in another order and without what was deleted
				if rnd.IntN(5) == 0 {
					ks = restarted(t, ks, 9)
				}
			}
		}
		for i := range stay {
			if s.seen[fmt.Sprint("stay", i)] == 0 {
				t.Fatalf("round %d: stay%d was not visited", round, i)
			}
		}
		mustCheck(t, ks)
		ks.Release()
	}
}

// restarted returns a new keyspace folded from the rebuild effects of ks, in key order.
func restarted(t testing.TB, ks *Keyspace, seed uint64) *Keyspace {
	n := New(seed)
	n.BeginBulk()
	ks.AscendFrom(nil, func(e Entry) bool {
		ks.Rebuild(e, func(e effect.Effect) { mustFold(t, n, &e) })
		return true
	})
	n.EndBulk()
	ks.Release()
	return n
}

func TestScanIsBounded(t *testing.T) {
	ks := New(9)
	defer ks.Release()
	for i := range 200000 {
		mustFold(t, ks, eff(effect.Set, strconv.Itoa(i), "v"))
	}
	for i := range 200000 {
		if i%5000 != 0 {
			mustFold(t, ks, eff(effect.Del, strconv.Itoa(i)))
		}
	}
	calls := 1
	for s := (scanner{seen: map[string]int{}}); s.step(ks, 10); {
		calls++
	}
	if calls > 200 {
		t.Errorf("%d calls for 40 keys", calls)
	}
}

func TestRandomIsFair(t *testing.T) {
	ks := New(9)
	defer ks.Release()
	if _, ok := ks.Random(77); ok {
		t.Fatal("a key of an empty keyspace")
	}
	const keys = 2000
	for i := range keys {
		mustFold(t, ks, eff(effect.Set, strconv.Itoa(i), "v"))
	}
	seen := map[string]int{}
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 100 * keys {
		e, ok := ks.Random(rnd.Uint64())
		if !ok {
			t.Fatal("no key")
		}
		seen[string(e.Key())]++
	}
	for k, n := range seen {
		if n > 250 || n < 20 {
			t.Errorf("%s drawn %d times of about 100", k, n)
		}
	}
	if len(seen) != keys {
		t.Errorf("%d of %d keys drawn", len(seen), keys)
	}
}
