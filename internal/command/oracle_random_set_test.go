package command

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	setKeys    = []string{"s", "t", "u", "v", "w"}
	setMembers = []string{
		"", "a", "b", "c", "-0", "01", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "70000", "-70000", "65535", "65536", "x\x00y", strings.Repeat("z", 80),
	}
	setShapes = map[string][]string{
		"sadd": {"km", "kmmm", "kI", "kI", "kM", "kT"}, "srem": {"km", "kmmm", "kM", "kI", "kT"}, "scard": {"k"},
		"sismember": {"km"}, "smismember": {"kmmm"}, "smembers": {"k"}, "smove": {"kkm", "kkm"}, "spop": {"kp", "kz"},
		"srandmember": {"kp", "kz"}, "sinter": {"k", "kk", "kkk"}, "sunion": {"k", "kk", "kkk"}, "sdiff": {"k", "kk", "kkk"},
		"sintercard": {"2kk", "3kkk", "2kkl", "2k"}, "sinterstore": {"kk", "kkk", "kkkk"}, "sunionstore": {"kk", "kkk"},
		"sdiffstore": {"kk", "kkk", "kkkk"}, "sscan": {"k0"}, "sort": {"ka", "kad", "kads", "kb", "kbs"}, "sort_ro": {"ka", "kb"},
		"set": {"km"}, "del": {"k"}, "rename": {"kk"}, "copy": {"kk", "kkr"}, "type": {"k"}, "get": {"k"}, "expire": {"kt"},
		"ttl": {"k"}, "zadd": {"k1m"}, "lpush": {"kmm"}, "object": {"ek"},
	}
)

// setRequest makes a request of a shape: k key, m member, I many integers, M many others, T some of each; the other
// letters are options.
func setRequest(r *rand.Rand, name string) [][]byte {
	args := []string{name}
	shapes := setShapes[name]
	base, spread := r.IntN(3)*1000, []int{20, 300, 5000}[r.IntN(3)]
	options := map[rune][]string{
		'p': {"1000000"}, 'z': {"0"}, '2': {"2"}, '3': {"3"}, '1': {"1"}, 'l': {"LIMIT", strconv.Itoa(r.IntN(4))},
		'0': {"0", "COUNT", "100000"}, 'r': {"REPLACE"}, 't': {"1000000"}, 'e': {"encoding"}, 'a': {"ALPHA"}, 'd': {"DESC"},
		's': {"STORE", setKeys[r.IntN(len(setKeys))]}, 'b': {"BY", "nosort"},
	}
	for _, letter := range shapes[r.IntN(len(shapes))] {
		switch letter {
		case 'k':
			args = append(args, setKeys[r.IntN(len(setKeys))])
		case 'm':
			args = append(args, setMembers[r.IntN(len(setMembers))])
		case 'I', 'M', 'T':
			for range 1 + r.IntN(300) {
				m := strconv.Itoa(base + r.IntN(spread))
				if letter == 'M' || letter == 'T' && r.IntN(10) == 0 {
					m = "m" + m
				}
				args = append(args, m)
			}
		default:
			args = append(args, options[letter]...)
		}
	}
	return words(args...)
}

// TestOracleRandomSet compares long random sequences about sets with redis-server.
func TestOracleRandomSet(t *testing.T) {
	o := startOracle(t)
	var names []string
	for _, c := range TopLevel() {
		if setShapes[c.Name] != nil && (c.Name != "object" || !o.older("7.2")) {
			names = append(names, c.Name)
		}
	}
	names = append(names, "sadd", "sadd", "sadd", "sadd")
	rounds := 150
	if testing.Short() {
		rounds = 15
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		h := newHarness(t, 1+seed%3)
		h.w.Proto = 2 + seed%2
		o.run(t, words("HELLO", strconv.Itoa(h.w.Proto)))
		o.run(t, words("FLUSHALL"))
		var trail []string
		for range 200 {
			args := setRequest(r, names[r.IntN(len(names))])
			h.ctx.Now = time.Now().UnixMilli()
			h.ctx.Rand = r.Uint64()
			got, want := h.exec(args), o.run(t, args)
			trail = append(trail, fmt.Sprintf("%.300q -> %.300s", args, h.did))
			if string(args[0]) != "sort" || slices.ContainsFunc(args, func(b []byte) bool { return string(b) == "nosort" }) {
				got, want = sortReply(got), sortReply(want)
			}
			if !sameReply(got, want, clockSlack[string(args[0])]) {
				t.Fatalf("seed %d: %.300q\n got  %.600q\n want %.600q\n%s", seed, args, got, want,
					strings.Join(trail[max(0, len(trail)-12):], "\n"))
			}
		}
	}
}
