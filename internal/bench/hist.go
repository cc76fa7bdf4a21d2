package bench

import (
	"math/bits"
	"time"
)

const (
	histSubBits = 7 // 128 buckets for each power of two: less than 0.8% of error
	histSub     = 1 << histSubBits
	histMaxBits = 37 // up to 137 s
	histBuckets = (histMaxBits - histSubBits + 1) * histSub
)

// Histogram counts durations in logarithmic buckets. The zero value is empty.
type Histogram struct {
	counts [histBuckets]uint64
	n      uint64
	sum    float64
	max    time.Duration
}

// bucketOf returns the bucket of v nanoseconds. Values below histSub have one bucket each.
func bucketOf(v uint64) int {
	if v < histSub {
		return int(v)
	}
	exp := bits.Len64(v) - histSubBits - 1
	return min((exp+1)<<histSubBits+int(v>>exp)-histSub, histBuckets-1)
}

// bucketTop returns the largest value of a bucket.
func bucketTop(i int) uint64 {
	if i < histSub {
		return uint64(i)
	}
	exp := i>>histSubBits - 1
	return uint64(i&(histSub-1)+histSub+1)<<exp - 1
}

// Record counts d n times; a negative d counts as 0.
func (h *Histogram) Record(d time.Duration, n int) {
	d = max(d, 0)
	h.counts[bucketOf(uint64(d))] += uint64(n)
	h.n += uint64(n)
	h.sum += float64(d) * float64(n)
	h.max = max(h.max, d)
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// Quantile returns an upper bound of the smallest duration that at least the share q of all does not
// exceed; 0 if nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	if float64(rank) < q*float64(h.n) || rank == 0 {
		rank++
	}
	var seen uint64
	for i, c := range h.counts {
		if seen += c; seen >= rank {
			return min(time.Duration(bucketTop(i)), h.max)
		}
	}
	return h.max
}

// Percentiles are what is reported of a histogram, in microseconds.
type Percentiles struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p999_us"`
	Max   float64 `json:"max_us"`
}

// Percentiles summarizes h.
func (h *Histogram) Percentiles() Percentiles {
	p := Percentiles{
		Count: h.n, P50: micros(h.Quantile(0.5)), P99: micros(h.Quantile(0.99)),
		P999: micros(h.Quantile(0.999)), Max: micros(h.max),
	}
	if h.n > 0 {
		p.Mean = h.sum / float64(h.n) / 1000
	}
	return p
}

func micros(d time.Duration) float64 { return float64(d) / 1000 }
