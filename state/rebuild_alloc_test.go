package state

import (
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// TestRebuildAllocatesNothing: what a snapshot does for each key with a flat value costs no allocation.
func TestRebuildAllocatesNothing(t *testing.T) {
	const keys = 20000
	ks := New(1)
	fill(t, ks, keys)
	v := ks.View()
	defer v.Close()
	n := 0
	allocs := testing.AllocsPerRun(1, func() {
		n = 0
		v.Rebuild(func(*effect.Effect, bool) bool { n++; return true })
	})
	if n != keys || allocs > 16 {
		t.Fatalf("%d keys, %v allocations", n, allocs)
	}
}
