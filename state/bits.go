package state

import "github.com/kevydb/kevy/log/effect"

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
	var v uint64
	for i := off; i < off+int64(t.Bits); i++ {
		v <<= 1
		if at := i >> 3; at < int64(len(b)) {
			v |= uint64(b[at]>>(7-i&7)) & 1
		}
	}
	if t.Signed && t.Bits < 64 {
		shift := 64 - t.Bits
		return int64(v<<shift) >> shift
	}
	return int64(v)
}

// setBitField sets a field inside b. REQUIRES: it lies within b.
func setBitField(b []byte, t BitType, off, value int64) {
	for i := t.Bits - 1; i >= 0; i-- {
		at, mask := off>>3, byte(0x80)>>(off&7)
		if value>>i&1 != 0 {
			b[at] |= mask
		} else {
			b[at] &^= mask
		}
		off++
	}
}

// foldBits folds SETBIT and BITFIELD: fields are set one after the other.
func (ks *Keyspace) foldBits(e *effect.Effect) (c Change, err error) {
	key, ops := e.Args[0], e.Args[1:]
	bit := [4][]byte{[]byte("SET"), []byte("u1")}
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
	setBitField(part[:], t, off-first<<3, value)
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

// WithBitField returns b with a field set, zeros before it where b was shorter. With fresh the result is a
// copy, otherwise b itself is changed.
func WithBitField(b []byte, fresh bool, t BitType, off, value int64) []byte {
	if fresh {
		b = append([]byte(nil), b...)
	}
	if grow := int((off+int64(t.Bits)+7)>>3) - len(b); grow > 0 {
		b = append(b, make([]byte, grow)...)
	}
	setBitField(b, t, off, value)
	return b
}
