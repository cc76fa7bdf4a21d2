package command

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestParseInt(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 9, 10, 99, -100, math.MaxInt64, math.MinInt64, 1e18, -1e18} {
		s := strconv.FormatInt(n, 10)
		if got, ok := parseInt([]byte(s)); !ok || got != n {
			t.Errorf("parseInt(%s) = %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{
		"", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1x", "x", "1.0", "9223372036854775808",
		"-9223372036854775809", "99999999999999999999", "18446744073709551617", "00", "--1", "\x00",
	} {
		if n, ok := parseInt([]byte(s)); ok {
			t.Errorf("parseInt(%q) = %d", s, n)
		}
	}
}

func TestParseSet(t *testing.T) {
	abs := func(unit timeUnit, arg string) expiry {
		return expiry{set: true, absolute: true, unit: unit, arg: []byte(arg)}
	}
	rel := func(unit timeUnit, arg string) expiry { return expiry{set: true, unit: unit, arg: []byte(arg)} }
	for _, c := range []struct {
		options string
		want    setOptions
		bad     string
	}{
		{"", setOptions{}, ""},
		{"nx", setOptions{onlyNew: true}, ""},
		{"XX GET", setOptions{onlyOld: true, get: true}, ""},
		{"NX GET", setOptions{onlyNew: true, get: true}, ""},
		{"NX XX", setOptions{}, msgSyntax},
		{"XX NX", setOptions{}, msgSyntax},
		{"KEEPTTL", setOptions{keepTTL: true}, ""},
		{"EX 10", setOptions{expiry: rel(unitSeconds, "10")}, ""},
		{"px 10 GET", setOptions{get: true, expiry: rel(unitMillis, "10")}, ""},
		{"EXAT 10", setOptions{expiry: abs(unitSeconds, "10")}, ""},
		{"PXAT 10", setOptions{expiry: abs(unitMillis, "10")}, ""},
		{"EX 10 EX 20", setOptions{expiry: rel(unitSeconds, "20")}, ""},
		{"EX NX", setOptions{expiry: rel(unitSeconds, "NX")}, ""},
		{"EX 10 PX 20", setOptions{}, msgSyntax},
		{"EX 10 EXAT 20", setOptions{}, msgSyntax},
		{"EX 10 KEEPTTL", setOptions{}, msgSyntax},
		{"KEEPTTL EX 10", setOptions{}, msgSyntax},
		{"EX", setOptions{}, msgSyntax},
		{"PERSIST", setOptions{}, msgSyntax},
		{"FOO", setOptions{}, msgSyntax},
	} {
		args := words(append([]string{"SET", "k", "v"}, strings.Fields(c.options)...)...)
		got, bad := parseSet(args)
		if bad != c.bad {
			t.Errorf("SET k v %s: error %q, want %q", c.options, bad, c.bad)
			continue
		}
		c.want.key, c.want.value = args[1], args[2]
		if bad == "" && !reflect.DeepEqual(got, c.want) {
			t.Errorf("SET k v %s: %+v, want %+v", c.options, got, c.want)
		}
	}
}

func TestParseExpireWhen(t *testing.T) {
	for _, c := range []struct {
		options string
		want    expireWhen
		bad     string
	}{
		{"", expireWhen{}, ""},
		{"nx", expireWhen{nx: true}, ""},
		{"XX GT", expireWhen{xx: true, gt: true}, ""},
		{"LT LT", expireWhen{lt: true}, ""},
		{"NX XX", expireWhen{}, msgExpireNX},
		{"GT NX LT", expireWhen{}, msgExpireNX},
		{"GT LT", expireWhen{}, msgExpireGTLT},
		{"GT BAD LT", expireWhen{}, "ERR Unsupported option BAD"},
	} {
		got, bad := parseExpireWhen(words(strings.Fields(c.options)...))
		if bad != c.bad || (bad == "" && got != c.want) {
			t.Errorf("%s: %+v %q", c.options, got, bad)
		}
	}
}

func TestParseScan(t *testing.T) {
	for _, c := range []struct {
		request string
		want    scanOptions
		bad     string
	}{
		{"0", scanOptions{count: 10}, ""},
		{"281474976710661 count 5", scanOptions{cursor: 1<<48 | 5, count: 5}, ""},
		{"1 MATCH a* TYPE string", scanOptions{
			cursor: 1, count: 10, pattern: []byte("a*"), typed: true,
			typeName: []byte("string"),
		}, ""},
		{"1 MATCH a* MATCH *", scanOptions{cursor: 1, count: 10}, ""},
		{"x", scanOptions{}, msgCursor},
		{"x COUNT 0", scanOptions{}, msgCursor},
		{"0 COUNT 0", scanOptions{}, msgSyntax},
		{"0 COUNT x FOO", scanOptions{}, msgNotInteger},
		{"0 COUNT", scanOptions{}, msgSyntax},
		{"0 FOO 1", scanOptions{}, msgSyntax},
	} {
		got, bad := parseScan(words(append([]string{"SCAN"}, strings.Fields(c.request)...)...))
		if bad != c.bad || (bad == "" && !reflect.DeepEqual(got, c.want)) {
			t.Errorf("SCAN %s: %+v %q", c.request, got, bad)
		}
	}
}

func TestParseCursor(t *testing.T) {
	for s, want := range map[string]uint64{
		"": 0, "0": 0, "+7": 7, "007": 7, "-1": math.MaxUint64,
		"18446744073709551615": math.MaxUint64,
	} {
		if got, ok := parseCursor([]byte(s)); !ok || got != want {
			t.Errorf("parseCursor(%q) = %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{"x", "-", "+", " 1", "1 ", "18446744073709551616", "1.5"} {
		if got, ok := parseCursor([]byte(s)); ok {
			t.Errorf("parseCursor(%q) = %d", s, got)
		}
	}
}

func TestParseWait(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"1", "100"}, "1 100 "},
		{[]string{"-1", "0"}, "-1 0 "},
		{[]string{"x", "0"}, "0 0 " + msgNotInteger},
		{[]string{"1", "x"}, "1 0 " + msgTimeoutInt},
		{[]string{"1", "-1"}, "1 0 " + msgTimeoutNeg},
		{[]string{"1", "9223372036854775807"}, "1 0 " + msgTimeoutRange},
	} {
		n, timeout, bad := ParseWait(words(append([]string{"WAIT"}, c.args...)...), 1000)
		if got := strconv.FormatInt(n, 10) + " " + strconv.FormatInt(timeout, 10) + " " + bad; got != c.want {
			t.Errorf("WAIT %q: %s, want %s", c.args, got, c.want)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"1", "2", "100"}, ""},
		{[]string{"2", "2", "100"}, MsgZeroOrOne},
		{[]string{"-1", "2", "100"}, MsgZeroOrOne},
		{[]string{"x", "2", "100"}, msgNotInteger},
		{[]string{"0", "-2", "100"}, msgNotPositive},
		{[]string{"0", "0", "-100"}, msgTimeoutNeg},
	} {
		_, _, _, bad := ParseWaitAOF(words(append([]string{"WAITAOF"}, c.args...)...), 1000)
		if bad != c.want {
			t.Errorf("WAITAOF %q: %q, want %q", c.args, bad, c.want)
		}
	}
}

func TestParseLCSAndCopy(t *testing.T) {
	if o, bad := parseLCS(words("idx", "MINMATCHLEN", "4", "withmatchlen")); bad != "" ||
		o != (lcsOptions{index: true, minMatch: 4, withLen: true}) {
		t.Errorf("%+v %q", o, bad)
	}
	if _, bad := parseLCS(words("MINMATCHLEN")); bad != msgSyntax {
		t.Error(bad)
	}
	if o, bad := parseCopy(words("DB", "0", "replace")); bad != "" || !o.replace {
		t.Errorf("%+v %q", o, bad)
	}
	if _, bad := parseCopy(words("DB", "1", "bad")); bad != msgDBRange {
		t.Error(bad)
	}
}
