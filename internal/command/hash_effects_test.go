package command

import (
	"fmt"
	"strings"
	"testing"
)

func init() { effectCases = append(effectCases, hashEffects...) }

// hashEffects are the effects of the hash family. The clock stands at 1700000000000.
var hashEffects = []effectCase{
	{"", "HSET h a 1 b 2 a 3", "HSET h a 1 b 2 a 3", ":2\r\n"},
	{"HSET h a 1", "HSET h a 1 c 2", "HSET h a 1 c 2", ":1\r\n"},
	{"", "HSET h a 1 b", "", ""},
	{"SET k v", "HSET k a 1", "", "-" + msgWrongType + "\r\n"},
	{"", "HMSET h a 1", "HSET h a 1", "+OK\r\n"},
	{"", "HSETNX h a 1", "HSET h a 1", ":1\r\n"},
	{"HSET h a 1", "HSETNX h a 2", "", ":0\r\n"},
	{"HSET h a 1 b 2 c 3", "HDEL h a x b a", "HDEL h a b", ":2\r\n"},
	{"HSET h a 1", "HDEL h x", "", ":0\r\n"},
	{"", "HDEL h x", "", ":0\r\n"},
	{"HSET h a 1", "HDEL h a", "HDEL h a", ":1\r\n"},
	{"", "HINCRBY h n 5", "HSET h n 5", ":5\r\n"},
	{
		"HSET h n 5;HPEXPIREAT h 1700000009000 FIELDS 1 n", "HINCRBY h n -7",
		"HSET h n -2; HPEXPIREAT h 1700000009000 FIELDS 1 n", ":-2\r\n",
	},
	{"HSET h n x", "HINCRBY h n 1", "", "-" + msgHashInteger + "\r\n"},
	{"HSET h n 1.5", "HINCRBYFLOAT h n 1", "HSET h n 2.5", "$3\r\n2.5\r\n"},
	{
		"HSET h n 1;HPEXPIREAT h 1700000009000 FIELDS 1 n", "HINCRBYFLOAT h n 0.5",
		"HSET h n 1.5; HPEXPIREAT h 1700000009000 FIELDS 1 n", "",
	},
	{"HSET h n x", "HINCRBYFLOAT h n 1", "", "-" + msgHashFloat + "\r\n"},
	{
		"HSET h a 1 b 2", "HEXPIRE h 10 FIELDS 3 a x a", "HPEXPIREAT h 1700000010000 FIELDS 1 a",
		"*3\r\n:1\r\n:-2\r\n:1\r\n",
	},
	{
		"HSET h a 1 b 2", "HPEXPIRE h 10 NX FIELDS 3 a b a", "HPEXPIREAT h 1700000000010 FIELDS 2 a b",
		"*3\r\n:1\r\n:1\r\n:0\r\n",
	},
	{
		"HSET h a 1 b 2;HEXPIRE h 10 FIELDS 1 a", "HEXPIRE h 20 XX FIELDS 2 a b", "HPEXPIREAT h 1700000020000 FIELDS 1 a",
		"*2\r\n:1\r\n:0\r\n",
	},
	{
		"HSET h a 1 b 2;HEXPIRE h 10 FIELDS 1 a", "HEXPIRE h 20 GT FIELDS 2 a b", "HPEXPIREAT h 1700000020000 FIELDS 1 a",
		"*2\r\n:1\r\n:0\r\n",
	},
	{
		"HSET h a 1 b 2;HEXPIRE h 10 FIELDS 1 a", "HEXPIRE h 20 LT FIELDS 2 a b", "HPEXPIREAT h 1700000020000 FIELDS 1 b",
		"*2\r\n:0\r\n:1\r\n",
	},
	{"HSET h a 1 b 2", "HEXPIREAT h 1800000000 FIELDS 1 b", "HPEXPIREAT h 1800000000000 FIELDS 1 b", "*1\r\n:1\r\n"},
	{"HSET h a 1 b 2", "HEXPIREAT h 1 FIELDS 3 b b x", "HDEL h b", "*3\r\n:2\r\n:-2\r\n:-2\r\n"},
	{"HSET h a 1 b 2", "HPEXPIREAT h 0 FIELDS 2 a b", "HDEL h a b", "*2\r\n:2\r\n:2\r\n"},
	{"HSET h a 1", "HPEXPIREAT h 1700000000007 FIELDS 1 a", "HPEXPIREAT h 1700000000007 FIELDS 1 a", ""},
	{"", "HEXPIRE h 10 FIELDS 2 a b", "", "*2\r\n:-2\r\n:-2\r\n"},
	{"HSET h a 1", "HEXPIRE h -1 FIELDS 1 a", "", "-" + msgExpireSign + "\r\n"},
	{"HSET h a 1", "HEXPIRE h 99999999999 FIELDS 1 a", "", "-ERR invalid expire time in 'hexpire' command\r\n"},
	{"HSET h a 1", "HEXPIRE h 1 FIELDS 0 a", "", "-" + msgFieldsZero + "\r\n"},
	{"HSET h a 1", "HEXPIRE h 1 FIELDS 2 a", "", "-" + msgNumFields + "\r\n"},
	{"HSET h a 1", "HEXPIRE h 1 FIELD 1 a", "", "-" + msgNoFields + "\r\n"},
	{
		"HSET h a 1 b 2;HEXPIRE h 10 FIELDS 1 a", "HPERSIST h FIELDS 4 a b c a", "HPERSIST h FIELDS 1 a",
		"*4\r\n:1\r\n:-1\r\n:-2\r\n:-1\r\n",
	},
	{"HSET h a 1", "HPERSIST h FIELDS 1 a", "", "*1\r\n:-1\r\n"},
	{"HSET h a 1;HEXPIRE h 10 FIELDS 1 a", "HSET h a 2", "HSET h a 2", ":0\r\n"},
	{"HSET h a 1 b 2", "HGETEX h FIELDS 2 a x", "", "*2\r\n$1\r\n1\r\n$-1\r\n"},
	{"HSET h a 1 b 2", "HGETEX h EX 10 FIELDS 2 a x", "HPEXPIREAT h 1700000010000 FIELDS 1 a", "*2\r\n$1\r\n1\r\n$-1\r\n"},
	{"HSET h a 1 b 2", "HGETEX h PXAT 5 FIELDS 2 a a", "HDEL h a", "*2\r\n$1\r\n1\r\n$-1\r\n"},
	{"HSET h a 1;HEXPIRE h 10 FIELDS 1 a", "HGETEX h PERSIST FIELDS 1 a", "HPERSIST h FIELDS 1 a", "*1\r\n$1\r\n1\r\n"},
	{"", "HSETEX h FIELDS 2 a 1 b 2", "HSET h a 1 b 2", ":1\r\n"},
	{"", "HSETEX h EX 10 FIELDS 2 a 1 b 2", "HSET h a 1 b 2; HPEXPIREAT h 1700000010000 FIELDS 2 a b", ":1\r\n"},
	{"HSET h a 1", "HSETEX h FNX FIELDS 2 a 1 b 2", "", ":0\r\n"},
	{"HSET h a 1", "HSETEX h FXX FIELDS 2 a 1 b 2", "", ":0\r\n"},
	{"HSET h a 1", "HSETEX h fxx px 5 fields 1 a 2", "HSET h a 2; HPEXPIREAT h 1700000000005 FIELDS 1 a", ":1\r\n"},
	{
		"HSET h a 1;HEXPIRE h 10 FIELDS 1 a", "HSETEX h KEEPTTL FIELDS 2 a 2 b 3",
		"HSET h a 2 b 3; HPEXPIREAT h 1700000010000 FIELDS 1 a", ":1\r\n",
	},
	{"HSET h a 1", "HSETEX h PXAT 5 FIELDS 2 a 2 b 3", "HDEL h a", ":1\r\n"},
	{"HSET h a 1", "HSETEX h EX 1 PX 1 FIELDS 1 a 2", "", "-" + msgOneExpiry + "\r\n"},
	{"HSET h a 1", "HSETEX h FNX FXX FIELDS 1 a 2", "", "-" + msgOneCondition + "\r\n"},
	{"HSET h a 1", "HSETEX h FOO FIELDS 1 a 2", "", "-ERR unknown argument: FOO\r\n"},
	{"HSET h a 1", "HSETEX h FIELDS 0 a 2", "", "-" + msgFieldCount + "\r\n"},
	{"HSET h a 1", "HSETEX h FIELDS 2 a 2", "", "-ERR wrong number of arguments for 'hsetex' command\r\n"},
	{"HSET h a 1 b 2", "HGETDEL h FIELDS 3 a a x", "HDEL h a", "*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n"},
	{"", "HGETDEL h FIELDS 1 a", "", "*1\r\n$-1\r\n"},
	{"HSET h a 1", "HGETDEL h FIELDS 0 a", "", "-" + msgFieldNumber + "\r\n"},
	{
		"HSET a f 1 g 2;HPEXPIREAT a 1700000009000 FIELDS 1 g;EXPIRE a 5", "RENAME a b",
		"HSET b f 1 g 2; HPEXPIREAT b 1700000009000 FIELDS 1 g; PEXPIREAT b 1700000005000; DEL a", "+OK\r\n",
	},
	{"HSET a f 1;SET b v EX 5", "COPY a b REPLACE", "DEL b; HSET b f 1", ":1\r\n"},
	{"HSET h a 1", "GETSET h x", "", "-" + msgWrongType + "\r\n"},
	{"HSET h a 1", "SET h x GET", "", "-" + msgWrongType + "\r\n"},
	{"HSET h a 1", "SET h x", "SET h x", "+OK\r\n"},
}

// TestDueFieldsAreHidden plans on a hash with due fields that the engine has not deleted yet.
func TestDueFieldsAreHidden(t *testing.T) {
	h := newHarness(t, 1)
	h.run("HSET", "h", "a", "1", "b", "2", "c", "3")
	h.run("HPEXPIRE", "h", "5", "FIELDS", "2", "a", "b")
	h.run("HSET", "gone", "a", "1")
	h.run("HPEXPIRE", "gone", "5", "FIELDS", "1", "a")
	h.ctx.Now += 5
	for request, want := range map[string]string{
		"HGET h a": "$-1\r\n", "HLEN h": ":1\r\n", "HEXISTS h b": ":0\r\n", "HSTRLEN h b": ":0\r\n",
		"HGETALL h": "*2\r\n$1\r\nc\r\n$1\r\n3\r\n", "HKEYS h": "*1\r\n$1\r\nc\r\n", "HVALS h": "*1\r\n$1\r\n3\r\n",
		"HMGET h a c": "*2\r\n$-1\r\n$1\r\n3\r\n", "HRANDFIELD h": "$1\r\nc\r\n", "HRANDFIELD h 5": "*1\r\n$1\r\nc\r\n",
		"HSCAN h 0":         "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nc\r\n$1\r\n3\r\n",
		"HTTL h FIELDS 1 a": "*1\r\n:-2\r\n", "HPERSIST h FIELDS 1 a": "*1\r\n:-2\r\n", "HDEL h a": ":0\r\n",
		"HLEN gone": ":0\r\n", "HGETALL gone": "*0\r\n", "HRANDFIELD gone": "$-1\r\n", "HRANDFIELD gone 2": "*0\r\n",
		"HEXPIRE h 5 FIELDS 1 a": "*1\r\n:-2\r\n", "HGETDEL h FIELDS 1 a": "*1\r\n$-1\r\n",
		"HGETEX h PERSIST FIELDS 1 a": "*1\r\n$-1\r\n",
	} {
		if got := h.run(strings.Fields(request)...); got != want || h.did != "" {
			t.Errorf("%s: %q with effects %q, want %q", request, got, h.did, want)
		}
	}
	if got := h.run("HINCRBY", "h", "a", "7"); got != ":7\r\n" || h.did != "HSET h a 7" {
		t.Errorf("%q, %s", got, h.did)
	}
	if got := h.run("HSETNX", "h", "b", "7"); got != ":1\r\n" {
		t.Errorf("%q", got)
	}
	if got := h.run("HLEN", "h"); got != ":3\r\n" {
		t.Errorf("%q", got)
	}
}

func TestHRandField(t *testing.T) {
	for _, n := range []int{5, 1000} {
		h := newHarness(t, 1)
		for i := range n {
			h.run("HSET", "h", fmt.Sprint("f", i), fmt.Sprint("v", i))
		}
		seen := map[string]bool{}
		for i := range 20 * n {
			h.ctx.Rand = mix(uint64(i))
			seen[h.run("HRANDFIELD", "h")] = true
		}
		if len(seen) != n {
			t.Errorf("%d of %d fields drawn", len(seen), n)
		}
		for _, count := range []int{2, n / 5, n / 2, n - 1, n, 2 * n} {
			h.ctx.Rand = mix(uint64(count))
			parts := strings.Split(h.run("HRANDFIELD", "h", fmt.Sprint(count), "WITHVALUES"), "\r\n")
			distinct := map[string]bool{}
			for i := 2; i < len(parts)-1; i += 4 {
				distinct[parts[i]] = true
				if parts[i][1:] != parts[i+2][1:] {
					t.Errorf("%s has value %s", parts[i], parts[i+2])
				}
			}
			if want := min(count, n); len(distinct) != want || parts[0] != fmt.Sprint("*", 2*want) {
				t.Errorf("%d of %d: %d fields, header %s", count, n, len(distinct), parts[0])
			}
		}
		if got := h.run("HRANDFIELD", "h", "-3000"); !strings.HasPrefix(got, "*3000\r\n") || oneReply([]byte(got)) != nil {
			t.Errorf("%.20q", got)
		}
		h.w.Proto = 3
		if got := h.run("HRANDFIELD", "h", "-2", "withvalues"); !strings.HasPrefix(got, "*2\r\n*2\r\n$") {
			t.Errorf("%q", got)
		}
	}
}

func TestHScan(t *testing.T) {
	h := newHarness(t, 1)
	for i := range 3000 {
		h.run("HSET", "h", fmt.Sprint("f", i), "v")
	}
	for _, count := range []string{"1", "10", "1000", "9223372036854775807"} {
		seen := map[string]int{}
		cursor := "0"
		for calls := 0; calls == 0 || cursor != "0"; calls++ {
			reply := strings.Split(h.run("HSCAN", "h", cursor, "COUNT", count, "NOVALUES"), "\r\n")
			cursor = reply[2]
			for i := 5; i < len(reply)-1; i += 2 {
				seen[reply[i]]++
			}
		}
		if len(seen) != 3000 {
			t.Errorf("COUNT %s: %d fields", count, len(seen))
		}
	}
	if got := h.run("HSCAN", "h", "18446744073709551615"); got != "*2\r\n$1\r\n0\r\n*0\r\n" {
		t.Errorf("%q", got)
	}
}

func TestHotHashPlannersDoNotAllocate(t *testing.T) {
	for _, fields := range []int{3, 2000} {
		h := newHarness(t, 2)
		for i := range fields {
			h.run("HSET", "h", fmt.Sprint("f", i), fmt.Sprint(i))
		}
		for _, request := range []string{
			"HGET h f1", "HSET h f1 v", "HSET h f1 v f2 w", "HMGET h f1 f2", "HDEL h f1", "HLEN h",
			"HINCRBY h f2 1", "HEXISTS h f1", "HSETNX h f1 v", "HTTL h FIELDS 1 f1",
		} {
			args := words(strings.Fields(request)...)
			h.plan(args)
			if n := testing.AllocsPerRun(100, func() { h.plan(args) }); n != 0 {
				t.Errorf("%d fields: %s: %v allocations", fields, request, n)
			}
		}
	}
}
