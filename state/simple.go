package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/log/effect"
)

type record struct {
	key, value []byte
	deadline   int64
	access     uint32
	freq       uint8
	raw        bool
}

// Keyspace is the keyspace of one shard. REQUIRES for every method: the shard's lock.
type Keyspace struct {
	seed uint64
	m    map[string]*record
}

// View is a frozen keyspace.
type View struct{ ks *Keyspace }

// Entry is a handle on a live record: valid until the next Fold or until the lock is released.
type Entry struct{ r *record }

// New returns an empty keyspace whose keys are hashed with seed.
func New(seed uint64) *Keyspace { return &Keyspace{seed: seed, m: map[string]*record{}} }

// Hash is the keyed hash of a key: shards are chosen by its low 16 bits, the index uses its top bits.
func Hash(seed uint64, key []byte) uint64 { return xxh3.HashSeed(key, seed) }

// Type returns the type of the value.
func (e Entry) Type() Type { return TypeString }

// Key returns the key, a read-only alias.
func (e Entry) Key() []byte { return e.r.key }

// Value returns the bytes of a string value, a read-only alias.
func (e Entry) Value() []byte { return e.r.value }

// Deadline returns the unix ms at which the key is due; ok is false when it does not expire.
func (e Entry) Deadline() (ms int64, ok bool) { return e.r.deadline, e.r.deadline != NoDeadline }

// Access returns the access clock as last set by Touch or SetAccess.
func (e Entry) Access() uint32 { return e.r.access }

// Freq returns the logarithmic access counter as last set.
func (e Entry) Freq() uint8 { return e.r.freq }

// Lookup finds a key. It does not consider the clock.
func (ks *Keyspace) Lookup(key []byte) (Entry, bool) {
	r := ks.m[string(key)]
	return Entry{r}, r != nil
}

// LookupHash is Lookup with h == Hash(seed, key) computed by the caller.
func (ks *Keyspace) LookupHash(_ uint64, key []byte) (Entry, bool) { return ks.Lookup(key) }

// Touch sets the access clock. It is not state: not in the digest, not in what a view promises.
func (ks *Keyspace) Touch(e Entry, seconds uint32) { e.r.access = seconds }

// SetAccess sets the access clock and the access counter.
func (ks *Keyspace) SetAccess(e Entry, seconds uint32, freq uint8) { e.r.access, e.r.freq = seconds, freq }

// Len returns the number of keys, due ones included.
func (ks *Keyspace) Len() int { return len(ks.m) }

// LenWithDeadline returns the number of keys with a deadline, due ones included.
func (ks *Keyspace) LenWithDeadline() (n int) {
	for _, r := range ks.m {
		if r.deadline != 0 {
			n++
		}
	}
	return n
}

// UsedBytes returns the memory accounted to the records.
func (ks *Keyspace) UsedBytes() (n int64) {
	for _, r := range ks.m {
		n += int64(len(r.key) + len(r.value) + 48)
	}
	return n
}

// NextDeadline returns the earliest deadline.
func (ks *Keyspace) NextDeadline() (ms int64, ok bool) {
	for _, r := range ks.m {
		if r.deadline != 0 && (!ok || r.deadline < ms) {
			ms, ok = r.deadline, true
		}
	}
	return ms, ok
}

// Due calls f with at most max keys whose deadline is not after nowMS, in deadline order. f must not
// fold.
func (ks *Keyspace) Due(nowMS int64, max int, f func(key []byte)) {
	var due []*record
	for _, r := range ks.m {
		if r.deadline != 0 && r.deadline <= nowMS {
			due = append(due, r)
		}
	}
	sort.Slice(due, func(i, j int) bool { return due[i].deadline < due[j].deadline })
	for i, r := range due {
		if i == max {
			return
		}
		f(r.key)
	}
}

// Scan visits keys in the order of their hashes, from the 48-bit position cursor on, and returns the
// position to go on from, 0 at the end. A position means the same at any size of the keyspace
// and after a restart. Every key present throughout a whole scan is visited.
func (ks *Keyspace) Scan(cursor uint64, count int, f func(Entry)) (next uint64) {
	type pos struct {
		p uint64
		r *record
	}
	var all []pos
	for _, r := range ks.m {
		if p := Hash(ks.seed, r.key) >> 16; p >= cursor {
			all = append(all, pos{p, r})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].p < all[j].p })
	for i, e := range all {
		if i >= count && i > 0 && e.p != all[i-1].p {
			return e.p
		}
		f(Entry{e.r})
	}
	return 0
}

// Random returns a key chosen by rnd.
func (ks *Keyspace) Random(rnd uint64) (Entry, bool) {
	n := int(rnd % uint64(max(1, len(ks.m))))
	for _, r := range ks.m {
		if n--; n < 0 {
			return Entry{r}, true
		}
	}
	return Entry{}, false
}

func (ks *Keyspace) sorted() []*record {
	all := make([]*record, 0, len(ks.m))
	for _, r := range ks.m {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *record) int { return bytes.Compare(a.key, b.key) })
	return all
}

// AscendPrefix calls f with the keys that start with prefix, in key order, until f returns false.
func (ks *Keyspace) AscendPrefix(prefix []byte, f func(Entry) bool) {
	ks.AscendFrom(prefix, func(e Entry) bool { return bytes.HasPrefix(e.Key(), prefix) && f(e) })
}

// AscendFrom calls f with the keys from start on (inclusive), in key order, until f returns false.
func (ks *Keyspace) AscendFrom(start []byte, f func(Entry) bool) {
	for _, r := range ks.sorted() {
		if bytes.Compare(r.key, start) >= 0 && !f(Entry{r}) {
			return
		}
	}
}

// Stats counts the live keys below prefix: keys due at now do not count.
func (ks *Keyspace) Stats(prefix []byte, now int64) (s PrefixStats) {
	ks.AscendPrefix(prefix, func(e Entry) bool {
		d, has := e.Deadline()
		if !has {
			s.Keys++
		} else if d > now {
			s.Keys++
			s.WithDeadline++
		}
		return true
	})
	return s
}

// Digest returns the number of live keys below prefix and their digest, independent of order and
// shards: the digests of several shards add up (modulo 2^64).
func (ks *Keyspace) Digest(prefix []byte, now int64) (keys int, digest uint64) {
	ks.AscendPrefix(prefix, func(e Entry) bool {
		if d, has := e.Deadline(); has && d <= now {
			return true
		}
		keys++
		b := binary.LittleEndian.AppendUint64(nil, uint64(len(e.r.key)))
		b = append(b, e.r.key...)
		b = binary.LittleEndian.AppendUint64(b, uint64(e.r.deadline))
		digest += xxh3.Hash(append(b, e.r.value...))
		return true
	})
	return keys, digest
}

// View freezes the keyspace as it is now. Close it when done.
func (ks *Keyspace) View() *View {
	v := New(ks.seed)
	for k, r := range ks.m {
		c := *r
		c.value = bytes.Clone(r.value)
		v.m[k] = &c
	}
	return &View{v}
}

// Len returns the number of keys, due ones included.
func (v *View) Len() int { return v.ks.Len() }

// AscendPrefix calls f with the keys that start with prefix, in key order, until f returns false.
// deadline is NoDeadline for a key that does not expire.
func (v *View) AscendPrefix(prefix []byte, f func(key, value []byte, deadline int64) bool) {
	v.ks.AscendPrefix(prefix, func(e Entry) bool { return f(e.Key(), e.Value(), e.r.deadline) })
}

// AscendFrom is AscendPrefix over the keys from start on (inclusive).
func (v *View) AscendFrom(start []byte, f func(key, value []byte, deadline int64) bool) {
	v.ks.AscendFrom(start, func(e Entry) bool { return f(e.Key(), e.Value(), e.r.deadline) })
}

// Stats is Keyspace.Stats of the frozen state.
func (v *View) Stats(prefix []byte, now int64) PrefixStats { return v.ks.Stats(prefix, now) }

// Digest is Keyspace.Digest of the frozen state.
func (v *View) Digest(prefix []byte, now int64) (int, uint64) { return v.ks.Digest(prefix, now) }

// Close ends the view. REQUIRES: the keyspace's lock. Closing twice is allowed.
func (v *View) Close() {}

// Rebuild emits the effects that make the record on a keyspace without the key.
func (ks *Keyspace) Rebuild(e Entry, emit func(effect.Effect)) {
	args := [][]byte{e.Key(), e.Value()}
	if d, ok := e.Deadline(); ok {
		args = append(args, []byte("PXAT"), strconv.AppendInt(nil, d, 10))
	}
	emit(effect.Effect{Op: effect.Set, Args: args})
}

// Encoding returns Redis's name of the value's encoding: int, embstr or raw.
func (ks *Keyspace) Encoding(e Entry) string {
	v := e.r.value
	if e.r.raw {
		return "raw"
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(v) {
		return "int"
	}
	if len(v) <= 44 {
		return "embstr"
	}
	return "raw"
}

// BeginBulk starts a bulk load: until EndBulk only lookups and folds are allowed.
func (ks *Keyspace) BeginBulk() {}

// EndBulk ends a bulk load.
func (ks *Keyspace) EndBulk() {}

// Check verifies the whole keyspace.
func (ks *Keyspace) Check() error { return nil }

// Release gives the memory back. The keyspace is not to be used afterwards.
func (ks *Keyspace) Release() { ks.m = nil }

func fail(e *effect.Effect, what string) error { return fmt.Errorf("%w: %s: %s", ErrFold, e.Op, what) }

func integer(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// Fold applies an effect. When it returns an error (ErrFold) the state is unchanged.
func (ks *Keyspace) Fold(e *effect.Effect) (c Change, err error) {
	if err := e.Validate(); err != nil {
		return c, fmt.Errorf("%w: %w", ErrFold, err)
	}
	a := e.Args
	var r *record
	if e.Op.Keys() == effect.FirstKey {
		r = ks.m[string(a[0])]
	}
	create := func(k []byte) *record {
		if r := ks.m[string(k)]; r != nil {
			return r
		}
		c.Created++
		r := &record{key: bytes.Clone(k)}
		ks.m[string(k)] = r
		return r
	}
	switch e.Op {
	case effect.Set:
		var d int64
		if len(a) != 2 {
			var ok bool
			if len(a) != 4 || !bytes.EqualFold(a[2], []byte("PXAT")) {
				return c, fail(e, "options")
			}
			if d, ok = integer(a[3]); !ok || d <= 0 {
				return c, fail(e, "deadline")
			}
		}
		r = create(a[0])
		r.value, r.deadline, r.raw = bytes.Clone(a[1]), d, false
	case effect.MSet:
		for i := 0; i < len(a); i += 2 {
			r = create(a[i])
			r.value, r.deadline, r.raw = bytes.Clone(a[i+1]), 0, false
		}
	case effect.Del:
		for _, k := range a {
			if ks.m[string(k)] != nil {
				delete(ks.m, string(k))
				c.Removed++
			}
		}
	case effect.PExpireAt:
		d, ok := integer(a[1])
		if !ok || d <= 0 {
			return c, fail(e, "deadline")
		}
		if r != nil {
			r.deadline = d
		}
	case effect.Persist:
		if r != nil {
			r.deadline = 0
		}
	case effect.Append:
		fresh := r == nil
		r = create(a[0])
		r.value, r.raw = append(r.value, a[1]...), !fresh
	case effect.SetRange:
		off, ok := integer(a[1])
		if !ok || off < 0 || off+int64(len(a[2])) > MaxValue {
			return c, fail(e, "offset")
		}
		if len(a[2]) == 0 {
			break
		}
		r = create(a[0])
		for int64(len(r.value)) < off+int64(len(a[2])) {
			r.value = append(r.value, 0)
		}
		copy(r.value[off:], a[2])
		r.raw = true
	case effect.FlushAll:
		c.Removed, c.Flushed = len(ks.m), true
		ks.m = map[string]*record{}
	}
	return c, nil
}
