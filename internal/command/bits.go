package command

import (
	"crypto/subtle"
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
	open       bool // no end was given
}

// bitUnit reads BYTE or BIT.
func bitUnit(b []byte) (inBits bool, bad errorText) {
	switch {
	case isWord(b, "bit"):
		return true, ""
	case isWord(b, "byte"):
		return false, ""
	}
	return false, msgSyntax
}

// countRange reads BITCOUNT's [start end [BYTE|BIT]]; none means that nothing is to be counted, whatever else
// stands there.
func countRange(args [][]byte) (r bitRange, none bool, bad errorText) {
	switch len(args) {
	case 0:
		return bitRange{open: true}, false, ""
	case 2, 3:
	default:
		return r, false, msgSyntax
	}
	if r.start, bad = intArg(args[0]); bad == "" {
		r.end, bad = intArg(args[1])
	}
	if bad != "" || r.start < 0 && r.end < 0 && r.start > r.end {
		return r, true, bad
	}
	if len(args) == 3 {
		r.inBits, bad = bitUnit(args[2])
	}
	return r, false, bad
}

// posRange reads BITPOS's [start [end [BYTE|BIT]]].
func posRange(args [][]byte) (r bitRange, bad errorText) {
	n := len(args)
	r.open = n < 2
	switch {
	case n == 0:
		return r, ""
	case n > 3:
		return r, msgSyntax
	}
	if r.start, bad = intArg(args[0]); bad == "" && n == 3 {
		r.inBits, bad = bitUnit(args[2])
	}
	if bad == "" && n > 1 {
		r.end, bad = intArg(args[1])
	}
	return r, bad
}

// within returns the first and last bit of the range in a string of size bytes; last < first if it is empty.
func (r bitRange) within(size int) (first, last int64) {
	total := int64(size)
	if r.inBits {
		total *= 8
	}
	start, end := r.start, r.end
	if r.open {
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
	b, exists, ok := stringOf(c, c.Args[1])
	if !ok {
		return
	}
	if !exists {
		c.W.Int(0)
		return
	}
	r, none, bad := countRange(c.Args[2:])
	switch {
	case bad != "":
		c.W.Error(bad)
	case none:
		c.W.Int(0)
	default:
		first, last := r.within(len(b))
		c.W.Int(countBits(b, first, last))
	}
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
	r, bad := posRange(c.Args[3:])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	first, last := r.within(len(b))
	pos := findBit(b, bit == 1, first, last)
	if pos < 0 && bit == 0 && first <= last && r.open {
		pos = int64(len(b)) * 8 // the string goes on with zeros
	}
	c.W.Int(pos)
}

// findBit returns the first bit of a value among first to last, -1 if there is none.
func findBit(b []byte, bit bool, first, last int64) int64 {
	if last < first {
		return -1
	}
	flip := byte(0xff) // makes the bits looked for ones
	if bit {
		flip = 0
	}
	i, end := first>>3, last>>3
	x := (b[i] ^ flip) & (0xff >> (first & 7))
	if x == 0 && i < end {
		word := uint64(flip) * 0x0101010101010101
		for i++; i+8 <= end && binary.LittleEndian.Uint64(b[i:]) == word; i += 8 {
		}
		for i < end && b[i] == flip {
			i++
		}
		x = b[i] ^ flip
	}
	if i == end {
		x &= 0xff << (7 - last&7)
	}
	if x == 0 {
		return -1
	}
	return i<<3 + int64(bits.LeadingZeros8(x))
}

// The operations of BITOP.
const (
	bitAnd = iota
	bitOr
	bitXor
	bitNot
)

func planBitOp(c *Ctx) {
	var op int
	switch name := c.Args[1]; {
	case isWord(name, "and"):
		op = bitAnd
	case isWord(name, "or"):
		op = bitOr
	case isWord(name, "xor"):
		op = bitXor
	case isWord(name, "not"):
		op = bitNot
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

// bitOp combines the source strings, each taken as if followed by zeros.
func bitOp(c *Ctx, op int) (out []byte, ok bool) {
	sources := make([][]byte, 0, len(c.Args)-3)
	most := 0
	for _, key := range c.Args[3:] {
		b, _, ok := stringOf(c, key)
		if !ok {
			return nil, false
		}
		sources = append(sources, b)
		most = max(most, len(b))
	}
	out = make([]byte, most)
	copy(out, sources[0])
	for _, b := range sources[1:] {
		combineBits(out, b, op)
	}
	if op == bitNot {
		negateBits(out)
	}
	return out, true
}

// combineBits makes out the combination of itself and b, as if zeros followed b.
func combineBits(out, b []byte, op int) {
	n := len(b)
	if op == bitXor {
		subtle.XORBytes(out, out[:n], b)
		return
	}
	i := 0
	if op == bitOr {
		for ; i+8 <= n; i += 8 {
			binary.LittleEndian.PutUint64(out[i:], binary.LittleEndian.Uint64(out[i:])|binary.LittleEndian.Uint64(b[i:]))
		}
		for ; i < n; i++ {
			out[i] |= b[i]
		}
		return
	}
	for ; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(out[i:], binary.LittleEndian.Uint64(out[i:])&binary.LittleEndian.Uint64(b[i:]))
	}
	for ; i < n; i++ {
		out[i] &= b[i]
	}
	clear(out[n:])
}

func negateBits(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, ^binary.LittleEndian.Uint64(b))
	}
	for i := range b {
		b[i] = ^b[i]
	}
}
