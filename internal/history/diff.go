package history

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Change says how a key, or a library of functions, differs between two points.
type Change struct {
	Key  []byte // or the library's name
	Old  *Value // nil: it is added
	New  *Value // nil: it is removed
	Same bool   // the values are equal: only the deadline differs
}

// LibraryType is the Type of a library of functions, which is no key.
const LibraryType = "library"

// Library reports whether it is a library that differs.
func (c *Change) Library() bool { return cmp.Or(c.Old, c.New).Type == LibraryType }

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
	Len        int    // of a string, or a library's code, in bytes
	digest     uint64
	code       string // of a library
}

// ShortValue is the length up to which a string is part of a Value.
const ShortValue = 64

// Diff returns the keys below prefix that differ between two points, in key order, and behind them, if all keys are asked for, the
// libraries of functions that differ. The points may be of different directories with different numbers of shards.
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
	if len(prefix) > 0 {
		return out
	}
	return append(out, diffLibraries(a.Libraries(), b.Libraries())...)
}

// diffLibraries compares libraries, both in the order of their names.
func diffLibraries(a, b []state.Library) (out []Change) {
	for len(a) > 0 || len(b) > 0 {
		var c Change
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			c, a = Change{Key: []byte(a[0].Name), Old: libraryOf(a[0])}, a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			c, b = Change{Key: []byte(b[0].Name), New: libraryOf(b[0])}, b[1:]
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
			continue
		default:
			c, a, b = Change{Key: []byte(a[0].Name), Old: libraryOf(a[0]), New: libraryOf(b[0])}, a[1:], b[1:]
		}
		out = append(out, c)
	}
	return out
}

func libraryOf(l state.Library) *Value {
	return &Value{Type: LibraryType, Len: len(l.Code), code: l.Code}
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

// Patch calls emit with the commands, as RESP, that make the keys and libraries of changes on a server what they are at the second
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
		case c.Library() && c.New == nil:
			send(effect.Effect{Op: effect.Function, Args: [][]byte{[]byte("DELETE"), c.Key}})
			continue
		case c.Library():
			send(effect.Effect{Op: effect.Function, Args: [][]byte{[]byte("LOAD"), []byte("REPLACE"), []byte(c.New.code)}})
			continue
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
