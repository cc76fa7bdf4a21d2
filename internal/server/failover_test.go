package server

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/internal/testkit/wire"
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

// TestFailoverRefused compares what FAILOVER says to bad requests with redis-server 7.0.15.
func TestFailoverRefused(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	for line, want := range map[string]string{
		"FAILOVER":                        "-ERR FAILOVER requires connected replicas.",
		"failover abort":                  "-ERR No failover in progress.",
		"FAILOVER ABORT TIMEOUT 3":        "-ERR syntax error",
		"FAILOVER TO":                     "-ERR syntax error",
		"FAILOVER TO h":                   "-ERR syntax error",
		"FAILOVER TO h x":                 "-ERR value is not an integer or out of range",
		"FAILOVER TO h 99999999999":       "-ERR FAILOVER requires connected replicas.",
		"FAILOVER TO a 1 TO b 2":          "-ERR syntax error",
		"FAILOVER TIMEOUT":                "-ERR syntax error",
		"FAILOVER TIMEOUT x":              "-ERR value is not an integer or out of range",
		"FAILOVER TIMEOUT 0":              "-ERR FAILOVER timeout must be greater than 0",
		"FAILOVER TIMEOUT -1":             "-ERR FAILOVER timeout must be greater than 0",
		"FAILOVER TIMEOUT 3 TIMEOUT 3":    "-ERR syntax error",
		"FAILOVER FORCE FORCE":            "-ERR syntax error",
		"FAILOVER FORCE":                  "-ERR FAILOVER requires connected replicas.",
		"FAILOVER FORCE TO h 1 TIMEOUT 5": "-ERR FAILOVER requires connected replicas.",
	} {
		c.want(line, want)
	}
	_, ack := s.follower("10.0.0.1", "0") // in a program: nobody reaches it
	c.want(ack, "+OK")
	c.want("FAILOVER", "-ERR FAILOVER requires connected replicas.")
	r := startReplica(t, s, testOptions{})
	r.client().want("FAILOVER", "-ERR FAILOVER is not valid when server is a replica.")
	c.want("FAILOVER FORCE", "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.")
	c.want("FAILOVER TO 127.0.0.1 "+r.port()+" FORCE", "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.")
	c.want("FAILOVER TO 127.0.0.1 1", "-ERR FAILOVER target HOST and PORT is not a replica.")
	s.follower("127.0.0.1", "7")
	c.want("FAILOVER TO 127.0.0.1 7", "-ERR FAILOVER target replica is not online.")
	if got := c.field("replication", "master_failover_state"); got != "no-failover" {
		t.Errorf("after refusals: %s", got)
	}
	c.want("SET x 1", "+OK")
}

// follower is a connection that says it is a replica which serves at host and port, and does no more.
func (s *testServer) follower(host, port string) (c *client, ack string) {
	s.t.Helper()
	id := randomHex()
	c = s.client()
	if r, err := c.Do("REPL.HELLO", strconv.Itoa(replica.Format), "2", id, port, host); err != nil || r.IsError() {
		s.t.Fatalf("REPL.HELLO: %s, %v", r.String(), err)
	}
	ack = "REPL.ACK " + id
	for i := range s.eng.Shards() {
		ack += fmt.Sprintf(" %d 0 0 0 0", s.eng.Dir().Log(i).Tail().Generation)
	}
	return c, ack
}

// failover waits until INFO shows a state.
func (c *client) failover(want string) {
	c.t.Helper()
	eventually(c.t, want, func() bool { return c.field("replication", "master_failover_state") == want })
}

// TestFailoverGivenUp: a replica that does not come to have everything, or refuses to take over, leaves things as they are.
func TestFailoverGivenUp(t *testing.T) {
	s, other := start(t, testOptions{}), start(t, testOptions{})
	c, writer := s.client(), s.client()
	c.want("SET x 1", "+OK")
	link, ack := s.follower("127.0.0.1", other.port()) // which is no replica
	link.want(ack, "+OK")
	generation := s.eng.Dir().Log(0).Tail().Generation
	paused := func(line string) {
		t.Helper()
		c.failover("waiting-for-sync")
		writer.send(line)
		writer.silent()
		c.want("CLIENT UNPAUSE", "+OK")
		writer.silent()
		c.want("GET x", "1")
		c.want("FAILOVER", "-ERR FAILOVER already in progress.")
		c.want("REPLICAOF 127.0.0.1 1", "-ERR REPLICAOF not allowed while failing over.")
		c.want("SLAVEOF NO ONE", "-ERR REPLICAOF not allowed while failing over.")
	}
	resumed := func() {
		t.Helper()
		if got := writer.read(); got != "+OK" {
			t.Errorf("a write that was held back: %s", got)
		}
		c.failover("no-failover")
		c.want("SET x 1", "+OK")
	}

	c.want("FAILOVER", "+OK")
	paused("SET y 1")
	c.want("FAILOVER ABORT", "+OK")
	resumed()
	c.want("FAILOVER TO 127.0.0.1 "+other.port()+" TIMEOUT 700", "+OK")
	paused("SET y 2")
	resumed()
	if got := s.eng.Dir().Log(0).Tail().Generation; got != generation {
		t.Error("a failover given up while it waited has begun a generation")
	}

	c.want("FAILOVER TO 127.0.0.1 "+other.port()+" TIMEOUT 500 FORCE", "+OK") // which refuses
	paused("SET y 3")
	resumed()
	if role := c.do("ROLE"); !strings.HasPrefix(role, "*[master") {
		t.Errorf("after a refusal: %s", role)
	}
}

// TestFailoverOutOfReach: while the replica can't be asked, the server is its replica; ABORT makes it a primary again.
func TestFailoverOutOfReach(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers there
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a listener
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := start(t, testOptions{})
	link, ack := s.follower("127.0.0.1", port)
	link.want(ack, "+OK")
	c := s.client()
	c.want("SET x 1", "+OK")
	c.want("FAILOVER TO 127.0.0.1 "+port+" FORCE TIMEOUT 1", "+OK")
	c.failover("failover-in-progress")
	c.want("SET y 1", "-READONLY *")
	if role := c.do("ROLE"); !strings.HasPrefix(role, "*[slave 127.0.0.1 :"+port) {
		t.Errorf("while it hands over: %s", role)
	}
	c.want("FAILOVER ABORT", "+OK")
	c.want("INCR x", ":2")
	c.failover("no-failover")
	if got := c.do("CONFIG GET replicaof"); got != "*[replicaof ]" {
		t.Errorf("after an abort: %s", got)
	}
}

// TestFailover hands over again and again while clients count: what was acknowledged is there, exactly, and nobody drops or copies anything.
func TestFailover(t *testing.T) {
	a := start(t, testOptions{})
	a.client().want("CONFIG SET replica-announce-port "+a.port(), "+OK")
	b := startReplica(t, a, testOptions{})
	var primary atomic.Pointer[testServer]
	primary.Store(a)
	stop := make(chan struct{})
	var counting sync.WaitGroup
	counts := make([]int, 8)
	for i := range counts {
		counting.Go(func() { counts[i] = count(&primary, i, stop) })
	}
	for i := range 6 {
		time.Sleep(20 * time.Millisecond) // of load
		order := "FAILOVER"
		if i%2 == 1 {
			order += " TO 127.0.0.1 " + b.port() + " TIMEOUT 10000"
		}
		c, d := a.client(), b.client()
		c.want(order, "+OK")
		eventually(t, "the new primary", func() bool { return strings.HasPrefix(d.do("ROLE"), "*[master") })
		eventually(t, "the end", func() bool { return c.field("replication", "master_failover_state") == "no-failover" })
		a.linked()
		for _, name := range []string{"repl_rewinds", "repl_full_copies"} {
			if got := c.field("replication", name); got != "0" {
				t.Errorf("handing over %d: %s of the former primary is %s", i, name, got)
			}
		}
		a, b = b, a
		primary.Store(a)
	}
	close(stop)
	counting.Wait()
	c := a.client()
	for i, n := range counts {
		for _, key := range []string{"n:", "m:"} {
			if got := c.do(fmt.Sprint("GET ", key, i)); n == 0 || got != fmt.Sprint(n) {
				t.Errorf("%s%d is %s after %d acknowledged INCRs", key, i, got, n)
			}
		}
	}
	b.follows(a)
}

// count increments two keys together, at the primary, until stop, and returns how often that was acknowledged.
func count(primary *atomic.Pointer[testServer], id int, stop <-chan struct{}) (n int) {
	for {
		c, err := wire.Dial(primary.Load().addr)
		if err != nil {
			return n
		}
		for {
			select {
			case <-stop:
				c.Close()
				return n
			default:
			}
			replies, err := c.Pipeline([][][]byte{
				wire.Bytes("MULTI"), wire.Bytes("INCR", fmt.Sprint("n:", id)), wire.Bytes("INCR", fmt.Sprint("m:", id)), wire.Bytes("EXEC"),
			})
			if err != nil || replies[3].IsError() || len(replies[3].Elems) != 2 || replies[3].Elems[0].IsError() {
				break // it is no primary any more
			}
			n++
		}
		c.Close()
	}
}

// TestWaitersDismissed: who waits for acknowledgements when the server becomes a replica is told so.
func TestWaitersDismissed(t *testing.T) {
	a, b := start(t, testOptions{}), start(t, testOptions{})
	c := b.client()
	c.want("SET x 1", "+OK")
	var waiters []*client
	for _, line := range []string{"WAIT 1 0", "WAITAOF 0 1 0", "BLPOP nothing 0"} {
		w := b.client()
		w.send(line)
		waiters = append(waiters, w)
	}
	eventually(t, "all wait", func() bool { return c.field("clients", "blocked_clients") == "3" })
	c.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	for _, w := range waiters {
		if got := w.read(); got != "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)" {
			t.Errorf("a client that waited got %s", got)
		}
	}
	c.want("REPLICAOF NO ONE", "+OK")
	waiters[0].want("WAIT 1 1", ":0")
}

// TestFailoverOfPromoted: a replica goes on with a server that has been promoted, under its new replication id, and takes over from it.
func TestFailoverOfPromoted(t *testing.T) {
	a := start(t, testOptions{})
	b := startReplica(t, a, testOptions{})
	c := startReplica(t, b, testOptions{})
	of, d := b.client(), c.client()
	id := func(c *client) string { return c.field("replication", "master_replid") }
	of.want("REPLICAOF NO ONE", "+OK")
	of.want("SET x 1", "+OK")
	of.want("FAILOVER TO 127.0.0.1 "+c.port(), "+OK")
	eventually(t, "the new primary", func() bool { return strings.HasPrefix(d.do("ROLE"), "*[master") })
	of.failover("no-failover")
	b.follows(c)
	if x, y := id(of), id(d); x != y {
		t.Errorf("replication ids %s and %s", x, y)
	}
	d.want("DEBUG CHANGE-REPL-ID", "+OK")
	eventually(t, "the replica hears of the id", func() bool { return id(of) == id(d) })
	d.want("SET x 2", "+OK")
	b.follows(c)
	if n := of.field("replication", "repl_full_copies"); n != "0" {
		t.Errorf("%s full copies", n)
	}
}
