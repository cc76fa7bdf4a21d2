package replication

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// Each shard is a stream of its own: of two replicas each may be ahead on a shard. The one with the greatest offset must have all that WAIT has counted any of them for.

// offset is what Sentinel compares.
func (n *node) offset() int {
	n.t.Helper()
	v, err := strconv.Atoi(n.info("replication", "slave_repl_offset"))
	if err != nil {
		n.t.Fatalf("%s: slave_repl_offset: %v", n.name, err)
	}
	return v
}

// furthest promotes the one with the greater offset, and returns both.
func furthest(t *testing.T, b, c *node) (first, second *node) {
	t.Helper()
	first, second = b, c
	if second.offset() > first.offset() {
		first, second = second, first
	}
	t.Logf("%s at %d is promoted, %s is at %d", first.name, first.offset(), second.name, second.offset())
	first.promote()
	return first, second
}

// hashes returns a key of each shard.
func (n *node) hashes() (keys [2]string) {
	n.t.Helper()
	for i := 0; keys[0] == "" || keys[1] == ""; i++ {
		key, before := "h"+strconv.Itoa(i), n.feedInfo(0).Off
		n.ok("HSET", key, "f", "v")
		shard := 1
		if n.feedInfo(0).Off != before {
			shard = 0
		}
		keys[shard] = key
	}
	return keys
}

// ackedFields are fields of two hashes, one a shard, that a replica was counted for.
type ackedFields struct {
	keys [2]string
	wait int // ms for WAIT

	mu     sync.Mutex
	fields [2][]string
}

// write writes a field on a shard, and keeps it if a replica acknowledges it.
func (k *ackedFields) write(c *wire.Conn, shard int, field string, size int) error {
	if _, err := c.Must("HSET", k.keys[shard], field, strings.Repeat("x", size)); err != nil {
		return err
	}
	r, err := c.Must("WAIT", "1", strconv.Itoa(k.wait))
	if err != nil {
		return err
	}
	if n, ok := r.Int(); ok && n > 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.fields[shard] = append(k.fields[shard], field)
	}
	return nil
}

// check looks for all of them.
func (k *ackedFields) check(n *node) {
	n.t.Helper()
	for shard, names := range k.fields {
		there, lost := make(map[string]bool), 0
		r := n.ok("HKEYS", k.keys[shard])
		for i := range r.Elems {
			there[r.Elems[i].Text()] = true
		}
		for _, name := range names {
			if !there[name] {
				lost++
			}
		}
		if lost > 0 {
			n.t.Errorf("%s has lost %d of %d writes to shard %d that WAIT had counted a replica for", n.name, lost, len(names), shard)
		}
	}
}

// load writes fields, each of which is of any size and on either shard, to the server until it is gone.
func (k *ackedFields) load(n *node, id string, rng *rand.Rand, shard *atomic.Int64) {
	c, err := wire.Dial(n.addr())
	if err != nil {
		return
	}
	defer c.Close()
	c.Timeout = 3 * time.Second
	for i := 0; err == nil; i++ {
		at, size := int(shard.Load()), 1+rng.IntN(100)
		if rng.IntN(8) == 0 {
			at = 1 - at
		}
		if rng.IntN(4) == 0 {
			size = 64 << 10
		}
		err = k.write(c, at, id+":"+strconv.Itoa(i), size)
	}
}

func (k *ackedFields) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.fields[0]) + len(k.fields[1])
}

// TestAheadOnAShard: one replica has everything of a shard and nothing of the other, the second one a part of that and, by a greater number of frames,
// all of the other. What was acknowledged is on the first one only, which is restarted when the source is gone.
func TestAheadOnAShard(t *testing.T) {
	a, b, c := newNode(t, "a"), newNode(t, "b"), newNode(t, "c")
	p := proc.NewProxy(t, a.port)
	b.ok("REPLICAOF", "127.0.0.1", strconv.Itoa(p.Port))
	c.follow(a)
	b.up(t)
	c.up(t)
	acked := ackedFields{keys: a.hashes(), wait: 20_000}
	same(t, a, b)
	same(t, a, c)

	p.Allow(0)
	conn, err := a.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Timeout = patience
	for i := range 100 {
		if err := acked.write(conn, 0, strconv.Itoa(i), 64<<10); err != nil || acked.count() != i+1 {
			t.Fatalf("%d writes acknowledged, %v", acked.count(), err)
		}
	}
	if err := c.Freeze(); err != nil {
		t.Fatal(err)
	}
	for i := range 600 {
		if _, err := conn.Must("HSET", acked.keys[1], strconv.Itoa(i), "small"); err != nil {
			t.Fatal(err)
		}
	}
	p.Allow(4 << 20) // of 6.4 MB
	end := a.feedInfo(1).Off
	eventually(t, "b does not come to the end of shard 1", func() string {
		if off := b.feedInfo(1).Off; off != end {
			return fmt.Sprintf("%d of %d", off, end)
		}
		return ""
	})
	if have, all := b.feedInfo(0).Off, a.feedInfo(0).Off; have >= all {
		t.Fatalf("b has %d of %d frames of shard 0: the test tests nothing", have, all)
	}
	_ = a.Kill()
	p.Cut()
	_ = c.Kill()
	c.restart()
	first, second := furthest(t, b, c)
	acked.check(first)
	second.follow(first)
	same(t, first, second)
	a.restart()
	a.follow(first)
	same(t, first, a)
}

// TestAheadUnderLoad stalls the links of two replicas, anywhere, under a load that turns from the one shard to the other, and kills the source: the
// replica with the greatest offset has everything that WAIT has counted either for.
func TestAheadUnderLoad(t *testing.T) {
	rng := flags.Rand(t, 2)
	nodes := []*node{newNode(t, "a"), newNode(t, "b"), newNode(t, "c")}
	acked := ackedFields{keys: nodes[0].hashes(), wait: 50}
	for round := range flags.Rounds(3) {
		a, b, c := nodes[0], nodes[1], nodes[2]
		var links [2]*proc.Proxy
		for i, n := range []*node{b, c} {
			links[i] = proc.NewProxy(t, a.port)
			n.ok("REPLICAOF", "127.0.0.1", strconv.Itoa(links[i].Port))
		}
		same(t, a, b)
		same(t, a, c)
		shard, wg := new(atomic.Int64), new(sync.WaitGroup)
		for i := range 4 {
			id, rng := fmt.Sprintf("%d:%d", round, i), rand.New(rand.NewPCG(rng.Uint64(), 1))
			wg.Go(func() { acked.load(a, id, rng, shard) })
		}
		enough := acked.count() + 20
		eventually(t, "writes that a replica has", func() string {
			if n := acked.count(); n < enough {
				return strconv.Itoa(n)
			}
			return ""
		})
		for range 4 + rng.IntN(12) {
			shard.Store(rng.Int64N(2))
			links[rng.IntN(2)].Allow([]int{0, rng.IntN(1 << 20), rng.IntN(4 << 20), -1}[rng.IntN(4)])
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond) // of load
		}
		_ = a.Kill()
		wg.Wait()
		for i, n := range []*node{b, c} {
			links[i].Cut()
			eventually(t, n.name+" applies what has come", func() string { return n.link("down") })
		}
		first, second := furthest(t, b, c)
		acked.check(first)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		a.restart()
		nodes = []*node{first, second, a}
	}
	t.Logf("%d writes acknowledged by a replica", acked.count())
}

// link returns what the state of the link is if it is another one.
func (n *node) link(want string) string {
	if got := n.info("replication", "master_link_status"); got != want {
		return "its link is " + got
	}
	return ""
}
