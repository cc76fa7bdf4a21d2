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
	} else if valueAt(ks.a, r).head != 0 {
		ks.addMembers(h, r, members)
		return c, nil
	}
	if flat, fits := ks.packMembers(r, members); fits {
		ks.setFlat(h, r, key, TypeSet, flat)
		return c, nil
	}
	ks.addMembers(h, ks.enlargeSet(h, r, key), members)
	return c, nil
}

// packMembers returns the packed set of r's members and new ones; fits is false if that is too large.
func (ks *Keyspace) packMembers(r arena.Ref, members [][]byte) (flat []byte, fits bool) {
	flat = ks.scratch[:0]
	defer func() { ks.scratch = flat[:0] }()
	n := 0
	if r != 0 {
		s := setValue(valueAt(ks.a, r))
		flat, n = append(flat, s.v.flat...), s.Len()
	}
	for _, m := range members {
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

// enlargeSet makes the packed set of record r (0: none yet) a large one.
func (ks *Keyspace) enlargeSet(h uint64, r arena.Ref, key []byte) arena.Ref {
	var old [][]byte
	if r != 0 {
		setValue(valueAt(ks.a, r)).Each(func(m []byte) bool {
			old = append(old, bytes.Clone(m))
			return true
		})
	}
	head, _ := ks.newHead(TypeSet)
	r = ks.setHead(h, r, key, TypeSet, head)
	ks.addMembers(h, r, old)
	return r
}

// addMembers adds members to a large set.
func (ks *Keyspace) addMembers(h uint64, r arena.Ref, members [][]byte) {
	_, w := ks.headForWrite(h, r, TypeSet)
	t := tree{a: ks.a, keyed: true, root: arena.Ref(w[setRoot]), bytes: &ks.bytes}
	for _, m := range members {
		mh := Hash(ks.seed, m)
		c, found := seekString(&t, mh, m)
		if found {
			continue
		}
		c.insert(ks.newString(m), 1, mh)
		w[setCount]++
	}
	w[setRoot] = uint64(t.root)
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
		flat := ks.scratch[:0]
		setValue(valueAt(ks.a, r)).Each(func(m []byte) bool {
			if !contains(members, m) {
				flat = appendString(flat, m)
			}
			return true
		})
		ks.scratch = flat[:0]
		if ks.setFlat(h, r, key, TypeSet, flat) == 0 {
			c.Removed = 1
		}
		return c, nil
	}
	r, w := ks.headForWrite(h, r, TypeSet)
	t := tree{a: ks.a, keyed: true, root: arena.Ref(w[setRoot]), bytes: &ks.bytes}
	for _, m := range members {
		cur, found := seekString(&t, Hash(ks.seed, m), m)
		if !found {
			continue
		}
		item, _, _, _ := cur.item()
		cur.remove()
		ks.freeValue(item)
		w[setCount]--
	}
	w[setRoot] = uint64(t.root)
	if w[setCount] == 0 {
		ks.drop(h, r)
		c.Removed = 1
	}
	return c, nil
}

func contains(list [][]byte, s []byte) bool {
	for _, x := range list {
		if bytes.Equal(x, s) {
			return true
		}
	}
	return false
}
