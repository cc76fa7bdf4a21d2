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
	poolValues = []string{"", "0", "1", "-1", "10", "9223372036854775807", "-9223372036854775808", "abc",
		"1.5", "3e2", "0.1", " 1", "007", "hello world", "x\x00y", strings.Repeat("z", 50)}
	poolInts = []string{"0", "1", "-1", "2", "-2", "5", "100", "9223372036854775807",
		"-9223372036854775808", "x", "", "1.5", "9223372036854775808"}
	poolTimes = []string{"1000000", "5000000", "0", "-1", "x", "9223372036854775", "99999999999999"}
	poolDates = append([]string{"1", "100"}, poolTimes...)
	poolWords = []string{"NX", "XX", "GT", "LT", "GET", "KEEPTTL", "PERSIST", "REPLACE", "LEN", "IDX",
		"WITHMATCHLEN", "nx", "foo"}
)

// shapes are request forms: k key, v value, i integer, t time, d date, w option word, x EX/PX/EXAT/PXAT
// with a time; a star repeats the shape's last letter at random. Times are far enough for both servers
// to run a sequence before they come.
var shapes = map[string][]string{
	"set": {"kv", "kv", "kvw*", "kvx", "kvxw*"}, "get": {"k"}, "getex": {"k", "kx", "kw"},
	"getdel": {"k"}, "getset": {"kv"}, "setnx": {"kv"}, "setex": {"ktv"}, "psetex": {"ktv"},
	"mget": {"kk*"}, "mset": {"kv", "kvkv", "kvk"}, "msetnx": {"kv", "kvkv"}, "append": {"kv"},
	"strlen": {"k"}, "getrange": {"kii"}, "setrange": {"kiv"}, "incr": {"k"}, "decr": {"k"},
	"incrby": {"ki"}, "decrby": {"ki"}, "incrbyfloat": {"kv"}, "lcs": {"kk", "kkw*"},
	"del": {"k", "kk*"}, "unlink": {"k"}, "exists": {"kk*"}, "type": {"k"}, "touch": {"kk*"},
	"rename": {"kk"}, "renamenx": {"kk"}, "copy": {"kk", "kkw"}, "expire": {"kt", "ktw", "ktww"},
	"pexpire": {"kt", "ktw"}, "expireat": {"kd", "kdw"}, "pexpireat": {"kd", "kdw"}, "ttl": {"k"},
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

// sameReply compares replies; times may differ by what passes between the two executions.
func sameReply(name, got, want string) bool {
	if got == want {
		return true
	}
	if !strings.Contains("ttl expiretime pexpiretime", name) || got[0] != ':' || want[0] != ':' {
		return false
	}
	g, _ := strconv.Atoi(strings.TrimSpace(got[1:]))
	w, _ := strconv.Atoi(strings.TrimSpace(want[1:]))
	return g > 0 && w > 0 && g-w < 1000 && w-g < 1000
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
			trail = append(trail, fmt.Sprintf("%q -> %s", args, h.effects()))
			if !sameReply(string(args[0]), got, want) {
				t.Fatalf("seed %d: %q\n got  %.300q\n want %.300q\n%s", seed, args, got, want,
					strings.Join(trail[max(0, len(trail)-12):], "\n"))
			}
		}
	}
}
