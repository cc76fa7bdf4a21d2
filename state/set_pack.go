package state

import (
	"math"
	"slices"
)

// intPack is a small set of integers: a mark that no run of strings begins with, the width, and the members,
// ascending, in as many bytes each.
//
//	0x80 0x00 | width: 2, 4 or 8 | members, little-endian
type intPack []byte

const (
	packHead = 3
	maxInts  = 512 // members of an intPack
)

// packedInts returns flat as a set of integers, if it is one.
func packedInts(flat []byte) (p intPack, ok bool) {
	return flat, len(flat) >= packHead && flat[0] == 0x80 && flat[1] == 0
}

// newPack begins an empty set of integers in dst.
func newPack(dst []byte) intPack { return append(dst[:0], 0x80, 0, 2) }

func (p intPack) width() int { return int(p[2]) }
func (p intPack) len() int   { return (len(p) - packHead) / p.width() }

// at returns member i.
func (p intPack) at(i int) int64 {
	switch b := p[packHead:]; p.width() {
	case 2:
		return int64(int16(le.Uint16(b[2*i:])))
	case 4:
		return int64(int32(le.Uint32(b[4*i:])))
	default:
		return int64(le.Uint64(b[8*i:]))
	}
}

func (p intPack) set(i int, n int64) {
	switch b := p[packHead:]; p.width() {
	case 2:
		le.PutUint16(b[2*i:], uint16(n))
	case 4:
		le.PutUint32(b[4*i:], uint32(n))
	default:
		le.PutUint64(b[8*i:], uint64(n))
	}
}

// widthOf returns the bytes that n needs.
func widthOf(n int64) int {
	switch {
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return 2
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return 4
	}
	return 8
}

// search returns the place of n, or where it would be.
func (p intPack) search(n int64) (at int, found bool) {
	i, j := 0, p.len()
	for i < j {
		m := int(uint(i+j) >> 1)
		if p.at(m) < n {
			i = m + 1
		} else {
			j = m
		}
	}
	return i, i < p.len() && p.at(i) == n
}

func (p intPack) has(n int64) bool {
	_, found := p.search(n)
	return found
}

// add puts n in and returns the set; fits is false if it is full. REQUIRES: p is in no record.
func (p intPack) add(n int64) (q intPack, fits bool) {
	at, found := p.search(n)
	if found {
		return p, true
	}
	count, width := p.len(), max(p.width(), widthOf(n))
	if count == maxInts || packHead+(count+1)*width > maxInline {
		return p, false
	}
	if width > p.width() {
		p = p.widen(width)
	}
	p = slices.Grow(p, width)[:len(p)+width]
	b := p[packHead:]
	copy(b[(at+1)*width:], b[at*width:count*width])
	p.set(at, n)
	return p, true
}

// widen gives every member width bytes.
func (p intPack) widen(width int) intPack {
	n := p.len()
	narrow := slices.Clone(p)
	p = slices.Grow(p[:packHead], n*width)[:packHead+n*width]
	p[2] = byte(width)
	for i := range n {
		p.set(i, narrow.at(i))
	}
	return p
}

// remove takes n out, if it is there. REQUIRES: p is in no record.
func (p intPack) remove(n int64) intPack {
	at, found := p.search(n)
	if !found {
		return p
	}
	w := p.width()
	return slices.Delete(p, packHead+at*w, packHead+(at+1)*w)
}
