package state

import (
	"bytes"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

func (ks *Keyspace) foldSAdd(e *effect.Effect) (c Change, err error) {
	key, members := e.Args[0], e.Args[1:]
	h, r, ok := ks.open(key, TypeSet)
	if !ok {
		return c, fail(e, wrongType)
	}
	if r == 0 {
		c.Created = 1
	}
	small := r == 0 || valueAt(ks.a, r).head == 0
	if small {
		var flat []byte
		if flat, small = ks.packMembers(r, members); small {
			r = ks.setFlat(h, r, key, TypeSet, flat)
		} else {
			r = ks.enlargeSet(h, r, key)
		}
	}
	if !small {
		r = ks.addMembers(h, r, members)
	}
	ks.noteSet(r, members)
	return c, nil
}

// noteSet notes what OBJECT ENCODING will say of a set that got members.
func (ks *Keyspace) noteSet(r arena.Ref, members [][]byte) {
	hint := ks.a.Tail(r)[offHint]
	if hint&hintLarge != 0 {
		return
	}
	s := setValue(valueAt(ks.a, r))
	n := s.Len()
	ints, short := hint&hintPacked == 0, true
	for _, m := range members {
		if ints {
			_, ints = parseInt(m)
		}
		short = short && len(m) <= ks.Limits.SetValue
	}
	switch {
	case ints && n <= ks.Limits.IntsetEntries:
	case short && n <= ks.Limits.SetEntries:
		ks.setHint(r, hintPacked)
	default:
		ks.setHint(r, hintLarge)
	}
}

// packMembers returns the small set of r's members and new ones; fits is false if that is too large.
func (ks *Keyspace) packMembers(r arena.Ref, members [][]byte) (flat []byte, fits bool) {
	flat = ks.scratch[:0]
	defer func() { ks.scratch = flat[:0] }()
	n := 0
	p := newPack(flat)
	ints := true
	if r != 0 {
		flat = append(flat[:0], valueAt(ks.a, r).flat...)
		if p, ints = packedInts(flat); !ints {
			s := Set{v: value{flat: flat}}
			n = s.Len()
		}
	}
	for _, m := range members {
		if ints {
			if x, isInt := parseInt(m); isInt {
				p, fits = p.add(x)
				if flat = p; !fits {
					return flat, false
				}
				continue
			}
			n, ints = p.len(), false
			if flat, fits = p.strings(); !fits {
				return flat, false
			}
		}
		if hasString(flat, m) {
			continue
		}
		if n == maxPacked || len(flat)+stringSize(len(m)) > maxInline {
			return flat, false
		}
		flat = appendString(flat, m)
		n++
	}
	return flat, true
}

// strings returns the members as a run of strings; fits is false if it would be too long.
func (p intPack) strings() (flat []byte, fits bool) {
	switch n := p.len(); {
	case n == 0:
		return p[:0], true
	case n > maxPacked:
		return p, false
	}
	var w numbers
	for i := range p.len() {
		flat = appendString(flat, w.format(p.at(i)))
	}
	return flat, len(flat) <= maxInline
}

// hasString reports whether a packed run has s.
func hasString(flat, s []byte) bool {
	for len(flat) > 0 {
		var have []byte
		if have, flat = cutString(flat); bytes.Equal(have, s) {
			return true
		}
	}
	return false
}

// enlargeSet makes the small set of record r (0: none yet) a large one.
func (ks *Keyspace) enlargeSet(h uint64, r arena.Ref, key []byte) arena.Ref {
	var old [][]byte
	if r != 0 {
		s := setValue(valueAt(ks.a, r))
		s.Each(func(m []byte) bool {
			old = append(old, bytes.Clone(m))
			return true
		})
	}
	head, _ := ks.newHead(TypeSet)
	return ks.addMembers(h, ks.setHead(h, r, key, TypeSet, head), old)
}

// trees returns the trees of a large set's head.
func (ks *Keyspace) trees(w []uint64) (strings, ints tree) {
	return tree{a: ks.a, keyed: true, root: arena.Ref(w[setRoot]), bytes: &ks.bytes},
		tree{a: ks.a, keyed: true, root: arena.Ref(w[setInts]), bytes: &ks.bytes}
}

// addMembers adds members to a large set and returns its record.
func (ks *Keyspace) addMembers(h uint64, r arena.Ref, members [][]byte) arena.Ref {
	r, w := ks.headForWrite(h, r, TypeSet)
	before := ks.bytes
	t, ints := ks.trees(w)
	for _, m := range members {
		if n, ok := parseInt(m); ok {
			if ks.addInt(&ints, n) {
				w[setCount]++
			}
			continue
		}
		mh := Hash(ks.seed, m)
		c, found := ks.seekNamed(&t, mh, m, blockString)
		if found {
			continue
		}
		c.insert(ks.newString(m), 1, mh)
		w[setCount]++
	}
	w[setRoot], w[setInts] = uint64(t.root), uint64(ints.root)
	w[setBytes] += uint64(ks.bytes - before)
	return r
}

func (ks *Keyspace) foldSRem(e *effect.Effect) (c Change, err error) {
	key, members := e.Args[0], e.Args[1:]
	h, r, ok := ks.open(key, TypeSet)
	if !ok {
		return c, fail(e, wrongType)
	}
	if r == 0 {
		return c, nil
	}
	if valueAt(ks.a, r).head == 0 {
		if ks.setFlat(h, r, key, TypeSet, ks.unpackMembers(r, members)) == 0 {
			c.Removed = 1
		}
		return c, nil
	}
	if r = ks.removeMembers(h, r, members); r == 0 {
		c.Removed = 1
	}
	return c, nil
}

// unpackMembers returns the small set of record r without some members, in ks.scratch; nothing if that is empty.
func (ks *Keyspace) unpackMembers(r arena.Ref, members [][]byte) (flat []byte) {
	flat = ks.scratch[:0]
	v := valueAt(ks.a, r)
	if _, ints := packedInts(v.flat); ints {
		p := intPack(append(flat, v.flat...))
		for _, m := range members {
			if n, ok := parseInt(m); ok {
				p = p.remove(n)
			}
		}
		if flat = p; p.len() == 0 {
			flat = flat[:0]
		}
	} else {
		for b := v.flat; len(b) > 0; {
			var m []byte
			if m, b = cutString(b); !contains(members, m) {
				flat = appendString(flat, m)
			}
		}
	}
	ks.scratch = flat[:0]
	return flat
}

// removeMembers takes members out of a large set and returns its record, 0 if nothing is left.
func (ks *Keyspace) removeMembers(h uint64, r arena.Ref, members [][]byte) arena.Ref {
	r, w := ks.headForWrite(h, r, TypeSet)
	before := ks.bytes
	t, ints := ks.trees(w)
	for _, m := range members {
		if n, ok := parseInt(m); ok {
			if ks.removeInt(&ints, n) {
				w[setCount]--
			}
			continue
		}
		cur, found := ks.seekNamed(&t, Hash(ks.seed, m), m, blockString)
		if !found {
			continue
		}
		item, _, _, _ := cur.item()
		cur.remove()
		ks.freeValue(item)
		w[setCount]--
	}
	w[setRoot], w[setInts] = uint64(t.root), uint64(ints.root)
	w[setBytes] += uint64(ks.bytes - before)
	if w[setCount] == 0 {
		ks.drop(h, r)
		return 0
	}
	return r
}

func contains(list [][]byte, s []byte) bool {
	for _, x := range list {
		if bytes.Equal(x, s) {
			return true
		}
	}
	return false
}
