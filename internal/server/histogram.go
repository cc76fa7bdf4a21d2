package server

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets whose width is 1/16 of their value. Safe for concurrent
// use.
type histogram struct {
	buckets [48 * subBuckets]atomic.Uint32
}

const (
	subBits    = 4
	subBuckets = 1 << subBits
)

// bucketOf maps nanoseconds to a bucket: exact below 16, then 16 buckets for each power of two.
func bucketOf(ns uint64) int {
	if ns < subBuckets {
		return int(ns)
	}
	shift := bits.Len64(ns) - subBits - 1
	return (shift+1)*subBuckets + int(ns>>shift) - subBuckets
}

// bucketTop is the largest value of a bucket.
func bucketTop(i int) uint64 {
	if i < subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return uint64(i%subBuckets+subBuckets+1)<<shift - 1
}

func (h *histogram) add(d time.Duration) {
	h.buckets[min(bucketOf(uint64(max(d, 0))), len(h.buckets)-1)].Add(1)
}

// percentile returns the duration in microseconds that p percent of the calls did not exceed.
func (h *histogram) percentile(p float64) float64 {
	var total uint64
	var counts [len(h.buckets)]uint64
	for i := range h.buckets {
		counts[i] = uint64(h.buckets[i].Load())
		total += counts[i]
	}
	want := uint64(max(1, p/100*float64(total)+0.5))
	var seen uint64
	for i, n := range counts {
		if seen += n; n > 0 && seen >= min(want, total) {
			return float64(bucketTop(i)) / 1000
		}
	}
	return 0
}

// cumulative returns the number of durations, and for each power of two microseconds that some lie below, from 1 on,
// how many do; steps that add nothing are left out.
func (h *histogram) cumulative() (total uint64, steps [][2]uint64) {
	counts := make(map[uint64]uint64)
	for i := range h.buckets {
		if n := uint64(h.buckets[i].Load()); n > 0 {
			us := uint64(1)
			for us*1024 < bucketTop(i) {
				us *= 2
			}
			counts[us] += n
		}
	}
	for us, left := uint64(1), len(counts); left > 0; us *= 2 {
		if n := counts[us]; n > 0 {
			total += n
			steps = append(steps, [2]uint64{us, total})
			left--
		}
	}
	return total, steps
}
