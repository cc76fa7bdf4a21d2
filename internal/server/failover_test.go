package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// port returns where the server listens.
func (s *testServer) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

// startReplica starts a server that follows another one, and waits until it has the link.
func startReplica(t *testing.T, of *testServer, o testOptions) *testServer {
	t.Helper()
	s := start(t, o)
	c := s.client()
	c.want("CONFIG SET replica-announce-port "+s.port(), "+OK")
	c.want("REPLICAOF 127.0.0.1 "+of.port(), "+OK")
	s.linked()
	return s
}

// linked waits until the server has the link to the one it follows.
func (s *testServer) linked() {
	s.t.Helper()
	c := s.client()
	eventually(s.t, "the link", func() bool { return c.field("replication", "master_link_status") == "up" })
}

// TestRoleInTransaction: what Sentinel sends. The role has changed when EXEC's reply comes, and the file says so.
func TestRoleInTransaction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kevy.toml")
	if err := os.WriteFile(file, []byte("# ours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := start(t, testOptions{}), start(t, testOptions{file: file})
	c := b.client()
	sentinel := func(role ...string) {
		t.Helper()
		for _, line := range []string{"MULTI", strings.Join(role, " "), "CONFIG REWRITE", "CLIENT KILL TYPE normal", "CLIENT KILL TYPE pubsub"} {
			c.send(line)
			c.read()
		}
	}
	inFile := func(text string) bool {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(raw), text)
	}
	other, subscriber := b.client(), b.client()
	other.want("PING", "+PONG")
	subscriber.do("SUBSCRIBE __sentinel__:hello")
	sentinel("SLAVEOF", "127.0.0.1", a.port())
	c.want("EXEC", "*[+OK +OK :1 :1]")
	if !inFile(`replicaof = "127.0.0.1 ` + a.port() + `"`) {
		t.Error("CONFIG REWRITE behind SLAVEOF has not written it")
	}
	other.gone()
	subscriber.gone()
	c.want("SET x 1", "-READONLY *")
	b.linked()
	a.client().want("SET x 1", "+OK")
	replicas := a.client()
	if got := replicas.do("CLIENT LIST TYPE replica"); strings.Count(got, "flags=S") != 2 {
		t.Errorf("a replica's connections: %s", got)
	}
	sentinel("SLAVEOF", "NO", "ONE")
	c.want("EXEC", "*[+OK +OK :1 :0]")
	c.want("SET x 2", "+OK")
	if inFile(a.port()) {
		t.Error("CONFIG REWRITE behind SLAVEOF NO ONE has left what was followed in the file")
	}
	c.do("MULTI") // with commands that need a shard, the role changes behind them
	c.do("SET x 3")
	c.do("REPLICAOF 127.0.0.1 " + a.port())
	c.do("CONFIG REWRITE")
	c.want("EXEC", "*[+OK +OK +OK]")
	c.want("SET x 4", "-READONLY *")
	if !inFile(a.port()) {
		t.Error("CONFIG REWRITE behind REPLICAOF in a transaction with a write has not written it")
	}
}

// TestPausedSource: CLIENT PAUSE ALL does not hold back a replica.
func TestPausedSource(t *testing.T) {
	a := start(t, testOptions{})
	b := startReplica(t, a, testOptions{})
	c := a.client()
	c.want("SET x 1", "+OK")
	c.want("CLIENT PAUSE 600000 ALL", "+OK")
	d := b.client()
	eventually(t, "the write at the replica", func() bool { return d.do("GET x") == "1" })
	before := d.field("replication", "repl_connects")
	time.Sleep(2100 * time.Millisecond) // longer than what was on its way takes
	eventually(t, "signs of life", func() bool { return d.field("replication", "master_last_io_seconds_ago") == "0" })
	if got := d.field("replication", "repl_connects"); got != before {
		t.Errorf("%s connections, %s before the pause", got, before)
	}
}
