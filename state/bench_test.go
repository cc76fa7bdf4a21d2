package state

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/log/effect"
)

// benchKey writes the 16-byte key number n.
func benchKey(b []byte, n uint64) []byte {
	copy(b, "key:000000000000")
	for i := 15; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b[:16]
}

func benchSet(value int) (*effect.Effect, []byte) {
	key := make([]byte, 16)
	return &effect.Effect{Op: effect.Set, Args: [][]byte{key, make([]byte, value)}}, key
}

// loaded returns a keyspace of n 16-byte keys with 64-byte values, loaded one by one in random order.
func loaded(b testing.TB, n int) *Keyspace {
	ks := New(42)
	fill(b, ks, n)
	return ks
}

func fill(b testing.TB, ks *Keyspace, n int) {
	e, key := benchSet(64)
	for i := range n {
		benchKey(key, scatter(uint64(i), uint64(n)))
		if _, err := ks.Fold(e); err != nil {
			b.Fatal(err)
		}
	}
}

// scatter is a permutation of 0..n-1 for n a power of ten.
func scatter(i, n uint64) uint64 { return i * 7368787 % n }

func BenchmarkPoint(b *testing.B) {
	for _, n := range []int{1000, 1000000, 10000000} {
		if n > 1000000 && testing.Short() {
			continue
		}
		ks := loaded(b, n)
		rnd := rand.New(rand.NewPCG(1, 2))
		b.Run(fmt.Sprintf("get/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			key := make([]byte, 16)
			sum := 0
			for b.Loop() {
				e, ok := ks.Lookup(benchKey(key, rnd.Uint64N(uint64(n))))
				if !ok {
					b.Fatal("missing")
				}
				sum += int(e.Value()[0])
			}
		})
		b.Run(fmt.Sprintf("getTouch/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			key := make([]byte, 16)
			for b.Loop() {
				e, _ := ks.Lookup(benchKey(key, rnd.Uint64N(uint64(n))))
				ks.Touch(e, 7)
			}
		})
		b.Run(fmt.Sprintf("miss/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			key := make([]byte, 16)
			for b.Loop() {
				if _, ok := ks.Lookup(benchKey(key, uint64(n)+rnd.Uint64N(uint64(n)))); ok {
					b.Fatal("found")
				}
			}
		})
		b.Run(fmt.Sprintf("set/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			e, key := benchSet(64)
			for b.Loop() {
				benchKey(key, rnd.Uint64N(uint64(n)))
				ks.Fold(e)
			}
		})
		b.Run(fmt.Sprintf("setOtherSize/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			e, key := benchSet(64)
			v := make([]byte, 200)
			for b.Loop() {
				benchKey(key, rnd.Uint64N(uint64(n)))
				e.Args[1] = v[:40+rnd.IntN(160)]
				ks.Fold(e)
			}
		})
		ks.Release()
	}
}

func BenchmarkFold(b *testing.B) {
	const n = 1000000
	for _, bc := range []struct {
		name string
		args func(key []byte, r *rand.Rand) effect.Effect
	}{
		{"setPXAT", func(key []byte, r *rand.Rand) effect.Effect {
			ms := strconv.AppendInt(nil, 1700000000000+r.Int64N(3600000), 10)
			return effect.Effect{Op: effect.Set, Args: [][]byte{key, make([]byte, 64), []byte("PXAT"), ms}}
		}},
		{"pexpireat", func(key []byte, r *rand.Rand) effect.Effect {
			ms := strconv.AppendInt(nil, 1700000000000+r.Int64N(3600000), 10)
			return effect.Effect{Op: effect.PExpireAt, Args: [][]byte{key, ms}}
		}},
		{"persist", func(key []byte, _ *rand.Rand) effect.Effect {
			return effect.Effect{Op: effect.Persist, Args: [][]byte{key}}
		}},
		{"append", func(key []byte, _ *rand.Rand) effect.Effect {
			return effect.Effect{Op: effect.Append, Args: [][]byte{key, []byte("1234")}}
		}},
		{"setrange", func(key []byte, _ *rand.Rand) effect.Effect {
			return effect.Effect{Op: effect.SetRange, Args: [][]byte{key, []byte("32"), []byte("1234")}}
		}},
		{"mset", func(key []byte, _ *rand.Rand) effect.Effect {
			return effect.Effect{Op: effect.MSet, Args: [][]byte{key, make([]byte, 64)}}
		}},
	} {
		ks := loaded(b, n)
		rnd := rand.New(rand.NewPCG(1, 2))
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			key := make([]byte, 16)
			for b.Loop() {
				e := bc.args(benchKey(key, rnd.Uint64N(n)), rnd)
				ks.Fold(&e)
			}
		})
		ks.Release()
	}
}

func BenchmarkInsert(b *testing.B) {
	for _, order := range []string{"random", "ascending"} {
		b.Run(order, func(b *testing.B) {
			b.ReportAllocs()
			ks := New(1)
			e, key := benchSet(64)
			for i := range b.N {
				n := uint64(i)
				if order == "random" {
					n = n * 7368787 % 1000000007
				}
				benchKey(key, n)
				ks.Fold(e)
			}
			b.StopTimer()
			ks.Release()
		})
	}
}

func BenchmarkDelInsert(b *testing.B) {
	const n = 1000000
	ks := loaded(b, n)
	defer ks.Release()
	set, key := benchSet(64)
	del := &effect.Effect{Op: effect.Del, Args: [][]byte{key}}
	rnd := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		benchKey(key, rnd.Uint64N(n))
		ks.Fold(del)
		ks.Fold(set)
	}
}

// BenchmarkSetUnderViews is SET while a view is open, renewed every 10,000 writes.
func BenchmarkSetUnderViews(b *testing.B) {
	const n = 1000000
	ks := loaded(b, n)
	defer ks.Release()
	e, key := benchSet(64)
	rnd := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	v := ks.View()
	for i := 0; b.Loop(); i++ {
		if i%10000 == 9999 {
			v.Close()
			v = ks.View()
		}
		benchKey(key, rnd.Uint64N(n))
		ks.Fold(e)
	}
	v.Close()
}

// BenchmarkShards is GET and SET from GOMAXPROCS goroutines over 16 locked shards.
func BenchmarkShards(b *testing.B) {
	const n, shards = 1000000, 16
	var ks [shards]struct {
		sync.Mutex
		*Keyspace
		_ [64]byte
	}
	e, key := benchSet(64)
	for i := range ks {
		ks[i].Keyspace = New(42)
	}
	for i := range n {
		benchKey(key, scatter(uint64(i), n))
		ks[Hash(42, key)&(shards-1)].Fold(e)
	}
	for _, op := range []string{"get", "set"} {
		b.Run(op, func(b *testing.B) {
			b.ReportAllocs()
			var id atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				rnd := rand.New(rand.NewPCG(id.Add(1), 2))
				e, key := benchSet(64)
				for pb.Next() {
					benchKey(key, rnd.Uint64N(n))
					h := Hash(42, key)
					s := &ks[h&(shards-1)]
					s.Lock()
					if op == "set" {
						s.Fold(e)
					} else {
						s.LookupHash(h, key)
					}
					s.Unlock()
				}
			})
		})
	}
}

func BenchmarkEndBulk(b *testing.B) {
	const n = 1000000
	for range b.N {
		b.StopTimer()
		ks := New(42)
		ks.BeginBulk()
		start := time.Now()
		fill(b, ks, n)
		b.ReportMetric(float64(time.Since(start))/n, "ns/load")
		b.StartTimer()
		ks.EndBulk()
		b.StopTimer()
		ks.Release()
		b.StartTimer()
	}
}

func BenchmarkDigest(b *testing.B) {
	ks := loaded(b, 1000000)
	defer ks.Release()
	for b.Loop() {
		ks.Digest(nil, 0)
	}
}

// BenchmarkMemory reports the resident bytes per key: 16-byte keys, 64-byte values.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{1000000, 10000000} {
		if n > 1000000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			for range b.N {
				time.Sleep(100 * time.Millisecond)
				runtime.GC()
				before := resident()
				ks := loaded(b, n)
				b.ReportMetric(float64(resident()-before)/float64(n), "RSS/key")
				b.ReportMetric(float64(ks.Memory().Spans)/float64(n), "spans/key")
				b.ReportMetric(float64(ks.UsedBytes())/float64(n), "used/key")
				start := time.Now()
				runtime.GC()
				b.ReportMetric(float64(time.Since(start))/1e6, "ms/GC")
				ks.Release()
			}
		})
	}
}

func resident() int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.Fields(string(b))[1])
	return n * os.Getpagesize()
}

func BenchmarkHash(b *testing.B) {
	key := make([]byte, 16)
	var sum uint64
	for i := 0; b.Loop(); i++ {
		binary.LittleEndian.PutUint64(key, uint64(i))
		sum += Hash(42, key)
	}
}
