package server

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// listed reports whether CLIENT LIST shows a client of a name.
func (c *client) listed(name string) bool {
	c.t.Helper()
	return strings.Contains(c.do("CLIENT LIST"), " name="+name+" ")
}

// totalMemory is tot-mem of the client of a name.
func (c *client) totalMemory(name string) (n int) {
	c.t.Helper()
	_, line, _ := strings.Cut(c.do("CLIENT LIST"), " name="+name+" ")
	_, line, _ = strings.Cut(line, " tot-mem=")
	if _, err := fmt.Sscan(line, &n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// unfinished sends the begin of a request whose argument has n bytes, and waits until they have arrived.
func (c *client) unfinished(by *client, name string, n int) {
	c.t.Helper()
	c.want("CLIENT SETNAME "+name, "+OK")
	c.QueueRaw([]byte(fmt.Sprintf("*2\r\n$%d\r\n%s", n, strings.Repeat("x", n))))
	if err := c.Flush(); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, "the argument arrives", func() bool {
		list := by.do("CLIENT LIST")
		return strings.Contains(list, fmt.Sprintf("qbuf=%d ", n)) || !strings.Contains(list, " name="+name+" ")
	})
}

// TestClientEviction: the largest go, until the others fit; who is not to be evicted stays, and does not count.
func TestClientEviction(t *testing.T) {
	s := start(t, testOptions{})
	control := s.client()
	control.want("CLIENT NO-EVICT on", "+OK")
	// A buffer may have twice the room that was asked for, if it has been another client's: the order is the same all the same.
	sizes := []int{1 << 20, 100 << 10, 600 << 10, 250 << 10}
	var others []*client
	for i, n := range sizes {
		c := s.client()
		others = append(others, c)
		if i == 0 {
			c.want("CLIENT NO-EVICT on", "+OK")
		}
		c.unfinished(control, fmt.Sprintf("c%d", i), n)
	}
	small, large := control.totalMemory("c1"), control.totalMemory("c3")
	control.want(fmt.Sprintf("CONFIG SET maxmemory-clients %d", small+large+10000), "+OK")
	for i, want := range []bool{true, true, false, true} {
		if got := control.listed(fmt.Sprintf("c%d", i)); got != want {
			t.Errorf("client %d is there: %v", i, got)
		}
	}
	others[2].gone()
	control.want(fmt.Sprintf("CONFIG SET maxmemory %d", 2*small+20000), "+OK")
	control.want("CONFIG SET maxmemory-clients 50%", "+OK")
	others[3].gone()
	if n := control.number("stats", "evicted_clients"); n != 2 {
		t.Errorf("%d evicted clients", n)
	}
	control.want("CONFIG SET maxmemory-clients 101%", "-ERR CONFIG SET failed*")
	control.want("CONFIG GET maxmemory-clients", "*[maxmemory-clients 50%]")
	if control.listed("c2") || control.listed("c3") || !control.listed("c1") {
		t.Error(control.do("CLIENT LIST"))
	}
}

// TestClientEvictionCauses: whatever a client holds counts.
func TestClientEvictionCauses(t *testing.T) {
	for name, request := range map[string]func(i int) string{
		"watch":     func(i int) string { return fmt.Sprintf("WATCH key:%d", i) },
		"subscribe": func(i int) string { return fmt.Sprintf("SUBSCRIBE channel:%d", i) },
		"pattern":   func(i int) string { return fmt.Sprintf("PSUBSCRIBE channel:%d", i) },
		"prefix":    func(i int) string { return fmt.Sprintf("CLIENT TRACKING ON BCAST PREFIX p%05d", i) },
		"multi":     func(i int) string { return fmt.Sprintf("SET key %d%s", i, strings.Repeat("x", 1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, testOptions{set: map[string]string{"maxmemory-clients": "200kb"}})
			c, control := s.client(), s.client()
			c.want("CLIENT SETNAME hog", "+OK")
			if name == "multi" {
				c.want("MULTI", "+OK")
			}
			for i := range 5000 {
				if _, err := c.Do(strings.Fields(request(i))...); err != nil {
					break
				}
			}
			if control.listed("hog") || control.number("stats", "evicted_clients") != 1 {
				t.Error(control.do("CLIENT LIST"))
			}
		})
	}
}

// TestOutputBounds: each class has its own, and a change concerns those who are there.
func TestOutputBounds(t *testing.T) {
	s := start(t, testOptions{})
	c, d, e := s.client(), s.client(), s.client()
	c.want("SETRANGE big 200000 x", ":200001")
	c.want("CLIENT SETNAME normal", "+OK")
	d.want("CLIENT SETNAME sub", "+OK")
	d.want("SUBSCRIBE ch", "*[subscribe ch :1]")
	e.want("CONFIG SET client-output-buffer-limit pubsub", "-ERR*")
	if r, err := e.Do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 100000 0 0"); err != nil || show(&r) != "+OK" {
		t.Fatal(show(&r), err)
	}
	c.want("STRLEN big", ":200001")
	if got := c.do("GET big"); len(got) != 200001 {
		t.Errorf("%d bytes", len(got))
	}
	c.want("PUBLISH ch "+strings.Repeat("m", 100001), ":1")
	d.gone()
	if r, err := e.Do("CONFIG", "SET", "client-output-buffer-limit", "normal 100000 0 0"); err != nil || show(&r) != "+OK" {
		t.Fatal(show(&r), err)
	}
	c.send("GET big")
	c.gone()
	if got := e.do("CONFIG GET client-output-buffer-limit"); got != "*[client-output-buffer-limit normal 100000 0 0 slave 268435456 67108864 60 pubsub 100000 0 0]" {
		t.Error(got)
	}
}

// TestProtectedMode: a client of another machine is told, unless the default user needs a password.
func TestProtectedMode(t *testing.T) {
	for _, a := range []struct {
		local, remote string
		want          bool
	}{
		{"127.0.0.1:6379", "127.0.0.1:50000", true},
		{"[::1]:6379", "[::1]:50000", true},
		{"[::]:6379", "[::ffff:127.0.0.1]:50000", true},
		{"/tmp/s:0", "/tmp/s:0", true},
		{"192.0.2.1:6379", "192.0.2.1:50000", false},
		{"192.0.2.1:6379", "[2001:db8::1]:50000", false},
		{"192.0.2.1:6379", "", false},
	} {
		if got := localAddress(a.local, a.remote); got != a.want {
			t.Errorf("%v: %v", a, got)
		}
	}
	other := otherAddress(t)
	s := start(t, testOptions{})
	a, err := s.ListenOn("tcp", net.JoinHostPort(other, "0"), 0)
	if err != nil {
		t.Fatal(err)
	}
	control := s.client()
	dial := func() *client {
		c, err := wire.Dial(a.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return &client{c, t}
	}
	c := dial()
	c.Queue(wire.Bytes("PING"))
	_ = c.Flush() // the connection may be closed already
	if got := c.read(); !strings.HasPrefix(got, "-DENIED Redis is running in protected mode because") {
		t.Error(got)
	}
	c.gone()
	if control.field("stats", "rejected_connections") != "1" || control.field("clients", "connected_clients") != "1" {
		t.Error(control.do("INFO stats"))
	}
	control.want("CONFIG SET requirepass pw", "+OK")
	dial().want("AUTH pw", "+OK")
	control.want("CONFIG SET requirepass", "-ERR wrong number*")
	if r, err := control.Do("CONFIG", "SET", "requirepass", ""); err != nil || show(&r) != "+OK" {
		t.Fatal(show(&r), err)
	}
	control.want("CONFIG SET protected-mode no", "+OK")
	dial().want("PING", "+PONG")
}

// otherAddress is an address of this machine that is not the loopback's.
func otherAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but the loopback's")
	return ""
}

// TestUsersInConfiguration: users of the configuration are there at the start, and CONFIG REWRITE writes them back.
func TestUsersInConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kevy.toml")
	text := "# mine\nusers = [\n  \"alice on >pw ~a:* +@all\", # first\n  'default on nopass ~* +@all -flushdb',\n]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{"--config", file}, nil, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, testOptions{file: file, set: map[string]string{"user": strings.Join(cfg.Users, "\n")}})
	c := s.client()
	c.want("FLUSHDB", "-NOPERM*")
	c.want("CONFIG GET user", "*[]")
	c.want("CONFIG SET user x", "-ERR Unknown option*")
	c.want("ACL SAVE", "-ERR This Redis instance is not configured to use an ACL file.*")
	c.want("ACL SETUSER bob on nopass", "+OK")
	c.want("ACL DELUSER alice", ":1")
	c.want("CONFIG REWRITE", "+OK")
	again, err := config.Load([]string{"--config", file}, nil, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Users) != 2 || !strings.HasPrefix(again.Users[0], "bob on nopass") || !strings.Contains(again.Users[1], "-flushdb") {
		t.Errorf("%q", again.Users)
	}
	if got := s.access.users.Lines(); !slices.Equal(got, again.Users) {
		t.Errorf("%q, file has %q", got, again.Users)
	}
	c.want("ACL DELUSER bob", ":1")
	c.want("ACL SETUSER default +@all allchannels", "+OK")
	c.want("CONFIG REWRITE", "+OK")
	if again, err = config.Load([]string{"--config", file}, nil, os.Stderr); err != nil || len(again.Users) != 0 {
		t.Errorf("%q, %v", again.Users, err)
	}
}

// TestPermissionLostWhileWaiting: a command that waits is checked again before it takes something.
func TestPermissionLostWhileWaiting(t *testing.T) {
	s := start(t, testOptions{})
	c, d := s.client(), s.client()
	c.want("ACL SETUSER alice on nopass +@all ~*", "+OK")
	d.want("AUTH alice x", "+OK")
	d.send("BLPOP list 0")
	eventually(t, "it waits", func() bool { return c.field("clients", "blocked_clients") == "1" })
	c.want("ACL SETUSER alice resetkeys", "+OK")
	c.want("RPUSH list a", ":1")
	if got := d.read(); got != "-NOPERM No permissions to access a key" {
		t.Error(got)
	}
	c.want("LRANGE list 0 -1", "*[a]")
	if got := c.field("commandstats", "cmdstat_blpop"); !strings.Contains(got, "calls=0,") || !strings.Contains(got, "rejected_calls=1,failed_calls=0") {
		t.Error(got)
	}
	if got := c.do("ACL LOG"); !strings.Contains(got, "reason key") {
		t.Error(got)
	}
}

// TestKillByUser knows all users.
func TestKillByUser(t *testing.T) {
	s := start(t, testOptions{})
	c, d := s.client(), s.client()
	c.want("ACL SETUSER alice on nopass +@all ~*", "+OK")
	d.want("AUTH alice x", "+OK")
	c.want("CLIENT KILL USER nobody", "-ERR No such user 'nobody'")
	c.want("CLIENT KILL USER alice", ":1")
	d.gone()
}
