package command

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/rdb"
)

// bulk returns the content of a bulk reply.
func bulk(t *testing.T, reply string) string {
	t.Helper()
	head, rest, _ := strings.Cut(reply, "\r\n")
	if head == "" || head[0] != '$' || head == "$-1" {
		t.Fatalf("no bulk: %.200q", reply)
	}
	return strings.TrimSuffix(rest, "\r\n")
}

// dumpMakers make a key of each type, small and large.
var dumpMakers = map[string]func(r *rand.Rand, n int) [][]string{
	"string": func(r *rand.Rand, n int) [][]string {
		return [][]string{{"SET", "k", [...]string{
			"", "0", "-1", "127", "-128", "128", "32767", "-32769", "2147483647", "2147483648", "007", "-0",
			strings.Repeat("ab", n*20), "x\x00\r\n\xff", strings.Repeat("z", 70000), strings.Repeat("abc", 3),
		}[r.IntN(16)]}}
	},
	"list": func(r *rand.Rand, n int) [][]string { return [][]string{dumpItems(r, n, "RPUSH", "k")} },
	"set":  func(r *rand.Rand, n int) [][]string { return [][]string{dumpItems(r, n, "SADD", "k")} },
	"ints": func(r *rand.Rand, n int) [][]string {
		args := []string{"SADD", "k"}
		for range n {
			args = append(args, strconv.FormatInt(int64(r.Uint64())>>r.IntN(64), 10))
		}
		return [][]string{args}
	},
	"hash": func(r *rand.Rand, n int) [][]string { return [][]string{dumpItems(r, 2*n, "HSET", "k")} },
	"zset": func(r *rand.Rand, n int) [][]string {
		args := []string{"ZADD", "k"}
		scores := []string{"inf", "-inf", "0", "1", "-1", "1.5", "0.1", "3e300", "12345678901234567", "1e-300"}
		for i, m := range dumpItems(r, n) {
			args = append(args, scores[(i+r.IntN(2))%len(scores)], m)
		}
		return [][]string{args}
	},
	"stream": func(r *rand.Rand, n int) (all [][]string) {
		id := func(i int) string { return fmt.Sprint(1+i/3, "-", i%3*i) }
		for i := 1; i <= n; i++ {
			args := []string{"XADD", "k", id(i), "f", strconv.Itoa(i), "g", strings.Repeat("v", r.IntN(300))}
			if r.IntN(4) == 0 {
				args = append(args, "extra", "-7000")
			}
			all = append(all, args)
		}
		for range r.IntN(n) {
			all = append(all, []string{"XDEL", "k", id(1 + r.IntN(n))})
		}
		all = append(all, []string{"XGROUP", "CREATE", "k", "g", "0"}, []string{"XGROUP", "CREATE", "k", "12", "$", "ENTRIESREAD", "5"})
		if n > 1 {
			all = append(all, []string{"XGROUP", "CREATECONSUMER", "k", "g", "idle"})
			for i := range 3 {
				all = append(all, []string{"XGROUP", "CREATECONSUMER", "k", "g", "c" + strconv.Itoa(i)})
			}
			for i := 1; i < n; i += 2 {
				all = append(all, []string{"XCLAIM", "k", "g", "c" + strconv.Itoa(i%3), "0", id(i), "TIME", strconv.Itoa(1000 + i), "RETRYCOUNT", strconv.Itoa(i % 4), "FORCE", "JUSTID"})
			}
		}
		if r.IntN(5) == 0 {
			all = append(all, []string{"XTRIM", "k", "MAXLEN", "0"})
		}
		return all
	},
}

func dumpItems(r *rand.Rand, n int, args ...string) []string {
	for i := range n {
		s := strconv.Itoa(i - n/2)
		if r.IntN(2) == 0 {
			s = "e" + strconv.Itoa(i) + strings.Repeat("y", r.IntN(1+r.IntN(90)))
		}
		if r.IntN(60) == 0 {
			s += strings.Repeat("long", r.IntN(3000))
		}
		args = append(args, s)
	}
	return args
}

// readKey reads a whole key, with what the two servers have in common.
func readKey(run func(...string) string, key string) string {
	var out []string
	for _, args := range [][]string{
		{"TYPE"},
		{"GET"},
		{"STRLEN"},
		{"LRANGE", "0", "-1"},
		{"SMEMBERS"},
		{"SCARD"},
		{"HGETALL"},
		{"HLEN"},
		{"ZRANGE", "0", "-1", "WITHSCORES"},
		{"XRANGE", "-", "+"},
		{"XPENDING", "g"},
		{"XINFO GROUPS"},
		{"OBJECT ENCODING"},
	} {
		words := append(append(strings.Fields(args[0]), key), args[1:]...)
		reply, _, _ := strings.Cut(run(words...), " No such key '"+key)
		out = append(out, sortReply(reply))
	}
	if run("XLEN", key)[0] == ':' {
		full := run("XINFO", "STREAM", key)
		for _, name := range []string{"last-generated-id", "max-deleted-entry-id", "entries-added", "recorded-first-entry-id", "first-entry"} {
			if _, v, ok := strings.Cut(full, name+"\r\n"); ok {
				out = append(out, name, v[:min(40, len(v))])
			}
		}
		reply, _, _ := strings.Cut(run("XPENDING", key, "g", "-", "+", "10000"), " No such key '"+key)
		out = append(out, maskIdle(reply))
	}
	return strings.Join(out, "\n")
}

// firstDifference shows where two texts differ.
func firstDifference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	from := max(0, i-80)
	return fmt.Sprintf(" got  %.400q\n want %.400q", got[from:], want[from:])
}

// TestOracleDump restores redis-server's payloads here, and ours there.
func TestOracleDump(t *testing.T) {
	o := startOracle(t)
	theirs := func(args ...string) string { return o.run(t, words(args...)) }
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	for name, fill := range dumpMakers {
		for seed := range rounds {
			r := rand.New(rand.NewPCG(uint64(seed), 77))
			h := newHarness(t, 1+seed%3)
			h.ctx.Now = time.Now().UnixMilli()
			theirs("FLUSHALL")
			for _, args := range fill(r, 1+r.IntN([]int{5, 100, 700}[seed%3])) {
				got, want := h.run(args...), theirs(args...)
				if got != want {
					t.Fatalf("%s %d: %.100q: %q, want %q", name, seed, args, got, want)
				}
			}
			ours, payload := bulk(t, h.run("DUMP", "k")), bulk(t, theirs("DUMP", "k"))
			if reply := h.run("RESTORE", "theirs", "0", payload); reply != "+OK\r\n" {
				t.Fatalf("%s %d: RESTORE of %.200q: %q", name, seed, payload, reply)
			}
			if reply := theirs("RESTORE", "ours", "0", ours); reply != "+OK\r\n" {
				t.Fatalf("%s %d: redis-server's RESTORE of %.200q: %q", name, seed, ours, reply)
			}
			want := readKey(h.run, "k")
			if got := readKey(h.run, "theirs"); got != want {
				t.Fatalf("%s %d: restored from redis-server\n%s", name, seed, firstDifference(got, want))
			}
			if got, want := readKey(theirs, "ours"), readKey(theirs, "k"); got != want {
				t.Fatalf("%s %d: restored there\n%s", name, seed, firstDifference(got, want))
			}
			if got := bulk(t, h.run("DUMP", "theirs")); got != ours && name != "set" && name != "ints" && name != "hash" && name != "stream" {
				t.Fatalf("%s %d: dumped again\n got  %.500q\n want %.500q", name, seed, got, ours)
			}
		}
	}
}

func TestRestore(t *testing.T) {
	h := newHarness(t, 2)
	h.run("HSET", "h", "a", "1", "b", "2", "c", "3")
	h.run("HPEXPIREAT", "h", strconv.Itoa(testNow+500), "FIELDS", "1", "a")
	h.run("HPEXPIREAT", "h", strconv.Itoa(testNow+9000), "FIELDS", "1", "b")
	payload := bulk(t, h.run("DUMP", "h"))
	h.run("RESTORE", "g", "1000", payload)
	if got := h.did; !strings.HasPrefix(got, "HSET g ") || !strings.HasSuffix(got,
		"; HPEXPIREAT g 1700000000500 FIELDS 1 a; HPEXPIREAT g 1700000009000 FIELDS 1 b; PEXPIREAT g 1700000001000") {
		t.Errorf("effects %q", got)
	}
	h.ctx.Now += 600
	h.run("RESTORE", "late", "0", payload)
	if got := h.run("HGET", "late", "a"); got != "$-1\r\n" {
		t.Errorf("a field past its deadline: %q", got)
	}
	if got := h.run("HPTTL", "late", "FIELDS", "2", "b", "c"); got != "*2\r\n:8400\r\n:-1\r\n" {
		t.Errorf("deadlines %q", got)
	}
	h.ctx.Now += 100_000
	h.run("HDEL", "h", "c")
	none := string(rdb.Append(nil, &rdb.Value{Kind: rdb.Hash, Items: words("a", "1"), Deadlines: []int64{testNow}}, false))
	if got := h.run("RESTORE", "none", "9", none); got != "+OK\r\n" || h.did != "" {
		t.Errorf("a hash of fields past their deadlines: %q %q", got, h.did)
	}
	for range 3 {
		h.run("RPUSH", "l", "a", "b")
	}
	payload = bulk(t, h.run("DUMP", "l"))
	for _, c := range []struct {
		args        []string
		want, reply string
	}{
		{[]string{"l", "0", payload}, "", "-" + msgBusyKey + "\r\n"},
		{[]string{"l", "0", payload, "REPLACE"}, "DEL l; RPUSH l a b a b a b", "+OK\r\n"},
		{[]string{"l", "1", payload, "REPLACE", "ABSTTL"}, "DEL l", "+OK\r\n"},
		{[]string{"l", "1", payload, "REPLACE", "ABSTTL"}, "", "+OK\r\n"},
		{[]string{"l", "1900000000000", payload, "absttl", "IDLETIME", "5"}, "RPUSH l a b a b a b; PEXPIREAT l 1900000000000", "+OK\r\n"},
		{[]string{"m", "9223372036854775807", payload}, "", "-ERR invalid expire time in 'restore' command\r\n"},
		{[]string{"m", "0", payload[:len(payload)-1]}, "", "-" + msgDumpVersion + "\r\n"},
		{[]string{"m", "0", none[:1]}, "", "-" + msgDumpVersion + "\r\n"},
	} {
		if got := h.run(append([]string{"RESTORE"}, c.args...)...); got != c.reply || h.did != c.want {
			t.Errorf("%q: %q %q, want %q %q", c.args, got, h.did, c.reply, c.want)
		}
	}
}

// FuzzRestore restores payloads with the right checksum around anything.
func FuzzRestore(f *testing.F) {
	for name, fill := range dumpMakers {
		_ = name
		h := newHarness(f, 1)
		for _, args := range fill(rand.New(rand.NewPCG(1, 2)), 4) {
			h.run(args...)
		}
		_, reply, _ := strings.Cut(h.run("DUMP", "k"), "\r\n")
		f.Add([]byte(reply[:len(reply)-12]))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h := newHarness(t, 2)
		if h.run("RESTORE", "k", "0", string(rdb.Seal(body))) != "+OK\r\n" {
			return
		}
		payload := bulk(t, h.run("DUMP", "k"))
		if reply := h.run("RESTORE", "l", "0", payload); reply != "+OK\r\n" {
			t.Fatalf("our own payload: %q", reply)
		}
		if got, want := readKey(h.run, "l"), readKey(h.run, "k"); got != want {
			t.Fatalf("restored again:\n%q\n%q", got, want)
		}
	})
}
