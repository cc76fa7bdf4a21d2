package rdb

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// The types of values in the format.
const (
	typeString = iota
	typeList
	typeSet
	typeZSetText
	typeHash
	typeZSet
	_ // modules, before their release
	_ // modules
	_
	typeHashZipmap
	typeListZiplist
	typeSetIntset
	typeZSetZiplist
	typeHashZiplist
	typeListQuicklist
	typeStream
	typeHashListpack
	typeZSetListpack
	typeListQuicklist2
	typeStream2
	typeSetListpack
	typeStream3
	_ // hashes with deadlines, before their release
	_
	typeHashFields
	typeHashFieldsListpack
)

// Special lengths: the two upper bits are 11.
const (
	encodedInt8 = iota
	encodedInt16
	encodedInt32
	encodedLZF
)

// reader reads a value from b, or from a file. The first mistake makes bad true and leaves nothing to read.
type reader struct {
	b    []byte
	file *source // nil: b is all there is
	bad  bool

	empty bool // it failed because a collection has no elements
}

func (r *reader) fail() {
	r.b, r.bad = nil, true
}

// take returns the next n bytes, nil if they are not there.
func (r *reader) take(n uint64) []byte {
	if r.file != nil && !r.bad {
		out := r.file.take(n)
		if out == nil {
			r.fail()
		}
		return out
	}
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// size reads a length; special says that it is the number of a special encoding.
func (r *reader) size() (n uint64, special bool) {
	c := r.byte()
	switch c >> 6 {
	case 0:
		return uint64(c), false
	case 1:
		return uint64(c&63)<<8 | uint64(r.byte()), false
	case 3:
		return uint64(c & 63), true
	}
	switch c {
	case 0x80:
		if b := r.take(4); b != nil {
			return uint64(binary.BigEndian.Uint32(b)), false
		}
	case 0x81:
		if b := r.take(8); b != nil {
			return binary.BigEndian.Uint64(b), false
		}
	default:
		r.fail()
	}
	return 0, false
}

func (r *reader) length() uint64 {
	n, special := r.size()
	if special {
		r.fail()
		return 0
	}
	return n
}

// signed reads a length that is kept as int64.
func (r *reader) signed() int64 { return int64(r.length()) }

// count reads how many elements follow, each of at least min bytes.
func (r *reader) count(least int) int {
	n := r.length()
	if r.file != nil && n <= 1<<29 {
		return int(n) // what is not there will be missed
	}
	if n > uint64(len(r.b)/least) {
		r.fail()
		return 0
	}
	return int(n)
}

// room is how many of n announced elements to make room for: those of a file may not be there.
func (r *reader) room(n int) int {
	if r.file != nil {
		return min(n, 1<<12)
	}
	return n
}

// text reads a string.
func (r *reader) text() []byte {
	n, special := r.size()
	if !special {
		return r.take(n)
	}
	switch n {
	case encodedInt8:
		return decimal(int64(int8(r.byte())))
	case encodedInt16:
		if b := r.take(2); b != nil {
			return decimal(int64(int16(binary.LittleEndian.Uint16(b))))
		}
	case encodedInt32:
		if b := r.take(4); b != nil {
			return decimal(int64(int32(binary.LittleEndian.Uint32(b))))
		}
	case encodedLZF:
		packed, size := r.length(), r.length()
		if out, ok := unpack(r.take(packed), size); ok {
			return out
		}
		r.fail()
	default:
		r.fail()
	}
	return nil
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// value reads the type and the value.
func (r *reader) value() (v Value) {
	if t := r.byte(); !r.bad {
		return r.valueOf(t)
	}
	return v
}

// valueOf reads a value of type t.
func (r *reader) valueOf(t byte) (v Value) {
	switch t {
	case typeString:
		return Value{Kind: String, Text: r.text()}
	case typeList, typeListZiplist, typeListQuicklist, typeListQuicklist2:
		v = Value{Kind: List, Items: r.list(t)}
	case typeSet, typeSetIntset, typeSetListpack:
		v = Value{Kind: Set, Items: r.set(t)}
		r.distinct(v.Items, 1)
	case typeZSetText, typeZSet, typeZSetZiplist, typeZSetListpack:
		v = r.zset(t)
		r.distinct(v.Items, 1)
	case typeHash, typeHashZipmap, typeHashZiplist, typeHashListpack, typeHashFields, typeHashFieldsListpack:
		v = r.hash(t)
		r.distinct(v.Items, 2)
	case typeStream, typeStream2, typeStream3:
		return Value{Kind: Stream, Stream: r.stream(t)}
	default:
		r.fail()
	}
	if len(v.Items) == 0 && !r.bad { // Redis has no empty collections
		r.fail()
		r.empty = true
	}
	return v
}

// distinct refuses an element that is there twice, looking at every step-th item.
func (r *reader) distinct(items [][]byte, step int) {
	seen := make(map[string]struct{}, len(items)/step)
	for i := 0; i < len(items); i += step {
		seen[string(items[i])] = struct{}{}
	}
	if len(seen) != len(items)/step {
		r.fail()
	}
}

// texts reads n strings.
func (r *reader) texts(n int) [][]byte {
	out := make([][]byte, 0, r.room(n))
	for range n {
		if r.bad {
			return nil
		}
		out = append(out, r.text())
	}
	return out
}

func (r *reader) list(t byte) (items [][]byte) {
	switch t {
	case typeList:
		return r.texts(r.count(1))
	case typeListZiplist:
		return r.ziplist(nil, r.text())
	}
	for n := r.count(1); n > 0 && !r.bad; n-- {
		plain := t == typeListQuicklist2 && r.length() == 1
		node := r.text()
		switch {
		case r.bad:
		case plain:
			items = append(items, node)
		case t == typeListQuicklist:
			items = r.ziplist(items, node)
		default:
			items = r.listpack(items, node)
		}
	}
	return items
}

func (r *reader) set(t byte) [][]byte {
	switch t {
	case typeSet:
		return r.texts(r.count(1))
	case typeSetListpack:
		return r.listpack(nil, r.text())
	}
	return r.intset(r.text())
}

// intset reads integers: size of one (4) | their number (4) | little-endian numbers.
func (r *reader) intset(b []byte) (items [][]byte) {
	if len(b) < 8 {
		r.fail()
		return nil
	}
	size, n := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	if size != 2 && size != 4 && size != 8 || n*size != uint64(len(b)) {
		r.fail()
		return nil
	}
	items = make([][]byte, 0, n)
	for ; len(b) > 0; b = b[size:] {
		items = append(items, decimal(signedLE(b[:size])))
	}
	return items
}

// signedLE reads a little-endian number of up to 8 bytes.
func signedLE(b []byte) (n int64) {
	for _, v := range slices.Backward(b) {
		n = n<<8 | int64(v)
	}
	shift := 64 - 8*len(b)
	return n << shift >> shift
}

func (r *reader) zset(t byte) Value {
	v := Value{Kind: ZSet}
	switch t {
	case typeZSetZiplist, typeZSetListpack:
		var pairs [][]byte
		if t == typeZSetListpack {
			pairs = r.listpack(nil, r.text())
		} else {
			pairs = r.ziplist(nil, r.text())
		}
		if len(pairs)%2 != 0 {
			r.fail()
			return v
		}
		for i := 0; i < len(pairs); i += 2 {
			v.Items = append(v.Items, pairs[i])
			v.Scores = append(v.Scores, r.number(pairs[i+1]))
		}
		return v
	}
	least := 2
	if t == typeZSet {
		least = 9
	}
	n := r.count(least)
	v.Items, v.Scores = make([][]byte, 0, r.room(n)), make([]float64, 0, r.room(n))
	for ; n > 0 && !r.bad; n-- {
		v.Items = append(v.Items, r.text())
		if t == typeZSet {
			v.Scores = append(v.Scores, r.score(math.Float64frombits(r.uint64())))
		} else {
			v.Scores = append(v.Scores, r.scoreText())
		}
	}
	return v
}

// score refuses what is no number.
func (r *reader) score(f float64) float64 {
	if math.IsNaN(f) {
		r.fail()
	}
	return f
}

// number reads a score that is written out.
func (r *reader) number(b []byte) float64 {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) {
		r.fail()
	}
	return r.score(f)
}

// scoreText reads a score of the old form: a length byte and text, or one of three special lengths.
func (r *reader) scoreText() float64 {
	switch n := r.byte(); n {
	case 253:
		r.fail()
		return 0
	case 254:
		return math.Inf(1)
	case 255:
		return math.Inf(-1)
	default:
		return r.number(r.take(uint64(n)))
	}
}

func (r *reader) hash(t byte) Value {
	v := Value{Kind: Hash}
	switch t {
	case typeHash:
		v.Items = r.texts(2 * r.count(2))
	case typeHashZipmap:
		v.Items = r.zipmap(r.text())
	case typeHashZiplist:
		v.Items = r.ziplist(nil, r.text())
	case typeHashListpack:
		v.Items = r.listpack(nil, r.text())
	case typeHashFields:
		r.hashFields(&v)
	default:
		r.take(8) // the earliest deadline
		all := r.listpack(nil, r.text())
		if len(all)%3 != 0 {
			r.fail()
			return v
		}
		for ; len(all) > 0; all = all[3:] {
			ms, err := strconv.ParseInt(string(all[2]), 10, 64)
			if err != nil || ms < 0 {
				r.fail()
			}
			v.Items = append(v.Items, all[0], all[1])
			v.Deadlines = append(v.Deadlines, ms)
		}
	}
	if len(v.Items)%2 != 0 {
		r.fail()
	}
	return v
}

// hashFields reads fields with deadlines, relative to the earliest, which comes first.
func (r *reader) hashFields(v *Value) {
	first := int64(r.uint64())
	n := r.count(3)
	for ; n > 0 && !r.bad; n-- {
		ms := r.signed()
		if ms > 0 {
			ms += first - 1
		}
		if ms < 0 || first < 0 {
			r.fail()
		}
		v.Deadlines = append(v.Deadlines, ms)
		v.Items = append(v.Items, r.text(), r.text())
	}
}
