package bench

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
)

// Distribution says which key a command takes.
type Distribution string

// The distributions of Load.
const (
	Uniform    Distribution = "uniform"
	Zipfian    Distribution = "zipf"
	Sequential Distribution = "seq" // each key once, then again from the first
)

// zipfTheta is the skew that YCSB uses: with 1M keys, the most popular takes about 7%.
const zipfTheta = 0.99

// zipf draws ranks 0..n-1 by Zipf's law, as Gray et al. do ("Quickly generating billion-record
// synthetic databases"). It is read-only after newZipf.
type zipf struct {
	n                 uint64
	alpha, zetaN, eta float64
}

func newZipf(n uint64) *zipf {
	zeta := func(n uint64) float64 {
		var sum float64
		for i := uint64(1); i <= n; i++ {
			sum += 1 / math.Pow(float64(i), zipfTheta)
		}
		return sum
	}
	z := &zipf{n: n, alpha: 1 / (1 - zipfTheta), zetaN: zeta(n)}
	z.eta = (1 - math.Pow(2/float64(n), 1-zipfTheta)) / (1 - zeta(2)/z.zetaN)
	return z
}

func (z *zipf) rank(r *rand.Rand) uint64 {
	u := r.Float64()
	switch uz := u * z.zetaN; {
	case uz < 1 || z.n == 1:
		return 0
	case uz < 1+math.Pow(0.5, zipfTheta) || z.n == 2:
		return 1
	}
	return min(uint64(float64(z.n)*math.Pow(z.eta*u-z.eta+1, z.alpha)), z.n-1)
}

// scatterPrime turns ranks into key numbers, so that popular keys are not neighbours. It is a prime
// larger than any number of keys here: multiplying by it is a bijection.
const scatterPrime = 4_294_967_291

// maxKeys keeps rank * scatterPrime within 64 bits.
const maxKeys = 1 << 31

// chooser hands out key numbers to one worker.
type chooser struct {
	keys uint64
	rng  *rand.Rand
	zipf *zipf          // not nil: Zipf's law
	next *atomic.Uint64 // not nil: each key in turn, over all workers
}

// newChoosers returns one chooser for each of n workers.
func newChoosers(n int, keys uint64, d Distribution, seed uint64) []*chooser {
	var z *zipf
	var next *atomic.Uint64
	switch d {
	case Zipfian:
		z = newZipf(keys)
	case Sequential:
		next = new(atomic.Uint64)
	}
	out := make([]*chooser, n)
	for i := range out {
		out[i] = &chooser{keys: keys, rng: rand.New(rand.NewPCG(seed, uint64(i))), zipf: z, next: next}
	}
	return out
}

func (c *chooser) key() uint64 {
	switch {
	case c.next != nil:
		return (c.next.Add(1) - 1) % c.keys
	case c.zipf != nil:
		return c.zipf.rank(c.rng) * scatterPrime % c.keys
	}
	return c.rng.Uint64N(c.keys)
}
