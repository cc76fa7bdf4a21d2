package wire

import (
	"errors"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct{ raw, shown string }{
		{"+OK\r\n", "+OK"},
		{"-ERR x y\r\n", "-ERR x y"},
		{":-5\r\n", ":-5"},
		{"$3\r\na b\r\n", `$"a b"`},
		{"$0\r\n\r\n", `$""`},
		{"$-1\r\n", "$nil"},
		{"*-1\r\n", "*nil"},
		{"_\r\n", "_nil"},
		{",1.5\r\n", ",1.5"},
		{"#t\r\n", "#t"},
		{"=5\r\ntxt:a\r\n", "=a"},
		{"*2\r\n:1\r\n*1\r\n$2\r\n\x00\n\r\n", "*2\n  :1\n  *1\n    $\"\\x00\\n\""},
		{"%1\r\n+k\r\n_\r\n", "%1\n  +k\n  _nil"},
	}
	for _, tt := range tests {
		rs, err := Parse([]byte(tt.raw))
		if err != nil || len(rs) != 1 {
			t.Fatalf("%q: %d replies, %v", tt.raw, len(rs), err)
		}
		if got := rs[0].String(); got != tt.shown {
			t.Errorf("%q shows as %q, want %q", tt.raw, got, tt.shown)
		}
		if string(rs[0].Raw) != tt.raw {
			t.Errorf("%q: raw is %q", tt.raw, rs[0].Raw)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, raw := range []string{"x\r\n", "$a\r\n", "$1\r\nabc\r\n", "*-2\r\n", "\r\n", "+a\n"} {
		if _, err := Parse([]byte(raw)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: got %v", raw, err)
		}
	}
}

func TestQuoteArgs(t *testing.T) {
	got := QuoteArgs(Bytes("SET", "", "a b", "\x00\"\\\n", "plain:1"))
	if want := `SET "" "a b" "\x00\"\\\n" plain:1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
