package rdb

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func texts(s ...string) (all [][]byte) {
	for _, x := range s {
		all = append(all, []byte(x))
	}
	return all
}

// ziplistOf builds a ziplist of encoded elements.
func ziplistOf(n int, elements ...string) string {
	body := strings.Join(elements, "")
	b := binary.LittleEndian.AppendUint32(nil, uint32(11+len(body)))
	b = binary.LittleEndian.AppendUint32(b, 10)
	b = binary.LittleEndian.AppendUint16(b, uint16(n))
	return string(b) + body + "\xff"
}

// listpackOf builds a listpack of encoded elements with their lengths.
func listpackOf(n int, elements ...string) string {
	body := strings.Join(elements, "")
	b := binary.LittleEndian.AppendUint32(nil, uint32(7+len(body)))
	b = binary.LittleEndian.AppendUint16(b, uint16(n))
	return string(b) + body + "\xff"
}

func text(s string) string { return string(appendLength(nil, uint64(len(s)))) + s }

var everyZiplist = ziplistOf(9, "\x00\x01a", "\x03\xf1", "\x02\xfd", "\x02\xfe\xff", "\x03\xc0\x00\x80", "\x04\xf0\x01\x00\x80",
	"\x05\xd0\xff\xff\xff\x7f", "\x06\xe0\x00\x00\x00\x00\x00\x00\x00\x80", "\xfe\x0a\x00\x00\x00\x40\x03xyz")

var everyListpack = listpackOf(9, "\x7f\x01", "\x81a\x02", "\xdf\xff\x02", "\xe0\x02xy\x04", "\xf1\x00\x80\x03", "\xf2\x00\x00\x80\x04", "\xf3\xff\xff\xff\x7f\x05",
	"\xf4\x00\x00\x00\x00\x00\x00\x00\x80\x09", "\xf0\x01\x00\x00\x00z\x06")

// TestEncodings reads every encoding, those of old versions too.
func TestEncodings(t *testing.T) {
	zip := texts("a", "0", "12", "-1", "-32768", "-8388607", "2147483647", "-9223372036854775808", "xyz")
	pack := texts("127", "a", "-1", "xy", "-32768", "-8388608", "2147483647", "-9223372036854775808", "z")
	for name, c := range map[string]struct {
		body string
		want Value
	}{
		"text":        {"\x00\x03foo", Value{Text: []byte("foo")}},
		"long text":   {"\x00\x40\x03foo", Value{Text: []byte("foo")}},
		"longer":      {"\x00\x80\x00\x00\x00\x03foo", Value{Text: []byte("foo")}},
		"longest":     {"\x00\x81\x00\x00\x00\x00\x00\x00\x00\x03foo", Value{Text: []byte("foo")}},
		"int8":        {"\x00\xc0\xfe", Value{Text: []byte("-2")}},
		"int16":       {"\x00\xc1\x00\x80", Value{Text: []byte("-32768")}},
		"int32":       {"\x00\xc2\x00\x00\x00\x80", Value{Text: []byte("-2147483648")}},
		"lzf":         {"\x00\xc3\x05\x0a\x00a\xe0\x00\x00", Value{Text: []byte(strings.Repeat("a", 10))}},
		"list":        {"\x01\x02\x01a\xc0\x05", Value{Kind: List, Items: texts("a", "5")}},
		"ziplist":     {"\x0a" + text(everyZiplist), Value{Kind: List, Items: zip}},
		"quicklist":   {"\x0e\x02" + text(ziplistOf(1, "\x00\x01a")) + text(everyZiplist), Value{Kind: List, Items: append(texts("a"), zip...)}},
		"quicklist 2": {"\x12\x02\x02" + text(everyListpack) + "\x01\x01p", Value{Kind: List, Items: append(append([][]byte{}, pack...), []byte("p"))}},
		"set":         {"\x02\x01\x01a", Value{Kind: Set, Items: texts("a")}},
		"intset 16":   {"\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\xff\xff\x01\x00", Value{Kind: Set, Items: texts("-1", "1")}},
		"intset 64":   {"\x0b\x10\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80", Value{Kind: Set, Items: texts("-9223372036854775808")}},
		"set lp":      {"\x14" + text(everyListpack), Value{Kind: Set, Items: pack}},
		"zset text":   {"\x03\x03\x01a\x031.5\x01b\xfe\x01c\xff", Value{Kind: ZSet, Items: texts("a", "b", "c"), Scores: []float64{1.5, math.Inf(1), math.Inf(-1)}}},
		"zset":        {"\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x3f", Value{Kind: ZSet, Items: texts("a"), Scores: []float64{1.5}}},
		"zset zip":    {"\x0c" + text(ziplistOf(2, "\x00\x01a", "\x03\xf3")), Value{Kind: ZSet, Items: texts("a"), Scores: []float64{2}}},
		"zset lp":     {"\x11" + text(listpackOf(2, "\x81a\x02", "\x831.5\x04")), Value{Kind: ZSet, Items: texts("a"), Scores: []float64{1.5}}},
		"hash":        {"\x04\x01\x01f\x01v", Value{Kind: Hash, Items: texts("f", "v")}},
		"zipmap":      {"\x09" + text("\x02\x03foo\x03\x00bar\x05hello\x05\x02world..\xff"), Value{Kind: Hash, Items: texts("foo", "bar", "hello", "world")}},
		"hash zip":    {"\x0d" + text(ziplistOf(2, "\x00\x01a", "\x03\xf3")), Value{Kind: Hash, Items: texts("a", "2")}},
		"hash lp":     {"\x10" + text(listpackOf(2, "\x81a\x02", "\x05\x01")), Value{Kind: Hash, Items: texts("a", "5")}},
		"hash lp due": {"\x19\x07\x00\x00\x00\x00\x00\x00\x00" + text(listpackOf(3, "\x81a\x02", "\x05\x01", "\x07\x01")), Value{Kind: Hash, Items: texts("a", "5"), Deadlines: []int64{7}}},
		"hash due":    {"\x18\x07\x00\x00\x00\x00\x00\x00\x00\x02\x01\x01a\x01b\x00\x01c\x01d", Value{Kind: Hash, Items: texts("a", "b", "c", "d"), Deadlines: []int64{7, 0}}},
	} {
		got, err := Decode(Seal([]byte(c.body)))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v %+v, want %+v", name, err, got, c.want)
		}
		again, err := Decode(Append(nil, &c.want, false))
		if err != nil || !reflect.DeepEqual(again, c.want) {
			t.Errorf("%s: written and read again: %v %+v", name, err, again)
		}
		for cut := range c.body {
			if v, err := Decode(Seal([]byte(c.body[:cut]))); err == nil {
				t.Errorf("%s cut at %d: %+v", name, cut, v)
			}
		}
	}
}

func TestDamage(t *testing.T) {
	for name, body := range map[string]string{
		"module": "\x07\x00", "unknown type": "\x1a", "empty list": "\x01\x00", "empty set": "\x0b\x08\x02\x00\x00\x00\x00\x00\x00\x00",
		"member twice": "\x02\x02\x01a\x01a", "field twice": "\x04\x02\x01a\x01a\x01a\x01b", "NaN": "\x05\x01\x01a\x01\x00\x00\x00\x00\x00\xf8\x7f", "NaN text": "\x03\x01\x01a\xfd",
		"huge count": "\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff", "huge length": "\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff", "huge lzf": "\x00\xc3\x01\x80\x7f\xff\xff\xffa",
		"lzf before the start": "\x00\xc3\x02\x03\x20\x05", "odd hash": "\x10" + text(listpackOf(1, "\x05\x01")),
	} {
		if v, err := Decode(Seal([]byte(body))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v %+v", name, err, v)
		}
	}
	good := Append(nil, &Value{Text: []byte("v")}, false)
	for i := range good {
		bad := append([]byte{}, good...)
		bad[i] ^= 1
		if _, err := Decode(bad); !errors.Is(err, ErrVersion) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	newer := binary.LittleEndian.AppendUint16([]byte("\x00\x01v"), maxVersion+1)
	if _, err := Decode(binary.LittleEndian.AppendUint64(newer, checksum(newer))); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
}

func TestChecksum(t *testing.T) {
	if got := checksum([]byte("123456789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("%x", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x0a" + text(everyZiplist)))
	f.Add([]byte("\x14" + text(everyListpack)))
	f.Add([]byte("\x09" + text("\x02\x03foo\x03\x00bar\xff")))
	f.Add(writer{}.value(nil, &Value{Kind: Stream, Stream: &StreamValue{
		Entries: []Entry{{ID{1, 1}, texts("a", "b")}, {ID{1, 2}, texts("c", "-5")}}, Last: ID{1, 2}, First: ID{1, 1}, Added: 2,
		Groups: []Group{{Name: []byte("g"), Read: -1, Consumers: []Consumer{{Name: []byte("c"), Pending: []Pending{{ID{1, 1}, 5, 1}}}}}},
	}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := Decode(Seal(body))
		if err != nil {
			return
		}
		again, err := Decode(Append(nil, &v, false))
		if err != nil {
			t.Fatalf("our own payload of %+v: %v", v, err)
		}
		if v.Kind == ZSet || v.Kind == Stream {
			return // -0 and 0, nil and empty
		}
		if len(v.Text)+len(v.Items) > 0 && !reflect.DeepEqual(v.Items, again.Items) {
			t.Fatalf("%+v\n%+v", v, again)
		}
	})
}
