package rdb

import (
	"bytes"
	"encoding/binary"
)

// unpack expands a string compressed by LZF, which gives at most 264 bytes for 3.
func unpack(in []byte, size uint64) ([]byte, bool) {
	if in == nil || size > 88*uint64(len(in)) {
		return nil, false
	}
	out := make([]byte, 0, size)
	for len(in) > 0 {
		c := int(in[0])
		in = in[1:]
		if c < 32 { // c+1 bytes as they are
			if c+1 > len(in) {
				return nil, false
			}
			out = append(out, in[:c+1]...)
			in = in[c+1:]
			continue
		}
		n := c >> 5
		if n == 7 {
			if len(in) == 0 {
				return nil, false
			}
			n += int(in[0])
			in = in[1:]
		}
		if len(in) == 0 {
			return nil, false
		}
		at := len(out) - c&31<<8 - 1 - int(in[0])
		in = in[1:]
		if at < 0 || uint64(len(out)+n+2) > size {
			return nil, false
		}
		for range n + 2 { // may overlap what it makes
			out = append(out, out[at])
			at++
		}
	}
	return out, uint64(len(out)) == size
}

// listpack appends the elements of a listpack to items.
//
//	listpack = bytes in all (4) | elements (2) | elements | 0xff
//	element  = encoding and data | their length, backwards in 7 bits a byte
func (r *reader) listpack(items [][]byte, b []byte) [][]byte {
	if len(b) < 7 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) {
		r.fail()
		return nil
	}
	n, said := 0, int(binary.LittleEndian.Uint16(b[4:]))
	p := reader{b: b[6:]}
	for !p.bad && !(len(p.b) == 1 && p.b[0] == 0xff) {
		before := len(p.b)
		items = append(items, p.element())
		used := before - len(p.b)
		p.take(uint64(backLength(used)))
		n++
	}
	if p.bad || said != n && said != 0xffff {
		r.fail()
		return nil
	}
	return items
}

// backLength is how many bytes the length at the end of an element takes. The greatest number of a size is written with
// one byte more, but for the smallest size: that is how Redis does it.
func backLength(n int) int {
	switch {
	case n <= 127:
		return 1
	case n < 1<<14-1:
		return 2
	case n < 1<<21-1:
		return 3
	case n < 1<<28-1:
		return 4
	}
	return 5
}

// element reads an element of a listpack but for its length at the end.
func (r *reader) element() []byte {
	c := r.byte()
	switch {
	case r.bad:
	case c < 0x80:
		return decimal(int64(c))
	case c < 0xc0:
		return r.take(uint64(c & 63))
	case c < 0xe0:
		n := int64(c&31)<<8 | int64(r.byte())
		return decimal(n << 51 >> 51)
	case c < 0xf0:
		return r.take(uint64(c&15)<<8 | uint64(r.byte()))
	case c == 0xf0:
		if b := r.take(4); b != nil {
			return r.take(uint64(binary.LittleEndian.Uint32(b)))
		}
	case c <= 0xf4:
		size := [...]uint64{2, 3, 4, 8}[c-0xf1]
		if b := r.take(size); b != nil {
			return decimal(signedLE(b))
		}
	default:
		r.fail()
	}
	return nil
}

// ziplist appends the elements of a ziplist to items.
//
//	ziplist = bytes in all (4) | where the last element is (4) | elements (2) | elements | 0xff
//	element = length of the one before (1, or 0xfe and 4) | encoding and data
func (r *reader) ziplist(items [][]byte, b []byte) [][]byte {
	if len(b) < 11 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) {
		r.fail()
		return nil
	}
	n, said := 0, int(binary.LittleEndian.Uint16(b[8:]))
	p := reader{b: b[10:]}
	for !p.bad && !(len(p.b) == 1 && p.b[0] == 0xff) {
		if p.byte() == 0xfe {
			p.take(4)
		}
		items = append(items, p.ziplistElement())
		n++
	}
	if p.bad || said != n && said != 0xffff {
		r.fail()
		return nil
	}
	return items
}

func (r *reader) ziplistElement() []byte {
	c := r.byte()
	switch {
	case r.bad:
		return nil
	case c < 0x40:
		return r.take(uint64(c))
	case c < 0x80:
		return r.take(uint64(c&63)<<8 | uint64(r.byte()))
	case c < 0xc0:
		if b := r.take(4); b != nil {
			return r.take(uint64(binary.BigEndian.Uint32(b)))
		}
		return nil
	case c > 0xf0 && c < 0xfe:
		return decimal(int64(c&15) - 1)
	}
	size := map[byte]uint64{0xc0: 2, 0xd0: 4, 0xe0: 8, 0xf0: 3, 0xfe: 1}[c]
	b := r.take(size)
	if size == 0 || b == nil {
		r.fail()
		return nil
	}
	return decimal(signedLE(b))
}

// zipmap reads the fields and values of the hashes of Redis 2.4: number (1) | for each a length and the name, a
// length, the number of unused bytes (1), the value and these | 0xff.
func (r *reader) zipmap(b []byte) (items [][]byte) {
	p := reader{b: b}
	for p.byte(); !p.bad && !bytes.Equal(p.b, []byte{0xff}); {
		name := p.take(p.zipmapLength())
		n := p.zipmapLength()
		unused := p.byte()
		items = append(items, name, p.take(n))
		p.take(uint64(unused))
	}
	if p.bad {
		r.fail()
	}
	return items
}

func (r *reader) zipmapLength() uint64 {
	switch c := r.byte(); c {
	case 0xfe:
		if b := r.take(4); b != nil {
			return uint64(binary.LittleEndian.Uint32(b))
		}
	case 0xff:
		r.fail()
	default:
		return uint64(c)
	}
	return 0
}
