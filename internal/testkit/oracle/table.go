package oracle

import (
	"slices"
	"strconv"
	"strings"
)

var keyAlphabet = []string{
	"a", "b", "c", "d", "k:1", "k:2", "k:3", "", "\x00\xff", "with space", "h[a]llo", "user:*",
	"{tag}x", "{tag}y",
}

var valueAlphabet = []string{
	"", "x", "abc", "hello world", "ohmytext", "mynewtext", "\x00\x01\x02", "été", "\r\n",
	strings.Repeat("v", 43), strings.Repeat("w", 44), strings.Repeat("y", 45),
	strings.Repeat("0123456789", 30), "rabbits", "abcabcabc",
}

var intAlphabet = []string{
	"0", "1", "-1", "2", "7", "10", "100", "-10", "9223372036854775807", "-9223372036854775808",
	"9223372036854775806", "9223372036854775808", "05", "+5", " 5", "5 ", "-0", "1.0", "1e3", "0x10",
	"abc", "", "99999999999999999999",
}

var floatAlphabet = []string{
	"1.5", "0.1", "0.2", "-1.1", "3.0e3", "5.0", "1e400", "nan", "inf", "-inf", "+inf", "1e-5", ".5", "5.",
	" 1.5", "1.5 ", "0.30000000000000004", "1e17", "123456789.123456789", "-0.0", "3.3", "1e300",
}

var indexAlphabet = []string{
	"0", "1", "2", "5", "-1", "-2", "-5", "100", "-100", "536870911", "536870912", "9223372036854775807",
	"-9223372036854775808", "abc", "", "1.5",
}

// Offsets that make no large value.
var offsetAlphabet = []string{
	"0", "1", "2", "5", "43", "44", "100", "-1", "536870912", "9223372036854775807", "abc", "",
}

// Seconds and milliseconds: never so short that the key could go while a stream runs.
var secondsAlphabet = []string{
	"1000", "5000", "100000", "0", "-1", "-100", "9223372036854775", "9223372036854776",
	"9223370399119966", "9223372036854775807", "-9223372036854775808", "abc", "", "1.5", "+1000",
}

var millisAlphabet = []string{
	"1000000", "5000000", "0", "-1", "9223372036854775807", "9223370399119966", "-9223372036854775808",
	"abc", "", "1e9",
}

// Moments: 3021, 2255, 1970, and what overflows.
var unixAlphabet = []string{
	"33177117420", "9000000000", "1", "0", "-1", "9223372036854775", "9223372036854776",
	"9223372036854775807", "abc",
}

var unixMillisAlphabet = []string{
	"33177117420000", "9000000000000", "1", "0", "-1", "9223372036854775807", "abc",
}

var patternAlphabet = []string{
	"*", "k:*", "?", "[ab]", "[^ab]", "[a-c]", "h\\[a\\]llo", "h[a]llo", "user:\\*", "user:*", "", "**",
	"[", "[a", "\\", "*:?", "[c-a]", "a*b", "nosuch", "\\a", "[\\a]",
}

var expireFlags = []string{"NX", "XX", "GT", "LT", "nx", "gT"}

// row is one command of the generator. fixed ones are never spoilt: a wrong argument would make
// them wait or differ by nature.
type row struct {
	weight int
	fixed  bool
	make   func(*Gen) []string
}

func commandTable() []row {
	var t []row
	t = append(t, stringRows()...)
	t = append(t, counterRows()...)
	t = append(t, keyRows()...)
	t = append(t, expireRows()...)
	t = append(t, typeRows()...)
	t = append(t, rareRows()...)
	return append(t, connectionRows()...)
}

func stringRows() []row {
	return []row{
		{weight: 40, make: (*Gen).set},
		{weight: 20, make: func(g *Gen) []string { return []string{"GET", g.key()} }},
		{weight: 10, make: (*Gen).getex},
		{weight: 6, make: func(g *Gen) []string { return []string{"GETDEL", g.key()} }},
		{weight: 6, make: func(g *Gen) []string { return []string{"GETSET", g.key(), g.value()} }},
		{weight: 6, make: func(g *Gen) []string { return []string{"SETNX", g.key(), g.value()} }},
		{weight: 6, make: func(g *Gen) []string {
			return []string{"SETEX", g.key(), g.pick(secondsAlphabet), g.value()}
		}},
		{weight: 6, make: func(g *Gen) []string {
			return []string{"PSETEX", g.key(), g.pick(millisAlphabet), g.value()}
		}},
		{weight: 6, make: func(g *Gen) []string { return append([]string{"MGET"}, g.keys(4)...) }},
		{weight: 8, make: func(g *Gen) []string { return append([]string{"MSET"}, g.pairs(4)...) }},
		{weight: 6, make: func(g *Gen) []string { return append([]string{"MSETNX"}, g.pairs(3)...) }},
		{weight: 10, make: (*Gen).append},
		{weight: 4, make: func(g *Gen) []string { return []string{"STRLEN", g.key()} }},
		{weight: 8, make: func(g *Gen) []string {
			return []string{g.pick([]string{"GETRANGE", "SUBSTR"}), g.key(), g.index(), g.index()}
		}},
		{weight: 8, make: func(g *Gen) []string {
			return []string{"SETRANGE", g.key(), g.pick(offsetAlphabet), g.value()}
		}},
		{weight: 6, make: (*Gen).lcs},
	}
}

func counterRows() []row {
	return []row{
		{weight: 8, make: func(g *Gen) []string { return []string{"INCR", g.key()} }},
		{weight: 6, make: func(g *Gen) []string { return []string{"DECR", g.key()} }},
		{weight: 8, make: func(g *Gen) []string { return []string{"INCRBY", g.key(), g.int()} }},
		{weight: 6, make: func(g *Gen) []string { return []string{"DECRBY", g.key(), g.int()} }},
		{weight: 10, make: func(g *Gen) []string {
			return []string{"INCRBYFLOAT", g.key(), g.pick([]string{g.float(), g.int()})}
		}},
	}
}

func keyRows() []row {
	return []row{
		{weight: 8, make: func(g *Gen) []string { return append([]string{"DEL"}, g.keys(3)...) }},
		{weight: 4, make: func(g *Gen) []string { return append([]string{"UNLINK"}, g.keys(3)...) }},
		{weight: 5, make: func(g *Gen) []string { return append([]string{"EXISTS"}, g.keys(4)...) }},
		{weight: 3, make: func(g *Gen) []string { return append([]string{"TOUCH"}, g.keys(4)...) }},
		{weight: 4, make: func(g *Gen) []string { return []string{"TYPE", g.key()} }},
		{weight: 4, make: func(g *Gen) []string { return []string{"KEYS", g.pattern()} }},
		{weight: 2, make: func(*Gen) []string { return []string{"RANDOMKEY"} }},
		{weight: 4, make: func(*Gen) []string { return []string{"DBSIZE"} }},
		{weight: 10, make: func(g *Gen) []string { return []string{"RENAME", g.key(), g.key()} }},
		{weight: 8, make: func(g *Gen) []string { return []string{"RENAMENX", g.key(), g.key()} }},
		{weight: 10, make: (*Gen).copy},
		{weight: 1, make: func(g *Gen) []string {
			return append([]string{g.pick([]string{"FLUSHALL", "FLUSHDB"})},
				g.some(g.pick([]string{"ASYNC", "SYNC", "junk"}))...)
		}},
		{weight: 6, make: func(g *Gen) []string {
			sub := []string{"ENCODING", "REFCOUNT", "FREQ", "IDLETIME", "encoding", "HELP", "nosuch"}
			return []string{"OBJECT", g.pick(sub), g.key()}
		}},
		{weight: 3, make: func(g *Gen) []string {
			cursors := []string{"abc", "", "-1", "99999999999999999999", "1.5"}
			return []string{"SCAN", g.pick(cursors), "COUNT", g.int()}
		}},
		{weight: 3, make: func(g *Gen) []string {
			return []string{"SCAN", "0", g.pick([]string{"COUNT", "MATCH", "junk"}), g.int()}
		}},
	}
}

func expireRows() []row {
	return []row{
		{weight: 10, make: func(g *Gen) []string { return g.expire("EXPIRE", secondsAlphabet) }},
		{weight: 8, make: func(g *Gen) []string { return g.expire("PEXPIRE", millisAlphabet) }},
		{weight: 6, make: func(g *Gen) []string { return g.expire("EXPIREAT", unixAlphabet) }},
		{weight: 6, make: func(g *Gen) []string { return g.expire("PEXPIREAT", unixMillisAlphabet) }},
		{weight: 5, make: func(g *Gen) []string { return []string{"TTL", g.key()} }},
		{weight: 5, make: func(g *Gen) []string { return []string{"PTTL", g.key()} }},
		{weight: 4, make: func(g *Gen) []string { return []string{"EXPIRETIME", g.key()} }},
		{weight: 4, make: func(g *Gen) []string { return []string{"PEXPIRETIME", g.key()} }},
		{weight: 6, make: func(g *Gen) []string { return []string{"PERSIST", g.key()} }},
	}
}

func connectionRows() []row {
	return []row{
		{weight: 2, make: func(g *Gen) []string { return append([]string{"PING"}, g.some(g.value())...) }},
		{weight: 2, make: func(g *Gen) []string { return []string{"ECHO", g.value()} }},
		{weight: 2, make: func(g *Gen) []string {
			return []string{"SELECT", g.pick([]string{"0", "1", "-1", "abc", "99999999999"})}
		}},
		{weight: 2, make: func(g *Gen) []string {
			return append([]string{g.pick([]string{"nosuch", "FOO", "GETT", "set get"})}, g.keys(3)...)
		}},
		{weight: 2, make: func(g *Gen) []string {
			return []string{"CLIENT", "SETNAME", g.pick([]string{"", "name", "a b", "\n"})}
		}},
		{weight: 2, make: func(*Gen) []string { return []string{"CLIENT", "GETNAME"} }},
		{weight: 1, make: func(*Gen) []string { return []string{"MULTI"} }},
		{weight: 2, make: func(*Gen) []string { return []string{"EXEC"} }},
		{weight: 1, make: func(*Gen) []string { return []string{"DISCARD"} }},
		{weight: 2, make: func(g *Gen) []string { return []string{"WATCH", g.plainKey()} }},
		{weight: 1, make: func(*Gen) []string { return []string{"UNWATCH"} }},
		{weight: 1, make: func(*Gen) []string { return []string{"TIME"} }},
		{weight: 1, make: func(*Gen) []string { return []string{"RESET"} }},
		{weight: 1, fixed: true, make: func(g *Gen) []string { return append([]string{"HELLO"}, g.hello()...) }},
		{weight: 1, fixed: true, make: func(g *Gen) []string {
			return append([]string{"WAIT"}, g.pick([]string{"0", "abc"}), g.pick([]string{"0", "5", "abc", "-1"}))
		}},
		{weight: 2, fixed: true, make: func(g *Gen) []string {
			forms := [][]string{
				{"SET", "a", "b"},
				{"MSET", "a", "1", "b", "2"},
				{"GET", "a", "b"},
				{"PING", "a"},
				{"nosuch", "a"},
				{"RENAME", "a", "b"},
				{"COPY", "a", "b", "REPLACE"},
				{"DEL", "a", "b", "c"},
			}
			return append([]string{"COMMAND", "GETKEYS"}, forms[g.rng.IntN(len(forms))]...)
		}},
	}
}

func (g *Gen) hello() []string {
	switch g.rng.IntN(6) {
	case 0:
		return []string{"2"}
	case 1:
		return []string{"3"}
	case 2:
		return []string{"4"}
	case 3:
		return []string{"3", "SETNAME", "me"}
	case 4:
		return []string{"abc"}
	}
	return nil
}

// some returns its arguments half of the time.
func (g *Gen) some(args ...string) []string {
	if g.chance(50) {
		return args
	}
	return nil
}

func (g *Gen) keys(most int) []string {
	var k []string
	for range 1 + g.rng.IntN(most) {
		k = append(k, g.key())
	}
	return k
}

func (g *Gen) pairs(most int) []string {
	var p []string
	for range 1 + g.rng.IntN(most) {
		p = append(p, g.key(), g.value())
	}
	return p
}

// append makes APPEND of something: appending nothing to a string makes Redis touch a watched key, though nothing
// changes; kevy does not. It leaves HyperLogLogs alone: some commands of Redis overlook bytes behind their runs.
func (g *Gen) append() []string {
	k, v := g.key(), g.value()
	for slices.Contains(typedKeys["p"], k) {
		k = g.key()
	}
	for v == "" {
		v = g.value()
	}
	return []string{"APPEND", k, v}
}

// set makes SET with any of its options in any order. Moments in the past are outdated's: of a key that is not there they make
// Redis touch a watched key, though nothing changes; kevy does not.
func (g *Gen) set() []string {
	future := func(moments []string) string {
		m := g.pick(moments)
		for m == "1" {
			m = g.pick(moments)
		}
		return m
	}
	options := [][]string{
		{"EX", g.pick(secondsAlphabet)},
		{"PX", g.pick(millisAlphabet)},
		{"EXAT", future(unixAlphabet)},
		{"PXAT", future(unixMillisAlphabet)},
		{"KEEPTTL"},
		{"NX"},
		{"XX"},
		{"GET"},
		{"nx"},
		{"Get"},
		{"keepttl"},
		{"ex", "1000"},
	}
	return g.options([]string{"SET", g.key(), g.value()}, options, []int{50, 25, 15, 8, 2})
}

func (g *Gen) getex() []string {
	options := [][]string{
		{"EX", g.pick(secondsAlphabet)},
		{"PX", g.pick(millisAlphabet)},
		{"EXAT", g.pick(unixAlphabet)},
		{"PXAT", g.pick(unixMillisAlphabet)},
		{"PERSIST"},
		{"persist"},
	}
	return g.options([]string{"GETEX", g.key()}, options, []int{30, 60, 10})
}

// options appends a random number of options: chances[i] is the percentage of i options.
func (g *Gen) options(args []string, options [][]string, chances []int) []string {
	p := g.rng.IntN(100)
	for n, c := range chances {
		if p -= c; p < 0 {
			for range n {
				args = append(args, options[g.rng.IntN(len(options))]...)
			}
			break
		}
	}
	return args
}

func (g *Gen) lcs() []string {
	options := [][]string{{"LEN"}, {"IDX"}, {"MINMATCHLEN", g.int()}, {"WITHMATCHLEN"}, {"idx"}}
	return g.options([]string{"LCS", g.key(), g.key()}, options, []int{30, 30, 25, 15})
}

func (g *Gen) copy() []string {
	options := [][]string{{"REPLACE"}, {"DB", "0"}, {"DB", "1"}, {"DB", "abc"}, {"replace"}}
	return g.options([]string{"COPY", g.key(), g.key()}, options, []int{50, 40, 10})
}

func (g *Gen) expire(verb string, times []string) []string {
	args := []string{verb, g.key(), g.pick(times)}
	if len(verb) < len("EXPIREAT") && g.chance(60) { // relative ones that are compared with GT and LT must be far apart
		args[2] = strconv.Itoa(1_000_000 + 10_000*g.rng.IntN(100_000))
	}
	for g.chance(25) {
		args = append(args, g.pick(expireFlags))
	}
	return args
}
