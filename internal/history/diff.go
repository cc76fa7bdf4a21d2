package history

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Change says how a key differs between two points.
type Change struct {
	Key  []byte
	Old  *Value // nil: the key is added
	New  *Value // nil: the key is removed
	Same bool   // the values are equal: only the deadline differs
}

// Kind returns the word for the change: added, removed, changed or deadline.
func (c *Change) Kind() string {
	switch {
	case c.Old == nil:
		return "added"
	case c.New == nil:
		return "removed"
	case c.Same:
		return "deadline"
	}
	return "changed"
}

// Value describes a key at a point.
type Value struct {
	Type       string
	DeadlineMS int64  // unix ms, 0: none
	Text       []byte // of a string of at most ShortValue bytes; nil otherwise
	Len        int    // of a string, in bytes
	digest     uint64
}

// ShortValue is the length up to which a string is part of a Value.
const ShortValue = 64

// Diff returns the keys below prefix that differ between two points, in key order. The points may be of different
// directories with different numbers of shards.
func Diff(a, b *Built, prefix []byte) []Change {
	var out []Change
	for _, ks := range a.Shards {
		ks.AscendPrefix(prefix, func(e state.Entry) bool {
			was := valueOf(e)
			now, ok := b.lookup(e.Key())
			switch {
			case !ok:
				out = append(out, Change{Key: bytes.Clone(e.Key()), Old: was})
			case was.digest != now.digest || was.DeadlineMS != now.DeadlineMS:
				out = append(out, Change{bytes.Clone(e.Key()), was, now, was.digest == now.digest})
			}
			return true
		})
	}
	for _, ks := range b.Shards {
		ks.AscendPrefix(prefix, func(e state.Entry) bool {
			if _, ok := a.lookup(e.Key()); !ok {
				out = append(out, Change{Key: bytes.Clone(e.Key()), New: valueOf(e)})
			}
			return true
		})
	}
	slices.SortFunc(out, func(x, y Change) int { return bytes.Compare(x.Key, y.Key) })
	return out
}

func (b *Built) find(key []byte) (*state.Keyspace, state.Entry, bool) {
	h := state.Hash(b.seed, key)
	ks := b.Shards[0]
	if n := len(b.Shards); n > 1 {
		ks = b.Shards[command.ShardOfHash(h, n)]
	}
	e, ok := ks.LookupHash(h, key)
	return ks, e, ok
}

func (b *Built) lookup(key []byte) (*Value, bool) {
	_, e, ok := b.find(key)
	if !ok {
		return nil, false
	}
	return valueOf(e), true
}

func valueOf(e state.Entry) *Value {
	v := &Value{Type: e.Type().String(), digest: e.Digest()}
	if ms, ok := e.Deadline(); ok {
		v.DeadlineMS = ms
	}
	if e.Type() == state.TypeString {
		s := e.Value()
		if v.Len = len(s); v.Len <= ShortValue {
			v.Text = bytes.Clone(s)
		}
	}
	return v
}

// Patch calls emit with the commands, as RESP, that make the keys of changes on a server what they are at the second
// point, when they are there what they are at the first: Diff's arguments and result. The commands are valid until
// emit returns.
func Patch(b *Built, changes []Change, emit func(command []byte) error) (err error) {
	var buf []byte
	send := func(e effect.Effect) {
		if err == nil {
			buf, _ = effect.AppendPayload(buf[:0], &e)
			err = emit(buf)
		}
	}
	for i := range changes {
		c := &changes[i]
		switch {
		case c.New != nil && c.Same && c.New.DeadlineMS == 0:
			send(effect.Effect{Op: effect.Persist, Args: [][]byte{c.Key}})
			continue
		case c.New != nil && c.Same:
			send(effect.Effect{Op: effect.PExpireAt, Args: [][]byte{c.Key, strconv.AppendInt(nil, c.New.DeadlineMS, 10)}})
			continue
		case c.Old != nil:
			send(effect.Effect{Op: effect.Del, Args: [][]byte{c.Key}})
		}
		if ks, e, ok := b.find(c.Key); ok && c.New != nil {
			ks.Rebuild(e, send)
		}
		if err != nil {
			return err
		}
	}
	return err
}
