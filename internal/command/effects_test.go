package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

const testNow = 1_700_000_000_000

// effectCase is one request after some preparation, and what must be logged for it.
type effectCase struct {
	before  string // requests separated by ";"
	request string
	want    string // effects; "" is none
	reply   string // checked when set
}

var effectCases = []effectCase{
	{"", "SET k v", "SET k v", "+OK\r\n"},
	{"SET k v", "SET k v", "SET k v", "+OK\r\n"}, // an equal value is still a write
	{"", "SET k v EX 10", "SET k v PXAT 1700000010000", ""},
	{"", "SET k v PX 10", "SET k v PXAT 1700000000010", ""},
	{"", "SET k v EXAT 1800000000", "SET k v PXAT 1800000000000", ""},
	{"", "SET k v PXAT 1800000000001", "SET k v PXAT 1800000000001", ""},
	{"", "SET k v PXAT 1", "", "+OK\r\n"},
	{"SET k v", "SET k w PXAT 1", "DEL k", "+OK\r\n"},
	{"SET k v", "SET k w PXAT 1700000000000", "DEL k", "+OK\r\n"},
	{"SET k v EX 10", "SET k w", "SET k w", ""},
	{"SET k v EX 10", "SET k w KEEPTTL", "SET k w PXAT 1700000010000", ""},
	{"", "SET k w KEEPTTL", "SET k w", ""},
	{"SET k v", "SET k w NX", "", "$-1\r\n"},
	{"", "SET k w XX", "", "$-1\r\n"},
	{"SET k v", "SET k w XX GET", "SET k w", "$1\r\nv\r\n"},
	{"SET k v", "SET k w NX GET", "", "$1\r\nv\r\n"},
	{"", "SET k w EX 0", "", ""},
	{"", "SETNX k v", "SET k v", ":1\r\n"},
	{"SET k v", "SETNX k v", "", ":0\r\n"},
	{"", "SETEX k 10 v", "SET k v PXAT 1700000010000", ""},
	{"", "PSETEX k 10 v", "SET k v PXAT 1700000000010", ""},
	{"SET k v EX 10", "GETSET k w", "SET k w", "$1\r\nv\r\n"},
	{"SET k v", "GETDEL k", "DEL k", "$1\r\nv\r\n"},
	{"", "GETDEL k", "", "$-1\r\n"},
	{"SET k v EX 10", "GETEX k", "", "$1\r\nv\r\n"},
	{"SET k v EX 10", "GETEX k PERSIST", "PERSIST k", ""},
	{"SET k v", "GETEX k PERSIST", "", ""},
	{"SET k v", "GETEX k EX 10", "PEXPIREAT k 1700000010000", ""},
	{"SET k v", "GETEX k PXAT 1", "DEL k", "$1\r\nv\r\n"},
	{"", "GETEX k EX 10", "", "$-1\r\n"},
	{"", "MSET a 1 b 2 a 3", "MSET a 1 b 2 a 3", "+OK\r\n"},
	{"", "MSETNX a 1 b 2", "MSET a 1 b 2", ":1\r\n"},
	{"SET b 1", "MSETNX a 1 b 2", "", ":0\r\n"},
	{"", "APPEND k v", "APPEND k v", ":1\r\n"},
	{"", "APPEND k \"\"", "APPEND k ", ":0\r\n"},
	{"SET k v EX 10", "APPEND k w", "APPEND k w", ":2\r\n"},
	{"SET k v", "APPEND k \"\"", "", ":1\r\n"},
	{"", "SETRANGE k 2 v", "SETRANGE k 2 v", ":3\r\n"},
	{"", "SETRANGE k 2 \"\"", "", ":0\r\n"},
	{"SET k abc", "SETRANGE k 0 \"\"", "", ":3\r\n"},
	{"SET k 5 EX 10", "INCR k", "SET k 6 PXAT 1700000010000", ":6\r\n"},
	{"", "DECRBY k 3", "SET k -3", ":-3\r\n"},
	{"SET k 3", "INCRBY k 4", "SET k 7", ":7\r\n"},
	{"SET k 3", "DECR k", "SET k 2", ":2\r\n"},
	{"SET k x", "INCR k", "", ""},
	{"SET k 1.5 EX 10", "INCRBYFLOAT k 0.25", "SET k 1.75 PXAT 1700000010000", "$4\r\n1.75\r\n"},
	{"SET a 1;SET b 2", "DEL a b x a", "DEL a b", ":2\r\n"},
	{"", "DEL a b", "", ":0\r\n"},
	{"SET a 1", "UNLINK a a", "DEL a", ":1\r\n"},
	{"SET a 1 EX 10", "RENAME a b", "SET b 1 PXAT 1700000010000; DEL a", "+OK\r\n"},
	{"SET a 1;SET b 2 EX 10", "RENAME a b", "SET b 1; DEL a", "+OK\r\n"},
	{"SET a 1", "RENAME a a", "", "+OK\r\n"},
	{"SET a 1;SET b 1", "RENAMENX a b", "", ":0\r\n"},
	{"SET a 1", "RENAMENX a b", "SET b 1; DEL a", ":1\r\n"},
	{"SET a 1 EX 10", "COPY a b", "SET b 1 PXAT 1700000010000", ":1\r\n"},
	{"SET a 1;SET b 2", "COPY a b", "", ":0\r\n"},
	{"SET a 1;SET b 2", "COPY a b REPLACE", "SET b 1", ":1\r\n"},
	{"SET k v", "EXPIRE k 10", "PEXPIREAT k 1700000010000", ":1\r\n"},
	{"SET k v EX 10", "EXPIRE k 10", "PEXPIREAT k 1700000010000", ":1\r\n"},
	{"SET k v", "PEXPIRE k 10", "PEXPIREAT k 1700000000010", ":1\r\n"},
	{"SET k v", "EXPIREAT k 1800000000 NX", "PEXPIREAT k 1800000000000", ":1\r\n"},
	{"SET k v", "PEXPIREAT k 1", "DEL k", ":1\r\n"},
	{"SET k v", "EXPIRE k -1", "DEL k", ":1\r\n"},
	{"", "EXPIRE k 10", "", ":0\r\n"},
	{"SET k v", "EXPIRE k 10 XX", "", ":0\r\n"},
	{"SET k v EX 10", "PERSIST k", "PERSIST k", ":1\r\n"},
	{"SET k v", "PERSIST k", "", ":0\r\n"},
	{"SET k v", "FLUSHALL", "FLUSHALL", "+OK\r\n"},
	{"", "FLUSHDB ASYNC", "FLUSHALL", "+OK\r\n"},
	{"", "FLUSHALL x", "", ""},
	{"SET k v", "MOVE k 0", "", ""},
}

func TestEffects(t *testing.T) {
	for _, c := range effectCases {
		h := newHarness(t, 1)
		for line := range strings.SplitSeq(c.before, ";") {
			switch line {
			case "":
			case "tick": // the clock moves on
				h.ctx.Now += 100
			default:
				h.exec(fields(line))
			}
		}
		digest := h.digest()
		reply := h.exec(fields(c.request))
		if got := h.did; got != c.want {
			t.Errorf("%s; %s: effects %q, want %q", c.before, c.request, got, c.want)
		}
		if c.reply != "" && reply != c.reply {
			t.Errorf("%s; %s: reply %q, want %q", c.before, c.request, reply, c.reply)
		}
		if c.want == "" && h.digest() != digest {
			t.Errorf("%s; %s: no effects, but the state changed", c.before, c.request)
		}
	}
}

// fields splits a request; "" is an empty argument.
func fields(line string) [][]byte {
	args := words(strings.Fields(line)...)
	for i, a := range args {
		if string(a) == `""` {
			args[i] = []byte{}
		}
	}
	return args
}

// TestEveryWriteRowIsTested makes sure that no write command is forgotten in effectCases, and that
// the verbs a row names in Effects are the ones its planner plans.
func TestEveryWriteRowIsTested(t *testing.T) {
	planned := map[string]map[string]bool{}
	for _, c := range effectCases {
		name := strings.ToLower(string(fields(c.request)[0]))
		if row, _ := Resolve(fields(c.request)); row != nil {
			name = row.Name // a subcommand's
		}
		if planned[name] == nil {
			planned[name] = map[string]bool{}
		}
		for e := range strings.SplitSeq(c.want, "; ") {
			if verb, _, _ := strings.Cut(e, " "); verb != "" && !strings.HasSuffix(e, "(expired)") {
				planned[name][verb] = true
			}
		}
	}
	for _, c := range All() {
		if c.Flags&Write == 0 || c.Plan == nil {
			continue
		}
		verbs, ok := planned[c.Name]
		if !ok {
			t.Errorf("%s writes, but no effect case is about it", c.Name)
		}
		for verb := range verbs {
			if !strings.Contains(c.Effects, verb) {
				t.Errorf("%s plans %s, its row says %q", c.Name, verb, c.Effects)
			}
		}
	}
}

// TestDueKeysAreNotUsed runs every case on keys whose deadline has passed but whose records are still
// there: they must act as if they were not.
func TestDueKeysAreNotUsed(t *testing.T) {
	const due = "SET k old PXAT 1700000000001;SET a 1 PXAT 1700000000001;SET b 2 PXAT 1700000000001"
	for _, c := range effectCases {
		dead, fresh := newHarness(t, 2), newHarness(t, 2)
		for line := range strings.SplitSeq(due, ";") {
			dead.exec(fields(line))
		}
		dead.ctx.Now, fresh.ctx.Now = testNow+1, testNow+1
		got, want := dead.exec(fields(c.request)), fresh.exec(fields(c.request))
		if got != want {
			t.Errorf("%s: reply %q on dead keys, %q on none", c.request, got, want)
		}
		for _, key := range []string{"k", "a", "b"} {
			for _, read := range []string{"GET", "PEXPIRETIME", "EXISTS"} {
				if got, want := dead.run(read, key), fresh.run(read, key); got != want {
					t.Errorf("%s: then %s %s is %q on dead keys, %q on none", c.request, read, key, got, want)
				}
			}
		}
	}
}

func TestDropExpiredIsMarked(t *testing.T) {
	h := newHarness(t, 1)
	h.run("SET", "k", "old", "PX", "1")
	h.ctx.Now++
	h.run("SETRANGE", "k", "1", "x")
	if got, want := h.did, "DEL k (expired); SETRANGE k 1 x"; got != want {
		t.Errorf("effects %q, want %q", got, want)
	}
	if got := h.run("GET", "k"); got != "$2\r\n\x00x\r\n" {
		t.Errorf("value %q", got)
	}
}

// TestShards checks that effects over several shards are split, and that no shard count changes the
// outcome.
func TestShards(t *testing.T) {
	one, many := newHarness(t, 1), newHarness(t, 5)
	pairs, keys := []string{"MSET"}, []string{"DEL"}
	for i := range 60 {
		key := fmt.Sprint("key", i%50)
		pairs, keys = append(pairs, key, fmt.Sprint(i)), append(keys, key)
	}
	for _, request := range [][]string{pairs, keys[:40], {"RENAME", "key45", "key1"}, {"COPY", "key46", "key2"}} {
		if a, b := one.run(request...), many.run(request...); a != b {
			t.Fatalf("%s: %q on one shard, %q on five", request[0], a, b)
		}
		if one.digest() != many.digest() {
			t.Fatalf("%s: states differ", request[0])
		}
		for _, p := range many.ctx.Planned() {
			if p.Shard < 0 || p.Shard > 4 || len(p.Effect.Args) == 0 {
				t.Errorf("%s: %s on shard %d", request[0], p.Effect.Op, p.Shard)
			}
		}
	}
	many.run("MSET", "x", "1")
	if got := many.did; got != "MSET x 1" {
		t.Errorf("effects %q", got)
	}
	many.run("FLUSHALL")
	if p := many.ctx.Planned(); len(p) != 1 || p[0].Shard != AllShards || p[0].Effect.Op != effect.FlushAll {
		t.Errorf("planned %v", p)
	}
	if got := many.run("DBSIZE"); got != ":0\r\n" {
		t.Errorf("DBSIZE %q", got)
	}
}

func TestScanFindsEveryKeyOnce(t *testing.T) {
	h := newHarness(t, 3)
	want := map[string]bool{}
	for i := range 1000 {
		key := fmt.Sprint("key:", i)
		h.run("SET", key, "v")
		want[key] = true
	}
	h.run("SET", "dead", "v", "PX", "1")
	h.ctx.Now += 10
	for _, count := range []string{"1", "7", "10", "333", "100000"} {
		seen := map[string]int{}
		cursor, calls := "0", 0
		for {
			reply := strings.Split(h.run("SCAN", cursor, "COUNT", count, "MATCH", "*"), "\r\n")
			for i := 5; i < len(reply)-1; i += 2 {
				seen[reply[i]]++
			}
			calls++
			if cursor = reply[2]; cursor == "0" {
				break
			}
			if len(cursor) > 16 {
				t.Fatalf("cursor %s is above 2^53", cursor)
			}
		}
		for key := range want {
			if seen[key] != 1 {
				t.Errorf("COUNT %s: %s seen %d times", count, key, seen[key])
			}
		}
		if len(seen) != len(want) {
			t.Errorf("COUNT %s: %d keys", count, len(seen))
		}
		if count == "10" && (calls < 95 || calls > 105) {
			t.Errorf("COUNT 10 took %d calls", calls)
		}
	}
	for _, cursor := range []string{"844424930131968", "9007199254740992", "18446744073709551615", "-1"} {
		if got := h.run("SCAN", cursor); got != "*2\r\n$1\r\n0\r\n*0\r\n" {
			t.Errorf("SCAN %s: %q", cursor, got)
		}
	}
}

func TestRandomKey(t *testing.T) {
	h := newHarness(t, 3)
	if got := h.run("RANDOMKEY"); got != "$-1\r\n" {
		t.Errorf("on nothing: %q", got)
	}
	for i := range 30 {
		h.run("SET", fmt.Sprint("dead", i), "v", "PX", "1")
	}
	h.run("SET", "live", "v")
	h.ctx.Now += 10
	for i := range 200 {
		h.ctx.Rand = uint64(i) * 0x9e3779b97f4a7c15
		if got := h.run("RANDOMKEY"); got != "$4\r\nlive\r\n" {
			t.Fatalf("%q", got)
		}
	}
	h.run("DEL", "live")
	if got := h.run("RANDOMKEY"); got != "$-1\r\n" {
		t.Errorf("on dead keys only: %q", got)
	}
	for i := range 20 {
		h.run("SET", fmt.Sprint("live", i), "v")
	}
	seen := map[string]bool{}
	for i := range 2000 {
		h.ctx.Rand = mix(uint64(i))
		seen[h.run("RANDOMKEY")] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d of 20 keys drawn", len(seen))
	}
}

func TestPrefix(t *testing.T) {
	h := newHarness(t, 3)
	for i := range 10 {
		h.run("SET", fmt.Sprint("a:", i), "v")
		h.run("SET", fmt.Sprint("b:", i), "v", "PX", fmt.Sprint(100+i))
	}
	h.ctx.Now += 105
	if got := h.run("PREFIX.STATS", "b:"); got != "*4\r\n$4\r\nkeys\r\n:4\r\n$7\r\nexpires\r\n:4\r\n" {
		t.Errorf("%q", got)
	}
	h.w.Proto = 3
	if got := h.run("PREFIX.STATS", ""); got != "%2\r\n$4\r\nkeys\r\n:14\r\n$7\r\nexpires\r\n:4\r\n" {
		t.Errorf("%q", got)
	}
	one := newHarness(t, 1)
	one.ctx.Now = h.ctx.Now
	for i := range 10 {
		one.run("SET", fmt.Sprint("a:", 9-i), "v")
	}
	if a, b := h.run("PREFIX.DIGEST", "a:"), one.run("PREFIX.DIGEST", ""); a != b || !strings.HasPrefix(a, "*2\r\n:10\r\n$16\r\n") {
		t.Errorf("digests %q, %q", a, b)
	}
}

func TestObjectAndMemory(t *testing.T) {
	h := newHarness(t, 2)
	h.run("SET", "k", "v")
	h.ctx.Now += 90_000
	if got := h.run("OBJECT", "IDLETIME", "k"); got != ":90\r\n" {
		t.Errorf("idle time %q", got)
	}
	h.ctx.NoTouch = true
	h.run("GET", "k")
	if got := h.run("OBJECT", "IDLETIME", "k"); got != ":90\r\n" {
		t.Errorf("idle time after an untouched GET %q", got)
	}
	h.ctx.NoTouch = false
	h.run("TOUCH", "k")
	if got := h.run("OBJECT", "IDLETIME", "k"); got != ":0\r\n" {
		t.Errorf("idle time after TOUCH %q", got)
	}
	h.ctx.LFU = true
	if got := h.run("OBJECT", "IDLETIME", "k"); got != "-"+msgIdleLFU+"\r\n" {
		t.Errorf("%q", got)
	}
	if got := h.run("OBJECT", "FREQ", "k"); got != ":5\r\n" {
		t.Errorf("%q", got)
	}
	for request, want := range map[string]string{
		"MEMORY USAGE k":            fmt.Sprintf(":%d\r\n", recordOverhead+2),
		"MEMORY USAGE x":            "$-1\r\n",
		"MEMORY USAGE k SAMPLES 0":  fmt.Sprintf(":%d\r\n", recordOverhead+2),
		"MEMORY USAGE k SAMPLES -1": "-" + msgSyntax + "\r\n",
		"MEMORY USAGE k SAMPLES x":  "-" + msgNotInteger + "\r\n",
		"MEMORY USAGE k SAMPLES":    "-" + msgSyntax + "\r\n",
		"MEMORY USAGE k FOO 1":      "-" + msgSyntax + "\r\n",
	} {
		if got := h.exec(fields(request)); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
}

func TestMaxBulk(t *testing.T) {
	h := newHarness(t, 1)
	h.ctx.MaxBulk = 100
	h.run("SET", "k", strings.Repeat("x", 60))
	tooLong := "-" + MsgTooLong + "\r\n"
	for _, request := range [][]string{
		{"APPEND", "k", strings.Repeat("x", 41)}, {"SETRANGE", "k", "99", "xx"}, {"SETRANGE", "n", "100", "x"},
	} {
		if got := h.run(request...); got != tooLong {
			t.Errorf("%q: %q", request, got)
		}
	}
	if got := h.run("LCS", "k", "k"); got != "-"+msgLCSMemory+"\r\n" {
		t.Errorf("%q", got)
	}
	if got := h.run("SETRANGE", "k", "99", "x"); got != ":100\r\n" {
		t.Errorf("%q", got)
	}
}

func TestHotPlannersDoNotAllocate(t *testing.T) {
	for _, shards := range []int{1, 3} {
		h := newHarness(t, shards)
		h.run("SET", "k", "v", "EX", "100")
		for _, request := range []string{
			"GET k", "SET k v", "SET k v EX 10", "DEL k", "EXPIRE k 10", "TTL k",
			"INCR n", "EXISTS k", "APPEND k x", "MSET k 1 n 2 m 3", "MGET k n m", "GET missing",
		} {
			args := fields(request)
			h.plan(args)
			if n := testing.AllocsPerRun(100, func() { h.plan(args) }); n != 0 {
				t.Errorf("%d shards: %s: %v allocations", shards, request, n)
			}
		}
	}
}

func TestFlagNames(t *testing.T) {
	if got := (Write | Fast | Slow | Protected | MovableKeys).Names(); !slices.Equal(got,
		[]string{"write", "fast", "movablekeys"}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, request := range []string{"GET k", "SET k v", "SET k v EX 10", "INCR n", "EXPIRE k 10"} {
		b.Run(request, func(b *testing.B) {
			h := newHarness(b, 2)
			h.run("SET", "k", "v")
			args := fields(request)
			b.ReportAllocs()
			for b.Loop() {
				h.plan(args)
			}
		})
	}
}
