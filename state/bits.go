package state

import (
	"encoding/binary"

	"github.com/kevydb/kevy/log/effect"
)

// MaxBits is the number of bits of the longest string.
const MaxBits = MaxValue * 8

// BitType is the type of a bit field: u1 to u63, i1 to i64.
type BitType struct {
	Signed bool
	Bits   int
}

// ParseBitType reads a type as BITFIELD spells it.
func ParseBitType(b []byte) (t BitType, ok bool) {
	if len(b) < 2 || b[0] != 'i' && b[0] != 'u' {
		return t, false
	}
	n, ok := parseInt(b[1:])
	t = BitType{Signed: b[0] == 'i', Bits: int(n)}
	if !ok || n < 1 || n > 64 || n == 64 && !t.Signed {
		return t, false
	}
	return t, true
}

// BitField returns the value of a field at a bit offset; bits behind the end are 0.
func BitField(b []byte, t BitType, off int64) int64 {
	var part [9]byte
	if first := off >> 3; first+9 <= int64(len(b)) {
		part = [9]byte(b[first:])
	} else if first < int64(len(b)) {
		copy(part[:], b[first:])
	}
	shift := off & 7
	v := binary.BigEndian.Uint64(part[:])<<shift | uint64(part[8])>>(8-shift)
	if t.Signed {
		return int64(v) >> (64 - t.Bits)
	}
	return int64(v >> (64 - t.Bits))
}

// SetBitField sets a field that begins at bit at, below 8.
func SetBitField(b *[9]byte, t BitType, at, value int64) {
	width := int64(t.Bits)
	mask := ^uint64(0) >> (64 - width)
	v, word := uint64(value)&mask, binary.BigEndian.Uint64(b[:])
	if spill := at + width - 64; spill > 0 {
		word = word&^(mask>>spill) | v>>spill
		b[8] = b[8]&(0xff>>spill) | byte(v<<(8-spill))
	} else {
		word = word&^(mask<<-spill) | v<<-spill
	}
	binary.BigEndian.PutUint64(b[:], word)
}

var setWord, bitWord = []byte("SET"), []byte("u1")

// foldBits folds SETBIT and BITFIELD: fields are set one after the other.
func (ks *Keyspace) foldBits(e *effect.Effect) (c Change, err error) {
	key, ops := e.Args[0], e.Args[1:]
	bit := [4][]byte{setWord, bitWord}
	if e.Op == effect.SetBit {
		bit[2], bit[3] = ops[0], ops[1]
		ops = bit[:]
	}
	if len(ops)%4 != 0 {
		return c, fail(e, "arguments")
	}
	for i := 0; i < len(ops); i += 4 {
		t, tok := ParseBitType(ops[i+1])
		off, ook := parseInt(ops[i+2])
		_, vok := parseInt(ops[i+3])
		if string(ops[i]) != "SET" || !tok || !ook || !vok || off < 0 || off+int64(t.Bits) > MaxBits {
			return c, fail(e, "field")
		}
	}
	h, r, ok := ks.open(key, TypeString)
	if !ok {
		return c, fail(e, wrongType)
	}
	if r == 0 {
		c.Created = 1
		ks.create(h, key, nil, NoDeadline, byte(TypeString))
	}
	for i := 0; i < len(ops); i += 4 {
		t, _ := ParseBitType(ops[i+1])
		off, _ := parseInt(ops[i+2])
		value, _ := parseInt(ops[i+3])
		ks.patchBits(h, key, t, off, value)
	}
	return c, nil
}

// patchBits sets a field of the key's string, which grows with zeros if it must.
func (ks *Keyspace) patchBits(h uint64, key []byte, t BitType, off, value int64) {
	var part [9]byte
	first, last := off>>3, (off+int64(t.Bits)-1)>>3
	r := ks.idx.find(h, key)
	if old := valueOf(ks.a, r); first < int64(len(old)) {
		copy(part[:], old[first:min(last+1, int64(len(old)))])
	}
	SetBitField(&part, t, off&7, value)
	ks.patch(h, r, int(first), part[:last-first+1])
}

// foldPFAdd adds elements to a HyperLogLog, making it if there is none.
func (ks *Keyspace) foldPFAdd(e *effect.Effect) (c Change, err error) {
	key := e.Args[0]
	_, r, ok := ks.open(key, TypeString)
	if !ok {
		return c, fail(e, wrongType)
	}
	hll := NewHLL()
	if r != 0 {
		if hll, ok = ParseHLL(valueOf(ks.a, r)); !ok {
			return c, fail(e, "no HyperLogLog")
		}
		if !hll.Sparse() {
			ks.patchHLL(key, e.Args[1:])
			return c, nil
		}
		hll = hll.Clone()
	}
	for _, element := range e.Args[1:] {
		if _, valid := hll.Add(element); !valid {
			return c, fail(e, "damaged HyperLogLog")
		}
	}
	deadline := NoDeadline
	if r != 0 {
		deadline = deadlineOf(ks.a.Tail(r))
	}
	c.Created = ks.set(key, hll.Bytes(), deadline)
	return c, nil
}

// patchHLL adds elements to a dense HyperLogLog in place: a register is in two bytes, or in one.
func (ks *Keyspace) patchHLL(key []byte, elements [][]byte) {
	h := Hash(ks.seed, key)
	for _, element := range elements {
		register, value := hllPlace(element)
		r := ks.idx.find(h, key)
		b := valueOf(ks.a, r)
		if denseAt(b[hllHeader:], register) >= value {
			continue
		}
		at := hllHeader + register*6/8
		var part [2]byte
		n := copy(part[:], b[at:])
		setSix(part[:], uint(register*6&7), value)
		stale := b[hllHeader-1] | hllStale
		was := b[hllHeader-1]
		ks.patch(h, r, at, part[:n])
		if was != stale {
			ks.patch(h, ks.idx.find(h, key), hllHeader-1, []byte{stale})
		}
	}
}
