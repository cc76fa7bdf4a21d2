package server

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMulti(t *testing.T) {
	s := start(t, testOptions{})
	for name, steps := range map[string][][2]string{
		"basics":    {{"MULTI", "+OK"}, {"SET a 1", "+QUEUED"}, {"INCR a", "+QUEUED"}, {"GET nokey", "+QUEUED"}, {"PING x", "+QUEUED"}, {"EXEC", "*[+OK :2 nil x]"}},
		"empty":     {{"MULTI", "+OK"}, {"EXEC", "*[]"}},
		"nested":    {{"MULTI", "+OK"}, {"MULTI", "-ERR MULTI calls can not be nested"}, {"EXEC", "*[]"}},
		"without":   {{"EXEC", "-ERR EXEC without MULTI"}, {"DISCARD", "-ERR DISCARD without MULTI"}},
		"arity":     {{"MULTI", "+OK"}, {"SET a", "-ERR wrong number of arguments for 'set' command"}, {"EXEC", "-EXECABORT Transaction discarded because of previous errors."}, {"PING", "+PONG"}},
		"unknown":   {{"MULTI", "+OK"}, {"NOPE", "-ERR unknown command*"}, {"SET a 5", "+QUEUED"}, {"EXEC", "-EXECABORT*"}},
		"exec x":    {{"MULTI", "+OK"}, {"EXEC x", "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"}, {"PING", "+PONG"}},
		"no multi":  {{"MULTI", "+OK"}, {"SAVE", "-ERR Command not allowed inside a transaction"}, {"EXEC", "-EXECABORT*"}},
		"watch in":  {{"MULTI", "+OK"}, {"WATCH a", "-ERR WATCH inside MULTI is not allowed"}, {"EXEC", "*[]"}},
		"unwatch":   {{"WATCH a", "+OK"}, {"MULTI", "+OK"}, {"UNWATCH", "+QUEUED"}, {"EXEC", "*[+OK]"}},
		"failing":   {{"MULTI", "+OK"}, {"SET m x", "+QUEUED"}, {"INCR m", "+QUEUED"}, {"GET m", "+QUEUED"}, {"EXEC", "*[+OK -ERR value is not an integer or out of range x]"}},
		"discard":   {{"SET d 1", "+OK"}, {"MULTI", "+OK"}, {"INCR d", "+QUEUED"}, {"DISCARD", "+OK"}, {"GET d", "1"}},
		"local":     {{"MULTI", "+OK"}, {"CLIENT SETNAME me", "+QUEUED"}, {"CLIENT GETNAME", "+QUEUED"}, {"SELECT 3", "+QUEUED"}, {"CONFIG SET maxmemory bla", "+QUEUED"}, {"EXEC", "*[+OK me -ERR DB index is out of range -ERR CONFIG SET failed*"}},
		"hello":     {{"MULTI", "+OK"}, {"HELLO 3", "+QUEUED"}, {"GET nokey", "+QUEUED"}, {"EXEC", "*[%[server*"}, {"CONFIG GET port", "%[port 6379]"}},
		"slow":      {{"SET s 1", "+OK"}, {"MULTI", "+OK"}, {"SET s 2", "+QUEUED"}, {"KEYS s", "+QUEUED"}, {"INFO server", "+QUEUED"}, {"CLIENT GETNAME", "+QUEUED"}, {"EXEC", "*[+OK *[s] # Server*"}, {"GET s", "2"}},
		"flush":     {{"MULTI", "+OK"}, {"SET f 1", "+QUEUED"}, {"FLUSHALL", "+QUEUED"}, {"SET g 1", "+QUEUED"}, {"EXEC", "*[+OK +OK +OK]"}, {"GET f", "nil"}, {"GET g", "1"}},
		"bgsave":    {{"MULTI", "+OK"}, {"SET b 1", "+QUEUED"}, {"BGREWRITEAOF", "+QUEUED"}, {"EXEC", "*[+OK +Background append only file rewriting scheduled]"}, {"PING", "+PONG"}},
		"debug":     {{"MULTI", "+OK"}, {"DEBUG SLEEP 0", "+QUEUED"}, {"DEBUG RELOAD", "+QUEUED"}, {"EXEC", "*[+OK -ERR DEBUG RELOAD is not allowed inside a transaction]"}},
		"wait":      {{"MULTI", "+OK"}, {"SET w 1", "+QUEUED"}, {"WAIT 1 0", "+QUEUED"}, {"FEED.SHARDS", "+QUEUED"}, {"EXEC", "*[+OK :0 :2]"}},
		"quit":      {{"MULTI", "+OK"}, {"QUIT", "+OK"}},
		"denied":    {{"MULTI", "+OK"}, {"SSUBSCRIBE a", "+QUEUED"}, {"MONITOR", "+QUEUED"}, {"EXEC", "*[-ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client -ERR MONITOR isn't allowed for DENY BLOCKING client]"}},
		"kill self": {{"MULTI", "+OK"}, {"CLIENT KILL SKIPME NO ID 999999", "+QUEUED"}, {"PING", "+QUEUED"}, {"EXEC", "*[:0 +PONG]"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.client()
			c.t = t
			for _, step := range steps {
				c.want(step[0], step[1])
			}
		})
	}
}

// TestTimeStandsStill: TIME says the same throughout a transaction and a script.
func TestTimeStandsStill(t *testing.T) {
	c := start(t, testOptions{set: map[string]string{"enable-debug-command": "yes"}}).client()
	c.want("MULTI", "+OK")
	c.want("TIME", "+QUEUED")
	c.want("DEBUG SLEEP 0.002", "+QUEUED")
	c.want("TIME", "+QUEUED")
	got := c.do("EXEC")
	if m := regexp.MustCompile(`^\*\[(\*\[\d+ \d+\]) \+OK (\*\[\d+ \d+\])\]$`).FindStringSubmatch(got); m == nil || m[1] != m[2] {
		t.Errorf("in MULTI: %s", got)
	}
	if got := c.eval("local a = redis.call('TIME') for i = 1, 1e4 do " +
		"local b = redis.call('TIME') if b[2] ~= a[2] then return i end end return 'same'"); got != "same" {
		t.Errorf("in a script: %s", got)
	}
	before := c.do("TIME")
	eventually(t, "time goes on", func() bool { return c.do("TIME") != before })
}

func TestWatch(t *testing.T) {
	s := start(t, testOptions{})
	a, b := s.client(), s.client()
	run := func(name, want string, steps ...string) {
		t.Helper()
		a.do("DISCARD")
		a.do("UNWATCH")
		a.do("FLUSHALL")
		a.do("SET k 1")
		for _, step := range steps {
			if other, ok := strings.CutPrefix(step, "b:"); ok {
				b.do(other)
			} else {
				a.do(step)
			}
		}
		a.do("MULTI")
		a.do("INCR k")
		if got := a.do("EXEC"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	run("untouched", "*[:2]", "WATCH k")
	run("changed", "nil", "WATCH k", "b:SET k 5")
	run("changed by itself", "nil", "WATCH k", "SET k 5")
	run("other key", "*[:2]", "WATCH x", "b:SET k 1")
	run("deleted", "nil", "WATCH k", "b:DEL k")
	run("created", "nil", "WATCH new", "b:SET new 1")
	run("expiry set", "nil", "WATCH k", "b:EXPIRE k 100")
	run("no-op write", "*[:2]", "WATCH k", "b:SETNX k 9")
	run("unwatch", "*[:6]", "WATCH k", "b:SET k 5", "UNWATCH")
	run("discard unwatches", "*[:6]", "WATCH k", "b:SET k 5", "MULTI", "DISCARD")
	run("flushed", "nil", "WATCH k", "b:FLUSHALL")
	run("flushed, absent", "*[:1]", "WATCH nokey", "b:FLUSHALL")
}

// TestWatchExpiry: a watched key that expires makes EXEC fail; one that was past its deadline
// already when it was watched does not.
func TestWatchExpiry(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("DEBUG SET-ACTIVE-EXPIRE 0", "+OK")
	c.want("SET k 1 PX 20", "+OK")
	c.want("WATCH k", "+OK")
	time.Sleep(40 * time.Millisecond)
	c.want("MULTI", "+OK")
	c.want("PING", "+QUEUED")
	c.want("EXEC", "nil")

	c.want("SET k 1 PX 20", "+OK")
	time.Sleep(40 * time.Millisecond)
	c.want("WATCH k", "+OK")
	c.want("MULTI", "+OK")
	c.want("PING", "+QUEUED")
	c.want("EXEC", "*[+PONG]")
	c.want("DEBUG SET-ACTIVE-EXPIRE 1", "+OK")
}

func TestMemoryLimit(t *testing.T) {
	s := start(t, testOptions{})
	c, d := s.client(), s.client()
	const oom = "-OOM command not allowed when used memory > 'maxmemory'."
	c.want("SET x v", "+OK")
	c.want("MULTI", "+OK")
	c.want("GET x", "+QUEUED")
	d.want("CONFIG SET maxmemory 1", "+OK")
	c.want("EXEC", "*[v]")
	c.want("SET x 2", oom)
	c.want("GET x", "v")
	c.want("DEL nokey", ":0")
	c.want("MULTI", "+OK")
	c.want("SET x 1", oom)
	c.want("DISCARD", "+OK")
	d.want("CONFIG SET maxmemory 0", "+OK")
	c.want("MULTI", "+OK")
	c.want("SET x 1", "+QUEUED")
	d.want("CONFIG SET maxmemory 1", "+OK")
	c.want("EXEC", "-EXECABORT Transaction discarded because of: OOM*")
	d.want("CONFIG SET maxmemory 0", "+OK")
	c.want("SET x 3", "+OK")
}
