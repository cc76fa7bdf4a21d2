package command

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pools are what random requests are made of: few keys, and values at the edges.
var (
	poolKeys   = []string{"a", "b", "c", "d", "e", "f", "user:1", "user:2"}
	poolValues = []string{
		"", "0", "1", "-1", "10", "9223372036854775807", "-9223372036854775808", "abc",
		"1.5", "3e2", "0.1", " 1", "007", "hello world", "x\x00y", strings.Repeat("z", 50),
	}
	poolInts = []string{
		"0", "1", "-1", "2", "-2", "5", "100", "9223372036854775807",
		"-9223372036854775808", "x", "", "1.5", "9223372036854775808",
	}
	poolTimes = []string{"1000000", "5000000", "0", "-1", "x", "9223372036854775", "99999999999999"}
	poolDates = append([]string{"1", "100"}, poolTimes...)
	poolWhen  = []string{"NX", "XX", "nx", "foo"}
	poolWords = []string{
		"NX", "XX", "GT", "LT", "GET", "KEEPTTL", "PERSIST", "REPLACE", "LEN", "IDX",
		"WITHMATCHLEN", "nx", "foo",
	}
)

// shapes are request forms: k key, v value, i integer, t time, d date, w option word, n NX or XX
// (GT and LT would compare two clocks), x EX/PX/EXAT/PXAT with a time; a star repeats the shape's
// last letter at random. Times are far enough for both servers to run a sequence before they come.
var shapes = map[string][]string{
	"set": {"kv", "kv", "kvw*", "kvx", "kvxw*"}, "get": {"k"}, "getex": {"k", "kx", "kw"},
	"getdel": {"k"}, "getset": {"kv"}, "setnx": {"kv"}, "setex": {"ktv"}, "psetex": {"ktv"},
	"mget": {"kk*"}, "mset": {"kv", "kvkv", "kvk"}, "msetnx": {"kv", "kvkv"}, "append": {"kv"},
	"strlen": {"k"}, "getrange": {"kii"}, "setrange": {"kiv"}, "incr": {"k"}, "decr": {"k"},
	"incrby": {"ki"}, "decrby": {"ki"}, "incrbyfloat": {"kv"}, "lcs": {"kk", "kkw*"},
	"del": {"k", "kk*"}, "unlink": {"k"}, "exists": {"kk*"}, "type": {"k"}, "touch": {"kk*"},
	"rename": {"kk"}, "renamenx": {"kk"}, "copy": {"kk", "kkw"}, "expire": {"kt", "ktn", "ktnn"},
	"pexpire": {"kt", "ktn"}, "expireat": {"kd", "kdw"}, "pexpireat": {"kd", "kdw"}, "ttl": {"k"},
	"expiretime": {"k"}, "pexpiretime": {"k"}, "persist": {"k"},
}

func randomRequest(r *rand.Rand, names []string) [][]byte {
	pick := func(pool []string) string { return pool[r.IntN(len(pool))] }
	name := pick(names)
	shape := pick(shapes[name])
	if letters, star := strings.CutSuffix(shape, "*"); star {
		shape = letters + strings.Repeat(letters[len(letters)-1:], r.IntN(3))
	}
	args := []string{name}
	for _, letter := range shape {
		switch letter {
		case 'k':
			args = append(args, pick(poolKeys))
		case 'v':
			args = append(args, pick(poolValues))
		case 'i':
			args = append(args, pick(poolInts))
		case 't':
			args = append(args, pick(poolTimes))
		case 'd':
			args = append(args, pick(poolDates))
		case 'n':
			args = append(args, pick(poolWhen))
		case 'w':
			args = append(args, pick(poolWords))
		case 'x':
			args = append(args, pick([]string{"EX", "PX", "EXAT", "PXAT"}), pick(poolTimes))
		}
	}
	if name == "setrange" && len(args[2]) == 3 { // keep strings short
		args[2] = "20"
	}
	return words(args...)
}

// clockSlack is how much the replies of commands that tell the time may differ, because the clock
// moves between the two executions.
var clockSlack = map[string]int{"ttl": 1, "expiretime": 1, "pexpiretime": 1000}

// sameReply compares replies; integers may differ by slack.
func sameReply(got, want string, slack int) bool {
	if got == want || slack == 0 || got[0] != ':' || want[0] != ':' {
		return got == want
	}
	g, _ := strconv.Atoi(strings.TrimSpace(got[1:]))
	w, _ := strconv.Atoi(strings.TrimSpace(want[1:]))
	return g >= 0 && w >= 0 && max(g-w, w-g) <= slack
}

// TestOracleRandom compares long random sequences with redis-server.
func TestOracleRandom(t *testing.T) {
	o := startOracle(t)
	names := make([]string, 0, len(shapes))
	for _, c := range TopLevel() {
		if shapes[c.Name] != nil {
			names = append(names, c.Name)
		}
	}
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		h := newHarness(t, 1+seed%4)
		h.w.Proto = 2 + seed%2
		o.run(t, words("HELLO", strconv.Itoa(h.w.Proto)))
		o.run(t, words("FLUSHALL"))
		var trail []string
		for range 150 {
			args := randomRequest(r, names)
			h.ctx.Now = time.Now().UnixMilli()
			got, want := h.exec(args), o.run(t, args)
			trail = append(trail, fmt.Sprintf("%q -> %s", args, h.did))
			if !sameReply(got, want, clockSlack[string(args[0])]) {
				t.Fatalf("seed %d: %q\n got  %.300q\n want %.300q\n%s", seed, args, got, want,
					strings.Join(trail[max(0, len(trail)-12):], "\n"))
			}
		}
	}
}

// TestOracleGlob compares KEYS and SCAN MATCH over random patterns.
func TestOracleGlob(t *testing.T) {
	o := startOracle(t)
	h := newHarness(t, 2)
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(alphabet string, most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	for range 300 {
		args := words("SET", draw("ab-]^[x\\*\xff\x80", 5), "1")
		h.exec(args)
		o.run(t, args)
	}
	for range 4000 {
		pattern := draw("aab*?[[]^-\\x\xff", 8)
		args := words("KEYS", pattern)
		if r.IntN(2) == 0 {
			args = words("SCAN", "0", "COUNT", "100000", "MATCH", pattern)
		}
		if got, want := sortReply(h.exec(args)), sortReply(o.run(t, args)); got != want {
			t.Fatalf("%q\n got  %.500q\n want %.500q", args, got, want)
		}
	}
}

// TestOracleFloat compares sums of random decimals, digit by digit.
func TestOracleFloat(t *testing.T) {
	o := startOracle(t)
	h := newHarness(t, 1)
	r := rand.New(rand.NewPCG(5, 6))
	decimal := func() string {
		digits := make([]byte, 1+r.IntN(1+r.IntN(30)))
		for i := range digits {
			digits[i] = '0' + byte(r.IntN(10))
		}
		s := string(digits)
		if i := r.IntN(len(s) + 1); r.IntN(4) > 0 {
			s = s[:i] + "." + s[i:]
		}
		if r.IntN(4) == 0 {
			s += "e" + strconv.Itoa(r.IntN(40)-20)
		}
		if r.IntN(2) == 0 {
			s = "-" + s
		}
		return s
	}
	for i := range 20_000 {
		if i%7 == 0 {
			args := words("SET", "f", decimal())
			h.exec(args)
			o.run(t, args)
		}
		args := words("INCRBYFLOAT", "f", decimal())
		if got, want := h.exec(args), o.run(t, args); got != want {
			t.Fatalf("%q\n got  %q\n want %q", args, got, want)
		}
	}
}
