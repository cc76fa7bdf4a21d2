package state

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/kevydb/kevy/internal/arena"
)

// A stream's entries live in chunks of at most chunkEntries entries and, unless it is a single large one,
// chunkBytes bytes. The field names of a chunk's first entry are written once; entries with the same
// names only have values.
//
//	off size
//	  0    4  end: bytes in use
//	  4    4  first: where the first live entry begins; end if there is none
//	  8    2  live entries
//	 10    2  entries, deleted ones included
//	 12    2  entries before the first live one
//	 16    8  ID of the first entry there ever was: ms
//	 24    8  and number: the key of the chunk
//	 32    4  where the entries begin
//	 36    4  fields of the first entry
//	 40    ..  their names, as strings
//	 ..    ..  entries
//
//	entry = flags (1) | size of the rest, uvarint | ms since the chunk's, uvarint | number, uvarint (since the
//	        chunk's if ms is the same) | [fields, uvarint, with entryOwn] | items: values or names and values
//	item  = uvarint: length<<1, then the bytes; or size<<1 | 1, then a number of that size, little-endian
//
// A deleted entry is only marked; a chunk without live entries goes.
const (
	chunkEntries = 100
	chunkBytes   = 4096

	chunkEnd    = 0
	chunkFirst  = 4
	chunkLive   = 8
	chunkTotal  = 10
	chunkBefore = 12
	chunkMs     = 16
	chunkSeq    = 24
	chunkBody   = 32
	chunkFields = 36
	chunkHead   = 40

	entryDeleted = 1
	entryOwn     = 2 // has field names of its own
)

// chunk is the used part of a chunk's block.
type chunk []byte

func chunkAt(a *arena.Arena, r arena.Ref) chunk {
	return a.Bytes(r, int(le.Uint32(a.Tail(r))))
}

// chunkKey returns the ID of a chunk's first entry without looking at the rest.
func chunkKey(a *arena.Arena, r arena.Ref) StreamID { return chunk(a.Tail(r)).key() }

func (c chunk) key() StreamID  { return StreamID{le.Uint64(c[chunkMs:]), le.Uint64(c[chunkSeq:])} }
func (c chunk) live() int      { return int(le.Uint16(c[chunkLive:])) }
func (c chunk) total() int     { return int(le.Uint16(c[chunkTotal:])) }
func (c chunk) before() int    { return int(le.Uint16(c[chunkBefore:])) }
func (c chunk) first() int     { return int(le.Uint32(c[chunkFirst:])) }
func (c chunk) body() int      { return int(le.Uint32(c[chunkBody:])) }
func (c chunk) numFields() int { return int(le.Uint32(c[chunkFields:])) }

func (c chunk) setLive(n int)   { le.PutUint16(c[chunkLive:], uint16(n)) }
func (c chunk) setTotal(n int)  { le.PutUint16(c[chunkTotal:], uint16(n)) }
func (c chunk) setBefore(n int) { le.PutUint16(c[chunkBefore:], uint16(n)) }
func (c chunk) setFirst(at int) { le.PutUint32(c[chunkFirst:], uint32(at)) }

// chunkEntry is one entry of a chunk.
type chunkEntry struct {
	at, next int
	flags    byte
	id       StreamID
	rest     []byte // what follows the ID
}

// entry returns the entry that begins at offset at.
func (c chunk) entry(at int) (e chunkEntry) {
	e.at, e.flags = at, c[at]
	size, w := uvarint(c[at+1:])
	b := c[at+1+w:]
	e.next = at + 1 + w + size
	b = b[:size:size]
	ms, w := binary.Uvarint(b)
	b = b[w:]
	seq, w := binary.Uvarint(b)
	e.rest = b[w:]
	e.id = StreamID{le.Uint64(c[chunkMs:]) + ms, seq}
	if ms == 0 {
		e.id.Seq += le.Uint64(c[chunkSeq:])
	}
	return e
}

// find returns the live entry with an ID.
func (c chunk) find(id StreamID) (e chunkEntry, ok bool) {
	for at := c.first(); at < len(c); at = e.next {
		e = c.entry(at)
		if !e.id.Less(id) {
			return e, e.id == id && e.flags&entryDeleted == 0
		}
	}
	return e, false
}

// settleFirst moves first to the first live entry from offset at on, n entries into the chunk.
func (c chunk) settleFirst(at, n int) {
	for at < len(c) && c[at]&entryDeleted != 0 {
		at = c.entry(at).next
		n++
	}
	c.setFirst(at)
	c.setBefore(n)
}

// sameNames reports whether the names of fields are those the chunk has once.
func (c chunk) sameNames(fields [][]byte) bool {
	if c.numFields()*2 != len(fields) {
		return false
	}
	b := []byte(c[chunkHead:c.body()])
	for i := 0; i < len(fields); i += 2 {
		var name []byte
		if name, b = cutString(b); !bytes.Equal(name, fields[i]) {
			return false
		}
	}
	return true
}

// appendChunkHead appends the beginning of a chunk whose first entry is id with fields.
func appendChunkHead(dst []byte, id StreamID, fields [][]byte) []byte {
	var head [chunkHead]byte
	le.PutUint64(head[chunkMs:], id.Ms)
	le.PutUint64(head[chunkSeq:], id.Seq)
	le.PutUint32(head[chunkFields:], uint32(len(fields)/2))
	dst = append(dst, head[:]...)
	for i := 0; i < len(fields); i += 2 {
		dst = appendString(dst, fields[i])
	}
	le.PutUint32(dst[chunkBody:], uint32(len(dst)))
	le.PutUint32(dst[chunkFirst:], uint32(len(dst)))
	return dst
}

// appendEntry appends an entry for a chunk whose key is key; own: with the names.
func appendEntry(dst []byte, key, id StreamID, fields [][]byte, own bool) []byte {
	step, size := 2, 0
	if own {
		step, size = 1, uvarintSize(uint64(len(fields)/2))
	}
	for i := step - 1; i < len(fields); i += step {
		size += itemSize(fields[i])
	}
	ms, seq := id.Ms-key.Ms, id.Seq
	if ms == 0 {
		seq -= key.Seq
	}
	size += uvarintSize(ms) + uvarintSize(seq)
	dst = append(dst, byte(step%2)*entryOwn)
	dst = binary.AppendUvarint(dst, uint64(size))
	dst = binary.AppendUvarint(dst, ms)
	dst = binary.AppendUvarint(dst, seq)
	if own {
		dst = binary.AppendUvarint(dst, uint64(len(fields)/2))
	}
	for i := step - 1; i < len(fields); i += step {
		dst = appendItem(dst, fields[i])
	}
	return dst
}

func uvarintSize(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

// numberSize returns the bytes of s as a number, 0 if it is none or would not be shorter.
func numberSize(s []byte) (n int64, size int) {
	if len(s) == 0 || len(s) > 20 || s[0] > '9' {
		return 0, 0
	}
	n, ok := parseInt(s)
	if !ok {
		return 0, 0
	}
	if size = (bits.Len64(uint64(n^n>>63)) + 8) / 8; size >= len(s) {
		return 0, 0
	}
	return n, size
}

func itemSize(s []byte) int {
	if _, size := numberSize(s); size > 0 {
		return 1 + size
	}
	return uvarintSize(uint64(len(s))<<1) + len(s)
}

func appendItem(dst, s []byte) []byte {
	n, size := numberSize(s)
	if size == 0 {
		return append(binary.AppendUvarint(dst, uint64(len(s))<<1), s...)
	}
	dst = append(dst, byte(size<<1|1))
	for ; size > 0; size-- {
		dst = append(dst, byte(n))
		n >>= 8
	}
	return dst
}

// cutItem returns the first item of b, in b itself or formatted into text, and the rest.
func cutItem(b []byte, text *[20]byte) (s, rest []byte) {
	h, w := uvarint(b)
	b = b[w:]
	n := h >> 1
	if h&1 == 0 {
		return b[:n:n], b[n:]
	}
	var x uint64
	for i := range n {
		x |= uint64(b[i]) << (8 * i)
	}
	shift := 64 - 8*n
	return strconv.AppendInt(text[:0], int64(x<<shift)>>shift, 10), b[n:]
}
