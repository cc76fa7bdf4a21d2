package state

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// TestSetViewsAreReadWhileFolding digests views in other goroutines while the sets they show change, grow and go:
// under the race detector, and the digests stay what they were.
func TestSetViewsAreReadWhileFolding(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	ks := New(1)
	defer ks.Release()
	change := func() {
		key := fmt.Sprint("k", rng.IntN(3))
		args := []string{key}
		for range 200 {
			m := strconv.Itoa(rng.IntN(100_000))
			if key == "k2" && rng.IntN(2) == 0 {
				m = "m" + m
			}
			args = append(args, m)
		}
		op := effect.SAdd
		if rng.IntN(3) == 0 {
			op = effect.SRem
		}
		mustFold(t, ks, eff(op, args...))
		if rng.IntN(200) == 0 {
			mustFold(t, ks, eff(effect.Del, key))
		}
	}
	for range 20 {
		for range 50 {
			change()
		}
		v := ks.View()
		n, want := ks.Digest(nil, 0)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if gotN, got := v.Digest(nil, 0); gotN != n || got != want {
					t.Errorf("%d keys, digest %x; want %d, %x", gotN, got, n, want)
				}
			})
		}
		for range 30 {
			change()
		}
		wg.Wait()
		v.Close()
		if err := ks.Check(); err != nil {
			t.Fatal(err)
		}
	}
}
