package rdb

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// writer writes values.
type writer struct{ plain bool }

func (w writer) value(dst []byte, v *Value) []byte {
	//exhaustive:enforce
	switch v.Kind {
	case String:
		return w.text(append(dst, typeString), v.Text)
	case List:
		return w.texts(append(dst, typeList), v.Items, len(v.Items))
	case Set:
		return w.texts(append(dst, typeSet), v.Items, len(v.Items))
	case ZSet:
		dst = appendLength(append(dst, typeZSet), uint64(len(v.Items)))
		for i, m := range v.Items {
			dst = binary.LittleEndian.AppendUint64(w.text(dst, m), math.Float64bits(v.Scores[i]))
		}
		return dst
	case Hash:
		if v.Deadlines != nil {
			return w.fields(dst, v)
		}
		return w.texts(append(dst, typeHash), v.Items, len(v.Items)/2)
	case Stream:
		return w.stream(append(dst, typeStream2), v.Stream)
	}
	panic("rdb: a value of no kind") // invariant: whoever makes values sets it
}

// appendLength appends a length.
func appendLength(dst []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 0x40|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0x80), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0x81), n)
}

// text appends a string; a small integer as a number.
func (w writer) text(dst, s []byte) []byte {
	if n, ok := integer(s); ok {
		switch {
		case n == int64(int8(n)):
			return append(dst, 0xc0, byte(n))
		case n == int64(int16(n)):
			return binary.LittleEndian.AppendUint16(append(dst, 0xc0|encodedInt16), uint16(n))
		case n == int64(int32(n)):
			return binary.LittleEndian.AppendUint32(append(dst, 0xc0|encodedInt32), uint32(n))
		}
	}
	return w.raw(dst, s)
}

// raw appends bytes, compressed where that is shorter.
func (w writer) raw(dst, s []byte) []byte {
	if !w.plain && len(s) > 20 {
		if b := pack(s); b != nil {
			dst = appendLength(appendLength(append(dst, 0xc0|encodedLZF), uint64(len(b))), uint64(len(s)))
			return append(dst, b...)
		}
	}
	return append(appendLength(dst, uint64(len(s))), s...)
}

// integer returns the number that s spells as formatting it would.
func integer(s []byte) (int64, bool) {
	if len(s) == 0 || len(s) > 20 || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	var text [20]byte
	return n, err == nil && bytes.Equal(strconv.AppendInt(text[:0], n, 10), s)
}

func (w writer) texts(dst []byte, all [][]byte, n int) []byte {
	dst = appendLength(dst, uint64(n))
	for _, s := range all {
		dst = w.text(dst, s)
	}
	return dst
}

// fields appends a hash whose fields have deadlines: the earliest, then the others relative to it.
func (w writer) fields(dst []byte, v *Value) []byte {
	first := int64(math.MaxInt64)
	for _, ms := range v.Deadlines {
		if ms > 0 {
			first = min(first, ms)
		}
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, typeHashFields), uint64(first))
	dst = appendLength(dst, uint64(len(v.Deadlines)))
	for i, ms := range v.Deadlines {
		if ms > 0 {
			ms -= first - 1
		}
		dst = w.text(w.text(appendLength(dst, uint64(ms)), v.Items[2*i]), v.Items[2*i+1])
	}
	return dst
}

func appendID(dst []byte, id ID) []byte { return appendLength(appendLength(dst, id.Ms), id.Seq) }

func appendRawID(dst []byte, id ID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.Ms), id.Seq)
}

func (w writer) stream(dst []byte, s *StreamValue) []byte {
	var nodes []byte
	n := uint64(0)
	for rest := s.Entries; len(rest) > 0; n++ {
		nodes, rest = w.node(nodes, rest)
	}
	dst = append(appendLength(dst, n), nodes...)
	dst = appendLength(dst, uint64(len(s.Entries)))
	dst = appendID(appendID(appendID(dst, s.Last), s.First), s.Gone)
	dst = appendLength(dst, uint64(s.Added))
	dst = appendLength(dst, uint64(len(s.Groups)))
	for i := range s.Groups {
		dst = w.group(dst, &s.Groups[i])
	}
	return dst
}

// node appends a node of the first entries and returns the others.
func (w writer) node(dst []byte, all []Entry) (out []byte, rest []Entry) {
	n, size := 0, 0
	for n < len(all) && n < nodeEntries && (n == 0 || size < nodeBytes) {
		for _, s := range all[n].Fields {
			size += len(s)
		}
		n++
	}
	base := all[0]
	lp := listpack{b: make([]byte, 6, 6+size+16*n)}
	lp.number(int64(n))
	lp.number(0)
	lp.number(int64(len(base.Fields) / 2))
	for i := 0; i < len(base.Fields); i += 2 {
		lp.add(base.Fields[i])
	}
	lp.number(0)
	for i := range all[:n] {
		lp.entry(&base, &all[i])
	}
	dst = appendRawID(append(dst, 16), base.ID)
	b := lp.done()
	return w.raw(dst, b), all[n:]
}

// listpack builds a listpack.
type listpack struct {
	b []byte
	n int
}

// entry adds an entry of a node that begins with base.
func (l *listpack) entry(base, e *Entry) {
	same := len(e.Fields) == len(base.Fields)
	for i := 0; same && i < len(e.Fields); i += 2 {
		same = bytes.Equal(e.Fields[i], base.Fields[i])
	}
	flags, elements := int64(0), int64(4+len(e.Fields))
	if same {
		flags, elements = entrySame, int64(3+len(e.Fields)/2)
	}
	l.number(flags)
	l.number(int64(e.ID.Ms - base.ID.Ms))
	l.number(int64(e.ID.Seq - base.ID.Seq))
	if !same {
		l.number(int64(len(e.Fields) / 2))
	}
	for i, s := range e.Fields {
		if !same || i%2 == 1 {
			l.add(s)
		}
	}
	l.number(elements)
}

func (l *listpack) number(n int64) {
	start := len(l.b)
	switch {
	case n >= 0 && n < 128:
		l.b = append(l.b, byte(n))
	case n >= -4096 && n < 4096:
		l.b = append(l.b, 0xc0|byte(n>>8)&31, byte(n))
	case n == int64(int16(n)):
		l.b = binary.LittleEndian.AppendUint16(append(l.b, 0xf1), uint16(n))
	case n == n<<40>>40:
		l.b = append(l.b, 0xf2, byte(n), byte(n>>8), byte(n>>16))
	case n == int64(int32(n)):
		l.b = binary.LittleEndian.AppendUint32(append(l.b, 0xf3), uint32(n))
	default:
		l.b = binary.LittleEndian.AppendUint64(append(l.b, 0xf4), uint64(n))
	}
	l.end(start)
}

// add adds a string, as a number if it spells one.
func (l *listpack) add(s []byte) {
	if n, ok := integer(s); ok {
		l.number(n)
		return
	}
	start := len(l.b)
	switch n := len(s); {
	case n < 64:
		l.b = append(l.b, 0x80|byte(n))
	case n < 4096:
		l.b = append(l.b, 0xe0|byte(n>>8), byte(n))
	default:
		l.b = binary.LittleEndian.AppendUint32(append(l.b, 0xf0), uint32(n))
	}
	l.b = append(l.b, s...)
	l.end(start)
}

// end ends an element that begins at start, with its length.
func (l *listpack) end(start int) {
	n := len(l.b) - start
	size := backLength(n)
	for i := size - 1; i >= 0; i-- {
		c := byte(n>>(7*i)) & 127
		if i < size-1 {
			c |= 128
		}
		l.b = append(l.b, c)
	}
	l.n++
}

func (l *listpack) done() []byte {
	l.b = append(l.b, 0xff)
	binary.LittleEndian.PutUint32(l.b, uint32(len(l.b)))
	binary.LittleEndian.PutUint16(l.b[4:], uint16(min(l.n, math.MaxUint16)))
	return l.b
}

func (w writer) group(dst []byte, g *Group) []byte {
	dst = appendID(w.text(dst, g.Name), g.Last)
	dst = appendLength(dst, uint64(g.Read))
	var all []Pending
	for _, c := range g.Consumers {
		all = append(all, c.Pending...)
	}
	slices.SortFunc(all, func(x, y Pending) int {
		if x.ID.Less(y.ID) {
			return -1
		}
		return 1
	})
	dst = appendLength(dst, uint64(len(all)))
	for _, p := range all {
		dst = binary.LittleEndian.AppendUint64(appendRawID(dst, p.ID), uint64(p.Time))
		dst = appendLength(dst, uint64(p.Count))
	}
	dst = appendLength(dst, uint64(len(g.Consumers)))
	for _, c := range g.Consumers {
		dst = binary.LittleEndian.AppendUint64(w.text(dst, c.Name), uint64(c.Seen))
		dst = appendLength(dst, uint64(len(c.Pending)))
		for _, p := range c.Pending {
			dst = appendRawID(dst, p.ID)
		}
	}
	return dst
}
