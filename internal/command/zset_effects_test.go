package command

import (
	"testing"

	"github.com/kevydb/kevy/state"
)

func init() { effectCases = append(effectCases, zsetEffectCases...) }

var zsetEffectCases = []effectCase{
	{"", "ZADD k 1 a 2.50 b", "ZADD k 1 a 2.5 b", ":2\r\n"},
	{"ZADD k 1 a", "ZADD k 1 a", "", ":0\r\n"},
	{"ZADD k 1 a", "ZADD k 2 a 3 b 1 a", "ZADD k 3 b", ":1\r\n"},
	{"ZADD k 1 a", "ZADD k CH 2 a 3 a 4 c 4 c", "ZADD k 3 a 4 c", ":3\r\n"},
	{"ZADD k 1 a", "ZADD k NX 2 a", "", ":0\r\n"},
	{"ZADD k 1 a", "ZADD k XX 2 b", "", ":0\r\n"},
	{"", "ZADD k XX 2 b", "", ":0\r\n"},
	{"ZADD k 1 a", "ZADD k GT CH 0 a 5 b", "ZADD k 5 b", ":1\r\n"},
	{"ZADD k 1 a", "ZADD k LT CH 0 a 5 b", "ZADD k 0 a 5 b", ":2\r\n"},
	{"ZADD k 1 a", "ZADD k INCR 0.5 a", "ZADD k 1.5 a", "$3\r\n1.5\r\n"},
	{"ZADD k inf a", "ZADD k INCR -inf a", "", "-ERR resulting score is not a number (NaN)\r\n"},
	{"ZADD k 1 a", "ZADD k GT INCR -1 a", "", "$-1\r\n"},
	{"ZADD k 0 a", "ZADD k -0 a", "", ":0\r\n"},
	{"SET k v", "ZADD k 1 a", "", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
	{"", "ZADD k 0x10 a +1e3 b inf c -infinity d", "ZADD k 16 a 1000 b inf c -inf d", ":4\r\n"},
	{"", "ZADD k -0 a", "ZADD k 0 a", ":1\r\n"},
	{"", "ZADD k nan a", "", "-ERR value is not a valid float\r\n"},
	{"ZADD k 1 a", "ZINCRBY k 2 a", "ZADD k 3 a", "$1\r\n3\r\n"},
	{"", "ZINCRBY k 2 a", "ZADD k 2 a", "$1\r\n2\r\n"},
	{"", "ZINCRBY k GT a", "", "-ERR syntax error\r\n"}, // an option of ZADD
	{"ZADD k 1 a", "ZINCRBY k 0 a", "", "$1\r\n1\r\n"},
	{"ZADD k 1 a 2 b 3 c", "ZREM k b x b a", "ZREM k b a", ":2\r\n"},
	{"", "ZREM k b", "", ":0\r\n"},
	{"ZADD k 1 a 2 b 3 c", "ZREMRANGEBYRANK k 1 -1", "ZREM k b c", ":2\r\n"},
	{"ZADD k 1 a 2 b 3 c", "ZREMRANGEBYRANK k 5 9", "", ":0\r\n"},
	{"ZADD k 1 a 2 b 3 c", "ZREMRANGEBYSCORE k (1 2", "ZREM k b", ":1\r\n"},
	{"ZADD k 1 a 1 b 1 c", "ZREMRANGEBYLEX k - (c", "ZREM k a b", ":2\r\n"},
	{"ZADD k 1 a 2 b", "ZPOPMIN k", "ZREM k a", "*2\r\n$1\r\na\r\n$1\r\n1\r\n"},
	{"ZADD k 1 a 2 b", "ZPOPMAX k 5", "ZREM k a b", "*4\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\n1\r\n"},
	{"ZADD k 1 a 2 b", "ZPOPMAX k 0", "", "*0\r\n"},
	{"", "ZPOPMAX k", "", "*0\r\n"},
	{"ZADD k 1 a 2 b", "ZMPOP 2 x k MAX COUNT 1", "ZREM k b", ""},
	{"", "ZMPOP 1 k MIN", "", "*-1\r\n"},
	{"ZADD k 1 a 2 b;SET d v", "ZRANGESTORE d k 0 0", "DEL d; ZADD d 1 a", ":1\r\n"},
	{"ZADD k 1 a 2 b", "ZRANGESTORE k k 0 0", "DEL k; ZADD k 1 a", ":1\r\n"},
	{"ZADD k 1 a 2 b", "ZRANGESTORE d k 5 6", "", ":0\r\n"},
	{"ZADD d 1 a", "ZRANGESTORE d k 5 6", "DEL d", ":0\r\n"},
	{"ZADD a 1 x 2 y;ZADD b 5 y", "ZUNIONSTORE d 2 a b", "ZADD d 1 x 7 y", ":2\r\n"},
	{"ZADD a 1 x 2 y;ZADD b 5 y", "ZINTERSTORE a 2 a b WEIGHTS 2 1 AGGREGATE MIN", "DEL a; ZADD a 4 y", ":1\r\n"},
	{"ZADD a 1 x 2 y;ZADD b 5 y", "ZDIFFSTORE b 2 a b", "DEL b; ZADD b 1 x", ":1\r\n"},
	{"ZADD b 5 y", "ZDIFFSTORE b 2 b b", "DEL b", ":0\r\n"},
	{"ZADD k 1.5 a", "RENAME k q", "ZADD q 1.5 a; DEL k", "+OK\r\n"},
	{"ZADD k 1.5 a;EXPIRE k 10;SET q v", "COPY k q REPLACE", "DEL q; ZADD q 1.5 a; PEXPIREAT q 1700000010000", ":1\r\n"},
}

// TestZSetPiecesAreBounded: what changes many elements is cut into effects of bounded size.
func TestZSetPiecesAreBounded(t *testing.T) {
	h := newHarness(t, 2)
	args := []string{"ZADD", "k"}
	for i := range 2000 {
		args = append(args, string(h.ctx.Int(int64(i))), "member"+string(h.ctx.Int(int64(i))))
	}
	check := func(request []string, want, least int) {
		t.Helper()
		h.exec(words(request...))
		if n := len(h.ctx.Planned()); n < least {
			t.Errorf("%.40q: %d effects", request, n)
		}
		for _, p := range h.ctx.Planned() {
			if len(p.Effect.Args) > 1+2*pieceElements {
				t.Errorf("%.40q: an effect with %d arguments", request, len(p.Effect.Args))
			}
		}
		h.ctx.Reset()
		if got := h.run("ZCARD", "k"); got != ":"+string(h.ctx.Int(int64(want)))+"\r\n" {
			t.Errorf("%.40q: ZCARD %s", request, got)
		}
	}
	check(args, 2000, 4)
	check([]string{"ZREMRANGEBYRANK", "k", "0", "999"}, 1000, 2)
	check([]string{"ZUNIONSTORE", "k", "1", "k"}, 1000, 3)
	check([]string{"ZPOPMAX", "k", "1000"}, 0, 1)
}

func TestZSetHotPlannersDoNotAllocate(t *testing.T) {
	for _, size := range []int{5, 300} {
		h := newHarness(t, 3)
		for i := range size {
			h.run("ZADD", "k", string(h.ctx.Int(int64(i))), "m"+string(h.ctx.Int(int64(i))))
		}
		for _, request := range []string{
			"ZADD k 1.5 m3", "ZADD k 7 new", "ZINCRBY k 2 m3", "ZSCORE k m4", "ZRANK k m4",
			"ZRANGE k 0 3", "ZRANGE k 1 3 BYSCORE LIMIT 0 2", "ZCOUNT k 1 3", "ZREM k m1", "ZPOPMIN k", "ZCARD k",
			"ZMSCORE k m1 m2", "ZRANGEBYSCORE k -inf (3 WITHSCORES", "ZREVRANGE k 0 -1",
		} {
			args := fields(request)
			h.plan(args)
			if n := testing.AllocsPerRun(100, func() { h.plan(args) }); n != 0 {
				t.Errorf("%d elements: %s: %v allocations", size, request, n)
			}
		}
	}
}

func BenchmarkPlanZSet(b *testing.B) {
	for _, request := range []string{"ZADD k 7.5 m3", "ZSCORE k m4", "ZRANK k m4", "ZRANGE k 0 99", "ZRANGEBYSCORE k 10 20"} {
		b.Run(request, func(b *testing.B) {
			h := newHarness(b, 2)
			for i := range 1000 {
				h.run("ZADD", "k", string(h.ctx.Int(int64(i))), "m"+string(h.ctx.Int(int64(i))))
			}
			args := fields(request)
			b.ReportAllocs()
			for b.Loop() {
				h.plan(args)
			}
		})
	}
}

func init() { effectCases = append(effectCases, zsetBlockingCases...) }

var zsetBlockingCases = []effectCase{
	{"ZADD k 1 a 2 b", "BZPOPMIN x k 0", "ZREM k a", "*3\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\n1\r\n"},
	{"ZADD k 1 a 2 b", "BZPOPMAX k 1.5", "ZREM k b", "*3\r\n$1\r\nk\r\n$1\r\nb\r\n$1\r\n2\r\n"},
	{"", "BZPOPMAX k 1.5", "", "*-1\r\n"},
	{"SET x v;ZADD k 1 a", "BZPOPMAX x k 1", "", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
	{"", "BZPOPMAX k -1", "", "-ERR timeout is negative\r\n"},
	{"ZADD k 1 a 2 b", "BZMPOP 0 2 x k MIN COUNT 5", "ZREM k a b", ""},
	{"", "BZMPOP 1 1 k MIN", "", "*-1\r\n"},
	{"", "BZMPOP x 1 k MIN", "", "-ERR timeout is not a float or out of range\r\n"},
	{"", "BZMPOP x 0 k MIN", "", "-ERR numkeys should be greater than 0\r\n"},
}

// TestZSetBlocking: a blocking command that finds nothing asks to wait, and answers nothing.
func TestZSetBlocking(t *testing.T) {
	h := newHarness(t, 1)
	h.ctx.CanBlock = true
	for _, request := range []string{"BZPOPMIN a b 2", "BZPOPMAX a b 2", "BZMPOP 2 2 a b MAX"} {
		if reply := h.exec(fields(request)); reply != "" {
			t.Errorf("%s: replies %q", request, reply)
		}
		w := h.ctx.Waits()
		if w == nil || w.Kind != state.TypeZSet || len(w.Keys) != 2 || w.Deadline != h.ctx.Now+2000 {
			t.Errorf("%s: waits for %+v", request, w)
		}
	}
}
