package command

import "testing"

const (
	streamS = "XADD s 1-1 a 1;XADD s 1-2 a 2;XADD s 1-3 a 3"
	streamG = streamS + ";XGROUP CREATE s g 0"
	streamP = streamG + ";XREADGROUP GROUP g c COUNT 2 STREAMS s >"

	streamClaimed = " TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID "
	streamAgain   = " TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2"
)

// streamEffectCases are the effects of streams.
var streamEffectCases = []effectCase{
	{"", "XADD s * a 1", "XADD s 1700000000000-0 a 1", "$15\r\n1700000000000-0\r\n"},
	{"XADD s * a 1", "XADD s * a 1", "XADD s 1700000000000-1 a 1", ""},
	{"", "XADD s 5 a 1 b 2", "XADD s 5-0 a 1 b 2", "$3\r\n5-0\r\n"},
	{streamS, "XADD s 1-* a 1", "XADD s 1-4 a 1", ""},
	{streamS, "XADD s 1-3 a 1", "", ""},
	{"", "XADD s NOMKSTREAM * a 1", "", "$-1\r\n"},
	{streamS, "XADD s MAXLEN 2 2-1 a 1", "XADD s 2-1 a 1; XTRIM s MINID = 1-3", ""},
	{streamS, "XADD s MAXLEN ~ 2 2-1 a 1", "XADD s 2-1 a 1", ""},
	{streamS, "XADD s MAXLEN 0 2-1 a 1", "XADD s 2-1 a 1; XTRIM s MINID = 2-2", ""},
	{streamS, "XADD s MINID 9 2-1 a 1", "XADD s 2-1 a 1; XTRIM s MINID = 2-2", ""},
	{"SET s 1", "XADD s * a 1", "", "-" + msgWrongType + "\r\n"},
	{streamS, "XDEL s 1-2 1-2 9-9", "XDEL s 1-2", ":1\r\n"},
	{streamS, "XDEL s 9-9", "", ":0\r\n"},
	{"", "XDEL s 1-1", "", ":0\r\n"},
	{streamS, "XTRIM s MAXLEN 1", "XTRIM s MINID = 1-3", ":2\r\n"},
	{streamS, "XTRIM s MINID 1-2", "XTRIM s MINID = 1-2", ":1\r\n"},
	{streamS, "XTRIM s MINID 9-9", "XTRIM s MINID = 1-4", ":3\r\n"},
	{streamS, "XTRIM s MAXLEN 3", "", ":0\r\n"},
	{streamS, "XTRIM s MAXLEN ~ 1", "", ":0\r\n"},
	{"XADD s 18446744073709551615-18446744073709551615 a 1", "XTRIM s MAXLEN 0", "XTRIM s MAXLEN = 0", ":1\r\n"},
	{streamS, "XSETID s 5-5", "XSETID s 5-5 ENTRIESADDED 3 MAXDELETEDID 0-0", "+OK\r\n"},
	{streamS, "XSETID s 5-5 ENTRIESADDED 9 MAXDELETEDID 4", "XSETID s 5-5 ENTRIESADDED 9 MAXDELETEDID 4-0", "+OK\r\n"},
	{streamS, "XSETID s 1-3", "", "+OK\r\n"},
	{streamS, "XGROUP CREATE s g $", "XGROUP CREATE s g 1-3 ENTRIESREAD -1", "+OK\r\n"},
	{"", "XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s g 0-0 ENTRIESREAD -1 MKSTREAM", "+OK\r\n"},
	{streamS, "XGROUP CREATE s g 1 MKSTREAM ENTRIESREAD 5", "XGROUP CREATE s g 1-0 ENTRIESREAD 5", "+OK\r\n"},
	{streamG, "XGROUP CREATE s g 0", "", "-" + msgGroupBusy + "\r\n"},
	{streamG, "XGROUP SETID s g $", "XGROUP SETID s g 1-3 ENTRIESREAD -1", "+OK\r\n"},
	{streamG, "XGROUP SETID s g 0", "", "+OK\r\n"},
	{streamG, "XGROUP DESTROY s g", "XGROUP DESTROY s g", ":1\r\n"},
	{streamS, "XGROUP DESTROY s g", "", ":0\r\n"},
	{streamG, "XGROUP CREATECONSUMER s g c", "XGROUP CREATECONSUMER s g c", ":1\r\n"},
	{streamP, "XGROUP CREATECONSUMER s g c", "", ":0\r\n"},
	{streamP, "XGROUP DELCONSUMER s g c", "XGROUP DELCONSUMER s g c", ":2\r\n"},
	{streamP, "XGROUP DELCONSUMER s g d", "", ":0\r\n"},
	{
		streamG, "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
		"XCLAIM s g c 0 1-1 1-2" + streamClaimed + "1-2; XGROUP SETID s g 1-2 ENTRIESREAD 2", "",
	},
	{
		streamG, "XREADGROUP GROUP g c COUNT 1 NOACK STREAMS s >",
		"XGROUP SETID s g 1-1 ENTRIESREAD 1; XGROUP CREATECONSUMER s g c", "",
	},
	{streamG, "XREADGROUP GROUP g c STREAMS s 0", "XGROUP CREATECONSUMER s g c", "*1\r\n*2\r\n$1\r\ns\r\n*0\r\n"},
	{streamP, "XREADGROUP GROUP g c STREAMS s 1-1", "XCLAIM s g c 0 1-2" + streamAgain, ""},
	{streamP + ";XDEL s 1-1 1-2", "XREADGROUP GROUP g c STREAMS s 0", "", ""},
	{streamG + ";XGROUP SETID s g $", "XREADGROUP GROUP g c STREAMS s >", "XGROUP CREATECONSUMER s g c", "*-1\r\n"},
	{streamP + ";XGROUP SETID s g $", "XREADGROUP GROUP g c BLOCK 5 STREAMS s >", "", "*-1\r\n"},
	{streamG, "XREADGROUP GROUP g c COUNT 1 STREAMS s s > >", "XCLAIM s g c 0 1-1" + streamClaimed + "1-1; XGROUP SETID s g 1-1 " +
		"ENTRIESREAD 1; XCLAIM s g c 0 1-2" + streamClaimed + "1-2; XGROUP SETID s g 1-2 ENTRIESREAD 2", ""},
	{streamP, "XACK s g 1-1 1-1 9-9", "XACK s g 1-1", ":1\r\n"},
	{streamP, "XACK s g 9-9", "", ":0\r\n"},
	{streamP, "XCLAIM s g d 0 1-1", "XCLAIM s g d 0 1-1" + streamAgain, ""},
	{streamP, "XCLAIM s g d 0 1-1 JUSTID TIME 5", "XCLAIM s g d 0 1-1 TIME 5 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2", ""},
	{
		streamP, "XCLAIM s g d 0 1-1 1-2 RETRYCOUNT 7 LASTID 1-3",
		"XCLAIM s g d 0 1-1 1-2 TIME 1700000000000 RETRYCOUNT 7 FORCE JUSTID LASTID 1-3", "",
	},
	{streamP, "XCLAIM s g c 0 9-9 LASTID 5-5", "XGROUP SETID s g 5-5 ENTRIESREAD 2", "*0\r\n"},
	{streamP, "XCLAIM s g d 1 1-1", "XGROUP CREATECONSUMER s g d", "*0\r\n"},
	{streamP, "XCLAIM s g c 1 1-1", "", "*0\r\n"},
	{streamP, "XCLAIM s g c 0 1-3 FORCE", "XCLAIM s g c 0 1-3" + streamAgain, ""},
	{streamP + ";XDEL s 1-1", "XCLAIM s g c 0 1-1 1-1", "XACK s g 1-1", "*0\r\n"},
	{streamP, "XAUTOCLAIM s g d 0 0", "XCLAIM s g d 0 1-1 1-2" + streamAgain, ""},
	{
		streamP + ";XDEL s 1-1", "XAUTOCLAIM s g d 0 0 JUSTID", "XCLAIM s g d 0 1-2" + streamClaimed + "1-2; XACK s g 1-1",
		"*3\r\n$3\r\n0-0\r\n*1\r\n$3\r\n1-2\r\n*1\r\n$3\r\n1-1\r\n",
	},
	{streamP, "XAUTOCLAIM s g d 1 0", "XGROUP CREATECONSUMER s g d", ""},
	{streamP, "COPY s t", "XADD t 1-1 a 1; XADD t 1-2 a 2; XADD t 1-3 a 3; XSETID t 1-3 ENTRIESADDED 3 MAXDELETEDID 0-0; " +
		"XGROUP CREATE t g 1-2 ENTRIESREAD 2; XGROUP CREATECONSUMER t g c; XCLAIM t g c 0 1-1 1-2" + streamClaimed + "1-2", ""},
	{"XGROUP CREATE s g 0 MKSTREAM", "COPY s t", "XADD t 0-1 x y; XTRIM t MINID = 0-2; XSETID t 0-0 ENTRIESADDED 0 " +
		"MAXDELETEDID 0-0; XGROUP CREATE t g 0-0 ENTRIESREAD -1", ""},
}

func init() { effectCases = append(effectCases, streamEffectCases...) }

// TestStreamTimes checks what XINFO tells of when a consumer was seen and got something.
func TestStreamTimes(t *testing.T) {
	h := newHarness(t, 1)
	h.w.Proto = 3
	times := func(want string) {
		t.Helper()
		if got := h.run("XINFO", "CONSUMERS", "s", "g"); got != "*1\r\n%4\r\n$4\r\nname\r\n$1\r\nc\r\n$7\r\npending\r\n"+want {
			t.Errorf("%d: got %q, want %q", h.ctx.Now-testNow, got, want)
		}
	}
	h.exec(fields("XADD s 1-1 a 1"))
	h.exec(fields("XGROUP CREATE s g 0"))
	h.exec(fields("XGROUP CREATECONSUMER s g c"))
	h.ctx.Now += 100
	times(":0\r\n$4\r\nidle\r\n:100\r\n$8\r\ninactive\r\n:-1\r\n")
	h.exec(fields("XREADGROUP GROUP g c STREAMS s >"))
	h.ctx.Now += 10
	times(":1\r\n$4\r\nidle\r\n:10\r\n$8\r\ninactive\r\n:10\r\n")
	h.exec(fields("XREADGROUP GROUP g c STREAMS s >"))
	h.ctx.Now += 5
	times(":1\r\n$4\r\nidle\r\n:5\r\n$8\r\ninactive\r\n:15\r\n")
}

// TestStreamNodes compares approximate trims with the nodes of the setting.
func TestStreamNodes(t *testing.T) {
	h := newHarness(t, 1)
	h.ctx.Shards[0].Limits.StreamEntries = 10
	for range 101 {
		h.exec(fields("XADD s * a 1"))
	}
	for _, c := range []struct{ request, want string }{
		{"XTRIM s MAXLEN ~ 55 LIMIT 30", ":30\r\n"},
		{"XTRIM s MAXLEN ~ 55 LIMIT 5", ":0\r\n"},
		{"XTRIM s MAXLEN ~ 55", ":10\r\n"},
		{"XTRIM s MAXLEN 55", ":6\r\n"},
		{"XTRIM s MAXLEN ~ 50", ":4\r\n"},
		{"XTRIM s MAXLEN ~ 0", ":51\r\n"},
		{"XLEN s", ":0\r\n"},
	} {
		if got := h.exec(fields(c.request)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.request, got, c.want)
		}
	}
}
