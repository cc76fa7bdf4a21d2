package bench

import (
	"math"
	"testing"
)

func draw(t *testing.T, d Distribution, keys uint64, n int) []int {
	t.Helper()
	c := newChoosers(2, keys, d, 7)
	counts := make([]int, keys)
	for i := range n {
		k := c[i%2].key()
		if k >= keys {
			t.Fatalf("%s: key %d of %d", d, k, keys)
		}
		counts[k]++
	}
	return counts
}

func TestZipf(t *testing.T) {
	const keys, n = 1000, 500_000
	z := newZipf(keys)
	counts := draw(t, Zipfian, keys, n)
	for _, rank := range []uint64{0, 1, 2, 10, 100} {
		got := float64(counts[rank*scatterPrime%keys]) / n
		want := 1 / math.Pow(float64(rank+1), zipfTheta) / z.zetaN
		if got < want*0.8 || got > want*1.25 { // the method is exact for the first two ranks only
			t.Errorf("rank %d: share %.4f, want %.4f", rank, got, want)
		}
	}
}

func TestZipfOfFewKeys(t *testing.T) {
	for keys := uint64(1); keys < 5; keys++ {
		for k, n := range draw(t, Zipfian, keys, 2000) {
			if n == 0 {
				t.Errorf("key %d of %d never came", k, keys)
			}
		}
	}
}

func TestUniform(t *testing.T) {
	for k, n := range draw(t, Uniform, 100, 100_000) {
		if n < 800 || n > 1200 {
			t.Errorf("key %d came %d times of 100000", k, n)
		}
	}
}

func TestSequential(t *testing.T) {
	for k, n := range draw(t, Sequential, 100, 300) {
		if n != 3 {
			t.Errorf("key %d came %d times, want 3", k, n)
		}
	}
}
