package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// HLL is a HyperLogLog as Redis keeps it in a string, register for register and byte for byte (described in Redis's
// hyperloglog.c): 16384 registers of 6 bits, dense or as runs.
//
//	header = "HYLL", encoding (0 dense, 1 sparse), 3 zero bytes, cached count u64 (top bit: not valid)
//	sparse = 00zzzzzz           z+1 registers are 0
//	         01zzzzzz zzzzzzzz  z+1 registers are 0
//	         1vvvvvxx           x+1 registers are v+1
//
// kevy never stores a cached count: reading one must not write.
type HLL struct {
	b     []byte
	limit int // longest sparse form; 0 is HLLSparseMax
}

const (
	hllP         = 14
	hllRegisters = 1 << hllP
	hllQ         = 64 - hllP
	hllValues    = 64 // a register has 6 bits
	hllHeader    = 16
	hllDenseSize = hllHeader + (hllRegisters*6+7)/8
	hllDense     = 0
	hllSparse    = 1
	hllValMax    = 32 // largest value a run can have
	hllValLen    = 4
	hllZeroLen   = 64
	hllSeed      = 0xadc83b19
	hllStale     = 0x80 // in the last byte of the cached count
)

// HLLSparseMax is Redis's default of hll-sparse-max-bytes. Folding knows no other: it depends on no setting.
const HLLSparseMax = 3000

// NewHLL returns an empty one.
func NewHLL() HLL {
	b := make([]byte, hllHeader+2, 64)
	copy(b, "HYLL")
	b[4] = hllSparse
	n := hllRegisters - 1
	b[hllHeader], b[hllHeader+1] = 0x40|byte(n>>8), byte(n)
	b[hllHeader-1] = hllStale
	return HLL{b: b}
}

// ParseHLL takes the value of a key; ok is false if it is none. h aliases b and is not to be changed.
func ParseHLL(b []byte) (h HLL, ok bool) {
	if len(b) < hllHeader || !bytes.HasPrefix(b, []byte("HYLL")) || b[4] > hllSparse {
		return HLL{}, false
	}
	return HLL{b: b}, b[4] == hllSparse || len(b) == hllDenseSize
}

// Clone returns a copy that may be changed.
func (h HLL) Clone() HLL { return HLL{bytes.Clone(h.b), h.limit} }

// Limit returns h with another longest sparse form than HLLSparseMax.
func (h HLL) Limit(n int) HLL { return HLL{h.b, n} }

// sparseMax is the longest sparse form.
func (h *HLL) sparseMax() int {
	if h.limit > 0 {
		return h.limit
	}
	return HLLSparseMax
}

// Bytes returns the string to be stored.
func (h HLL) Bytes() []byte { return h.b }

// Sparse reports whether the registers are kept as runs.
func (h HLL) Sparse() bool { return h.b[4] == hllSparse }

// hllPlace returns an element's register and the value it asks for.
func hllPlace(element []byte) (register int, value byte) {
	h := murmur64(element, hllSeed)
	return int(h & (hllRegisters - 1)), byte(1 + bits.TrailingZeros64(h>>hllP|1<<hllQ))
}

// Add adds an element and reports whether a register changed; valid is false if the runs are damaged.
func (h *HLL) Add(element []byte) (changed, valid bool) {
	register, value := hllPlace(element)
	return h.raise(register, value)
}

// Raises reports whether adding an element would change a register. REQUIRES: the registers are dense.
func (h HLL) Raises(element []byte) bool {
	register, value := hllPlace(element)
	return denseAt(h.b[hllHeader:], register) < value
}

// raise makes a register at least value.
func (h *HLL) raise(register int, value byte) (changed, valid bool) {
	if !h.Sparse() {
		changed, valid = h.raiseDense(register, value), true
	} else {
		changed, valid = h.raiseSparse(register, value)
	}
	if changed {
		h.b[hllHeader-1] |= hllStale
	}
	return changed, valid
}

// denseAt returns a register of the dense form.
func denseAt(regs []byte, i int) byte {
	at, shift := i*6/8, i*6&7
	v := uint(regs[at]) >> shift
	if at+1 < len(regs) {
		v |= uint(regs[at+1]) << (8 - shift)
	}
	return byte(v & 63)
}

// denseFour returns four registers, from one whose number is a multiple of 4 on: they fill three bytes.
func denseFour(regs []byte, i int) [4]byte {
	b := regs[i/4*3 : i/4*3+3]
	x := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	return [4]byte{byte(x & 63), byte(x >> 6 & 63), byte(x >> 12 & 63), byte(x >> 18)}
}

func setDense(regs []byte, i int, v byte) { setSix(regs[i*6/8:], uint(i*6&7), v) }

// setSix sets the six bits of b from bit shift on, counted from the lowest of the first byte.
func setSix(b []byte, shift uint, v byte) {
	b[0] = b[0]&^(63<<shift) | v<<shift
	if shift > 2 {
		b[1] = b[1]&^(63>>(8-shift)) | v>>(8-shift)
	}
}

func (h *HLL) raiseDense(register int, value byte) bool {
	regs := h.b[hllHeader:]
	if denseAt(regs, register) >= value {
		return false
	}
	setDense(regs, register, value)
	return true
}

// hllRun is one opcode of the sparse form.
type hllRun struct {
	value byte
	n     int // registers
	size  int // bytes
}

func runAt(b []byte) (r hllRun, ok bool) {
	switch c := b[0]; {
	case c&0x80 != 0:
		return hllRun{c>>2&31 + 1, int(c&3) + 1, 1}, true
	case c&0x40 == 0:
		return hllRun{0, int(c&63) + 1, 1}, true
	case len(b) > 1:
		return hllRun{0, int(c&63)<<8 | int(b[1]) + 1, 2}, true
	}
	return r, false
}

// appendRun appends the opcode of n registers of one value; nothing for none.
func appendRun(dst []byte, value byte, n int) []byte {
	switch {
	case n == 0:
	case value > 0:
		dst = append(dst, 0x80|(value-1)<<2|byte(n-1))
	case n > hllZeroLen:
		dst = append(dst, 0x40|byte((n-1)>>8), byte(n-1))
	default:
		dst = append(dst, byte(n-1))
	}
	return dst
}

// raiseSparse raises a register in the sparse form, which becomes dense when a value or its length no longer fits.
func (h *HLL) raiseSparse(register int, value byte) (changed, valid bool) {
	if value > hllValMax {
		return h.promote(register, value)
	}
	at, prev, first := hllHeader, -1, 0
	var r hllRun
	for {
		if at >= len(h.b) {
			return false, false
		}
		var ok bool
		if r, ok = runAt(h.b[at:]); !ok {
			return false, false
		}
		if register < first+r.n {
			break
		}
		prev, first, at = at, first+r.n, at+r.size
	}
	if r.value >= value {
		return false, true
	}
	var seq [5]byte
	runs := appendRun(seq[:0], r.value, register-first)
	runs = appendRun(runs, value, 1)
	runs = appendRun(runs, r.value, first+r.n-1-register)
	if grow := len(runs) - r.size; grow > 0 && len(h.b)+grow > h.sparseMax() {
		return h.promote(register, value)
	}
	h.b = slices.Replace(h.b, at, at+r.size, runs...)
	if prev < 0 {
		prev = hllHeader
	}
	h.b = joinRuns(h.b, prev)
	return true, true
}

// joinRuns joins neighbouring runs of one value around the place that changed, as Redis does.
func joinRuns(b []byte, at int) []byte {
	for scan := 5; at < len(b) && scan > 0; scan-- {
		r, ok := runAt(b[at:])
		if !ok {
			return b
		}
		if r.value == 0 {
			at += r.size
			continue
		}
		if at+1 < len(b) {
			if next, ok := runAt(b[at+1:]); ok && next.value == r.value && r.n+next.n <= hllValLen {
				b[at+1] = 0x80 | (r.value-1)<<2 | byte(r.n+next.n-1)
				b = append(b[:at], b[at+1:]...)
				continue
			}
		}
		at++
	}
	return b
}

// promote makes the registers dense and raises one of them.
func (h *HLL) promote(register int, value byte) (changed, valid bool) {
	if !h.ToDense() {
		return false, false
	}
	return h.raiseDense(register, value), true
}

// ToDense gives the registers their dense form; false if the runs are damaged.
func (h *HLL) ToDense() bool {
	if !h.Sparse() {
		return true
	}
	d := make([]byte, hllDenseSize)
	copy(d, h.b[:hllHeader])
	d[4] = hllDense
	ok := h.Each(func(register int, value byte) { setDense(d[hllHeader:], register, value) })
	if ok {
		h.b = d
	}
	return ok
}

// Each calls f with every register that is not 0; false if the runs are damaged.
func (h HLL) Each(f func(register int, value byte)) bool {
	if !h.Sparse() {
		for i := 0; i < hllRegisters; i += 4 {
			for k, v := range denseFour(h.b[hllHeader:], i) {
				if v > 0 {
					f(i+k, v)
				}
			}
		}
		return true
	}
	first := 0
	for b := h.b[hllHeader:]; len(b) > 0; {
		r, ok := runAt(b)
		if !ok || first+r.n > hllRegisters {
			return false
		}
		for i := range r.n {
			if r.value > 0 {
				f(first+i, r.value)
			}
		}
		first += r.n
		b = b[r.size:]
	}
	return first == hllRegisters
}

// Registers are the registers of a union.
type Registers [hllRegisters]byte

// Merge raises the registers to those of h; false if h is damaged.
func (r *Registers) Merge(h HLL) bool {
	if h.Sparse() {
		return h.Each(func(register int, value byte) { r[register] = max(r[register], value) })
	}
	for i := 0; i < hllRegisters; i += 4 {
		for k, v := range denseFour(h.b[hllHeader:], i) {
			r[i+k] = max(r[i+k], v)
		}
	}
	return true
}

// Raise raises the registers to those of r and reports whether one changed; valid is false if h is damaged.
func (h *HLL) Raise(r *Registers) (changed, valid bool) {
	for register, value := range r {
		if value == 0 {
			continue
		}
		raised, valid := h.raise(register, value)
		if !valid {
			return changed, false
		}
		changed = changed || raised
	}
	h.b[hllHeader-1] |= hllStale
	return changed, true
}

// Count estimates the number of different elements; false if the runs are damaged.
func (h HLL) Count() (uint64, bool) {
	var histogram [hllValues]int
	if !h.Sparse() {
		countDense(&histogram, h.b[hllHeader:])
		return estimate(&histogram), true
	}
	histogram[0] = hllRegisters
	ok := h.Each(func(_ int, value byte) {
		histogram[value]++
		histogram[0]--
	})
	return estimate(&histogram), ok
}

// countDense counts the registers of each value. Four tables keep equal values next to each other from waiting
// for one another.
func countDense(histogram *[hllValues]int, regs []byte) {
	var t [4][hllValues]int32
	for ; len(regs) >= 3; regs = regs[3:] {
		x := uint32(regs[0]) | uint32(regs[1])<<8 | uint32(regs[2])<<16
		t[0][x&63]++
		t[1][x>>6&63]++
		t[2][x>>12&63]++
		t[3][x>>18&63]++
	}
	for v := range histogram {
		histogram[v] = int(t[0][v] + t[1][v] + t[2][v] + t[3][v])
	}
}

// Count estimates the number of different elements of the union.
func (r *Registers) Count() uint64 {
	var histogram [hllValues]int
	for _, value := range r {
		histogram[value&(hllValues-1)]++
	}
	return estimate(&histogram)
}

// estimate computes the estimate from how many registers have each value. The estimator is that of O. Ertl,
// "New cardinality estimation algorithms for HyperLogLog sketches", as in Redis.
func estimate(histogram *[hllValues]int) uint64 {
	const m = float64(hllRegisters)
	z := m * hllTau((m-float64(histogram[hllQ+1]))/m)
	for j := hllQ; j >= 1; j-- {
		z = (z + float64(histogram[j])) * 0.5
	}
	z += m * hllSigma(float64(histogram[0])/m)
	return uint64(math.Round(0.721347520444481703680 * m * m / z))
}

func hllTau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		last := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if last == z {
			return z / 3
		}
	}
}

func hllSigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		last := z
		z += x * y
		y += y
		if last == z {
			return z
		}
	}
}

// murmur64 is MurmurHash64A, read little-endian.
func murmur64(key []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(key))*m
	for ; len(key) >= 8; key = key[8:] {
		k := binary.LittleEndian.Uint64(key) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(key) > 0 {
		var last [8]byte
		copy(last[:], key)
		h = (h ^ binary.LittleEndian.Uint64(last[:])) * m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}

// Decode lists the runs of the sparse form as PFDEBUG DECODE does.
func (h HLL) Decode() (string, bool) {
	var out []byte
	for b := h.b[hllHeader:]; len(b) > 0; {
		r, ok := runAt(b)
		if !ok {
			return "", false
		}
		if len(out) > 0 {
			out = append(out, ' ')
		}
		switch {
		case r.value > 0:
			out = fmt.Appendf(out, "v:%d,%d", r.value, r.n)
		case r.size == 1:
			out = fmt.Appendf(out, "z:%d", r.n)
		default:
			out = fmt.Appendf(out, "Z:%d", r.n)
		}
		b = b[r.size:]
	}
	return string(out), true
}
