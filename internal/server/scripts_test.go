package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// eval runs a script without keys.
func (c *client) eval(code string) string {
	c.t.Helper()
	r, err := c.Do("EVAL", code, "0")
	if err != nil {
		c.t.Fatalf("EVAL %s: %v", code, err)
	}
	return show(&r)
}

// busy starts an endless script and waits until it runs.
func (s *testServer) busy(code string) *client {
	s.t.Helper()
	c := s.client()
	c.Queue(wire.Bytes("EVAL", code, "0"))
	if err := c.Flush(); err != nil {
		s.t.Fatal(err)
	}
	for s.scripts.rt.Running() == 0 {
		time.Sleep(time.Millisecond)
	}
	return c
}

func TestBusyScript(t *testing.T) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprint("portable=", portable), func(t *testing.T) {
			s := start(t, testOptions{portable: portable, set: map[string]string{"busy-reply-threshold": "100"}})
			a, b, watcher, waiter := s.client(), s.client(), s.client(), s.client()
			watcher.want("WATCH k", "+OK")
			a.want("SET k v", "+OK")
			b.want("MULTI", "+OK")
			runner := s.busy(`while true do end`)
			waiter.send("GET k") // comes before the script is busy, and is told so once it is
			if got := waiter.read(); !strings.HasPrefix(got, "-BUSY") {
				t.Errorf("a command that waited: %s", got)
			}
			a.want("GET k", "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
			a.want("PING", "-BUSY*")
			a.want("INFO", "-BUSY*")
			a.want("FUNCTION STATS", "-BUSY*")
			a.want("FUNCTION KILL", "-BUSY*")
			a.want("SHUTDOWN", "-BUSY*")
			a.Queue(wire.Bytes("GET", "k")) // of a pipeline the keys are looked at beforehand
			a.send("SCRIPT EXISTS x")
			for range 2 {
				if got := a.read(); !strings.HasPrefix(got, "-BUSY") {
					t.Errorf("pipelined: %s", got)
				}
			}
			b.want("SET k w", "-BUSY*")
			b.want("EXEC", "-EXECABORT Transaction discarded because of: BUSY*")
			watcher.send("UNWATCH") // takes a lock: it waits for the end
			s.client().Close()
			a.want("SCRIPT KILL", "+OK")
			if got := runner.read(); !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL... script: ") {
				t.Errorf("the script: %s", got)
			}
			if got := watcher.read(); got != "+OK" {
				t.Errorf("UNWATCH: %s", got)
			}
			a.want("GET k", "v")
			a.want("SCRIPT KILL", "-NOTBUSY No scripts in execution right now.")
		})
	}
}

func TestCommandsWaitForScripts(t *testing.T) {
	s := start(t, testOptions{})
	runner := s.busy(`redis.call("set","k",1) local n = 0 for i = 1, 2e6 do n = n + i end return redis.call("incr","k")`)
	clients := make([]*client, 8)
	for i := range clients {
		clients[i] = s.client()
		clients[i].send("INCR k")
		clients[i].send("EVAL return{KEYS[1]} 1 x")
		clients[i].send("PING")
	}
	if got := runner.read(); got != ":2" {
		t.Errorf("the script: %s", got)
	}
	seen := map[string]bool{}
	for _, c := range clients {
		seen[c.read()] = true
		if got := c.read() + c.read(); got != "*[x]+PONG" {
			t.Errorf("after INCR: %s", got)
		}
	}
	if len(seen) != len(clients) || !seen[":3"] || !seen[":10"] {
		t.Errorf("replies of INCR: %v", seen)
	}
}

func TestUnkillableScript(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"busy-reply-threshold": "50"}})
	c := s.client()
	c.want("SET k old", "+OK")
	runner := s.busy(`redis.call("set","k","new") while true do end`)
	for !strings.HasPrefix(c.do("GET k"), "-BUSY") {
		time.Sleep(time.Millisecond)
	}
	c.want("SCRIPT KILL", "-UNKILLABLE*")
	began := time.Now()
	s.shutdown()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("shutdown took %v", d)
	}
	_ = runner
}

func TestClientOfScriptGoes(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"busy-reply-threshold": "50"}})
	runner := s.busy(`while true do end`)
	runner.Close()
	c := s.client()
	for c.do("SCRIPT KILL") != "+OK" {
		time.Sleep(time.Millisecond)
	}
	for strings.HasPrefix(c.do("PING"), "-BUSY") { // until it has seen that
		time.Sleep(time.Millisecond)
	}
	c.want("PING", "+PONG")
	c.want("DBSIZE", ":0")
}

func TestScriptsInTransactions(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("MULTI", "+OK")
	for _, line := range []string{"SET k 1", "EVAL return{redis.call('incr','k'),redis.call('info','keyspace')} 0", "INFO keyspace", "EVAL return(foo) 0", "INCR k"} {
		c.want(line, "+QUEUED")
	}
	got := c.do("EXEC")
	if !strings.HasPrefix(got, "*[+OK *[:2 # Keyspace") || !strings.HasSuffix(got, " :3]") || !strings.Contains(got, "nonexistent global variable 'foo'") {
		t.Errorf("EXEC: %s", got)
	}
}

func TestScriptErrorsAreCounted(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.eval(`return redis.pcall("incr")`)
	c.eval(`return redis.call("nosuch")`)
	c.eval(`redis.pcall("set","s","x") return redis.call("incr","s")`)
	c.eval(`return {err="OWN error"}`)
	for _, x := range [][3]string{
		{"errorstats", "errorstat_OWN", "count=1"},
		{"errorstats", "errorstat_ERR", "count=3"},
		{"stats", "total_error_replies", "4"},
	} {
		if got := c.field(x[0], x[1]); got != x[2] {
			t.Errorf("%s:%s, want %s", x[1], got, x[2])
		}
	}
	if got := c.field("commandstats", "cmdstat_eval"); !strings.HasPrefix(got, "calls=4,") || !strings.HasSuffix(got, "rejected_calls=0,failed_calls=4") {
		t.Errorf("cmdstat_eval:%s", got)
	}
	if got := c.field("commandstats", "cmdstat_incr"); !strings.HasPrefix(got, "calls=1,") || !strings.HasSuffix(got, "rejected_calls=1,failed_calls=1") {
		t.Errorf("cmdstat_incr:%s", got)
	}
}
