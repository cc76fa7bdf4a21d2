package command

import (
	"bytes"

	"github.com/kevydb/kevy/state"
)

// hash is what a planner sees of a hash: fields whose deadline has passed are hidden. The engine deletes
// them before a command on the key runs, but not too many at once.
type hash struct {
	state.Fields
	c      *Ctx
	hiding bool // some field may be due
}

// readHash finds the hash of key for a reading command. It replies WRONGTYPE and returns !ok if the key has
// another type; found is false if there is none.
func readHash(c *Ctx, key []byte) (h hash, found, ok bool) {
	e, there := c.Lookup(key)
	return hashOf(c, key, e, there)
}

// writeHash is readHash for commands that write: it counts no hit.
func writeHash(c *Ctx, key []byte) (h hash, found, ok bool) {
	e, there := c.Peek(key)
	return hashOf(c, key, e, there)
}

func hashOf(c *Ctx, key []byte, e state.Entry, there bool) (h hash, found, ok bool) {
	switch {
	case !there:
		return h, false, true
	case e.Type() != state.TypeHash:
		c.W.Error(msgWrongType)
		return h, false, false
	}
	h = hash{Fields: c.Shards[c.ShardOf(key)].Fields(e), c: c}
	if next := h.NextDeadline(); next != state.NoDeadline && next <= c.Now && !c.KeepExpired {
		h.hiding = true
		return h, h.length() > 0, true
	}
	return h, true, true
}

// get returns the live field of that name.
func (h *hash) get(name []byte) (f state.Field, ok bool) {
	f, ok = h.Get(name)
	return f, ok && h.live(&f)
}

func (h *hash) live(f *state.Field) bool { return !h.hiding || f.Live(h.c.Now) }

// length returns the number of live fields.
func (h *hash) length() int {
	if !h.hiding {
		return h.Len()
	}
	n := 0
	h.each(func(*state.Field) { n++ })
	return n
}

// each calls f with every live field.
func (h *hash) each(f func(*state.Field)) {
	h.Each(func(x *state.Field) bool {
		if h.live(x) {
			f(x)
		}
		return true
	})
}

// repeats tells repeated fields of one request apart: every step-th of args. Few are compared, many hashed.
type repeats struct {
	args [][]byte
	step int
	seen map[string]int // field to the first place of it
}

func newRepeats(args [][]byte, step int) repeats {
	r := repeats{args: args, step: step}
	if len(args)/step > 16 {
		r.seen = make(map[string]int, len(args)/step)
	}
	return r
}

// first reports whether args[i] is not the same as one before it. With many fields it REQUIRES to be called
// for all of them, in order.
func (r *repeats) first(i int) bool {
	if r.seen != nil {
		_, again := r.seen[string(r.args[i])]
		if !again {
			r.seen[string(r.args[i])] = i
		}
		return !again
	}
	for k := 0; k < i; k += r.step {
		if bytes.Equal(r.args[k], r.args[i]) {
			return false
		}
	}
	return true
}

// parseFields reads FIELDS n field... behind a command's other arguments. The texts for a number that is none
// differ.
func parseFields(args [][]byte, badNumber errorText) (names [][]byte, bad errorText) {
	if len(args) == 0 || !isWord(args[0], "fields") {
		return nil, msgNoFields
	}
	if len(args) < 2 {
		return nil, badNumber
	}
	n, ok := parseInt(args[1])
	switch {
	case !ok || n < 1:
		return nil, badNumber
	case n != int64(len(args)-2):
		return nil, msgNumFields
	}
	return args[2:], ""
}

// The error texts of hashes.
const (
	msgHashInteger  = "ERR hash value is not an integer"
	msgHashFloat    = "ERR hash value is not a float"
	msgInfinite     = "ERR value is NaN or Infinity"
	msgOutOfRange   = "ERR value is out of range"
	msgNoFields     = "ERR Mandatory argument FIELDS is missing or not at the right position"
	msgNumFields    = "ERR The `numfields` parameter must match the number of arguments"
	msgFieldNumber  = "ERR Number of fields must be a positive integer"
	msgFieldsZero   = "ERR Parameter `numFields` should be greater than 0"
	msgFieldCount   = "ERR invalid number of fields"
	msgExpireSign   = "ERR invalid expire time, must be >= 0"
	msgExpireNone   = "ERR missing expire time"
	msgOneCondition = "ERR Only one of FXX or FNX arguments can be specified"
	msgOneExpiry    = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
)
