package state

import (
	"bytes"

	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
)

// The digest of a set of keys is the sum, modulo 2^64, of a 64-bit hash of each live key:
//
//	XXH3-64( XXH3-128(key, seed keySeed), key length, XXH3-128(value, seed valueSeed), value length,
//	         type, deadline )                    all as little-endian 64-bit words, low word first
//
// For a collection the value's hash is that of its type (kindOps.digest), its length the number of elements.
//
// A sum does not depend on order, and the digests of disjoint sets add up, so it is the same for
// any number of shards. The constants are fixed: nodes compare digests.
const (
	keySeed   = 0x6b6579
	valueSeed = 0x76616c7565
)

// Digest returns the number of live keys below prefix and their digest. Keys due at now do not
// count. Digests of several shards add up (modulo 2^64).
func (ks *Keyspace) Digest(prefix []byte, now int64) (keys int, digest uint64) {
	return digestOf(&ks.ord, prefix, now)
}

func digestOf(o *order, prefix []byte, now int64) (keys int, digest uint64) {
	o.ascend(prefix, func(r arena.Ref) bool {
		key := keyOf(o.a, r)
		if !bytes.HasPrefix(key, prefix) {
			return false
		}
		b := o.a.Tail(r)
		if ms := deadlineOf(b); ms == NoDeadline || ms > now {
			keys++
			digest += digestRecord(key, valueAt(o.a, r), ms)
		}
		return true
	})
	return keys, digest
}

// Digest returns a hash of the entry's type and value: not of its key, its deadline or how it is stored.
func (e Entry) Digest() uint64 { return digestRecord(nil, valueAt(e.a, e.ref), NoDeadline) }

func digestRecord(key []byte, value value, deadline int64) uint64 {
	k := xxh3.Hash128Seed(key, keySeed)
	var v xxh3.Uint128
	n := len(value.flat)
	if o := value.kind.ops(); o != nil {
		v.Lo, v.Hi = o.digest(value)
		n = o.len(value)
	} else {
		v = xxh3.Hash128Seed(value.flat, valueSeed)
	}
	var b [64]byte
	for i, w := range [8]uint64{
		k.Lo, k.Hi, uint64(len(key)), v.Lo, v.Hi, uint64(n), uint64(value.kind), uint64(deadline),
	} {
		le.PutUint64(b[8*i:], w)
	}
	return xxh3.Hash(b[:])
}
