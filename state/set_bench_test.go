package state

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

func BenchmarkSetFold(b *testing.B) {
	for _, c := range []struct{ name, prefix string }{{"integers", ""}, {"strings", "m"}} {
		b.Run(c.name, func(b *testing.B) {
			ks := New(1)
			defer ks.Release()
			key := []byte("k")
			e := effect.Effect{Op: effect.SAdd, Args: [][]byte{key, nil}}
			var num [24]byte
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m := append(num[:0], c.prefix...)
				e.Args[1] = strconv.AppendInt(m, int64(uint32(i)*2654435761>>8), 10)
				if _, err := ks.Fold(&e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSetHas(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		for _, prefix := range []string{"", "m"} {
			b.Run(fmt.Sprint(n, prefix), func(b *testing.B) {
				ks := New(1)
				defer ks.Release()
				for i := range n {
					_, _ = ks.Fold(eff(effect.SAdd, "k", prefix+strconv.Itoa(i*7)))
				}
				m := []byte(prefix + strconv.Itoa(n/2*7))
				s := openSet(ks, "k")
				b.ReportAllocs()
				for b.Loop() {
					if !s.Has(m) {
						b.Fatal("not there")
					}
				}
			})
		}
	}
}

func BenchmarkSetInter(b *testing.B) {
	for _, prefix := range []string{"", "m"} {
		b.Run("100000"+prefix, func(b *testing.B) {
			ks := New(1)
			defer ks.Release()
			for i := range 100_000 {
				_, _ = ks.Fold(eff(effect.SAdd, "a", prefix+strconv.Itoa(i*3)))
				_, _ = ks.Fold(eff(effect.SAdd, "b", prefix+strconv.Itoa(i*2)))
			}
			sets := []*Set{openSet(ks, "a"), openSet(ks, "b")}
			for b.Loop() {
				if n := InterCard(sets, 0); n != 33334 {
					b.Fatal(n)
				}
			}
		})
	}
}
