package rdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// fileOf builds a file of a version around records, with its checksum.
func fileOf(version int, records string) []byte {
	b := fmt.Appendf(nil, "REDIS%04d%s\xff", version, records)
	if version < checksumSince {
		return b
	}
	return binary.LittleEndian.AppendUint64(b, checksum(b))
}

const oddRecords = "\xfa\x09redis-ver\x057.0.0" + "\xfe\x00\xfb\x02\x01" + "\xf4\x01\x02\x00" +
	"\xfc\x10\x27\x00\x00\x00\x00\x00\x00\xf8\x05\x00\x01a\x01x" + // a: a deadline in ms, idle
	"\xfd\x0a\x00\x00\x00\xf9\x07\x02\x01b\x02\x01m\x01n" + // b: a deadline in s, a counter, a set
	"\x01\x05empty\x00" + // an empty list
	"\xf5\x04code" + "\xfe\x03\x00\x01c\xc0\x05" // functions; database 3

func readAll(in io.Reader) (f *File, got []string, err error) {
	if f, err = NewFile(bufio.NewReader(in)); err != nil {
		return nil, nil, err
	}
	for {
		r, err := f.Next()
		if errors.Is(err, io.EOF) {
			return f, got, nil
		}
		if err != nil {
			return f, got, err
		}
		line := fmt.Sprintf("%d %q %q %d %d %d", r.DB, r.Function, r.Key, r.Deadline, r.Idle, r.Freq)
		if r.Function == nil {
			v, err := Decode(r.Payload)
			if err != nil || v.Kind != r.Kind {
				return f, got, fmt.Errorf("the payload of %q: %w", r.Key, err)
			}
			line += fmt.Sprintf(" %q %q", v.Text, v.Items)
		}
		got = append(got, line)
	}
}

func TestFile(t *testing.T) {
	want := []string{
		`0 "" "a" 10000 5 -1 "x" []`,
		`0 "" "b" 10000 -1 7 "" ["m" "n"]`,
		`0 "code" "" 0 -1 -1`,
		`3 "" "c" 0 -1 -1 "5" []`,
	}
	for _, version := range []int{1, 4, 5, 9, 10, 11, 12} {
		b := fileOf(version, oddRecords)
		f, got, err := readAll(iotest.OneByteReader(bytes.NewReader(b)))
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("version %d: %v\n%s", version, err, strings.Join(got, "\n"))
		}
		if f.Version() != version || f.Aux()["redis-ver"] != "7.0.0" || f.Empty() != 1 || f.Offset() != int64(len(b)) {
			t.Errorf("version %d, %v, %d empty, %d bytes of %d", f.Version(), f.Aux(), f.Empty(), f.Offset(), len(b))
		}
	}
	zeroed := fileOf(9, oddRecords)
	copy(zeroed[len(zeroed)-8:], make([]byte, 8)) // rdbchecksum no
	if _, _, err := readAll(bytes.NewReader(zeroed)); err != nil {
		t.Error(err)
	}
}

// TestFileBad: whatever is missing or changed is an error with a place.
func TestFileBad(t *testing.T) {
	good := fileOf(10, oddRecords)
	for n := range good {
		_, _, err := readAll(bytes.NewReader(good[:n]))
		if bad := (*FileError)(nil); !errors.As(err, &bad) || !errors.Is(err, io.ErrUnexpectedEOF) || bad.Offset > int64(n) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	for i := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if _, got, err := readAll(bytes.NewReader(bad)); err == nil && i/8 > 8 {
			t.Fatalf("bit %d of byte %d flipped: %q", i%8, i/8, got)
		}
	}
	for name, c := range map[string]struct {
		file  []byte
		class error
		text  string
	}{
		"version":   {fileOf(99, ""), ErrVersion, "versions 1 to 12"},
		"no RDB":    {[]byte("*3\r\n$3\r\nSET"), ErrFormat, "no RDB file"},
		"module":    {fileOf(10, "\x07\x01k\x81aaaaaaaa"), ErrFormat, `byte 12: key "k", whose record begins at byte 9: a value of a module`},
		"aux":       {fileOf(10, "\xf7\x81aaaaaaaa"), ErrFormat, "data of a module"},
		"functions": {fileOf(10, "\xf6\x01a"), ErrFormat, "before 7.0's release"},
		"type":      {fileOf(10, "\x63\x01k"), ErrFormat, "unknown type 99"},
		"twice":     {fileOf(10, "\x02\x01k\x02\x01a\x01a"), ErrFormat, "bad data in its value of type 2"},
		"length":    {fileOf(10, "\x00\x01k\x81\x00\x00\x00\x00\xff\xff\xff\xff"), io.ErrUnexpectedEOF, "ends within"},
		"count":     {fileOf(10, "\x02\x01k\x80\x1f\xff\xff\xff"), ErrFormat, "bad data in its value"},
		"after an empty one": {
			fileOf(10, "\x01\x05empty\x00"+"\x14\x01k\x07\x07\x00\x00\x00\x09\x00\xff"),
			ErrFormat, `key "k", whose record begins at byte 17: bad data in its value of type 20`,
		},
		"checksum": {append(fileOf(10, "")[:10], "12345678"...), ErrFormat, "checksum"},
	} {
		if _, _, err := readAll(bytes.NewReader(c.file)); !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFileWriter: what is written is read again, in pieces of any length.
func TestFileWriter(t *testing.T) {
	values := []Value{
		{Kind: String, Text: []byte(strings.Repeat("long ", 200_000))},
		{Kind: List, Items: [][]byte{[]byte("a"), []byte("12")}},
		{Kind: Hash, Items: [][]byte{[]byte("f"), []byte("v")}, Deadlines: []int64{1 << 41}},
		{Kind: ZSet, Items: [][]byte{[]byte("m")}, Scores: []float64{1.5}},
	}
	var out bytes.Buffer
	w := NewFileWriter(&out, "redis-ver", "7.2.0", "n", "12")
	err := w.Function([]byte("code"))
	for i := range values {
		err = errors.Join(err, w.Key(fmt.Append(nil, "key", i), int64(i)*1000, &values[i]))
	}
	if err = errors.Join(err, w.End()); err != nil {
		t.Fatal(err)
	}
	f, got, err := readAll(iotest.HalfReader(&out))
	if err != nil || len(got) != 5 || f.Aux()["n"] != "12" || f.Version() != 10 {
		t.Fatal(err, len(got), f)
	}
	for i, want := range []string{
		`0 "code" "" 0 -1 -1`, `0 "" "key0" 0 -1 -1 "long `, `0 "" "key1" 1000 -1 -1 "" ["a" "12"]`, `0 "" "key2" 2000 -1 -1 "" ["f" "v"]`, `0 "" "key3" 3000 -1 -1 "" ["m"]`,
	} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("%.80s\nwant %s", got[i], want)
		}
	}
}

// FuzzFile: a file is read or refused, whatever the pieces it comes in; the payloads of what is read can be decoded.
func FuzzFile(f *testing.F) {
	f.Add(fileOf(10, oddRecords))
	f.Add(fileOf(3, oddRecords))
	f.Add(fileOf(11, "\x0f\x01k"+text("x")))
	for _, body := range []string{everyZiplist, everyListpack} {
		f.Add(fileOf(11, "\x0a\x01z"+text(body)))
		f.Add(fileOf(11, "\x10\x01h"+text(body)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(b); n > 18 { // most changes would only be a wrong checksum
			copy(b[n-8:], make([]byte, 8))
		}
		_, one, err := readAll(bytes.NewReader(b))
		_, two, err2 := readAll(iotest.HalfReader(bytes.NewReader(b)))
		if strings.Join(one, "\n") != strings.Join(two, "\n") || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("%v %q\n%v %q", err, one, err2, two)
		}
		if bad := (*FileError)(nil); err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
	})
}
