package state

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPrefetch asks for keys that are there, that are not, and for hashes of no key, while the index grows: a hint
// changes nothing.
func TestPrefetch(t *testing.T) {
	ks := New(42)
	e, key := benchSet(64)
	for i := range uint64(5000) {
		benchKey(key, i)
		mustFold(t, ks, e)
		for _, h := range []uint64{0, 1<<64 - 1, Hash(42, key), Hash(42, fmt.Append(nil, i))} {
			ks.PrefetchIndex(h)
			ks.PrefetchRecord(h)
		}
	}
	mustCheck(t, ks)
}

// BenchmarkLookups looks up 16 keys of 1M, with and without asking for all of them first.
func BenchmarkLookups(b *testing.B) {
	const n, batch = 1_000_000, 16
	ks := loaded(b, n)
	for _, ahead := range []bool{false, true} {
		b.Run(fmt.Sprintf("ahead=%t", ahead), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			var keys [batch][16]byte
			var hashes [batch]uint64
			for b.Loop() {
				for i := range keys {
					hashes[i] = Hash(42, benchKey(keys[i][:], rnd.Uint64N(n)))
				}
				if ahead {
					for _, h := range hashes {
						ks.PrefetchIndex(h)
					}
					for _, h := range hashes {
						ks.PrefetchRecord(h)
					}
				}
				for i, h := range hashes {
					e, ok := ks.LookupHash(h, keys[i][:])
					if !ok || len(e.Value()) != 64 {
						b.Fatal("lost")
					}
				}
			}
		})
	}
}
