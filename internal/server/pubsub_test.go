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
		{"RENAME a b", "new:b rename_from:a rename_to:b"},
		{"COPY b c", "new:c copy_to:c"},
		{"DEL b c", "del:b del:c"},
		{"GET b", "keymiss:b"},
		{"EXISTS b", "keymiss:b"},
		{"GETDEL b", "keymiss:b"},
		{"SET b 1 GET", "keymiss:b new:b set:b"},
		{"GETSET b 2", "set:b"},
		{"DEL b", "del:b"},
		{"SUNIONSTORE s2 b", "keymiss:b"},
		{"PFMERGE b", "keymiss:b new:b pfadd:b"},
		{"DEL b", "del:b"},
		{"EVAL return{redis.call('GET','b'),redis.call('SET','b',1),redis.call('DEL','b')} 0", "keymiss:b new:b set:b del:b"},
		{"EVAL return{redis.call('SET','b',1),redis.call('RESTORE','b',1,redis.call('DUMP','b'),'REPLACE','ABSTTL')} 0", "new:b set:b del:b"},
		{"EVAL return{redis.call('SET','b',1),redis.call('RESTORE','b',0,redis.call('DUMP','b'),'REPLACE'),redis.call('DEL','b')} 0", "new:b set:b new:b restore:b del:b"},
		{"RPUSH l x", "new:l rpush:l"},
		{"LPOP l", "lpop:l del:l"},
		{"SADD s x", "new:s sadd:s"},
		{"SUNIONSTORE s2 s", "new:s2 sunionstore:s2"},
		{"SUNIONSTORE s2 s", "sunionstore:s2"},
		{"SPOP s", "spop:s del:s"},
		{"HSET h f 1", "new:h hset:h"},
		{"HINCRBY h f 1", "hincrby:h"},
		{"HDEL h f", "hdel:h del:h"},
		{"ZADD z INCR 1 m", "new:z zincr:z"},
		{"ZPOPMAX z", "zpopmax:z del:z"},
		{"RPUSH l a b", "new:l rpush:l"},
		{"LMOVE l l2 LEFT RIGHT", "new:l2 rpush:l2 lpop:l"},
		{"LMOVE l l RIGHT LEFT", ""},
		{"RPOPLPUSH l l2", "lpush:l2 rpop:l del:l"},
		{"MSET k1 1 k2 1 k3 1 k4 1 k5 1 k6 1", "new:k1 set:k1 new:k2 set:k2 new:k3 set:k3 new:k4 set:k4 new:k5 set:k5 new:k6 set:k6"}, // over two shards
		{"MSET k1 k3 k2 1 k1 2 k4 1 k3 1", "set:k1 set:k2 set:k1 set:k4 set:k3"},
		{"DEL k6 k5 k4 k3 k2 k1", "del:k6 del:k5 del:k4 del:k3 del:k2 del:k1"},
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

// TestTrackingModes: what is tracked from amid a transaction on, the order of prefixes, and who hears nothing in RESP2.
func TestTrackingModes(t *testing.T) {
	s := start(t, testOptions{})
	c, other := s.client(), s.client()
	c.do("HELLO 3")
	for _, line := range []string{"MULTI", "CLIENT TRACKING ON", "GET a", "EXEC"} {
		c.do(line)
	}
	other.do("SET a 1")
	if got := c.next(); !strings.Contains(got, "invalidate") || !strings.Contains(got, "$a") {
		t.Error(got)
	}
	c.do("CLIENT TRACKING OFF")
	c.do("CLIENT TRACKING ON BCAST PREFIX k PREFIX h PREFIX z PREFIX a")
	other.do("MSET k 1 z 1 h 1 a 1")
	for _, key := range []string{"$a", "$h", "$k", "$z"} {
		if got := c.next(); !strings.Contains(got, key) {
			t.Errorf("got %s, want %s", got, key)
		}
	}
	c.do("HELLO 2")
	c.do("SUBSCRIBE __redis__:invalidate")
	other.do("SET a 2")
	if got := c.do("PING"); !strings.Contains(got, "pong") {
		t.Errorf("nobody redirects to the client, but it got %s", got)
	}
}

// TestCachingIsOver: CLIENT CACHING counts for the next command other than CLIENT, also for one that is refused or waits.
func TestCachingIsOver(t *testing.T) {
	s := start(t, testOptions{})
	c, other := s.client(), s.client()
	c.do("HELLO 3")
	c.do("CLIENT TRACKING ON OPTOUT")
	for _, x := range []struct {
		next string
		over bool
	}{
		{"GET b", true},
		{"SET b 1", true},
		{"NOSUCH", true},
		{"GET", true},
		{"INCRBY b x", true},
		{"BLPOP l 0.01", true},
		{"EVAL return{} 0", true},
		{"CLIENT ID", false},
		{"CLIENT TRACKING ON OPTOUT", false},
		{"CLIENT CACHING YES", false}, // refused
		{"CLIENT ID x", false},
		{"CLIENT NOSUCH", true},
	} {
		c.do("CLIENT CACHING NO")
		c.do(x.next)
		c.do("GET a")
		other.do("SET a 1")
		got := c.do("PING")
		told := strings.Contains(got, "invalidate")
		if told {
			c.next()
		}
		if told != x.over {
			t.Errorf("a key that was read behind %s: told %v, got %s", x.next, told, got)
		}
	}
}

// TestOwnMessages: what a command brings its own client comes behind its reply and before the next one's.
func TestOwnMessages(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.do("HELLO 3")
	c.do("SUBSCRIBE news")
	c.QueueRaw([]byte("PUBLISH news hello\r\nRESET\r\nPING\r\n"))
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{":1", ">3", "RESET", "PONG"} {
		if got := c.next(); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
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
