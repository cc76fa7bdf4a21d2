package feed

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
)

// fakeShard is a frozen shard of string keys in order; it counts what it is asked for.
type fakeShard struct {
	keys    []string
	visited int
	closed  int
	err     error // of Close
}

func (s *fakeShard) Cursor() log.Cursor                              { return log.Cursor{Generation: 7, Offset: 9} }
func (s *fakeShard) RebuildLibraries(func(*effect.Effect) bool) bool { return true }
func (s *fakeShard) Close() error                                    { s.closed++; return s.err }

func (s *fakeShard) RebuildFrom(start []byte, f func(e *effect.Effect, last bool) bool) {
	for _, k := range s.keys {
		if k < string(start) {
			continue
		}
		s.visited++
		if !f(&effect.Effect{Op: effect.Set, Args: [][]byte{[]byte(k), []byte("v")}}, true) {
			return
		}
	}
}

// brokenShard ends in a panic.
type brokenShard struct{ fakeShard }

func (s *brokenShard) RebuildFrom([]byte, func(*effect.Effect, bool) bool) { panic("broken") }

// TestScanClosesAfterPanic: a view that stayed open would keep the memory of all that changes from then on.
func TestScanClosesAfterPanic(t *testing.T) {
	b, s := newBed(t, log.Options{}, true), &brokenShard{}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		b.f.Scan([][]byte{[]byte("FEED.SCAN"), []byte("0"), nil}, &resp.Writer{}, func(int) (Frozen, error) { return s, nil })
	}()
	if s.closed != 1 {
		t.Errorf("closed %d times", s.closed)
	}
}

func scanFake(t *testing.T, s *fakeShard, line string) string {
	t.Helper()
	b := newBed(t, log.Options{}, true)
	args := [][]byte{[]byte("FEED.SCAN"), []byte("0")}
	for w := range strings.SplitSeq(line, " ") {
		args = append(args, []byte(w))
	}
	w := resp.Writer{Buf: []byte("before|")}
	b.f.Scan(args, &w, func(int) (Frozen, error) { return s, nil })
	return strings.TrimPrefix(strings.ReplaceAll(string(w.Buf), "\r\n", " "), "before|")
}

// TestScanSeeks: the cost of a scan by prefixes is their keys and one more for each, wherever it starts.
func TestScanSeeks(t *testing.T) {
	s := &fakeShard{}
	for i := range 10_000 {
		s.keys = append(s.keys, fmt.Sprintf("key:%05d", i))
	}
	for line, want := range map[string]struct{ frames, visited int }{
		" PREFIX key:0001 PREFIX key:0777":                           {20, 22},
		"key:07775 PREFIX key:0001 PREFIX key:0777 PREFIX key:09999": {6, 8},
		" COUNT 3 PREFIX key:0777 PREFIX key:0001 PREFIX key:00019":  {3, 4},
		"key:08 PREFIX key:0001 PREFIX key:0777":                     {0, 2},
		" PREFIX none":                                               {0, 0},
		"key:05000 COUNT 10":                                         {10, 11},
	} {
		s.visited, s.closed = 0, 0
		got := scanFake(t, s, line)
		if n := strings.Count(got, "$3 SET"); n != want.frames || s.visited != want.visited || s.closed != 1 {
			t.Errorf("%q: %d frames, %d keys visited, closed %d times; want %+v", line, n, s.visited, s.closed, want)
		}
	}
	if got := scanFake(t, s, "key:07775 COUNT 1 PREFIX key:0777 PREFIX key:09999"); got != "*4 :7 :9 $9 key:07776 *1 *3 $3 SET $9 key:07775 $1 v " {
		t.Errorf("%q", got)
	}
	if got := scanFake(t, s, "key:07779 COUNT 1 PREFIX key:0777 PREFIX key:09999"); !strings.HasPrefix(got, "*4 :7 :9 $9 key:09999 *1 ") {
		t.Errorf("the next key has another prefix: %q", got)
	}
	if got := scanFake(t, s, "key:09999 COUNT 1"); !strings.HasPrefix(got, "*4 :7 :9 $0  *1 ") {
		t.Errorf("the last key: %q", got)
	}
}

// TestScanUnsafe: a state that cannot become safe does not leave, nor a part of it.
func TestScanUnsafe(t *testing.T) {
	s := &fakeShard{keys: []string{"a"}, err: errors.New("MISCONF the disk")}
	if got := scanFake(t, s, " COUNT 5"); got != "-MISCONF the disk " {
		t.Errorf("%q", got)
	}
}

func TestRanges(t *testing.T) {
	for in, want := range map[string]string{
		"b,a": "a b", "a,a": "a", "ab,a,abc,b": "a b", ",a": "", "a,aa,ab,b,ba": "a b", "aa,ab": "aa ab",
	} {
		var prefixes [][]byte
		for p := range strings.SplitSeq(in, ",") {
			prefixes = append(prefixes, []byte(p))
		}
		if got := string(bytes.Join(ranges(prefixes), []byte(" "))); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
