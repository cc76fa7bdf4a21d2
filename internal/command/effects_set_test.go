package command

import (
	"fmt"
	"strings"
	"testing"
)

func init() {
	effectCases = append(effectCases, setEffectCases...)
	effectCases = append(effectCases, sortEffectCases...)
}

var setEffectCases = []effectCase{
	{"", "SADD s a", "SADD s a", ":1\r\n"},
	{"", "SADD s a b a", "SADD s a b", ":2\r\n"},
	{"SADD s a", "SADD s a", "", ":0\r\n"},
	{"SADD s a b", "SADD s b a b", "", ":0\r\n"},
	{"SADD s a", "SADD s b a c b", "SADD s b c", ":2\r\n"},
	{"SADD s a;PEXPIRE s 1;tick", "SADD s a", "DEL s (expired); SADD s a", ":1\r\n"},
	{"SADD s a b", "SREM s b x b", "SREM s b", ":1\r\n"},
	{"SADD s a b", "SREM s b a", "SREM s b a", ":2\r\n"},
	{"SADD s a", "SREM s x", "", ":0\r\n"},
	{"SADD s a", "SREM s x y", "", ":0\r\n"},
	{"", "SREM s x", "", ":0\r\n"},
	{"SET s v", "SADD s a", "", ""},
	{"SADD a 1 2;SADD b 3", "SMOVE a b 1", "SREM a 1; SADD b 1", ":1\r\n"},
	{"SADD a 1 2;SADD b 1", "SMOVE a b 1", "SREM a 1", ":1\r\n"},
	{"SADD a 1", "SMOVE a b 1", "SREM a 1; SADD b 1", ":1\r\n"},
	{"SADD a 1", "SMOVE a a 1", "", ":1\r\n"},
	{"SADD a 1", "SMOVE a b 2", "", ":0\r\n"},
	{"SADD a 1;SADD b 2;PEXPIRE b 1;tick", "SMOVE a b 1", "SREM a 1; DEL b (expired); SADD b 1", ":1\r\n"},
	{"SADD s a", "SPOP s", "SREM s a", "$1\r\na\r\n"},
	{"SADD s 7", "SPOP s", "SREM s 7", "$1\r\n7\r\n"},
	{"SADD s a", "SPOP s 5", "DEL s", ""},
	{"SADD s a", "SPOP s 0", "", "*0\r\n"},
	{"", "SPOP s", "", "$-1\r\n"},
	{"SADD a 1 2 x;SADD b 2 x", "SINTERSTORE d a b", "SADD d 2 x", ":2\r\n"},
	{"SADD a 1 2 x;SADD b 2 x", "SINTERSTORE a a b", "DEL a; SADD a 2 x", ":2\r\n"},
	{"SADD a 1;SET d v", "SUNIONSTORE d a", "DEL d; SADD d 1", ":1\r\n"},
	{"SADD a 1;SET d v", "SINTERSTORE d a b", "DEL d", ":0\r\n"},
	{"SADD a 1", "SINTERSTORE d a b", "", ":0\r\n"},
	{"SADD a 1 x;SADD b x", "SDIFFSTORE d a b", "SADD d 1", ":1\r\n"},
	{"SADD a 1;SET d v PX 1;tick", "SUNIONSTORE d a", "DEL d (expired); SADD d 1", ":1\r\n"},
	{"SADD a 1;EXPIRE a 10", "RENAME a b", "SADD b 1; PEXPIREAT b 1700000010000; DEL a", "+OK\r\n"},
}

// TestRandomMembersAreFair draws from small, large and mixed sets: every member about as often.
func TestRandomMembersAreFair(t *testing.T) {
	for _, size := range []int{10, 100, 1000} {
		for _, format := range []string{"%d", "m%d", "%d000000"} {
			h := newHarness(t, 1)
			for i := range size {
				h.run("SADD", "s", fmt.Sprintf(format, i))
			}
			const rounds = 200
			count := map[string]int{}
			note := func(reply string) {
				words := strings.Split(reply, "\r\n")
				for i := range words {
					if i > 0 && strings.HasPrefix(words[i-1], "$") {
						count[words[i]]++
					}
				}
			}
			for i := range rounds {
				h.ctx.Rand = uint64(i)
				note(h.run("SRANDMEMBER", "s", fmt.Sprint(-size)))
				note(h.run("SRANDMEMBER", "s", fmt.Sprint(size/10)))
				note(h.run("SRANDMEMBER", "s", fmt.Sprint(size/2)))
			}
			want := rounds + rounds/10 + rounds/2
			for i := range size {
				if n := count[fmt.Sprintf(format, i)]; n < want*6/10 || n > want*14/10 {
					t.Errorf("%d of %q: %d came %d times, expected about %d", size, format, i, n, want)
				}
			}
		}
	}
}

// TestSetReadsDoNotAllocate covers the paths that clients take most.
func TestSetReadsDoNotAllocate(t *testing.T) {
	for _, members := range []int{3, 100, 5000} {
		h := newHarness(t, 1)
		for i := range members {
			h.run("SADD", "i", fmt.Sprint(i))
			h.run("SADD", "s", fmt.Sprint("m", i))
		}
		for _, request := range []string{
			"SISMEMBER i 2", "SISMEMBER s m2", "SADD i 2", "SADD s m2", "SREM i x", "SCARD s",
			"SMISMEMBER s m1 m2", "SRANDMEMBER s", "SRANDMEMBER i", "SPOP s", "SPOP i", "SADD i 1000000", "SADD s z",
		} {
			args := fields(request)
			h.plan(args)
			if n := testing.AllocsPerRun(100, func() { h.plan(args) }); n > 0 {
				t.Errorf("%s with %d members: %v allocations", request, members, n)
			}
		}
	}
}
