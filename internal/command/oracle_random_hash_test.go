package command

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	hashKeys   = []string{"h", "i", "j", "s"}
	hashNames  = []string{"a", "b", "c", "d", "e", "f1", "f2", "f3", "", "long" + strings.Repeat("n", 80)}
	hashValues = append([]string{strings.Repeat("v", 300), strings.Repeat("w", 3000)}, poolValues...)
	hashShapes = map[string][]string{
		"hset": {"kfv", "kfvfv", "kfvfvfv", "kfvf", "kn"}, "hmset": {"kfv", "kfvfv"}, "hsetnx": {"kfv"}, "hget": {"kf"},
		"hmget": {"kff", "kfff"}, "hgetall": {"k"}, "hdel": {"kf", "kff", "kfff"}, "hexists": {"kf"}, "hincrby": {"kfi"},
		"hincrbyfloat": {"kfv"}, "hkeys": {"k"}, "hvals": {"k"}, "hlen": {"k"}, "hstrlen": {"kf"}, "hrandfield": {"ki"},
		"hscan": {"k0"}, "set": {"kv"}, "del": {"k"}, "rename": {"kk"}, "copy": {"kk", "kkr"}, "type": {"k"}, "get": {"k"},
		"expire": {"kt"}, "persist": {"k"}, "getset": {"kv"},
	}
)

// hashRequest makes a request of a shape: k key, f field, v value, n many fields with values, t time, i integer.
func hashRequest(r *rand.Rand, name string) [][]byte {
	args := []string{name}
	shapes := hashShapes[name]
	for _, letter := range shapes[r.IntN(len(shapes))] {
		switch letter {
		case 'k':
			args = append(args, hashKeys[r.IntN(len(hashKeys))])
		case 'f':
			args = append(args, hashNames[r.IntN(len(hashNames))])
		case 'v':
			args = append(args, hashValues[r.IntN(len(hashValues))])
		case 'i':
			args = append(args, poolInts[r.IntN(len(poolInts))])
		case 't':
			args = append(args, "1000000")
		case 'r':
			args = append(args, "REPLACE")
		case '0':
			args = append(args, "0", "COUNT", "1000")
		case 'n':
			for range r.IntN(200) {
				args = append(args, fmt.Sprint("m", r.IntN(300)), "x")
			}
		}
	}
	return words(args...)
}

// TestOracleRandomHash compares long random sequences about hashes with redis-server.
func TestOracleRandomHash(t *testing.T) {
	o := startOracle(t)
	var names []string
	for _, c := range TopLevel() {
		if hashShapes[c.Name] != nil {
			names = append(names, c.Name)
		}
	}
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		h := newHarness(t, 1+seed%3)
		h.w.Proto = 2 + seed%2
		o.run(t, words("HELLO", strconv.Itoa(h.w.Proto)))
		o.run(t, words("FLUSHALL"))
		var trail []string
		for range 200 {
			args := hashRequest(r, names[r.IntN(len(names))])
			if string(args[0]) == "hrandfield" { // whole hashes only
				args[2] = []byte("1000000")
			}
			h.ctx.Now = time.Now().UnixMilli()
			got, want := sortReply(h.exec(args)), sortReply(o.run(t, args))
			trail = append(trail, fmt.Sprintf("%.300q -> %.300s", args, h.did))
			if got != want && sortPairs(got) != sortPairs(want) {
				t.Fatalf("seed %d: %.300q\n got  %.600q\n want %.600q\n%s", seed, args, got, want,
					strings.Join(trail[max(0, len(trail)-12):], "\n"))
			}
		}
	}
}

// sortPairs orders a RESP3 map as sortReply does an array.
func sortPairs(s string) string {
	if s == "" || s[0] != '%' {
		return s
	}
	return sortReply("*" + s[1:])
}

// startOracle74 starts the redis-server of version 7.4 that REDIS74 names; the test is skipped without one.
func startOracle74(t *testing.T) *oracle {
	t.Helper()
	path := os.Getenv("REDIS74")
	if path == "" {
		t.Skip("REDIS74 names no redis-server of version 7.4")
	}
	return startServer(t, path)
}

// TestOracleFields compares the deadlines of hash fields with Redis 7.4.
func TestOracleFields(t *testing.T) {
	o := startOracle74(t)
	for _, proto := range []int{2, 3} {
		o.run(t, words("HELLO", strconv.Itoa(proto)))
		for _, shards := range []int{1, 3} {
			runScript(t, o, "testdata/oracle74/hash_fields.txt", proto, shards)
		}
	}
}

// TestOracleRandomFields compares random sequences of them; deadlines are far away or in the past.
func TestOracleRandomFields(t *testing.T) {
	o := startOracle74(t)
	shapes := map[string]string{
		"HSET": "kfv", "HDEL": "kf", "HEXPIREAT": "kdwF", "HPEXPIREAT": "kdwF", "HPERSIST": "kF",
		"HEXPIRETIME": "kF", "HPEXPIRETIME": "kF", "HINCRBY": "kfi", "HGETALL": "k", "COPY": "kkr", "RENAME": "kk", "HLEN": "k",
		"HSETNX": "kfv", "HMSET": "kfvfv",
	}
	names := slices.Sorted(maps.Keys(shapes))
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		h := newHarness(t, 1+seed%3)
		o.run(t, words("FLUSHALL"))
		var trail []string
		for range 300 {
			args := []string{pick(names...)}
			for _, letter := range shapes[args[0]] {
				switch letter {
				case 'k':
					args = append(args, pick("h", "i"))
				case 'f':
					args = append(args, pick(hashNames[:8]...))
				case 'v':
					args = append(args, pick("1", "2", "text"))
				case 'i':
					args = append(args, pick("1", "-5"))
				case 'd':
					args = append(args, pick("1", "0", "4000000000", "4000000001", "5000000000", "4000000000500", "-1", "x"))
				case 'w':
					if w := pick("", "NX", "XX", "GT", "LT"); w != "" {
						args = append(args, w)
					}
				case 'r':
					args = append(args, "REPLACE")
				case 'F':
					n := 1 + r.IntN(4)
					args = append(args, "FIELDS", strconv.Itoa(n))
					for range n {
						args = append(args, pick(hashNames[:8]...))
					}
				}
			}
			h.ctx.Now = time.Now().UnixMilli()
			got, want := sortReply(h.exec(words(args...))), sortReply(o.run(t, words(args...)))
			trail = append(trail, fmt.Sprintf("%q -> %s", args, h.did))
			if got != want {
				t.Fatalf("seed %d: %q\n got  %.600q\n want %.600q\n%s", seed, args, got, want,
					strings.Join(trail[max(0, len(trail)-12):], "\n"))
			}
		}
	}
}
