package state

import (
	"cmp"
	"slices"

	"github.com/kevydb/kevy/internal/arena"
)

// Set algebra works on whole containers where two large sets meet, and member by member elsewhere. Members are
// passed on as by Set.Each.

// Inter calls f with the members that all sets have, until f returns false. REQUIRES: at least one set.
func Inter(sets []*Set, f func(member []byte) bool) bool {
	var w numbers
	return inter(sets, func(hi uint64, c container) bool { return w.each(hi, c, f) }, f)
}

// InterCard counts the members that all sets have, at most limit of them if it is not 0. REQUIRES: at least
// one set.
func InterCard(sets []*Set, limit int) (n int) {
	more := func(k int) bool {
		n += k
		return limit == 0 || n < limit
	}
	inter(sets, func(_ uint64, c container) bool { return more(c.n) }, func([]byte) bool { return more(1) })
	if limit > 0 {
		n = min(n, limit)
	}
	return n
}

// inter passes containers of integers to ints and other members, or those of a small set, to each.
func inter(sets []*Set, ints func(hi uint64, c container) bool, each func([]byte) bool) bool {
	d := driver(sets)
	others := make([]*Set, 0, len(sets))
	for _, s := range sets {
		if s != sets[d] {
			others = append(others, s)
		}
	}
	everywhere := func(m []byte) bool {
		for _, s := range others {
			if !s.Has(m) {
				return true
			}
		}
		return each(m)
	}
	if !sets[d].large() {
		return sets[d].eachPacked(everywhere)
	}
	var ws workspace
	return eachContainer(&sets[d].ints, func(hi uint64, c container) bool {
		for _, s := range others {
			o, ok := containerOf(&s.ints, hi)
			if !ok {
				return true
			}
			if c = ws.and(c, o); c.n == 0 {
				return true
			}
		}
		return ints(hi, c)
	}) && sets[d].eachString(everywhere)
}

// driver returns the index of the set to go through: the smallest of the small ones, else the smallest.
func driver(sets []*Set) int {
	best := 0
	for i, s := range sets {
		b := sets[best]
		if s.large() != b.large() {
			if b.large() {
				best = i
			}
		} else if s.Len() < b.Len() {
			best = i
		}
	}
	return best
}

// group is a container of one of several sets.
type group struct {
	hi uint64
	c  container
}

// gather returns the containers of sets in the order of their members; those of small sets together make one more
// set.
func gather(sets []*Set) []group {
	var groups []group
	var small []uint64
	for _, s := range sets {
		if s.large() {
			eachContainer(&s.ints, func(hi uint64, c container) bool {
				groups = append(groups, group{hi, c})
				return true
			})
			continue
		}
		if p, ok := packedInts(s.v.flat); ok {
			for i := range p.len() {
				small = append(small, ordinal(p.at(i)))
			}
			continue
		}
		s.eachPacked(func(m []byte) bool {
			if n, ok := parseInt(m); ok {
				small = append(small, ordinal(n))
			}
			return true
		})
	}
	slices.Sort(small)
	small = slices.Compact(small)
	low := make([]uint16, len(small))
	for i, from := 0, 0; i < len(small); i++ {
		low[i] = uint16(small[i])
		if hi := small[i] &^ lowMask; i+1 == len(small) || small[i+1]&^lowMask != hi {
			groups = append(groups, group{hi, container{n: i + 1 - from, low: low[from : i+1]}})
			from = i + 1
		}
	}
	slices.SortFunc(groups, func(x, y group) int { return cmp.Compare(x.hi, y.hi) })
	return groups
}

// eachText calls f with the members of the set that are no integers, read-only aliases.
func (s *Set) eachText(f func(member []byte) bool) bool {
	if s.large() {
		return s.eachString(f)
	}
	if _, ints := packedInts(s.v.flat); ints {
		return true
	}
	return s.eachPacked(func(m []byte) bool {
		_, isInt := parseInt(m)
		return isInt || f(m)
	})
}

// hasTexts reports whether the set may have members that are no integers.
func (s *Set) hasTexts() bool {
	if s.large() {
		return s.tree.root != 0
	}
	_, ints := packedInts(s.v.flat)
	return !ints
}

// texts returns the members of sets that are no integers. The keys alias the sets.
func texts(sets []*Set) map[string]struct{} {
	n := 0
	for _, s := range sets {
		if s.hasTexts() {
			n += s.Len()
		}
	}
	m := make(map[string]struct{}, n)
	for _, s := range sets {
		s.eachText(func(b []byte) bool { m[arena.String(b)] = struct{}{}; return true })
	}
	return m
}

// Union calls f with the members that any of the sets has, until f returns false: integers first, ascending.
func Union(sets []*Set, f func(member []byte) bool) bool {
	if len(sets) == 1 {
		return sets[0].Each(f)
	}
	var ws workspace
	var w numbers
	groups := gather(sets)
	for from := 0; from < len(groups); {
		to := from + 1
		for to < len(groups) && groups[to].hi == groups[from].hi {
			to++
		}
		if !w.each(groups[from].hi, ws.or(groups[from:to]), f) {
			return false
		}
		from = to
	}
	return unionTexts(sets, f)
}

// unionTexts is Union of the members that are no integers.
func unionTexts(sets []*Set, f func(member []byte) bool) bool {
	var with []*Set
	n := 0
	for _, s := range sets {
		if s.hasTexts() {
			with = append(with, s)
			n = max(n, s.Len())
		}
	}
	if len(with) == 1 {
		return with[0].eachText(f)
	}
	seen := make(map[string]struct{}, n)
	for _, s := range with {
		if !s.eachText(func(m []byte) bool {
			if _, had := seen[arena.String(m)]; had {
				return true
			}
			seen[arena.String(m)] = struct{}{}
			return f(m)
		}) {
			return false
		}
	}
	return true
}

// or returns the union of containers.
func (ws *workspace) or(groups []group) container {
	if len(groups) == 1 {
		return groups[0].c
	}
	n, arrays := 0, true
	for _, g := range groups {
		n += g.c.n
		arrays = arrays && g.c.words == nil
	}
	if arrays && n <= 1024 {
		out := ws.next()
		for _, g := range groups {
			out = append(out, g.c.low...)
		}
		slices.Sort(out)
		return ws.array(slices.Compact(out))
	}
	clear(ws.words[:])
	for _, g := range groups {
		for i := range g.c.words {
			ws.words[i] |= g.c.words[i]
		}
		for _, x := range g.c.low {
			ws.words[x/64] |= 1 << (x % 64)
		}
	}
	return ws.bitmap()
}

// Diff calls f with the members of s that none of the others has, until f returns false.
func Diff(s *Set, others []*Set, f func(member []byte) bool) bool {
	if len(others) == 0 {
		return s.Each(f)
	}
	listed, probed := split(s, others)
	nowhere := func(m []byte) bool {
		for _, o := range probed {
			if o.Has(m) {
				return true
			}
		}
		return f(m)
	}
	names := texts(listed)
	text := func(m []byte) bool {
		_, had := names[string(m)]
		return had || nowhere(m)
	}
	groups := gather(listed)
	if s.large() {
		return diffInts(&s.ints, groups, probed, f) && s.eachString(text)
	}
	return s.eachPacked(func(m []byte) bool {
		n, isInt := parseInt(m)
		if !isInt {
			return text(m)
		}
		u := ordinal(n)
		i, _ := slices.BinarySearchFunc(groups, u&^lowMask, func(g group, hi uint64) int {
			return cmp.Compare(g.hi, hi)
		})
		for ; i < len(groups) && groups[i].hi == u&^lowMask; i++ {
			if groups[i].c.has(uint16(u)) {
				return true
			}
		}
		return nowhere(m)
	})
}

// split tells the sets to subtract from s that are gone through once from those that are asked for each member:
// large ones, unless that would be more work.
func split(s *Set, others []*Set) (listed, probed []*Set) {
	total := 0
	for _, o := range others {
		total += o.Len()
	}
	probe := s.Len()*len(others) <= 4*total
	for _, o := range others {
		if probe && o.large() {
			probed = append(probed, o)
		} else {
			listed = append(listed, o)
		}
	}
	return listed, probed
}

// diffInts is Diff of a large set's integers.
func diffInts(t *tree, groups []group, probed []*Set, f func(member []byte) bool) bool {
	var ws workspace
	var w numbers
	return eachContainer(t, func(hi uint64, c container) bool {
		for len(groups) > 0 && groups[0].hi < hi {
			groups = groups[1:]
		}
		for len(groups) > 0 && groups[0].hi == hi {
			c = ws.andNot(c, groups[0].c)
			groups = groups[1:]
		}
		for _, o := range probed {
			if oc, ok := containerOf(&o.ints, hi); ok && c.n > 0 {
				c = ws.andNot(c, oc)
			}
		}
		return w.each(hi, c, f)
	})
}
