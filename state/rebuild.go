package state

import (
	"bytes"
	"strconv"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// Bounds of one rebuild effect of a collection, so that neither a frame nor a step of a snapshot is large.
const (
	rebuildElements = 512
	rebuildBytes    = 1 << 20
)

// Rebuild calls f with the effects that rebuild the keyspace on an empty one, key by key in key
// order, after the libraries of functions, until f returns false; last marks the last effect of a key. The effect is valid until f
// returns.
func (v *View) Rebuild(f func(e *effect.Effect, last bool) bool) {
	if !v.RebuildLibraries(func(e *effect.Effect) bool { return f(e, true) }) {
		return
	}
	v.RebuildFrom(nil, f)
}

// RebuildFrom is Rebuild for the keys from start on (inclusive), without the libraries. Every effect is about one key.
func (v *View) RebuildFrom(start []byte, f func(e *effect.Effect, last bool) bool) {
	b := rebuilder{a: v.ord.a, f: f}
	v.ord.ascend(start, b.rebuild)
}

// RebuildLibraries calls f with the effects that make the view's libraries of functions, until f returns false.
func (v *View) RebuildLibraries(f func(*effect.Effect) bool) bool { return v.libs.RebuildLibraries(f) }

// RebuildKey calls f with the effects that make the key, if it is there. They are valid until f returns.
func (v *View) RebuildKey(key []byte, f func(*effect.Effect)) {
	a := v.ord.a
	v.ord.ascend(key, func(r arena.Ref) bool {
		if bytes.Equal(keyOf(a, r), key) {
			rebuild(a, r, func(e *effect.Effect, _ bool) bool { f(e); return true })
		}
		return false
	})
}

// rebuild calls f with the effects that make a record, until f returns false.
func rebuild(a *arena.Arena, r arena.Ref, f func(e *effect.Effect, last bool) bool) {
	b := rebuilder{a: a, f: f}
	b.rebuild(r)
}

// rebuilder emits records one after the other. A flat value costs no allocation.
type rebuilder struct {
	a    *arena.Arena
	f    func(e *effect.Effect, last bool) bool
	e    effect.Effect
	args [4][]byte
	num  [20]byte
}

var pxat = []byte("PXAT")

// rebuild calls b.f with the effects that make a record; false if it has had enough.
func (b *rebuilder) rebuild(r arena.Ref) bool {
	key, v, ms := keyOf(b.a, r), valueAt(b.a, r), deadlineOf(b.a.Tail(r))
	if o := v.kind.ops(); o != nil {
		return rebuildCollection(o, key, v, ms, b.f)
	}
	b.args[0], b.args[1] = key, v.flat
	b.e = effect.Effect{Op: effect.Set, Args: b.args[:2]}
	if ms != NoDeadline {
		b.args[2], b.args[3] = pxat, strconv.AppendInt(b.num[:0], ms, 10)
		b.e.Args = b.args[:4]
	}
	return b.f(&b.e, true)
}

// rebuildCollection emits the pieces of a collection, then its deadline. It holds each piece back until it
// knows whether it is the last.
func rebuildCollection(o *kindOps, key []byte, v value, ms int64, f func(e *effect.Effect, last bool) bool) bool {
	if ms != NoDeadline {
		if !o.rebuild(v, key, func(e *effect.Effect) bool { return f(e, false) }) {
			return false
		}
		return f(&effect.Effect{Op: effect.PExpireAt, Args: [][]byte{key, strconv.AppendInt(nil, ms, 10)}}, true)
	}
	var held effect.Effect
	ok := o.rebuild(v, key, func(e *effect.Effect) bool {
		if held.Op != effect.Invalid && !f(&held, false) {
			return false
		}
		held = effect.Effect{Op: e.Op, Args: append(held.Args[:0], e.Args...)}
		return true
	})
	return ok && f(&held, true)
}

// pieces cuts the elements of a collection into effects of bounded size: each is the verb, the key and
// whole elements.
type pieces struct {
	op   effect.Op
	key  []byte
	emit func(*effect.Effect) bool
	args [][]byte
	n    int
	size int
}

// add adds one element of some arguments, which must stay as they are until the collection is rebuilt;
// false if the receiver has had enough.
func (p *pieces) add(args ...[]byte) bool {
	if p.n == rebuildElements || p.size >= rebuildBytes {
		if !p.flush() {
			return false
		}
	}
	if p.n == 0 {
		p.args = append(make([][]byte, 0, 1+rebuildElements*len(args)), p.key)
	}
	p.args = append(p.args, args...)
	for _, a := range args {
		p.size += len(a)
	}
	p.n++
	return true
}

// flush emits what has been added.
func (p *pieces) flush() bool {
	if p.n == 0 {
		return true
	}
	e := effect.Effect{Op: p.op, Args: p.args}
	p.n, p.size = 0, 0
	return p.emit(&e)
}
