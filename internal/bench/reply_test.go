package bench

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// readers returns the text at once and byte by byte, with buffers small and large.
func readers(text string) []*replies {
	return []*replies{
		newReplies(strings.NewReader(text), 4096),
		newReplies(strings.NewReader(text), 4),
		newReplies(iotest.OneByteReader(strings.NewReader(text)), 4096),
		newReplies(iotest.OneByteReader(strings.NewReader(text)), 1),
	}
}

func TestReplies(t *testing.T) {
	for _, tc := range []struct {
		text string
		want any
		err  error
	}{
		{text: "+OK\r\n", want: "OK"},
		{text: ":-42\r\n", want: int64(-42)},
		{text: "$5\r\na\r\nbc\r\n", want: "a\r\nbc"},
		{text: "$0\r\n\r\n", want: ""},
		{text: "$-1\r\n"},
		{text: "*-1\r\n"},
		{text: "*3\r\n:1\r\n*2\r\n$1\r\nx\r\n+y\r\n$-1\r\n", want: []any{int64(1), []any{"x", "y"}, nil}},
		{text: "-ERR no\r\n", err: ReplyError("ERR no")},
		{text: "*2\r\n:1\r\n-ERR no\r\n", err: ReplyError("ERR no")},
		{text: "$5\r\nab", err: io.ErrUnexpectedEOF},
		{text: "*2\r\n:1\r\n", err: io.ErrUnexpectedEOF},
		{text: "", err: io.ErrUnexpectedEOF},
		{text: "\r\n", err: errReply},
		{text: "+OK\n", err: errReply},
		{text: "?1\r\n", err: errReply},
		{text: ":x\r\n", err: errReply},
		{text: ":\r\n", err: errReply},
		{text: "$99999999999\r\n", err: errReply},
		{text: ":99999999999999999999999\r\n", err: errReply},
		{text: strings.Repeat("*1\r\n", 50) + ":1\r\n", err: errReply, want: "deep"},
	} {
		for i, r := range readers(tc.text + "+next\r\n") {
			if errors.Is(tc.err, io.ErrUnexpectedEOF) {
				r = readers(tc.text)[i]
			}
			got, err := r.value(0)
			if !errors.Is(err, tc.err) || err == nil && !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%q, reader %d: %v, %v; want %v, %v", tc.text, i, got, err, tc.want, tc.err)
			}
		}
		if tc.want == "deep" { // skip needs no stack
			continue
		}
		for i, r := range readers(tc.text) {
			if err := r.skip(); !errors.Is(err, tc.err) || err == nil && r.lo != r.hi {
				t.Errorf("skip %q, reader %d: %v, %d bytes left; want %v", tc.text, i, err, r.hi-r.lo, tc.err)
			}
		}
	}
}

func TestTemplates(t *testing.T) {
	set := newTemplate("SET", "key:"+placeholder, "v")
	mset := newTemplate("MSET", "key:"+placeholder, "a", "key:"+placeholder, "b")
	n := uint64(999)
	next := func() uint64 { n++; return n }
	out := set.appendTo([]byte("x"), next, 1000)
	out = mset.appendTo(out, next, 0)
	want := "x*3\r\n$3\r\nSET\r\n$16\r\nhit:000000001000\r\n$1\r\nv\r\n" +
		"*5\r\n$4\r\nMSET\r\n$16\r\nkey:000000001001\r\n$1\r\na\r\n$16\r\nkey:000000001002\r\n$1\r\nb\r\n"
	if string(out) != want {
		t.Errorf("got  %q\nwant %q", out, want)
	}
}

func TestStat(t *testing.T) {
	const line = "42 (a ) b) S 1 42 42 0 -1 4194560 9 0 0 0 123 45 0 0 20 0 5 0 100 1 1"
	if got, err := parseStat([]byte(line)); err != nil || got != 168*clockTick {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "42 (x) S 1 2", strings.Replace(line, "123", "?", 1), strings.Replace(line, " 45", " -1", 1)} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
