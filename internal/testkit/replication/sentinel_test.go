package replication

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

var kills = flag.Int("sentinel.kills", 2, "how often TestSentinel kills the primary")

// watch is a set of sentinels.
type watch []*proc.Server

// startWatch starts three sentinels that watch a primary. Some of their periods are a tenth of what they are by default, so that
// rounds are short; down is for how long (ms) they hear nothing before they take a server for dead.
func startWatch(t *testing.T, primary *node, down int) watch {
	t.Helper()
	var w watch
	for i := range 3 {
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor kevy 127.0.0.1 %d 2\nsentinel down-after-milliseconds kevy %d\n"+
			"sentinel failover-timeout kevy 15000\nsentinel parallel-syncs kevy 1\n", primary.port, down)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		port, err := proc.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s, err := proc.StartSentinel(port, file)
		if err != nil {
			t.Fatal(err)
		}
		w = append(w, s)
		t.Cleanup(func() {
			_ = s.Kill()
			if t.Failed() {
				t.Logf("log of sentinel %d:\n%s", i, s.Log())
			}
		})
		ask(t, s, "SENTINEL", "DEBUG", "info-period", "1000", "ask-period", "200", "publish-period", "200")
	}
	eventually(t, "the sentinels know all", func() string {
		for i := range w {
			if got := w.counts(t, i); got != "2 replicas, 2 sentinels" {
				return fmt.Sprintf("sentinel %d knows %s", i, got)
			}
		}
		return ""
	})
	return w
}

func ask(t *testing.T, s *proc.Server, args ...string) *wire.Reply {
	t.Helper()
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Must(args...)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// counts tells how many others a sentinel has found.
func (w watch) counts(t *testing.T, i int) string {
	r := ask(t, w[i], "SENTINEL", "MASTER", "kevy")
	replicas, _ := r.Field("num-slaves")
	others, _ := r.Field("num-other-sentinels")
	return replicas.Text() + " replicas, " + others.Text() + " sentinels"
}

// primary returns the address that a sentinel gives to clients, empty if it can't be asked.
func primary(s *proc.Server) string {
	c, err := s.Dial()
	if err != nil {
		return ""
	}
	defer c.Close()
	r, err := c.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "kevy")
	if err != nil || len(r.Elems) != 2 {
		return ""
	}
	return net.JoinHostPort(r.Elems[0].Text(), r.Elems[1].Text())
}

// agreed returns the node that all sentinels take for the primary, nil while they do not agree.
func (w watch) agreed(nodes []*node) *node {
	for _, n := range nodes {
		all := true
		for _, s := range w {
			all = all && primary(s) == n.addr()
		}
		if all {
			return n
		}
	}
	return nil
}

// newSet starts three servers with configuration files, of which the others follow the first.
func newSet(t *testing.T) []*node {
	t.Helper()
	var nodes []*node
	for _, name := range []string{"a", "b", "c"} {
		file := filepath.Join(t.TempDir(), name+".toml")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, newNode(t, name, "--config", file))
	}
	for _, n := range nodes[1:] {
		n.ok("REPLICAOF", "127.0.0.1", strconv.Itoa(nodes[0].port))
		n.ok("CONFIG", "REWRITE")
		n.up(t)
	}
	return nodes
}

// TestSentinel kills the primary again and again under load. Three redis-sentinels, as Debian has them, promote a replica; what was killed comes back and
// drops what only it has. A write for which WAIT has counted one replica, whichever, is never lost: Sentinel promotes the one that has all of them. (It looks at their offsets once a second
// here, so those it goes by are from after the loss.)
func TestSentinel(t *testing.T) {
	if _, err := proc.Sentinel(); errors.Is(err, proc.ErrNoSentinel) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	nodes := newSet(t)
	w := startWatch(t, nodes[0], 2000)
	l := startLoad(t, proc.Loopback, target{nodes[0], 1}, 0, 4, 2*time.Millisecond)
	now, slowest, acked := nodes[0], time.Duration(0), 0
	for round := range *kills {
		enough := acked + 100
		eventually(t, "writes that a replica has", func() string {
			if acked += l.checkFresh(t, now); acked < enough {
				return strconv.Itoa(acked)
			}
			return ""
		})
		old, alone := now, fmt.Sprintf("alone:%d", round)
		dieAlone(t, nodes, old, alone)
		var took time.Duration
		now, took = w.promoted(t, nodes, old)
		slowest = max(slowest, took)
		l.to.Store(&target{now, 1})
		rejoin(t, nodes, old, now, alone)
		t.Logf("round %d: %s was killed, %s promoted after %s; %d writes acknowledged", round, old.name, now.name, took.Round(time.Millisecond), acked)
	}
	l.end()
	for _, n := range nodes {
		if n != now {
			same(t, now, n)
		}
		l.check(t, n)
	}
	for i, s := range w {
		for _, bad := range []string{"+failover-end-for-timeout", "-failover-abort-slave-timeout"} {
			if strings.Contains(s.Log(), bad) {
				t.Errorf("sentinel %d says %s", i, bad)
			}
		}
	}
	t.Logf("%d kills, %d writes acknowledged by a replica; slowest promotion %s", *kills, len(l.acked), slowest)
}

// dieAlone kills the primary when it has written what no replica has.
func dieAlone(t *testing.T, nodes []*node, n *node, key string) {
	t.Helper()
	for _, other := range nodes {
		if other != n {
			if err := other.Freeze(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Thaw() }()
		}
	}
	for i := range 20 { // a replica may have asked, and is answered with the first ones
		n.ok("MSET", "last", strconv.Itoa(i), "too", "1", "three", "2")
		time.Sleep(10 * time.Millisecond)
	}
	n.ok("SET", key, "1")
	_ = n.Kill()
}

// promoted waits until all sentinels have another primary, and returns it and how long that took.
func (w watch) promoted(t *testing.T, nodes []*node, old *node) (now *node, took time.Duration) {
	t.Helper()
	began := time.Now()
	eventually(t, "a promotion", func() string {
		if now = w.agreed(nodes); now == nil || now == old {
			return "none"
		}
		return ""
	})
	return now, time.Since(began)
}

// rejoin starts the former primary again, and waits until it and the third server follow the new one. It has kept aside what only it had.
func rejoin(t *testing.T, nodes []*node, old, now *node, alone string) {
	t.Helper()
	kept := old.kept()
	old.restart()
	for _, n := range nodes {
		if n != now {
			n.followed(t, now)
		}
		if r := n.ok("EXISTS", alone); r.Text() != "0" {
			t.Errorf("%s: %s has what only the killed primary had", alone, n.name)
		}
	}
	if n := old.kept(); n <= kept {
		t.Errorf("%s: %s has kept %d files aside, %d before", alone, old.name, n, kept)
	}
	if old.info("replication", "repl_kept_aside") == "0" {
		t.Errorf("%s: INFO of %s does not tell what was kept aside", alone, old.name)
	}
}

// kept counts the files that the server has kept aside.
func (n *node) kept() int {
	files, _ := filepath.Glob(filepath.Join(n.Dir, "shard-*", "cut", "*-from-*"))
	return len(files)
}

// followed waits until the server follows another one.
func (n *node) followed(t *testing.T, of *node) {
	t.Helper()
	eventually(t, n.name+" does not follow "+of.name, func() string {
		if port, link := n.info("replication", "master_port"), n.info("replication", "master_link_status"); port != strconv.Itoa(of.port) || link != "up" {
			return fmt.Sprintf("port %q, link %q: %s", port, link, n.info("replication", "repl_error"))
		}
		return ""
	})
}

// TestPlannedFailover hands over again and again under load. Whatever write was answered with OK is there, no frame is dropped and nothing copied.
func TestPlannedFailover(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.ok("REPLICAOF", "127.0.0.1", strconv.Itoa(a.port))
	b.up(t)
	l := startLoad(t, proc.Loopback, target{a, 0}, 0, 4, time.Millisecond)
	acked := 0
	for i := range flags.Rounds(6) {
		enough := acked + 100
		eventually(t, "writes", func() string {
			if acked += l.checkFresh(t, a); acked < enough {
				return strconv.Itoa(acked)
			}
			return ""
		})
		a.ok("FAILOVER", "TO", "127.0.0.1", strconv.Itoa(b.port), "TIMEOUT", "20000")
		a.followed(t, b)
		a.want(t, "master_failover_state", "no-failover")
		a.want(t, "repl_rewinds", "0")
		a.want(t, "repl_full_copies", "0")
		l.to.Store(&target{b, 0})
		acked += l.checkFresh(t, b)
		if t.Failed() {
			t.Fatalf("round %d", i)
		}
		a, b = b, a
	}
	l.end()
	same(t, a, b)
	l.check(t, a)
	l.check(t, b)
	t.Logf("%d writes were answered with OK", len(l.acked))
}
