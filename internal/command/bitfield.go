package command

import (
	"encoding/binary"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const (
	msgBitType     = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	msgBitOverflow = "ERR Invalid OVERFLOW type specified"
	msgBitReadOnly = "ERR BITFIELD_RO only supports the GET subcommand"
)

// What BITFIELD does with a value that does not fit.
const (
	overflowWrap = iota
	overflowSat
	overflowFail
)

// fieldOp is one GET, SET or INCRBY of BITFIELD.
type fieldOp struct {
	verb     byte // 'g', 's', 'i'
	t        state.BitType
	off      int64
	value    int64
	overflow int
}

func parseBitField(c *Ctx, readOnly bool) (ops []fieldOp, bad errorText) {
	overflow, writes := overflowWrap, false
	for args := c.Args[2:]; len(args) > 0; {
		op := fieldOp{overflow: overflow}
		need := 4
		switch {
		case isWord(args[0], "get") && len(args) >= 3:
			op.verb, need = 'g', 3
		case isWord(args[0], "set") && len(args) >= 4:
			op.verb = 's'
		case isWord(args[0], "incrby") && len(args) >= 4:
			op.verb = 'i'
		case isWord(args[0], "overflow") && len(args) >= 2:
			if overflow, bad = parseOverflow(args[1]); bad != "" {
				return nil, bad
			}
			args = args[2:]
			continue
		default:
			return nil, msgSyntax
		}
		var ok bool
		if op.t, ok = state.ParseBitType(args[1]); !ok {
			return nil, msgBitType
		}
		if op.off, bad = c.bitOffset(args[2], op.t.Bits); bad != "" {
			return nil, bad
		}
		if need == 4 {
			writes = true
			if op.off+int64(op.t.Bits) > state.MaxBits {
				return nil, msgBitOffset
			}
			if op.value, bad = intArg(args[3]); bad != "" {
				return nil, bad
			}
		}
		ops, args = append(ops, op), args[need:]
	}
	if writes && readOnly {
		return nil, msgBitReadOnly
	}
	return ops, ""
}

func parseOverflow(b []byte) (int, errorText) {
	switch {
	case isWord(b, "wrap"):
		return overflowWrap, ""
	case isWord(b, "sat"):
		return overflowSat, ""
	case isWord(b, "fail"):
		return overflowFail, ""
	}
	return 0, msgBitOverflow
}

// fit returns sum as the field keeps it; ok is false if it is to stay as it is (OVERFLOW FAIL).
// REQUIRES: sum is base+by wrapped to 64 bits.
func (o *fieldOp) fit(base, by int64) (value int64, ok bool) {
	var lo, hi int64
	if o.t.Signed {
		hi = 1<<(o.t.Bits-1) - 1
		lo = -hi - 1
	} else {
		hi = 1<<o.t.Bits - 1
	}
	over := base > hi || by > 0 && base > hi-by
	under := base < lo || by < 0 && base < lo-by
	if o.verb == 's' && !o.t.Signed && base < 0 {
		over, under = true, false // a negative number is a huge unsigned one
	}
	switch {
	case !over && !under:
		return base + by, true
	case o.overflow == overflowFail:
		return 0, false
	case o.overflow == overflowSat && over:
		return hi, true
	case o.overflow == overflowSat:
		return lo, true
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(base+by))
	return state.BitField(b[:], o.t, int64(64-o.t.Bits)), true
}

// bitWork is the string a BITFIELD works on: its bytes as stored, and those that its fields so far change.
type bitWork struct {
	base    []byte
	changed map[int64]byte
	size    int64 // with what the fields so far add
}

// window returns the nine bytes from the one that bit off lies in, and off within them.
func (w *bitWork) window(off int64) (part [9]byte, at int64) {
	first := off >> 3
	if first < int64(len(w.base)) {
		copy(part[:], w.base[first:])
	}
	if len(w.changed) > 0 {
		for i := range part {
			if x, ok := w.changed[first+int64(i)]; ok {
				part[i] = x
			}
		}
	}
	return part, off & 7
}

func (w *bitWork) get(t state.BitType, off int64) int64 {
	part, at := w.window(off)
	return state.BitField(part[:], t, at)
}

// set sets a field; keep says that other fields follow.
func (w *bitWork) set(t state.BitType, off, value int64, keep bool) {
	last := (off + int64(t.Bits) - 1) >> 3
	w.size = max(w.size, last+1)
	if !keep {
		return
	}
	if w.changed == nil {
		w.changed = map[int64]byte{}
	}
	part, at := w.window(off)
	state.SetBitField(&part, t, at, value)
	for i := off >> 3; i <= last; i++ {
		w.changed[i] = part[i-off>>3]
	}
}

// planBitField plans BITFIELD and BITFIELD_RO.
func planBitField(c *Ctx) {
	ops, bad := parseBitField(c, c.Cmd.Name == "bitfield_ro")
	if bad != "" {
		c.W.Error(bad)
		return
	}
	b, exists, ok := stringOf(c, c.Args[1])
	if !ok {
		return
	}
	work := bitWork{base: b, size: int64(len(b))}
	args := [][]byte{c.Args[1]}
	highest := int64(-1) // bit that a write asks for, even one that fails
	c.W.Array(len(ops))
	for i := range ops {
		o := &ops[i]
		old := work.get(o.t, o.off)
		if o.verb == 'g' {
			c.W.Int(old)
			continue
		}
		highest = max(highest, o.off+int64(o.t.Bits)-1)
		value, reply, fits := o.apply(old)
		if !fits {
			c.W.Null()
			continue
		}
		c.W.Int(reply)
		if value != old {
			args = append(args, []byte("SET"), o.typeName(c), c.Int(o.off), c.Int(value))
			work.set(o.t, o.off, value, i < len(ops)-1)
		}
	}
	if highest>>3 >= work.size { // the string grows, with zeros
		args = append(args, []byte("SET"), []byte("u1"), c.Int(highest), c.Int(0))
	}
	if len(args) > 1 {
		if !exists {
			c.DropExpired(c.Args[1])
		}
		c.Emit(effect.BitField, args...)
	}
}

// apply returns the field's new value and what is replied; fits is false if it is to stay as it is.
func (o *fieldOp) apply(old int64) (value, reply int64, fits bool) {
	if o.verb == 'i' {
		value, fits = o.fit(old, o.value)
		return value, value, fits
	}
	value, fits = o.fit(o.value, 0)
	return value, old, fits
}

// typeName spells the field's type.
func (o *fieldOp) typeName(c *Ctx) []byte {
	kind := byte('u')
	if o.t.Signed {
		kind = 'i'
	}
	return append([]byte{kind}, c.Int(int64(o.t.Bits))...)
}

// bitfieldKeyFlags are the flags of BITFIELD's key: GET and OVERFLOW alone only read it.
func bitfieldKeyFlags(args [][]byte) []string {
	for i := 2; i < len(args); {
		left := len(args) - 1 - i
		switch {
		case isWord(args[i], "get") && left >= 2:
			i += 3
		case isWord(args[i], "overflow") && left >= 1:
			i += 2
		default:
			return []string{"RW", "access", "update"}
		}
	}
	return []string{"RO", "access"}
}
