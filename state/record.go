package state

import (
	"bytes"
	"encoding/binary"

	"github.com/kevydb/kevy/internal/arena"
)

// A record is one block of the arena: everything of a key in one place. Little-endian, in memory only.
//
//	off size
//	  0    1  type (low nibble), flags (high nibble)
//	  1    1  size class of the block
//	  2    2  key length                    (long key: unused)
//	  4    2  value length                  (value in a block of its own: unused)
//	  6    1  access counter                (not state)
//	  7    1  hint for OBJECT ENCODING       (not state)
//	  8    4  access clock                  (not state)
//	 12    8  deadline, unix ms             only with flagDeadline
//	  ..   4  key length                    only with flagLong
//	  ..   n  key
//	  ..   m  value                         or, with flagOwn: block (8), length (8)
const (
	flagDeadline = 0x10
	flagOwn      = 0x20 // the value has a block of its own
	flagRaw      = 0x40 // APPEND or SETRANGE changed the value in place: OBJECT ENCODING says raw
	flagLong     = 0x80 // the key length does not fit 16 bits
	typeMask     = 0x0f

	offFlags  = 0
	offClass  = 1
	offKeyLen = 2
	offValLen = 4
	offFreq   = 6
	offHint   = 7
	offAccess = 8
	headLen   = 12

	deadlineLen = 8
	longLen     = 4
	ownLen      = 16

	// maxInline is the longest value kept in its record. Longer ones have their own block, so that
	// growing them in place does not move the record.
	maxInline = 4096
	maxKeyLen = 1<<16 - 1
)

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// Entry is a handle on a live record: valid until the next Fold or until the lock is released.
type Entry struct {
	a   *arena.Arena
	ref arena.Ref
}

// Type returns the type of the value.
func (e Entry) Type() Type { return Type(e.a.Tail(e.ref)[offFlags] & typeMask) }

// Key returns the key, a read-only alias.
func (e Entry) Key() []byte { return keyOf(e.a, e.ref) }

// Value returns the bytes of a string value, a read-only alias.
func (e Entry) Value() []byte { return valueOf(e.a, e.ref) }

// Deadline returns the unix ms at which the key is due; ok is false when it does not expire.
func (e Entry) Deadline() (ms int64, ok bool) {
	ms = deadlineOf(e.a.Tail(e.ref))
	return ms, ms != NoDeadline
}

// Access returns the access clock as last set.
func (e Entry) Access() uint32 { return le.Uint32(e.a.Tail(e.ref)[offAccess:]) }

// Freq returns the access counter as last set.
func (e Entry) Freq() uint8 { return e.a.Tail(e.ref)[offFreq] }

// keyStart returns where the key of a record without flagLong begins: the flag's bit is twice the
// deadline's length.
func keyStart(flags byte) int { return headLen + int(flags&flagDeadline)>>1 }

func keyOf(a *arena.Arena, r arena.Ref) []byte {
	b := a.Tail(r)
	at := keyStart(b[offFlags])
	if b[offFlags]&flagLong == 0 {
		n := at + int(le.Uint16(b[offKeyLen:]))
		return b[at:n:n]
	}
	n := int(le.Uint32(b[at:]))
	at += longLen
	return a.Bytes(r, at+n)[at:]
}

// hasKey reports whether the record's key is key.
func hasKey(a *arena.Arena, r arena.Ref, key []byte) bool {
	b := a.Tail(r)
	f := b[offFlags]
	if f&flagLong == 0 {
		at := keyStart(f)
		return int(le.Uint16(b[offKeyLen:])) == len(key) && bytes.Equal(b[at:at+len(key)], key)
	}
	return bytes.Equal(keyOf(a, r), key)
}

// valueStart returns where the value of the record begins.
func valueStart(b []byte) int {
	at := keyStart(b[offFlags])
	if b[offFlags]&flagLong == 0 {
		return at + int(le.Uint16(b[offKeyLen:]))
	}
	return at + longLen + int(le.Uint32(b[at:]))
}

func valueOf(a *arena.Arena, r arena.Ref) []byte {
	b := a.Tail(r)
	at := valueStart(b)
	if b[offFlags]&flagOwn == 0 {
		n := at + int(le.Uint16(b[offValLen:]))
		if n > len(b) {
			b = a.Bytes(r, n)
		}
		return b[at:n:n]
	}
	block, n := ownValue(a.Bytes(r, at+ownLen)[at:])
	return a.Bytes(block, n)
}

func ownValue(b []byte) (block arena.Ref, n int) {
	return arena.Ref(le.Uint64(b)), int(le.Uint64(b[8:]))
}

func putOwn(b []byte, block arena.Ref, n int) {
	le.PutUint64(b, uint64(block))
	le.PutUint64(b[8:], uint64(n))
}

func deadlineOf(b []byte) int64 {
	if b[offFlags]&flagDeadline == 0 {
		return NoDeadline
	}
	return int64(le.Uint64(b[headLen:]))
}

// capacity returns the size of the record's block.
func capacity(a *arena.Arena, r arena.Ref, b []byte) int {
	if c := arena.Class(b[offClass]); c != arena.Large {
		return c.Size()
	}
	return a.Capacity(r)
}

// content is what a record is made of.
type content struct {
	kind     byte // type and flagRaw
	deadline int64
	key      []byte
	value    []byte    // kept in the record, unless
	own      arena.Ref // the value's own block
	ownLen   int       // bytes of the value in it
}

func (c *content) flags() byte {
	f := c.kind
	if c.deadline != NoDeadline {
		f |= flagDeadline
	}
	if c.own != 0 {
		f |= flagOwn
	}
	if len(c.key) > maxKeyLen {
		f |= flagLong
	}
	return f
}

// size returns the bytes of the record.
func (c *content) size() int {
	n := headLen + len(c.key)
	if c.deadline != NoDeadline {
		n += deadlineLen
	}
	if len(c.key) > maxKeyLen {
		n += longLen
	}
	if c.own != 0 {
		return n + ownLen
	}
	return n + len(c.value)
}

// put writes the record into its block b, leaving class, access clock and counter alone. The key may be
// where the record had it so far; the value may alias the place it goes to.
func (c *content) put(b []byte) {
	f := c.flags()
	at := keyStart(f)
	if f&flagLong != 0 {
		at += longLen
	}
	end := at + copy(b[at:], c.key) // first: what follows may be written over the key's former place
	b[offFlags] = f
	if f&flagDeadline != 0 {
		le.PutUint64(b[headLen:], uint64(c.deadline))
	}
	if f&flagLong != 0 {
		le.PutUint32(b[at-longLen:], uint32(len(c.key)))
	} else {
		le.PutUint16(b[offKeyLen:], uint16(len(c.key)))
	}
	if f&flagOwn != 0 {
		putOwn(b[end:], c.own, c.ownLen)
		return
	}
	copy(b[end:], c.value)
	le.PutUint16(b[offValLen:], uint16(len(c.value)))
}
