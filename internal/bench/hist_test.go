package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<38; v += 1 + v/300 {
		i := bucketOf(v)
		if i < last || i >= histBuckets {
			t.Fatalf("%d is in bucket %d, after %d", v, i, last)
		}
		last = i
		if i == histBuckets-1 {
			break
		}
		if top := bucketTop(i); top < v || float64(top) > float64(v)*1.01+1 {
			t.Fatalf("%d is in bucket %d, up to %d", v, i, top)
		}
		if bucketOf(bucketTop(i)) != i || bucketOf(bucketTop(i)+1) != i+1 {
			t.Fatalf("bucket %d does not end at %d", i, bucketTop(i))
		}
	}
}

func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var a, b Histogram
	var all []time.Duration
	for i := range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(time.Millisecond))
		h := &a
		if i%2 == 0 {
			h = &b
		}
		h.Record(d, 3)
		all = append(all, d, d, d)
	}
	a.Merge(&b)
	slices.Sort(all)
	for _, q := range []float64{0, 0.1, 0.5, 0.99, 0.999, 1} {
		want := all[max(0, int(q*float64(len(all)))-1)]
		if got := a.Quantile(q); got < want || float64(got) > float64(want)*1.02+1 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	p := a.Percentiles()
	if p.Count != uint64(len(all)) || p.Max != micros(all[len(all)-1]) || p.Mean < 900 || p.Mean > 1100 {
		t.Errorf("%+v", p)
	}
}

func TestEdgesOfHistograms(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Percentiles() != (Percentiles{}) {
		t.Error("an empty histogram is not 0")
	}
	h.Record(-5, 1)
	h.Record(time.Hour, 1)
	if h.Quantile(0.4) != 0 || h.Quantile(1) != time.Duration(bucketTop(histBuckets-1)) || h.Percentiles().Max != micros(time.Hour) {
		t.Errorf("p40 %v, p100 %v", h.Quantile(0.4), h.Quantile(1))
	}
}

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := Median(tc.in); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.in, got, tc.want)
		}
	}
}
