package replication

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/rounds"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

var flags = rounds.Register("replication", "in which the tests under load do their worst")

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

func (n *node) up(t *testing.T) {
	t.Helper()
	eventually(t, n.name+" has no link", func() string {
		if n.info("replication", "master_link_status") == "up" {
			return ""
		}
		return "down: " + n.info("replication", "repl_error")
	})
}

// want checks a field of INFO replication.
func (n *node) want(t *testing.T, field, value string) {
	t.Helper()
	if got := n.info("replication", field); got != value {
		t.Errorf("%s: %s is %s, want %s", n.name, field, got, value)
	}
}

func TestFollow(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	for i := range 200 {
		a.ok("MSET", fmt.Sprintf("x%d", i), "1", fmt.Sprintf("y%d", i), "2")
	}
	a.ok("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 7 end, flags={'no-writes'}}")
	b.ok("SET", "old", "junk")
	b.follow(a)
	b.up(t)
	a.ok("SET", "volatile", "v", "PX", "200")
	a.ok("FLUSHALL")
	a.ok("EVAL", "redis.call('SET','k1','1') redis.call('SADD','k2','a','b') return 1", "2", "k1", "k2")
	same(t, a, b)
	if r := b.do("SET", "x", "1"); r.Text() != "READONLY You can't write against a read only replica." {
		t.Errorf("a write to a replica: %s", r.String())
	}
	if r := b.do("EVAL", "return redis.call('SET','q','1')", "1", "q"); !strings.Contains(r.Text(), "READONLY") {
		t.Errorf("a script that writes, on a replica: %s", r.String())
	}
	if r := b.ok("FCALL_RO", "f", "0"); r.String() != a.do("FCALL_RO", "f", "0").String() {
		t.Errorf("a function on a replica: %s", r.String())
	}
	if r := b.do("WAIT", "0", "0"); !r.IsError() {
		t.Errorf("WAIT on a replica: %s", r.String())
	}
	a.ok("SET", "k3", "v")
	if r := a.ok("WAITAOF", "1", "1", "10000"); r.String() != "[1, 1]" && !strings.Contains(r.String(), "1") {
		t.Errorf("WAITAOF: %s", r.String())
	}
	for shard := range 2 {
		tail := a.ok("FEED.TAIL", strconv.Itoa(shard))
		gen, _ := tail.Elems[0].Int()
		args := []string{"FEED.READ", strconv.Itoa(shard), strconv.FormatInt(gen, 10), "0", "WITHMETA"}
		if x, y := a.ok(args...), b.ok(args...); x.String() != y.String() {
			t.Errorf("FEED.READ: source\n%s\nreplica\n%s", x.String(), y.String())
		}
	}
	b.want(t, "repl_full_copies", "1")
}

// TestRestart: a replica that was stopped, or killed, goes on from its own log.
func TestRestart(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.follow(a)
	b.up(t)
	a.ok("SET", "x", "1")
	same(t, a, b)
	for i := range 4 {
		if i%2 == 0 {
			_ = b.Kill()
		} else if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
		a.ok("MSET", "x", strconv.Itoa(i), "y", "1", "z", "2")
		if i == 2 {
			a.ok("FLUSHALL")
			a.ok("SET", "after", "1")
		}
		b.restart()
		same(t, a, b)
		b.want(t, "repl_full_copies", "0")
	}
	_ = b.Kill()
	for range 3 { // generations without frames
		_ = a.Kill()
		a.restart()
	}
	b.restart()
	a.ok("SET", "after", "2")
	same(t, a, b)
	b.want(t, "repl_full_copies", "0")
	if n := a.info("stats", "sync_full"); n != "0" {
		t.Errorf("full copies after the source was killed: %s", n)
	}
}

// TestFork: both sides write after a promotion; the former source comes back and drops what the other does not have.
func TestFork(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.follow(a)
	b.up(t)
	for i := range 50 {
		a.ok("MSET", "x"+strconv.Itoa(i), "1", "y", strconv.Itoa(i))
	}
	same(t, a, b)
	b.promote()
	for i := range 20 {
		a.ok("MSET", "x"+strconv.Itoa(i), "only a", "onlya", "1", "z", "1")
		b.ok("MSET", "x"+strconv.Itoa(i), "only b", "onlyb", "1", "z", "2")
	}
	a.follow(b)
	same(t, b, a)
	a.want(t, "repl_rewinds", "1")
	a.want(t, "repl_full_copies", "0")
	if r := a.ok("EXISTS", "onlya"); r.String() != b.ok("EXISTS", "onlya").String() {
		t.Errorf("what only the former source had: %s", r.String())
	}
	kept, _ := filepath.Glob(filepath.Join(a.Dir, "shard-*", "cut", "*-from-*"))
	if len(kept) == 0 {
		t.Error("what only the former source had is not kept aside")
	}
	_ = a.Kill()
	a.restart()
	b.ok("SET", "more", "1")
	same(t, b, a)
	a.want(t, "repl_full_copies", "0")
}

func TestChain(t *testing.T) {
	a, b, c := newNode(t, "a"), newNode(t, "b"), newNode(t, "c")
	b.follow(a)
	c.follow(b)
	a.ok("MSET", "x", "1", "y", "2", "z", "3")
	same(t, a, b)
	same(t, a, c)
	_ = b.Kill()
	a.ok("MSET", "x", "4", "y", "5")
	b.restart()
	same(t, a, c)
	b.promote()
	b.ok("SET", "b", "1")
	same(t, b, c)
}

func TestRefusals(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b", "--shards", "3")
	b.ok("SET", "mine", "1")
	b.follow(a)
	eventually(t, "unequal numbers of shards", func() string {
		if e := b.info("replication", "repl_error"); !strings.Contains(e, "must be equal") {
			return e
		}
		return ""
	})
	if r := b.ok("GET", "mine"); r.Text() != "1" {
		t.Errorf("a replica that was refused has lost its data: %s", r.String())
	}
	b.ok("CONFIG", "SET", "replica-serve-stale-data", "no")
	if r := b.do("GET", "mine"); !strings.HasPrefix(r.Text(), "MASTERDOWN") {
		t.Errorf("a read while the link is down: %s", r.String())
	}
	a.ok("CONFIG", "SET", "min-replicas-to-write", "1")
	if r := a.do("SET", "x", "1"); r.Text() != "NOREPLICAS Not enough good replicas to write." {
		t.Errorf("a write without replicas: %s", r.String())
	}
	c := newNode(t, "c")
	c.follow(a)
	eventually(t, "a write with a replica is refused", func() string {
		r := a.do("SET", "x", "1")
		if r.IsError() {
			return r.Text()
		}
		return ""
	})
}

// TestCuts cuts the link again and again, anywhere, under load.
func TestCuts(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	p := proc.NewProxy(t, a.port)
	b.ok("REPLICAOF", "127.0.0.1", strconv.Itoa(p.Port))
	b.up(t)
	l := startLoad(t, proc.Loopback, target{a, 1}, 0, 4, 0)
	for range flags.Rounds(20) {
		time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond) // of load
		p.Cut()
	}
	l.end()
	same(t, a, b)
	l.check(t, b)
	b.want(t, "repl_full_copies", "1")
	b.want(t, "repl_rewinds", "0")
}

// TestKills kills either side at any time under load.
func TestKills(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.follow(a)
	b.up(t)
	l := startLoad(t, proc.Loopback, target{a, 1}, 0, 4, 0)
	for range flags.Rounds(8) {
		time.Sleep(time.Duration(100+rand.IntN(500)) * time.Millisecond) // of load
		victim := a
		if rand.IntN(2) == 0 {
			victim = b
		}
		_ = victim.Kill()
		victim.restart()
		if n := a.info("stats", "sync_full"); victim == a && n != "0" {
			t.Errorf("a full copy after %s was killed", victim.name)
		}
	}
	l.end()
	same(t, a, b)
	l.check(t, a)
	l.check(t, b)
	b.want(t, "repl_full_copies", "0")
}

// TestKilledAndPromoted kills a replica at random amid transactions over both shards, some with a FLUSHALL in them, and starts it again as a primary: each transaction
// is there as a whole or not at all.
func TestKilledAndPromoted(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.follow(a)
	b.up(t)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		wg.Go(func() { transactions(t, a, w, stop) })
	}
	seen := make(map[string]bool)
	for i := range flags.Rounds(4) {
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // of load
		_ = b.Kill()
		b.source = nil
		b.restart()
		if role := b.ok("ROLE").Elems[0].Text(); role != "master" {
			t.Fatalf("round %d: it is a %s", i, role)
		}
		for w := range 3 {
			r := b.ok(append([]string{"MGET"}, transactionKeys(w)...)...)
			for _, e := range r.Elems {
				if e.Text() != r.Elems[0].Text() {
					t.Errorf("round %d: a transaction is torn: %s", i, r.String())
					break
				}
			}
			seen[r.Elems[0].Text()] = true
		}
		b.follow(a)
		b.up(t)
	}
	close(stop)
	wg.Wait()
	if len(seen) < 4 {
		t.Errorf("%d different states seen", len(seen))
	}
	same(t, a, b)
	b.want(t, "repl_full_copies", "0")
}

// transactionKeys are keys on both shards.
func transactionKeys(w int) (keys []string) {
	for i := range 6 {
		keys = append(keys, fmt.Sprintf("w%d-%d", w, i))
	}
	return keys
}

// transactions sets all of a writer's keys to one number after the other, until stop.
func transactions(t *testing.T, n *node, w int, stop <-chan struct{}) {
	c, err := n.Dial()
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		cmds := [][][]byte{wire.Bytes("MULTI")}
		if w == 0 && i%20 == 19 {
			cmds = append(cmds, wire.Bytes("SET", "before", "1"), wire.Bytes("FLUSHALL"))
		}
		for _, k := range transactionKeys(w) {
			cmds = append(cmds, wire.Bytes("SET", k, strconv.Itoa(i)))
		}
		replies, err := c.Pipeline(append(cmds, wire.Bytes("EXEC")))
		if err == nil {
			err = replies[len(replies)-1].Err()
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// TestAccess: a replica logs in; a source that wants a password says why the link is down; SLAVEOF works in a transaction, as Sentinel
// sends it.
func TestAccess(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	a.ok("ACL", "SETUSER", "rep", "on", ">secret", "-@all", "+repl.hello", "+repl.snapshot", "+repl.fetch", "+repl.pull", "+repl.ack")
	a.ok("ACL", "SETUSER", "default", "-@admin")
	b.follow(a)
	eventually(t, "the reason", func() string {
		if e := b.info("replication", "repl_error"); !strings.Contains(e, "NOPERM") {
			return e
		}
		return ""
	})
	b.ok("CONFIG", "SET", "masteruser", "rep", "masterauth", "secret")
	a.ok("MSET", "x", "1", "y", "2")
	same(t, a, b)
	c, err := b.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, args := range [][]string{{"MULTI"}, {"SLAVEOF", "NO", "ONE"}, {"CLIENT", "KILL", "TYPE", "pubsub"}, {"EXEC"}} {
		if r, err := c.Do(args...); err != nil || r.IsError() {
			t.Fatalf("%v: %s, %v", args, r.String(), err)
		}
	}
	eventually(t, "promotion in a transaction", func() string {
		r := b.do("SET", "x", "2")
		if r.IsError() {
			return r.Text()
		}
		return ""
	})
	if role := b.ok("ROLE"); role.Elems[0].Text() != "master" {
		t.Errorf("ROLE after a promotion: %s", role.String())
	}
}

// TestForks changes roles again and again, each time with writes that only the former source has, and that it must drop.
func TestForks(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.follow(a)
	b.up(t)
	for i := range flags.Rounds(6) {
		n := strconv.Itoa(i)
		a.ok("MSET", "x", n, "y", n, "z"+n, n)
		switch i % 3 {
		case 1:
			a.ok("FLUSHALL")
			a.ok("SET", "flushed", n)
		case 2:
			a.ok("SAVE")
		}
		same(t, a, b)
		b.promote()
		for range 1 + i%2*300 {
			a.ok("MSET", "x", "lost"+n, "y", "lost", "lost"+n, "1")
		}
		if i%4 == 3 {
			a.ok("FLUSHALL")
		}
		b.ok("MSET", "x", "kept"+n, "y", "kept")
		a.follow(b)
		same(t, b, a)
		if r := a.ok("MGET", "x", "lost"+n); r.Elems[0].Text() != "kept"+n || !r.Elems[1].Null {
			t.Errorf("round %d: %s", i, r.String())
		}
		if i%2 == 1 {
			_ = a.Kill()
			a.restart()
			same(t, b, a)
		}
		a.want(t, "repl_full_copies", "0")
		a, b = b, a
	}
}
