package server

import (
	"strings"
	"testing"
)

// reads returns the next message of a client as one line.
func (c *client) next() string {
	c.t.Helper()
	r, err := c.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return r.String()
}

func TestSubscriber(t *testing.T) {
	s := start(t, testOptions{})
	sub, pub := s.client(), s.client()
	sub.do("SUBSCRIBE news")
	if got := pub.do("PUBLISH news hello"); !strings.Contains(got, "1") {
		t.Error(got)
	}
	if got := sub.next(); !strings.Contains(got, "hello") {
		t.Error(got)
	}
	if got := sub.do("GET a"); !strings.Contains(got, "Can't execute 'get'") {
		t.Error(got)
	}
	if got := sub.do("PING"); !strings.Contains(got, "pong") {
		t.Error(got)
	}
	sub.do("UNSUBSCRIBE")
	if got := sub.do("PING"); !strings.Contains(got, "PONG") {
		t.Error(got)
	}
	if got := pub.do("PUBLISH news hello"); !strings.Contains(got, "0") {
		t.Error(got)
	}
}

// TestNotifications: the events of a key, in order, by the commands that are about it.
func TestNotifications(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"notify-keyspace-events": "EKAnm"}})
	c, sub := s.client(), s.client()
	sub.do("PSUBSCRIBE __keyevent@0__:*")
	for _, x := range []struct{ run, want string }{
		{"SET a 1", "new:a set:a"},
		{"SET a 1 EX 100", "set:a expire:a"},
		{"SET a 1 KEEPTTL", "set:a"},
		{"INCR a", "incrby:a"},
		{"PERSIST a", "persist:a"},
		{"RENAME a b", "rename_from:a new:b rename_to:b"},
		{"COPY b c", "new:c copy_to:c"},
		{"DEL b c", "del:b del:c"},
		{"GET b", "keymiss:b"},
		{"RPUSH l x", "new:l rpush:l"},
		{"LPOP l", "lpop:l del:l"},
		{"SADD s x", "new:s sadd:s"},
		{"SUNIONSTORE s2 s", "new:s2 sunionstore:s2"},
		{"SPOP s", "spop:s del:s"},
		{"HSET h f 1", "new:h hset:h"},
		{"HINCRBY h f 1", "hincrby:h"},
		{"HDEL h f", "hdel:h del:h"},
		{"ZADD z INCR 1 m", "new:z zincr:z"},
		{"ZPOPMAX z", "zpopmax:z del:z"},
		{"FLUSHALL", ""},
		{"SET end 1", "new:end set:end"},
	} {
		c.do(x.run)
		for want := range strings.FieldsSeq(x.want) {
			event, key, _ := strings.Cut(want, ":")
			if got := sub.next(); !strings.Contains(got, "__:"+event) || !strings.Contains(got, key) {
				t.Fatalf("%s: got %s, want %s", x.run, got, want)
			}
		}
	}
}

func TestTracking(t *testing.T) {
	s := start(t, testOptions{})
	c, other := s.client(), s.client()
	c.do("HELLO 3")
	c.do("CLIENT TRACKING ON")
	c.do("GET a")
	other.do("SET a 1")
	if got := c.next(); !strings.Contains(got, "invalidate") || !strings.Contains(got, "a") {
		t.Error(got)
	}
	other.do("SET a 2") // not read since
	if got := c.do("GET a"); !strings.Contains(got, "2") {
		t.Error(got)
	}
	other.do("FLUSHALL")
	if got := c.next(); !strings.Contains(got, "invalidate") {
		t.Error(got)
	}
	for _, x := range [][2]string{
		{"CLIENT TRACKING ON BCAST", "switch BCAST mode"},
		{"CLIENT TRACKING ON PREFIX a", "requires BCAST"},
		{"CLIENT TRACKING ON OPTIN OPTOUT", "both OPTIN"},
		{"CLIENT TRACKING ON REDIRECT 999999", "does not exist"},
		{"CLIENT CACHING YES", "OPTIN mode"},
		{"CLIENT GETREDIR", "0"},
		{"CLIENT TRACKING OFF", "OK"},
		{"CLIENT TRACKING ON BCAST PREFIX ab PREFIX abc", "overlaps"},
	} {
		if got := c.do(x[0]); !strings.Contains(got, x[1]) {
			t.Errorf("%s: %s", x[0], got)
		}
	}
}

func TestSlowlogAndMonitor(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"slowlog-log-slower-than": "0"}})
	c, m := s.client(), s.client()
	m.do("MONITOR")
	c.do("SET a 1")
	if got := m.next(); !strings.Contains(got, `"SET" "a" "1"`) {
		t.Error(got)
	}
	if got := c.do("SLOWLOG GET 1"); !strings.Contains(got, "SET") {
		t.Error(got)
	}
	if got := c.do("CLUSTER INFO"); !strings.Contains(got, "cluster support disabled") {
		t.Error(got)
	}
	if got := c.do("LATENCY HISTOGRAM set"); !strings.Contains(got, "calls") {
		t.Error(got)
	}
}
