package replication

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// patience is how long a test waits for something that must happen.
const patience = 25 * time.Second

// node is a server on a fixed port of a host that can be killed and started again.
type node struct {
	t      *testing.T
	name   string
	host   proc.Host
	port   int
	flags  []string
	source *node // that it follows, also when it is started again; nil: none
	*proc.Server
}

// newNode starts a server on the loopback address.
func newNode(t *testing.T, name string, flags ...string) *node {
	t.Helper()
	port, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return newNodeOn(t, proc.Loopback, port, name, flags...)
}

// newNodeOn starts a server on a host.
func newNodeOn(t *testing.T, host proc.Host, port int, name string, flags ...string) *node {
	t.Helper()
	n := &node{t: t, name: name, host: host, port: port, flags: append([]string{"--shards", "2"}, flags...)}
	n.start(filepath.Join(t.TempDir(), name))
	t.Cleanup(func() {
		n.KillAndCheck(t)
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, n.Log())
		}
	})
	return n
}

func (n *node) start(dir string) {
	n.t.Helper()
	flags := n.flags
	if n.source != nil {
		flags = append(slices.Clone(flags), "--replicaof", n.source.host.IP()+" "+strconv.Itoa(n.source.port))
	}
	s, err := proc.StartKevyOn(n.host, n.port, dir, flags...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.Server = s
}

// addr is where it serves; unlike the Server's it stays when the server is started again.
func (n *node) addr() string { return net.JoinHostPort(n.host.IP(), strconv.Itoa(n.port)) }

// dialFrom connects from a host.
func (n *node) dialFrom(h proc.Host) (*wire.Conn, error) { return proc.DialFrom(h, n.addr()) }

// restart starts the server again, which has ended.
func (n *node) restart() {
	n.t.Helper()
	n.start(n.Dir)
}

// do runs a command over a connection of its own.
func (n *node) do(args ...string) *wire.Reply {
	n.t.Helper()
	r, err := n.try(args...)
	if err != nil {
		n.t.Fatalf("%s: %s: %v", n.name, strings.Join(args, " "), err)
	}
	return &r
}

func (n *node) try(args ...string) (wire.Reply, error) {
	c, err := n.Dial()
	if err != nil {
		return wire.Reply{}, err
	}
	defer c.Close()
	c.Timeout = patience
	return c.Do(args...)
}

// ok runs a command that must not fail.
func (n *node) ok(args ...string) *wire.Reply {
	n.t.Helper()
	r := n.do(args...)
	if r.IsError() {
		n.t.Fatalf("%s: %s: %s", n.name, strings.Join(args, " "), r.String())
	}
	return r
}

func (n *node) follow(of *node) {
	n.t.Helper()
	n.ok("REPLICAOF", of.host.IP(), strconv.Itoa(of.port))
	n.source = of
}

func (n *node) promote() {
	n.t.Helper()
	n.ok("REPLICAOF", "NO", "ONE")
	n.source = nil
}

// info returns a field of INFO replication or stats.
func (n *node) info(section, field string) string {
	n.t.Helper()
	r, err := n.try("INFO", section)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(r.Text()) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return v
		}
	}
	return ""
}

// cursors returns the generation and tail of each shard, and how they came about.
func (n *node) cursors() string {
	var b strings.Builder
	for i := range 2 {
		r := n.ok("FEED.INFO", strconv.Itoa(i))
		for _, name := range []string{"generation", "tail", "lineage"} {
			f, _ := r.Field(name)
			fmt.Fprintf(&b, "%s %s ", name, f.String())
		}
	}
	return b.String()
}

func (n *node) digest() string {
	r := n.ok("PREFIX.DIGEST", "")
	return r.String()
}

// eventually waits until check returns "".
func eventually(t *testing.T, what string, check func() string) {
	t.Helper()
	end := time.Now().Add(patience)
	bad := ""
	for time.Now().Before(end) {
		if bad = check(); bad == "" {
			return
		}
		time.Sleep(5 * time.Millisecond) // there is no event to wait for in another process
	}
	t.Fatalf("%s: %s", what, bad)
}

// same waits until b is as a is: cursors, lineages, digest, and the offset by which replicas are compared.
func same(t *testing.T, a, b *node) {
	t.Helper()
	eventually(t, b.name+" is not as "+a.name, func() string {
		if x, y := a.cursors(), b.cursors(); x != y {
			return "cursors:\n" + x + "\n" + y
		}
		if x, y := a.digest(), b.digest(); x != y {
			return "digests: " + x + ", " + y
		}
		if x, y := a.info("replication", "master_repl_offset"), b.info("replication", "master_repl_offset"); x != y {
			return "offsets: " + x + ", " + y
		}
		return ""
	})
}

// target is where clients write, and how many replicas there must acknowledge what is to survive the loss of that server: with none, the server's OK will do.
type target struct {
	on       *node
	replicas int
}

// load writes until stop, with WAIT after each write, and keeps what was acknowledged by replicas.
type load struct {
	from proc.Host
	to   atomic.Pointer[target]
	idle time.Duration // up to so long between writes

	gate   sync.RWMutex // held for reading by who writes
	paused bool         // gate is held
	ended  atomic.Bool
	wg     sync.WaitGroup

	mu    sync.Mutex
	acked map[string]string
	fresh []string // keys of acked that no check has seen
}

// startLoad writes from a host. Clients of all loads have different ids, from id on.
func startLoad(t *testing.T, from proc.Host, to target, id, clients int, idle time.Duration) *load {
	l := &load{from: from, idle: idle, acked: make(map[string]string)}
	l.to.Store(&to)
	t.Cleanup(l.end)
	for i := range clients {
		l.wg.Go(func() { l.client(id + i) })
	}
	return l
}

func (l *load) client(id int) {
	rng := rand.New(rand.NewPCG(uint64(id), 7))
	var c *wire.Conn
	var at *node
	hangUp := func() {
		if c != nil {
			c.Close()
		}
		c = nil
	}
	defer hangUp()
	for n := 0; ; n++ {
		time.Sleep(time.Duration(rng.Int64N(int64(l.idle) + 1)))
		l.gate.RLock()
		if l.ended.Load() {
			l.gate.RUnlock()
			return
		}
		to := l.to.Load()
		if at != to.on {
			hangUp()
			at = to.on
		}
		if c == nil {
			c = l.dial(at)
		}
		if c != nil && !l.write(c, rng, to.replicas, id, n) {
			hangUp()
		}
		l.gate.RUnlock()
	}
}

// dial connects, or returns nil after a while.
func (l *load) dial(to *node) *wire.Conn {
	c, err := to.dialFrom(l.from)
	if err != nil {
		time.Sleep(5 * time.Millisecond) // the server is down
		return nil
	}
	c.Timeout = 3 * time.Second
	return c
}

// write makes one write, some of them over both shards, and waits for replicas. False: the connection is of no use.
func (l *load) write(c *wire.Conn, rng *rand.Rand, replicas, id, n int) bool {
	key, value := fmt.Sprintf("k:%d:%d", id, n), strings.Repeat(strconv.Itoa(n), 1+rng.IntN(40))
	args := []string{"SET", key, value}
	switch rng.IntN(4) {
	case 0:
		args = []string{"MSET", key, value, fmt.Sprintf("a:%d:%d", id, rng.IntN(1000)), value, fmt.Sprintf("b:%d:%d", id, rng.IntN(1000)), value}
	case 1:
		if r, err := c.Do("SADD", fmt.Sprintf("s:%d", id), value); err != nil || r.IsError() {
			return false
		}
	}
	if r, err := c.Do(args...); err != nil || r.IsError() {
		return false
	}
	if replicas > 0 {
		r, err := c.Do("WAIT", strconv.Itoa(replicas), "1000")
		if err != nil {
			return false
		}
		if got, ok := r.Int(); !ok || got < int64(replicas) {
			return true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[key] = value
	l.fresh = append(l.fresh, key)
	return true
}

// pause returns when nothing is being written; nothing is until resume.
func (l *load) pause() {
	l.gate.Lock()
	l.paused = true
}

func (l *load) resume() {
	l.paused = false
	l.gate.Unlock()
}

// end ends the writing. It may be called more than once.
func (l *load) end() {
	l.ended.Store(true)
	if l.paused {
		l.resume()
	}
	l.wg.Wait()
}

// check looks for everything that was acknowledged.
func (l *load) check(t *testing.T, n *node) {
	t.Helper()
	l.look(t, n, slices.Collect(maps.Keys(l.acked)))
	if len(l.acked) == 0 {
		t.Error("nothing was acknowledged: the test has tested nothing")
	}
}

// checkFresh looks for what was acknowledged since it was called last, and returns how much that is.
func (l *load) checkFresh(t *testing.T, n *node) int {
	t.Helper()
	l.mu.Lock()
	keys := l.fresh
	l.fresh = nil
	l.mu.Unlock()
	l.look(t, n, keys)
	return len(keys)
}

// value returns what was acknowledged of a key.
func (l *load) value(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked[key]
}

func (l *load) look(t *testing.T, n *node, keys []string) {
	t.Helper()
	c, err := n.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for some := range slices.Chunk(keys, 500) {
		r, err := c.Must(append([]string{"MGET"}, some...)...)
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range some {
			if want := l.value(key); r.Elems[i].Text() != want {
				t.Fatalf("%s: %s, which replicas had acknowledged, is %s, not %q", n.name, key, r.Elems[i].String(), want)
			}
		}
	}
}
