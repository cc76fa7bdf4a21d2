package state

import "github.com/kevydb/kevy/internal/arena"

// Limits are the bounds at which OBJECT ENCODING reports that a collection has left its compact form:
// Redis's settings of the same names. They decide about nothing but the record's hint byte, which is
// no state, and about what planners read from them: what a fold makes of a value does not depend on them.
type Limits struct {
	HashEntries, HashValue   int // hash-max-listpack-entries, -value
	IntsetEntries            int // set-max-intset-entries
	SetEntries, SetValue     int // set-max-listpack-entries, -value
	ZSetEntries, ZSetValue   int // zset-max-listpack-entries, -value
	ListSize, StreamEntries  int // list-max-listpack-size, stream-node-max-entries
	StreamBytes, SparseBytes int // stream-node-max-bytes, hll-sparse-max-bytes

	PlainDump bool // DUMP does not compress strings (rdbcompression no)
}

// DefaultLimits are Redis's defaults.
func DefaultLimits() Limits {
	return Limits{
		HashEntries: 512, HashValue: 64, IntsetEntries: 512, SetEntries: 128, SetValue: 64,
		ZSetEntries: 128, ZSetValue: 64, ListSize: -2, StreamEntries: 100, StreamBytes: 4096, SparseBytes: 3000,
	}
}

// hintLarge in a record's hint byte says that the value has left its compact form. It stays until the
// key is made anew.
const hintLarge = 1

// Hint returns what OBJECT ENCODING goes by beside a collection itself; SetHint gives it to a copy.
func (ks *Keyspace) Hint(e Entry) byte { return e.a.Tail(e.ref)[offHint] }

// SetHint sets what Hint returns.
func (ks *Keyspace) SetHint(e Entry, hint byte) { e.a.Tail(e.ref)[offHint] = hint }

// setHint adds bits to the record's hint.
func (ks *Keyspace) setHint(r arena.Ref, bits byte) { ks.a.Tail(r)[offHint] |= bits }
