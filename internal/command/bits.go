package command

import (
	"encoding/binary"
	"math/bits"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const (
	msgBitOffset = "ERR bit offset is not an integer or out of range"
	msgBit       = "ERR bit is not an integer or out of range"
	msgBitArg    = "ERR The bit argument must be 1 or 0."
	msgBitOpNot  = "ERR BITOP NOT must be called with a single source key."
)

// bitOffset reads a bit offset; with width, "#n" is the n-th field of that width.
func (c *Ctx) bitOffset(b []byte, width int) (int64, errorText) {
	mul := int64(1)
	if width > 0 && len(b) > 0 && b[0] == '#' {
		b, mul = b[1:], int64(width)
	}
	n, ok := parseInt(b)
	if !ok || n < 0 || n > state.MaxBits || n*mul>>3 >= c.maxBulk() {
		return 0, msgBitOffset
	}
	return n * mul, ""
}

// stringOf returns the bytes of a string key, nil if there is none; ok is false when it has replied an error.
func stringOf(c *Ctx, key []byte) (b []byte, exists, ok bool) {
	e, exists := c.Lookup(key)
	if !exists {
		return nil, false, true
	}
	if !isString(c, e) {
		return nil, true, false
	}
	return e.Value(), true, true
}

func bitAt(b []byte, off int64) int64 {
	if off>>3 >= int64(len(b)) {
		return 0
	}
	return int64(b[off>>3]>>(7-off&7)) & 1
}

func planSetBit(c *Ctx) {
	off, bad := c.bitOffset(c.Args[2], 0)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	on, ok := parseInt(c.Args[3])
	if !ok || on&^1 != 0 {
		c.W.Error(msgBit)
		return
	}
	b, exists, ok := stringOf(c, c.Args[1])
	if !ok {
		return
	}
	old := bitAt(b, off)
	if old != on || off>>3 >= int64(len(b)) {
		if !exists {
			c.DropExpired(c.Args[1])
		}
		c.Emit(effect.SetBit, c.Args[1], c.Int(off), c.Int(on))
	}
	c.W.Int(old)
}

func planGetBit(c *Ctx) {
	off, bad := c.bitOffset(c.Args[2], 0)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	if b, _, ok := stringOf(c, c.Args[1]); ok {
		c.W.Int(bitAt(b, off))
	}
}

// bitRange are the bounds of BITCOUNT and BITPOS, in bytes or in bits.
type bitRange struct {
	start, end int64
	inBits     bool
	given      int // how many of start and end were given
}

// parseBitRange reads [start [end [BYTE|BIT]]]; with both, a start needs an end.
func parseBitRange(args [][]byte, both bool) (r bitRange, bad errorText) {
	n := len(args)
	if n > 3 || both && n == 1 {
		return r, msgSyntax
	}
	if n > 0 {
		if r.start, bad = intArg(args[0]); bad != "" {
			return r, bad
		}
	}
	if both && n > 1 {
		if r.end, bad = intArg(args[1]); bad != "" {
			return r, bad
		}
	}
	if n == 3 {
		switch {
		case isWord(args[2], "bit"):
			r.inBits = true
		case !isWord(args[2], "byte"):
			return r, msgSyntax
		}
	}
	if !both && n > 1 {
		if r.end, bad = intArg(args[1]); bad != "" {
			return r, bad
		}
	}
	r.given = min(n, 2)
	return r, ""
}

// within returns the first and last bit of the range in a string of size bytes; last < first if it is empty.
func (r bitRange) within(size int) (first, last int64) {
	total := int64(size)
	if r.inBits {
		total *= 8
	}
	start, end := r.start, r.end
	if r.given < 2 {
		end = total - 1
	}
	if start < 0 {
		start = max(0, start+total)
	}
	if end < 0 {
		end = max(0, end+total)
	}
	end = min(end, total-1)
	if start > end {
		return 0, -1
	}
	if r.inBits {
		return start, end
	}
	return start * 8, end*8 + 7
}

func planBitCount(c *Ctx) {
	r, bad := parseBitRange(c.Args[2:], true)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	b, exists, ok := stringOf(c, c.Args[1])
	switch {
	case !ok:
		return
	case !exists, r.given == 2 && r.start < 0 && r.end < 0 && r.start > r.end:
		c.W.Int(0)
		return
	}
	first, last := r.within(len(b))
	c.W.Int(countBits(b, first, last))
}

// countBits counts the ones among the bits first to last.
func countBits(b []byte, first, last int64) (n int64) {
	if last < first {
		return 0
	}
	i, end := first>>3, last>>3
	head, tail := byte(0xff)>>(first&7), byte(0xff)<<(7-last&7)
	if i == end {
		return int64(bits.OnesCount8(b[i] & head & tail))
	}
	n = int64(bits.OnesCount8(b[i]&head) + bits.OnesCount8(b[end]&tail))
	b = b[i+1 : end]
	for ; len(b) >= 8; b = b[8:] {
		n += int64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, x := range b {
		n += int64(bits.OnesCount8(x))
	}
	return n
}

func planBitPos(c *Ctx) {
	bit, bad := intArg(c.Args[2])
	if bad == "" && bit&^1 != 0 {
		bad = msgBitArg
	}
	r, rbad := parseBitRange(c.Args[3:], false)
	if bad == "" {
		bad = rbad
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	b, exists, ok := stringOf(c, c.Args[1])
	switch {
	case !ok:
		return
	case !exists:
		c.W.Int(-bit)
		return
	}
	first, last := r.within(len(b))
	pos := findBit(b, byte(bit), first, last)
	if pos < 0 && bit == 0 && first <= last && r.given < 2 {
		pos = int64(len(b)) * 8 // the string goes on with zeros
	}
	c.W.Int(pos)
}

// findBit returns the first bit of a value among first to last, -1 if there is none.
func findBit(b []byte, bit byte, first, last int64) int64 {
	none := byte(0) // a byte without the bit
	if bit == 0 {
		none = 0xff
	}
	for i := first; i <= last; {
		if i&7 == 0 && i+7 <= last && b[i>>3] == none {
			i += 8
			continue
		}
		if byte(bitAt(b, i)) == bit {
			return i
		}
		i++
	}
	return -1
}

func planBitOp(c *Ctx) {
	var op func(a, b byte) byte
	switch name := c.Args[1]; {
	case isWord(name, "and"):
		op = func(a, b byte) byte { return a & b }
	case isWord(name, "or"):
		op = func(a, b byte) byte { return a | b }
	case isWord(name, "xor"):
		op = func(a, b byte) byte { return a ^ b }
	case isWord(name, "not"):
		if len(c.Args) != 4 {
			c.W.Error(msgBitOpNot)
			return
		}
	default:
		c.W.Error(msgSyntax)
		return
	}
	out, ok := bitOp(c, op)
	if !ok {
		return
	}
	dst := c.Args[2]
	if len(out) > 0 {
		c.Emit(effect.Set, dst, out)
	} else if _, exists := c.Peek(dst); exists {
		c.Emit(effect.Del, dst)
	}
	c.W.Int(int64(len(out)))
}

// bitOp combines the source strings, each taken as if followed by zeros; a nil op negates the one source.
func bitOp(c *Ctx, op func(a, b byte) byte) (out []byte, ok bool) {
	for i, key := range c.Args[3:] {
		b, _, ok := stringOf(c, key)
		if !ok {
			return nil, false
		}
		if i == 0 {
			out = append(out, b...)
			continue
		}
		if grow := len(b) - len(out); grow > 0 {
			out = append(out, make([]byte, grow)...)
		}
		for k := range out {
			var x byte
			if k < len(b) {
				x = b[k]
			}
			out[k] = op(out[k], x)
		}
	}
	if op == nil {
		for k := range out {
			out[k] = ^out[k]
		}
	}
	return out, true
}
