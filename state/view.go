package state

import (
	"bytes"

	"github.com/kevydb/kevy/internal/arena"
)

// View is a keyspace frozen when it was taken. All methods but Close may be used without the lock, by
// several goroutines.
type View struct {
	ord   order
	n     int
	epoch uint64
	libs  *Libraries
}

// View freezes the keyspace as it is now, in constant time. Close it when done: what it shows keeps its
// memory until then. REQUIRES: no bulk load.
func (ks *Keyspace) View() *View {
	return &View{ord: ks.ord.frozen(), n: ks.Len(), epoch: ks.a.Pin(), libs: ks.libs}
}

// Close ends the view. REQUIRES: the keyspace's lock, and nobody reading. Closing twice is allowed.
func (v *View) Close() {
	if v.ord.a != nil {
		v.ord.a.Unpin(v.epoch)
		v.ord = order{}
	}
}

// Len returns the number of keys, due ones included.
func (v *View) Len() int { return v.n }

// AscendPrefix calls f with the keys that start with prefix, in key order, until f returns false.
// deadline is NoDeadline for a key that does not expire.
func (v *View) AscendPrefix(prefix []byte, f func(key, value []byte, deadline int64) bool) {
	a := v.ord.a
	v.ord.ascend(prefix, func(r arena.Ref) bool {
		key := keyOf(a, r)
		return bytes.HasPrefix(key, prefix) && f(key, valueOf(a, r), deadlineOf(a.Tail(r)))
	})
}

// AscendFrom calls f with the keys from start on (inclusive), in key order, until f returns false.
func (v *View) AscendFrom(start []byte, f func(key, value []byte, deadline int64) bool) {
	a := v.ord.a
	v.ord.ascend(start, func(r arena.Ref) bool {
		return f(keyOf(a, r), valueOf(a, r), deadlineOf(a.Tail(r)))
	})
}

// Stats is Keyspace.Stats of the frozen state; its cost grows with the matches.
func (v *View) Stats(prefix []byte, now int64) PrefixStats { return stats(&v.ord, prefix, now) }

// Digest is Keyspace.Digest of the frozen state.
func (v *View) Digest(prefix []byte, now int64) (keys int, digest uint64) {
	return digestOf(&v.ord, prefix, now)
}
