package state

import "math/bits"

// each calls f with the numbers of c, ascending, until f returns false.
func (c container) each(f func(x uint16) bool) bool {
	for _, x := range c.low {
		if !f(x) {
			return false
		}
	}
	for i, w := range c.words {
		for ; w != 0; w &= w - 1 {
			if !f(uint16(64*i + bits.TrailingZeros64(w))) {
				return false
			}
		}
	}
	return true
}

// appendLow appends the numbers of c, ascending.
func (c container) appendLow(dst []uint16) []uint16 {
	dst = append(dst, c.low...)
	for i, w := range c.words {
		for ; w != 0; w &= w - 1 {
			dst = append(dst, uint16(64*i+bits.TrailingZeros64(w)))
		}
	}
	return dst
}

// at returns the number of the given rank. REQUIRES: rank < c.n.
func (c container) at(rank int) uint16 {
	if c.words == nil {
		return c.low[rank]
	}
	for i, w := range c.words {
		n := bits.OnesCount64(w)
		if rank >= n {
			rank -= n
			continue
		}
		for ; rank > 0; rank-- {
			w &= w - 1
		}
		return uint16(64*i + bits.TrailingZeros64(w))
	}
	return 0
}

// from calls f with the numbers of c that are at least first, ascending, until f returns false.
func (c container) from(first uint16, f func(x uint16) bool) bool {
	if c.words == nil {
		return container{low: c.low[lowerBound(c.low, first):]}.each(f)
	}
	for i := int(first / 64); i < len(c.words); i++ {
		w := c.words[i]
		if i == int(first/64) {
			w &= ^uint64(0) << (first % 64)
		}
		for ; w != 0; w &= w - 1 {
			if !f(uint16(64*i + bits.TrailingZeros64(w))) {
				return false
			}
		}
	}
	return true
}

// lowerBound returns the place of the first number that is not less than x.
func lowerBound(low []uint16, x uint16) int {
	i, j := 0, len(low)
	for i < j {
		m := int(uint(i+j) >> 1)
		if low[m] < x {
			i = m + 1
		} else {
			j = m
		}
	}
	return i
}

// workspace holds the results of operations on containers: a result is valid until the next but one.
type workspace struct {
	words [bitmapWords]uint64
	low   [2][]uint16
	turn  int
}

// next returns the buffer for the next array.
func (ws *workspace) next() []uint16 {
	ws.turn ^= 1
	return ws.low[ws.turn][:0]
}

func (ws *workspace) array(low []uint16) container {
	ws.low[ws.turn] = low
	return container{n: len(low), low: low}
}

// bitmap returns the container of ws.words, counting its members.
func (ws *workspace) bitmap() container {
	n := 0
	for _, w := range ws.words {
		n += bits.OnesCount64(w)
	}
	return container{n: n, words: ws.words[:]}
}

// and returns what x and y share.
func (ws *workspace) and(x, y container) container {
	if x.words != nil && y.words != nil {
		for i := range ws.words {
			ws.words[i] = x.words[i] & y.words[i]
		}
		return ws.bitmap()
	}
	if x.words != nil || y.words == nil && y.n < x.n {
		x, y = y, x
	}
	out := ws.next()
	if y.words == nil && y.n < 16*x.n {
		return ws.array(mergeAnd(out, x.low, y.low))
	}
	for _, v := range x.low {
		if y.has(v) {
			out = append(out, v)
		}
	}
	return ws.array(out)
}

// mergeAnd appends what two ascending arrays share.
func mergeAnd(dst, x, y []uint16) []uint16 {
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch a, b := x[i], y[j]; {
		case a == b:
			dst = append(dst, a)
			i++
			j++
		case a < b:
			i++
		default:
			j++
		}
	}
	return dst
}

// andNot returns what x has and y has not.
func (ws *workspace) andNot(x, y container) container {
	if x.words == nil {
		out := ws.next()
		for _, v := range x.low {
			if !y.has(v) {
				out = append(out, v)
			}
		}
		return ws.array(out)
	}
	copy(ws.words[:], x.words)
	for i := range y.words {
		ws.words[i] &^= y.words[i]
	}
	for _, v := range y.low {
		ws.words[v/64] &^= 1 << (v % 64)
	}
	return ws.bitmap()
}
