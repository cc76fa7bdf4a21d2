package state

import (
	"bytes"
	"slices"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// foldZAdd folds ZADD key score member...: each member has the score afterwards. A score that equals the one
// there is leaves it as it is, also where the zeros' signs differ.
func (ks *Keyspace) foldZAdd(e *effect.Effect) (c Change, err error) {
	key, pairs := e.Args[0], e.Args[1:]
	if len(pairs)%2 != 0 {
		return c, fail(e, "a score without a member")
	}
	for i := 0; i < len(pairs); i += 2 {
		if _, ok := parseScore(pairs[i]); !ok {
			return c, fail(e, "score")
		}
	}
	h, r, ok := ks.open(key, TypeZSet)
	if !ok {
		return c, fail(e, wrongType)
	}
	if r == 0 {
		c.Created = 1
	}
	if r == 0 || valueAt(ks.a, r).head == 0 {
		if flat, n, fits := ks.packScored(r, pairs); fits {
			r = ks.setFlat(h, r, key, TypeZSet, flat)
			ks.hintZSet(r, n, pairs)
			return c, nil
		}
		r = ks.enlargeZSet(h, r, key)
	}
	r = ks.addScored(h, r, pairs)
	z := zsetValue(valueAt(ks.a, r))
	ks.hintZSet(r, z.Len(), pairs)
	return c, nil
}

// hintZSet notes that a sorted set, now of n elements, has outgrown its compact form.
func (ks *Keyspace) hintZSet(r arena.Ref, n int, pairs [][]byte) {
	if ks.a.Tail(r)[offHint]&hintLarge != 0 {
		return
	}
	large := n > ks.Limits.ZSetEntries
	for i := 1; i < len(pairs) && !large; i += 2 {
		large = len(pairs[i]) > ks.Limits.ZSetValue
	}
	if large {
		ks.setHint(r, hintLarge)
	}
}

// packScored returns the packed sorted set of r's elements changed by pairs, and their number; fits is false
// if that is too large.
func (ks *Keyspace) packScored(r arena.Ref, pairs [][]byte) (flat []byte, n int, fits bool) {
	if len(pairs) > 2*maxPacked {
		return nil, 0, false
	}
	flat = ks.scratch[:0]
	defer func() { ks.scratch = flat[:0] }()
	if r != 0 {
		z := zsetValue(valueAt(ks.a, r))
		flat, n = append(flat, z.v.flat...), z.Len()
	}
	var buf [9]byte
	for i := 0; i < len(pairs); i += 2 {
		score, _ := parseScore(pairs[i])
		m := pairs[i+1]
		from, end, old, found := findScored(flat, m)
		if found && old == score {
			continue
		}
		if found {
			flat = slices.Delete(flat, from, end)
			n--
		}
		text := appendPackedScore(buf[:0], score)
		size := len(text) + stringSize(len(m))
		if n == maxPacked || len(flat)+size > maxInline {
			return flat, n, false
		}
		at := placeScored(flat, score, m)
		flat = slices.Grow(flat, size)[:len(flat)+size]
		copy(flat[at+size:], flat[at:len(flat)-size])
		appendString(append(flat[:at], text...), m)
		n++
	}
	return flat, n, true
}

// findScored finds a member in a packed sorted set: its element is flat[from:end].
func findScored(flat, m []byte) (from, end int, score float64, found bool) {
	for b := flat; len(b) > 0; {
		s, have, rest := cutScored(b)
		if bytes.Equal(have, m) {
			return len(flat) - len(b), len(flat) - len(rest), s, true
		}
		b = rest
	}
	return 0, 0, 0, false
}

// placeScored returns where an element belongs that is not there.
func placeScored(flat []byte, score float64, m []byte) int {
	for b := flat; len(b) > 0; {
		s, have, rest := cutScored(b)
		if s > score || s == score && bytes.Compare(have, m) > 0 {
			return len(flat) - len(b)
		}
		b = rest
	}
	return len(flat)
}

// enlargeZSet makes the packed sorted set of record r (0: none yet) a large one.
func (ks *Keyspace) enlargeZSet(h uint64, r arena.Ref, key []byte) arena.Ref {
	var old []byte
	if r != 0 {
		old = bytes.Clone(valueAt(ks.a, r).flat)
	}
	head, w := ks.newHead(TypeZSet)
	z := ks.zsetWriter(w)
	for len(old) > 0 {
		var score float64
		var m []byte
		score, m, old = cutScored(old)
		z.set(m, score)
	}
	z.close()
	return ks.setHead(h, r, key, TypeZSet, head)
}

// zsetWriter changes a large sorted set. The head's words w are right again after close.
type zsetWriter struct {
	ks            *Keyspace
	w             []uint64
	names, scores tree
	before        int64 // bytes of the keyspace before the first change
}

func (ks *Keyspace) zsetWriter(w []uint64) zsetWriter {
	t := tree{a: ks.a, keyed: true, bytes: &ks.bytes}
	z := zsetWriter{ks: ks, w: w, names: t, scores: t, before: ks.bytes}
	z.names.root, z.scores.root = arena.Ref(w[zsetNames]), arena.Ref(w[zsetScores])
	return z
}

func (z *zsetWriter) close() {
	z.w[zsetNames], z.w[zsetScores] = uint64(z.names.root), uint64(z.scores.root)
	z.w[zsetBytes] += uint64(z.ks.bytes - z.before)
}

// newElement makes the block of an element.
func (z *zsetWriter) newElement(score float64, m []byte) arena.Ref {
	n := 8 + stringSize(len(m))
	r := z.ks.newValue(n)
	b := z.ks.a.Bytes(r, n)
	putScore(b, score)
	appendString(b[8:8], m)
	return r
}

// set gives a member a score.
func (z *zsetWriter) set(m []byte, score float64) {
	h := Hash(z.ks.seed, m)
	c, found := z.ks.seekNamed(&z.names, h, m, memberAt)
	if !found {
		r := z.newElement(score, m)
		c.insert(r, 1, h)
		z.place(r, score, m)
		z.w[zsetCount]++
		return
	}
	r, _, _, _ := c.item()
	old := scoreAt(z.ks.a, r)
	if old == score {
		return
	}
	oc := seekScored(&z.scores, scoreKey(old), m)
	oc.remove()
	if z.ks.a.Shared(r) {
		fresh := z.newElement(score, m)
		c.replace(fresh, 1, h)
		z.ks.freeValue(r)
		r = fresh
	} else {
		putScore(z.ks.a.Bytes(r, 8), score)
	}
	z.place(r, score, m)
}

// place puts an element into the order of scores.
func (z *zsetWriter) place(r arena.Ref, score float64, m []byte) {
	key := scoreKey(score)
	c := seekScored(&z.scores, key, m)
	c.insert(r, 1, key)
}

// remove takes a member out, if it is there.
func (z *zsetWriter) remove(m []byte) {
	c, found := z.ks.seekNamed(&z.names, Hash(z.ks.seed, m), m, memberAt)
	if !found {
		return
	}
	r, _, _, _ := c.item()
	oc := seekScored(&z.scores, scoreKey(scoreAt(z.ks.a, r)), m)
	oc.remove()
	c.remove()
	z.ks.freeValue(r)
	z.w[zsetCount]--
}

// addScored gives members of a large sorted set their scores.
func (ks *Keyspace) addScored(h uint64, r arena.Ref, pairs [][]byte) arena.Ref {
	r, w := ks.headForWrite(h, r, TypeZSet)
	z := ks.zsetWriter(w)
	for i := 0; i < len(pairs); i += 2 {
		score, _ := parseScore(pairs[i])
		z.set(pairs[i+1], score)
	}
	z.close()
	return r
}

func (ks *Keyspace) foldZRem(e *effect.Effect) (c Change, err error) {
	key, members := e.Args[0], e.Args[1:]
	h, r, ok := ks.open(key, TypeZSet)
	if !ok {
		return c, fail(e, wrongType)
	}
	if r == 0 {
		return c, nil
	}
	if v := valueAt(ks.a, r); v.head == 0 {
		flat := append(ks.scratch[:0], v.flat...)
		for _, m := range members {
			if from, end, _, found := findScored(flat, m); found {
				flat = slices.Delete(flat, from, end)
			}
		}
		ks.scratch = flat[:0]
		if len(flat) != len(v.flat) && ks.setFlat(h, r, key, TypeZSet, flat) == 0 {
			c.Removed = 1
		}
		return c, nil
	}
	r, w := ks.headForWrite(h, r, TypeZSet)
	z := ks.zsetWriter(w)
	for _, m := range members {
		z.remove(m)
	}
	z.close()
	if w[zsetCount] == 0 {
		ks.drop(h, r)
		c.Removed = 1
	}
	return c, nil
}
