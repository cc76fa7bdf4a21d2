package state

import "github.com/kevydb/kevy/internal/arena"

// common returns the length of the common prefix.
func common[A, B []byte | string](a A, b B) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// separator returns the shortest prefix of b that is greater than a. REQUIRES: a < b.
func separator(a, b []byte) string { return string(b[:common(a, b)+1]) }

// prefixOf returns the length of the prefix all keys share that are >= lo and < hi: what lo and hi share.
// Without an upper bound it is 0.
func prefixOf(lo string, hi fence, bounded bool) int {
	if !bounded {
		return 0
	}
	return common(lo, hi.sep)
}

// split makes two of f's full leaf, in the middle, or after its last entry if key goes there:
// keys that come in order leave full leaves behind.
func (o *order) split(f fence, key []byte) {
	hi, bounded := o.next(f)
	w := o.own(&f)
	m := leafMax / 2
	upper := keyOf(o.a, refOf(w[m+1]))
	if o.seek(w, key) == leafMax+1 {
		m, upper = leafMax, key
	}
	g := fence{sep: separator(keyOf(o.a, refOf(w[m])), upper)}
	g.leaf = o.newLeaf(leafPrefix(w))
	gw := o.words(g.leaf)
	n := copy(gw[1:], w[m+1:])
	gw[0] += uint64(n)
	w[0] -= uint64(n)
	o.setPrefix(w, prefixOf(f.sep, g, true))
	o.setPrefix(gw, prefixOf(g.sep, hi, bounded))
	o.t.ReplaceOrInsert(g)
}

// setPrefix changes the prefix length of a leaf, and all windows with it.
func (o *order) setPrefix(w []uint64, prefix int) {
	if prefix == leafPrefix(w) {
		return
	}
	n := leafLen(w)
	w[0] = uint64(prefix)<<countBits | uint64(n)
	for i, e := range w[1 : n+1] {
		w[i+1] = window(keyOf(o.a, refOf(e)), prefix)<<arena.RefBits | e&arena.RefMask
	}
}

// merge joins f's sparse leaf with a neighbour if both fit well into one.
func (o *order) merge(f fence) {
	if hi, ok := o.next(f); ok && o.join(f, hi) {
		return
	}
	if f.sep == "" {
		return
	}
	var lo fence
	o.t.DescendLessOrEqual(f, func(g fence) bool { lo = g; return g.sep == f.sep })
	o.join(lo, f)
}

// join moves the entries of hi's leaf into lo's. REQUIRES: hi follows lo.
func (o *order) join(lo, hi fence) bool {
	src := o.words(hi.leaf)
	n := leafLen(src)
	if n+leafLen(o.words(lo.leaf)) > leafMerged {
		return false
	}
	end, bounded := o.next(hi)
	w := o.own(&lo)
	// The joined range shares no longer a prefix than either part: first both get the new windows.
	prefix := prefixOf(lo.sep, end, bounded)
	o.setPrefix(w, prefix)
	at := leafLen(w) + 1
	copy(w[at:], src[1:n+1])
	w[0] += uint64(n)
	if leafPrefix(src) != prefix {
		for i, e := range w[at : at+n] {
			w[at+i] = window(keyOf(o.a, refOf(e)), prefix)<<arena.RefBits | e&arena.RefMask
		}
	}
	o.t.Delete(hi)
	o.a.Free(hi.leaf)
	return true
}
