package state

// Positions of SSCAN in a large set, below 2^53: those of integers, in their order, then textScan plus a 48-bit
// hash position (see Keyspace.Scan) for other members. Integers between -2^50 and 2^50 have a position each,
// 4096 beyond share one. Neither depends on what else is in the set, so that a position means the same whatever
// comes and goes.
const (
	exactBits = 50
	stepBits  = 12

	belowScan = 0
	exactScan = 1 << (63 - stepBits) // belowScan covers 2^63 integers
	aboveScan = exactScan + 2<<exactBits
	textScan  = 3 << 51
	textEnd   = textScan + 1<<(64-positionShift)
)

// scanPosition returns the scan position of n.
func scanPosition(n int64) uint64 {
	switch {
	case n < -1<<exactBits:
		return belowScan + ordinal(n)>>stepBits
	case n < 1<<exactBits:
		return exactScan + uint64(n+1<<exactBits)
	}
	return aboveScan + uint64(n-1<<exactBits)>>stepBits
}

// firstAt returns the first integer at a position below textScan.
func firstAt(p uint64) int64 {
	switch {
	case p < exactScan:
		return min(integer(p<<stepBits), -1<<exactBits)
	case p < aboveScan:
		return int64(p-exactScan) - 1<<exactBits
	}
	return int64((p-aboveScan)<<stepBits) + 1<<exactBits
}

// Scan calls f with members, as Each does, from the position cursor on, and returns the position to go on from, 0
// at the end. A member present throughout a whole scan is visited. It visits about count members, and all
// of a small set.
func (s *Set) Scan(cursor uint64, count int, f func(member []byte)) (next uint64) {
	if !s.large() {
		s.eachPacked(func(m []byte) bool { f(m); return true })
		return 0
	}
	if cursor < textScan {
		if next = s.scanInts(cursor, &count, f); next != 0 {
			return next
		}
		cursor = textScan
	}
	if cursor >= textEnd {
		return 0
	}
	h := (cursor - textScan) << positionShift
	c := seekInts(&s.tree, h)
	for seen, last := 0, uint64(0); ; seen++ {
		r, _, key, ok := c.item()
		switch {
		case !ok:
			return 0
		case count <= 0 && (seen == 0 || key>>positionShift != last):
			return textScan + key>>positionShift
		}
		f(blockString(s.v.a, r))
		last = key >> positionShift
		count--
		c.next()
	}
}

// scanInts is Scan of the integers; it counts count down.
func (s *Set) scanInts(cursor uint64, count *int, f func(member []byte)) (next uint64) {
	var w numbers
	from := ordinal(firstAt(cursor))
	c := seekInts(&s.ints, from&^lowMask)
	last := uint64(textScan)
	for {
		r, weight, key, ok := c.item()
		if !ok {
			return 0
		}
		hi, first := key&^lowMask, uint16(0)
		if hi == from&^lowMask {
			first = uint16(from)
		}
		if !containerAt(s.v.a, r, weight, key).from(first, func(x uint16) bool {
			n := integer(hi | uint64(x))
			if p := scanPosition(n); p != last {
				if *count <= 0 {
					next = p
					return false
				}
				last = p
			}
			f(w.format(n))
			*count--
			return true
		}) {
			return next
		}
		c.next()
	}
}
