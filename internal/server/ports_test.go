package server

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

func freePort(t *testing.T) string {
	t.Helper()
	n, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(n)
}

// reaches tells whether a client gets in at an address.
func reaches(addr string) bool {
	c, err := wire.Dial(addr)
	if err != nil {
		return false
	}
	defer c.Close()
	r, err := c.Do("PING")
	return err == nil && r.Text() == "PONG"
}

// TestPortMoves: whoever is connected stays, and the state of his connection; CONFIG SET inside a transaction is one like any other.
func TestPortMoves(t *testing.T) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprint("portable=", portable), func(t *testing.T) {
			s := start(t, testOptions{portable: portable, set: map[string]string{"loops": "2", "port": "0"}})
			first, second := freePort(t), freePort(t)
			c := s.client()
			c.want("CONFIG SET port "+first, "+OK")
			dialled, err := wire.Dial("127.0.0.1:" + first)
			if err != nil {
				t.Fatal(err)
			}
			there := &client{dialled, t}
			t.Cleanup(there.Close)
			there.want("MULTI", "+OK")
			there.want("CONFIG SET port "+second, "+QUEUED")
			there.want("INFO server", "+QUEUED")
			there.want("SET a 1", "+QUEUED")
			if got := there.do("EXEC"); !strings.HasPrefix(got, "*[+OK ") || !strings.HasSuffix(got, " +OK]") ||
				!strings.Contains(got, "\r\ntcp_port:"+second+"\r\n") || !strings.Contains(got, "listener0:name=tcp,bind=127.0.0.1,port="+second+"\r\n") {
				t.Error(got)
			}
			there.want("GET a", "1")
			if reaches("127.0.0.1:"+first) || !reaches("127.0.0.1:"+second) {
				t.Error("the port is open where it was, or not where it is")
			}
			c.want("CONFIG SET port 0", "+OK")
			if reaches("127.0.0.1:" + second) {
				t.Error("port 0 does not close it")
			}
			there.want("INFO server", "*")
			there.want("GET a", "1")
		})
	}
}

// TestPortKeepsListening: a change of bind does not close the addresses that stay, not even for a moment.
func TestPortKeepsListening(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"port": "0"}})
	c, port := s.client(), freePort(t)
	c.want("CONFIG SET port "+port, "+OK")
	var refused int
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			if !reaches("127.0.0.1:" + port) {
				refused++
			}
		}
	})
	for range 50 {
		for _, bind := range []string{"127.0.0.2 127.0.0.1", "127.0.0.1 -192.0.2.1", "127.0.0.1 127.0.0.2"} {
			if r, err := c.Do("CONFIG", "SET", "bind", bind); err != nil || r.IsError() {
				t.Fatal(r.String(), err)
			}
		}
		if r, err := c.Do("CONFIG", "SET", "bind", "127.0.0.1 192.0.2.1"); err != nil || !r.IsError() {
			t.Fatal(r.String(), err)
		}
	}
	close(end)
	wg.Wait()
	if refused > 0 || !reaches("127.0.0.2:"+port) {
		t.Errorf("%d clients were turned away", refused)
	}
}

// TestPortGoesBack: what a change that fails has closed is open again, of every port, and the settings are what they were.
func TestPortGoesBack(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"port": "0"}})
	c := s.client()
	port, metrics := freePort(t), freePort(t)
	taken, err := net.Listen("tcp", "127.0.0.2:"+metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c.want("CONFIG SET port "+port+" metrics-port "+metrics, "+OK")
	r, err := c.Do("CONFIG", "SET", "timeout", "7", "bind", "127.0.0.2 127.0.0.1") // the first address is in the way of the metrics
	if err != nil || r.String() != "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses." {
		t.Fatal(r.String(), err)
	}
	c.want("CONFIG GET bind", "*[bind 127.0.0.1]")
	c.want("CONFIG GET timeout", "*[timeout 0]")
	if !reaches("127.0.0.1:"+port) || reaches("127.0.0.2:"+port) {
		t.Error("the port is not where it was")
	}
	if got := c.field("server", "listener0"); got != "name=tcp,bind=127.0.0.1,port="+port {
		t.Error(got)
	}
}

// TestListen: the addresses at the start, among them those that Redis binds by default; what INFO says of them.
func TestListen(t *testing.T) {
	port, socket := freePort(t), filepath.Join(t.TempDir(), "kevy.sock")
	s := start(t, testOptions{set: map[string]string{"port": port, "bind": "127.0.0.1 -::1 -192.0.2.1", "unixsocket": socket}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	c := s.client()
	if got := c.field("server", "listener0"); got != "name=tcp,bind=127.0.0.1,bind=-::1,port="+port {
		t.Error(got)
	}
	if got := c.field("server", "listener1"); got != "name=unix,bind="+socket {
		t.Error(got)
	}
	c.want("CONFIG SET port 0", "+OK")
	if got := c.field("server", "listener0"); got != "name=tcp" {
		t.Error(got)
	}
	c.want("CONFIG SET unixsocket /tmp/x", "-ERR CONFIG SET failed (possibly related to argument 'unixsocket') - can't set immutable config")
}

// TestPortRewrite: CONFIG REWRITE writes where the server listens now.
func TestPortRewrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kevy.toml")
	if err := os.WriteFile(file, []byte("port = 0 # none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, testOptions{file: file, set: map[string]string{"port": "0"}})
	c, port := s.client(), freePort(t)
	if r, err := c.Do("CONFIG", "SET", "bind", "127.0.0.1 -192.0.2.1", "port", port); err != nil || r.IsError() {
		t.Fatal(r.String(), err)
	}
	c.want("CONFIG REWRITE", "+OK")
	got, err := os.ReadFile(file)
	if want := "port = " + port + " # none\nbind = \"127.0.0.1 -192.0.2.1\"\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// TestPortAnnounced: a replica tells its source the port that it has when it connects.
func TestPortAnnounced(t *testing.T) {
	source, replica := start(t, testOptions{}), start(t, testOptions{set: map[string]string{"port": "0"}})
	at, c := source.client(), replica.client()
	shown := func(port string) {
		t.Helper()
		eventually(t, "port="+port, func() bool { return strings.Contains(at.field("replication", "slave0"), ",port="+port+",") })
	}
	first, second := freePort(t), freePort(t)
	c.want("CONFIG SET port "+first, "+OK")
	c.want("REPLICAOF 127.0.0.1 "+source.port(), "+OK")
	shown(first)
	c.want("CONFIG SET port "+second, "+OK")
	at.want("CLIENT KILL TYPE replica", "*")
	shown(second)
}

// TestShutdownTimeout: CONFIG SET changes how long the end may take.
func TestShutdownTimeout(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"shutdown-timeout": "9"}})
	c := s.client()
	c.want("CONFIG SET shutdown-timeout 3", "+OK")
	if got := s.ShutdownTimeout(); got.Seconds() != 3 {
		t.Error(got)
	}
}

// TestSourceAddress: bind-source-addr is where a replica comes from, as far as the machine has that address.
func TestSourceAddress(t *testing.T) {
	source := start(t, testOptions{})
	at := source.client()
	for from, seen := range map[string]string{"127.0.0.2": "127.0.0.2", "192.0.2.1": "127.0.0.1", "::1": "127.0.0.1", "": "127.0.0.1"} {
		replica := start(t, testOptions{set: map[string]string{"bind-source-addr": from}})
		replica.client().want("REPLICAOF 127.0.0.1 "+source.port(), "+OK")
		replica.linked()
		if got := at.field("replication", "slave0"); !strings.HasPrefix(got, "ip="+seen+",") {
			t.Errorf("from %q: %s", from, got)
		}
		replica.shutdown()
		eventually(t, "the replica is gone", func() bool { return at.field("replication", "connected_slaves") == "0" })
	}
}
