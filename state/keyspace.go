package state

import (
	"bytes"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// Keyspace is the keyspace of one shard. REQUIRES for every method: the shard's lock.
//
// Invariant: every record is in the index once, in the order once, and in the deadlines once if it
// has one. Only between BeginBulk and EndBulk order and deadlines lag behind.
type Keyspace struct {
	// Limits are for OBJECT ENCODING only; see there.
	Limits Limits

	seed    uint64
	a       *arena.Arena
	idx     index
	ord     order
	dl      deadlines
	fields  deadlines // of hashes, by the earliest deadline of a field
	bytes   int64     // capacity of the records' blocks and their values' blocks
	bulk    bool
	arrived arrivals // in a bulk load
	scratch []byte
	sought  sought
	clock   int64   // see SetClock; not state
	access  access  // not state
	trash   []trash // large values to be freed
	libs    *Libraries
}

// perKey is accounted to each key for its places in index and order, perDeadline for the one in
// the deadline index: averages over the fill of their blocks.
const (
	perKey      = 28
	perDeadline = 24
)

// New returns an empty keyspace whose keys are hashed with seed.
func New(seed uint64) *Keyspace {
	ks := &Keyspace{seed: seed, Limits: DefaultLimits(), access: access{rnd: seed}}
	ks.reset()
	return ks
}

func (ks *Keyspace) reset() {
	ks.a = arena.New()
	ks.idx = newIndex(ks.a, ks.seed)
	ks.ord = newOrder(ks.a)
	ks.dl = newDeadlines(ks.a)
	ks.fields = newDeadlines(ks.a)
	ks.bytes, ks.trash = 0, nil
	ks.arrived = arrivals{sorted: true}
}

// Release gives the memory back, in the background and after the last view is closed. The keyspace is
// not to be used afterwards.
func (ks *Keyspace) Release() {
	ks.a.Retire()
	ks.idx, ks.ord, ks.dl, ks.fields = index{}, order{}, deadlines{}, deadlines{}
}

// Lookup finds a key. It does not consider the clock.
func (ks *Keyspace) Lookup(key []byte) (Entry, bool) {
	return ks.LookupHash(Hash(ks.seed, key), key)
}

// Hash returns the hash of a key with the keyspace's seed.
func (ks *Keyspace) Hash(key []byte) uint64 { return Hash(ks.seed, key) }

// LookupHash is Lookup with h == Hash(seed, key) computed by the caller.
func (ks *Keyspace) LookupHash(h uint64, key []byte) (Entry, bool) {
	r := ks.idx.find(h, key)
	return Entry{ks.a, r}, r != 0
}

// Len returns the number of keys, due ones included.
func (ks *Keyspace) Len() int { return ks.idx.n }

// LenWithDeadline returns the number of keys with a deadline, due ones included.
func (ks *Keyspace) LenWithDeadline() int { return ks.dl.n }

// UsedBytes returns the memory accounted to the keys: what maxmemory limits. It depends on the
// records only, and shrinks with them even while a view keeps their blocks.
func (ks *Keyspace) UsedBytes() int64 {
	return ks.bytes + perKey*int64(ks.Len()) + perDeadline*int64(ks.LenWithDeadline()+ks.fields.n)
}

// Memory returns the sizes of the memory behind the keyspace.
func (ks *Keyspace) Memory() arena.Stats { return ks.a.Stats() }

// NextDeadline returns the earliest deadline of a key or of a hash's field.
func (ks *Keyspace) NextDeadline() (ms int64, ok bool) {
	ms = ks.dl.next
	if f := ks.fields.next; f != NoDeadline && (ms == NoDeadline || f < ms) {
		ms = f
	}
	return ms, ms != NoDeadline
}

// Due calls f with at most limit keys whose deadline is not after nowMS, in deadline order. f must not
// fold.
func (ks *Keyspace) Due(nowMS int64, limit int, f func(key []byte)) {
	if ks.dl.next == NoDeadline || ks.dl.next > nowMS || limit <= 0 {
		return
	}
	ks.dl.ascend(func(d due) bool {
		if d.ms > nowMS {
			return false
		}
		f(keyOf(ks.a, d.ref))
		limit--
		return limit > 0
	})
}

// DueFields calls f with at most limit fields of hashes whose deadline is not after nowMS, those of one hash at
// once, hashes in the order of their earliest deadlines. f must not fold.
func (ks *Keyspace) DueFields(nowMS int64, limit int, f func(key []byte, names [][]byte)) {
	if ks.fields.next == NoDeadline || ks.fields.next > nowMS {
		return
	}
	ks.fields.ascend(func(d due) bool {
		if d.ms > nowMS || limit <= 0 {
			return false
		}
		names := dueFields(valueAt(ks.a, d.ref), nowMS, limit)
		f(keyOf(ks.a, d.ref), names)
		limit -= len(names)
		return true
	})
}

// AscendPrefix calls f with the keys that start with prefix, in key order, until f returns false. f must
// not fold.
func (ks *Keyspace) AscendPrefix(prefix []byte, f func(Entry) bool) {
	ks.ord.ascend(prefix, func(r arena.Ref) bool {
		return bytes.HasPrefix(keyOf(ks.a, r), prefix) && f(Entry{ks.a, r})
	})
}

// AscendFrom calls f with the keys from start on (inclusive), in key order, until f returns false. f must
// not fold.
func (ks *Keyspace) AscendFrom(start []byte, f func(Entry) bool) {
	ks.ord.ascend(start, func(r arena.Ref) bool { return f(Entry{ks.a, r}) })
}

// Stats counts the live keys below prefix: keys due at now do not count. The cost grows with the
// matches, for the empty prefix only with the keys that are due.
func (ks *Keyspace) Stats(prefix []byte, now int64) PrefixStats {
	if len(prefix) > 0 {
		return stats(&ks.ord, prefix, now)
	}
	s := PrefixStats{Keys: ks.Len(), WithDeadline: ks.LenWithDeadline()}
	ks.Due(now, ks.Len(), func([]byte) { s.Keys--; s.WithDeadline-- })
	return s
}

func stats(o *order, prefix []byte, now int64) (s PrefixStats) {
	o.ascend(prefix, func(r arena.Ref) bool {
		if !bytes.HasPrefix(keyOf(o.a, r), prefix) {
			return false
		}
		switch ms := deadlineOf(o.a.Tail(r)); {
		case ms == NoDeadline:
			s.Keys++
		case ms > now:
			s.Keys++
			s.WithDeadline++
		}
		return true
	})
	return s
}

// Rebuild emits the effects that make the record on a keyspace without the key.
func (ks *Keyspace) Rebuild(e Entry, emit func(effect.Effect)) {
	rebuild(e.a, e.ref, func(x *effect.Effect, _ bool) bool { emit(*x); return true })
}

// maxEmbedded is the longest string Redis calls embstr.
const maxEmbedded = 44

// Encoding returns Redis's name of the value's encoding: int, embstr or raw.
func (ks *Keyspace) Encoding(e Entry) string {
	if k := e.Type().ops(); k != nil {
		return k.encoding(valueAt(e.a, e.ref), e.a.Tail(e.ref)[offHint])
	}
	if e.a.Tail(e.ref)[offFlags]&flagRaw != 0 {
		return "raw"
	}
	v := e.Value()
	if _, ok := parseInt(v); ok {
		return "int"
	}
	if len(v) <= maxEmbedded {
		return "embstr"
	}
	return "raw"
}
