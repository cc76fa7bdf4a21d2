package server

import (
	"strings"
	"testing"
	"time"
)

// TestInnerCommandsAreMeasured: those of transactions and scripts are in the slow log, in the histograms and in the times, as
// if they had come alone.
func TestInnerCommandsAreMeasured(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("CONFIG SET slowlog-log-slower-than 0", "+OK")
	c.want("SLOWLOG RESET", "+OK")
	c.want("MULTI", "+OK")
	c.want("SET k 5", "+QUEUED")
	c.want("INCR k", "+QUEUED")
	c.want("EVAL return(redis.call('getrange','k','0','-1')) 0", "+QUEUED")
	c.want("EXEC", "*[+OK :6 6]")
	c.want("EVAL return(redis.call('strlen','k')) 0", ":1")
	c.want("CONFIG SET slowlog-log-slower-than -1", "+OK")
	var got []string
	for _, name := range []string{"[set k 5]", "[incr k]", "[getrange k 0 -1]", "[strlen k]"} {
		if strings.Contains(strings.ToLower(c.do("SLOWLOG GET 100")), strings.ToLower(name)) {
			got = append(got, name)
		}
	}
	if len(got) != 4 { // EXEC itself is skipped, as in Redis
		t.Errorf("the slow log has %v of %s", got, c.do("SLOWLOG GET 100"))
	}
	histograms := c.do("LATENCY HISTOGRAM")
	for _, name := range []string{"set", "incr", "getrange", "strlen", "eval", "exec"} {
		if !strings.Contains(histograms, name+" *[calls :") && !strings.Contains(histograms, name+" %[calls :") {
			t.Errorf("no histogram of %s in %s", name, histograms)
		}
		if line := c.field("commandstats", "cmdstat_"+name); strings.Contains(line, "usec_per_call=0.00") || line == "" {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// TestNoReplicas: with min-replicas-to-write no write is accepted, also not in transactions and scripts.
func TestNoReplicas(t *testing.T) {
	s := start(t, testOptions{})
	c, d := s.client(), s.client()
	const refused = "-NOREPLICAS Not enough good replicas to write."
	c.want("SET k 1", "+OK")
	d.want("MULTI", "+OK")
	d.want("SET k 2", "+QUEUED")
	c.want("CONFIG SET min-replicas-to-write 1", "+OK")
	c.want("SET k 2", refused)
	c.want("GET k", "1")
	c.want("PING", "+PONG")
	d.want("EXEC", "-EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write.")
	c.want("MULTI", "+OK")
	c.want("DEL k", refused)
	c.want("EXEC", "-EXECABORT*")
	c.want("EVAL return(redis.call('del','k')) 0", refused+"*")
	c.want("EVAL return(redis.call('get','k')) 0", "1")
	c.want("CONFIG SET min-replicas-max-lag 0", "+OK")
	c.want("SET k 3", "+OK")
	c.want("CONFIG SET min-replicas-max-lag 10", "+OK")
	c.want("SET k 4", refused)
	c.want("CONFIG SET min-slaves-to-write 0", "+OK")
	c.want("SET k 4", "+OK")
}

// TestCompression: rdbcompression says whether DUMP compresses.
func TestCompression(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	text := strings.Repeat("kevy", 100)
	c.want("SET k "+text, "+OK")
	packed := c.do("DUMP k")
	c.want("CONFIG SET rdbcompression no", "+OK")
	plain := c.do("DUMP k")
	if len(packed) > 40 || !strings.Contains(plain, text) {
		t.Errorf("%q, plain %q", packed, plain)
	}
}

// TestScriptClock: scripts of one turn share its reading of the clock, and time goes on for them all the same.
func TestScriptClock(t *testing.T) {
	s := start(t, testOptions{})
	l := newLoop(s.Server)
	began := time.Now()
	before := s.eng.Now()
	first := l.now(began)
	if after := s.eng.Now(); first < before-1 || first > after {
		t.Errorf("the first command of a turn: %d, not between %d and %d", first, before, after)
	}
	at := l.ctx.Turn
	later := l.now(began.Add(90 * time.Second))
	if d := later - first; d < 89_999 || d > 90_001 || l.ctx.Turn != at {
		t.Errorf("90 s later: %d ms later, turn %d, before %d", d, l.ctx.Turn, at)
	}
}
