package command

import "testing"

// The effects of lists.
func init() {
	const l = "RPUSH l a b c d e f a"
	effectCases = append(effectCases, []effectCase{
		{"", "LPUSH l a b", "LPUSH l a b", ":2\r\n"},
		{l, "RPUSH l x", "RPUSH l x", ":8\r\n"},
		{"SET l 1", "LPUSH l a", "", "-" + msgWrongType + "\r\n"},
		{"", "LPUSHX l a", "", ":0\r\n"},
		{l, "LPUSHX l x y", "LPUSH l x y", ":9\r\n"},
		{l, "RPUSHX l x y", "RPUSH l x y", ":9\r\n"},
		{"", "RPUSHX l a", "", ":0\r\n"},
		{"", "LPOP l", "", "$-1\r\n"},
		{"", "RPOP l 3", "", "*-1\r\n"},
		{l, "LPOP l", "LPOP l", "$1\r\na\r\n"},
		{l, "RPOP l 1", "RPOP l", "*1\r\n$1\r\na\r\n"},
		{l, "RPOP l 2", "RPOP l 2", "*2\r\n$1\r\na\r\n$1\r\nf\r\n"},
		{l, "LPOP l 100", "LPOP l 7", ""},
		{l, "LPOP l 0", "", "*0\r\n"},
		{l, "LSET l -1 z", "LSET l 6 z", "+OK\r\n"},
		{l, "LSET l 7 z", "", "-ERR index out of range\r\n"},
		{l, "LINSERT l before c x", "LINSERT l BEFORE c x", ":8\r\n"},
		{l, "LINSERT l AFTER nope x", "", ":-1\r\n"},
		{l, "LREM l 1 a", "LREM l 1 a", ":1\r\n"},
		{l, "LREM l -3 a", "LREM l 0 a", ":2\r\n"},
		{l, "LREM l 0 a", "LREM l 0 a", ":2\r\n"},
		{l, "LREM l 1 nope", "", ":0\r\n"},
		{l, "LTRIM l 0 -1", "", "+OK\r\n"},
		{l, "LTRIM l 0 2", "LTRIM l 0 2", "+OK\r\n"},
		{l, "LTRIM l -2 -1", "LTRIM l -2 -1", "+OK\r\n"},
		{l, "LTRIM l 1 -2", "LTRIM l 0 5; LTRIM l -5 -1", "+OK\r\n"},
		{l, "LTRIM l 5 2", "DEL l", "+OK\r\n"},
		{l, "LMOVE l m LEFT RIGHT", "LPOP l; RPUSH m a", "$1\r\na\r\n"},
		{l, "LMOVE l l LEFT RIGHT", "LPOP l; RPUSH l a", "$1\r\na\r\n"},
		{l, "LMOVE l l LEFT LEFT", "", "$1\r\na\r\n"},
		{"RPUSH l a;EXPIRE l 10", "LMOVE l l LEFT RIGHT", "", "$1\r\na\r\n"},
		{l, "RPOPLPUSH l m", "RPOP l; LPUSH m a", "$1\r\na\r\n"},
		{l + ";SET m 1", "RPOPLPUSH l m", "", "-" + msgWrongType + "\r\n"},
		{"", "RPOPLPUSH l m", "", "$-1\r\n"},
		{l, "LMPOP 2 m l RIGHT COUNT 2", "RPOP l 2", "*2\r\n$1\r\nl\r\n*2\r\n$1\r\na\r\n$1\r\nf\r\n"},
		{"", "LMPOP 2 m l RIGHT", "", "*-1\r\n"},
		{l, "BLPOP m l 0", "LPOP l", "*2\r\n$1\r\nl\r\n$1\r\na\r\n"},
		{l, "BRPOP m l 0.1", "RPOP l", ""},
		{"", "BLPOP m l 0", "", "*-1\r\n"},
		{"", "BRPOP m l 0", "", "*-1\r\n"},
		{l, "BLMOVE l m RIGHT RIGHT 0", "RPOP l; RPUSH m a", "$1\r\na\r\n"},
		{"", "BLMOVE l m RIGHT RIGHT 0", "", "$-1\r\n"},
		{l, "BRPOPLPUSH l m 0", "RPOP l; LPUSH m a", "$1\r\na\r\n"},
		{l, "BLMPOP 0 1 l LEFT COUNT 2", "LPOP l 2", ""},
		{"", "BLMPOP 0 1 l LEFT", "", "*-1\r\n"},
	}...)
}

// TestMovesOverShards moves elements, long ones too, between lists of one and of several shards.
func TestMovesOverShards(t *testing.T) {
	for _, shards := range []int{1, 5} {
		h := newHarness(t, shards)
		for i := range 300 {
			h.exec(words("RPUSH", "a", string(make([]byte, i%50*40))))
		}
		for range 1000 {
			for _, to := range []string{"a", "b", "c", "d"} {
				h.run("LMOVE", "a", to, "RIGHT", "LEFT")
				h.run("LMOVE", to, "a", "LEFT", "RIGHT")
				h.run("RPOPLPUSH", "a", "a")
			}
		}
		if got := h.run("LLEN", "a"); got != ":300\r\n" {
			t.Errorf("%d shards: %s elements are left", shards, got)
		}
	}
}

func TestSecondsArg(t *testing.T) {
	const now = 1000
	for _, c := range []struct {
		in   string
		want int64
		bad  string
	}{
		{"0", 0, ""},
		{"-0.0", 0, ""},
		{"1", 2000, ""},
		{"1.5", 2500, ""},
		{"0.0001", 1001, ""},
		{"0.001", 1001, ""},
		{"1e3", 1_001_000, ""},
		{"0x10", 17_000, ""},
		{"-1", 0, msgTimeoutNeg},
		{"-0.0001", 0, ""},
		{"-0.5", 0, msgTimeoutNeg},
		{"x", 0, msgTimeoutFloat},
		{"", 0, msgTimeoutFloat},
		{" 1", 0, msgTimeoutFloat},
		{"nan", 0, msgTimeoutFloat},
		{"inf", 0, msgTimeoutRange},
		{"-inf", 0, msgTimeoutNeg},
		{"9223372036854776", 0, msgTimeoutRange},
		{"9223372036854775.807", 0, msgTimeoutRange},
		{"1e30", 0, msgTimeoutRange},
	} {
		got, bad := secondsArg([]byte(c.in), now)
		if got != c.want || bad != c.bad {
			t.Errorf("%q: %d %q, want %d %q", c.in, got, bad, c.want, c.bad)
		}
	}
}
