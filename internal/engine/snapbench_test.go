package engine_test

import (
	"crypto/rand"
	"testing"

	"github.com/kevydb/kevy/internal/command"
)

// BenchmarkSnapshot writes a set of 1M keys of 64 random bytes, and loads it; one shard, so one goroutine that rebuilds or
// folds and one that compresses or decompresses.
func BenchmarkSnapshot(b *testing.B) {
	e, keys := benchEngine(b, 1)
	c := newClient(e)
	set := command.Lookup([]byte("set"))
	value := make([]byte, 64)
	for _, k := range keys {
		_, _ = rand.Read(value) // never fails
		c.do(set, [][]byte{[]byte("SET"), k, value})
	}
	perKey := func(b *testing.B) {
		b.Helper()
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := e.Save(); err != nil {
				b.Fatal(err)
			}
		}
		perKey(b)
	})
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		if err := e.Save(); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := e.Reload(false); err != nil {
				b.Fatal(err)
			}
		}
		perKey(b)
	})
}
