package replication

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/feed"
	"github.com/kevydb/kevy/internal/testkit/proc"
)

// info of a shard's feed.
func (n *node) feedInfo(shard int) feed.Shard {
	n.t.Helper()
	c, err := n.Dial()
	if err != nil {
		n.t.Fatal(err)
	}
	defer c.Close()
	s, err := feed.Info(c, shard)
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// TestPromotedIsBehind: the replica that is promoted has less than another one, which has to give up what only it has: offsets of
// the old generation say nothing about the new one's.
func TestPromotedIsBehind(t *testing.T) {
	a, b, c := newNode(t, "a"), newNode(t, "b"), newNode(t, "c")
	b.follow(a)
	c.follow(a)
	for i := range 20 {
		a.ok("MSET", "x", strconv.Itoa(i), "y", strconv.Itoa(i))
	}
	same(t, a, b)
	same(t, a, c)
	if err := b.Freeze(); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		a.ok("MSET", "x", "late", "y", "late", "late"+strconv.Itoa(i), "1", "z", "late")
		a.ok("WAIT", "1", "1000") // so they are not all in one reply
	}
	same(t, a, c)
	_ = a.Kill()
	if err := b.Thaw(); err != nil {
		t.Fatal(err)
	}
	b.promote()
	if r := b.ok("EXISTS", "late99"); r.Text() != "0" {
		t.Fatal("the promoted replica has everything: the test tests nothing")
	}
	c.follow(b)
	for i := range 300 { // its offsets come to pass those of the old generation
		b.ok("MSET", "x", "new"+strconv.Itoa(i), "y", "new")
	}
	same(t, b, c)
	c.want(t, "repl_rewinds", "1")
	c.want(t, "repl_full_copies", "0")
	if r := c.ok("EXISTS", "late99"); r.Text() != "0" {
		t.Error("what only the other replica had is still there")
	}
	a.source = c
	a.restart()
	same(t, b, a)
	a.want(t, "repl_full_copies", "0")
}

// TestPromotedTwiceBehind: each replica that is promoted is further behind than the one before it, and the others take their logs back to it, again and
// again, without a full copy. A FLUSHALL lies between.
func TestPromotedTwiceBehind(t *testing.T) {
	nodes := []*node{newNode(t, "a"), newNode(t, "b"), newNode(t, "c"), newNode(t, "d")}
	a := nodes[0]
	for _, n := range nodes[1:] {
		n.follow(a)
		n.up(t)
	}
	step := func(name string) {
		for i := range 20 {
			a.ok("MSET", "x", name, "y", name, name+strconv.Itoa(i), "1")
		}
	}
	step("all")
	for _, n := range nodes[1:] {
		same(t, a, n)
	}
	_ = nodes[3].Kill() // d has the least
	step("abc")
	same(t, a, nodes[1])
	same(t, a, nodes[2])
	_ = nodes[2].Kill()
	a.ok("FLUSHALL")
	step("ab")
	same(t, a, nodes[1])
	_ = nodes[1].Kill()
	step("a")
	for i := 1; i < 4; i++ { // b, c and d, each before those that have more
		n := nodes[i]
		n.source = nil
		n.restart()
		n.ok("MSET", "x", n.name, "y", n.name, n.name, "1")
		for _, of := range nodes[:i] {
			of.follow(n)
			same(t, n, of)
			of.want(t, "repl_full_copies", "0")
		}
		a.want(t, "repl_rewinds", "1") // since it follows this one
	}
	if r := a.ok("MGET", "all0", "abc0", "ab0", "a0", "b", "c", "x"); r.Elems[0].Text() != "1" || !r.Elems[1].Null || r.Elems[6].Text() != "d" {
		t.Errorf("at the end: %s", r.String())
	}
	a.KillAndCheck(t)
	a.restart()
	same(t, nodes[3], a)
	a.want(t, "repl_full_copies", "0")
}

// TestSourceWithoutLink: who follows a server that has not found its own source yet waits for it. Otherwise it would take its log back
// to that server's, and again when that one has to.
func TestSourceWithoutLink(t *testing.T) {
	a, b, c := newNode(t, "a"), newNode(t, "b"), newNode(t, "c")
	b.follow(a)
	c.follow(a)
	a.ok("MSET", "x", "1", "y", "1")
	same(t, a, b)
	same(t, a, c)
	freeze := func(n *node) {
		if err := n.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	freeze(c)
	for i := range 20 {
		a.ok("MSET", "x", strconv.Itoa(i), "y", "b has it")
		a.ok("WAIT", "1", "1000")
	}
	same(t, a, b)
	freeze(b)
	for i := range 20 {
		a.ok("MSET", "x", strconv.Itoa(i), "y", "nobody has it")
	}
	_ = a.Kill()
	if err := errors.Join(b.Thaw(), c.Thaw()); err != nil {
		t.Fatal(err)
	}
	c.promote()
	freeze(c)
	b.follow(c) // which does not answer
	a.source = b
	a.restart()
	eventually(t, "a server follows another that has no link", func() string {
		if e := a.info("replication", "repl_error"); !strings.Contains(e, "NOMASTERLINK ") {
			return "its error: " + e
		}
		return ""
	})
	if err := c.Thaw(); err != nil {
		t.Fatal(err)
	}
	c.ok("SET", "x", "c")
	same(t, c, b)
	same(t, c, a)
	for _, n := range []*node{a, b} {
		n.want(t, "repl_rewinds", "1")
	}
	a.want(t, "repl_full_copies", "0")
	b.want(t, "repl_full_copies", "0")
}

// TestCursorsAfterFork reads the feed at every kind of cursor after a fork, at the promoted server, at the former source, whose log was taken back,
// and at a replica that came later: the same frames, or FEEDRESYNC where a log does not reach back, never anything else.
func TestCursorsAfterFork(t *testing.T) {
	a, b, c := newNode(t, "a"), newNode(t, "b"), newNode(t, "c")
	b.follow(a)
	b.up(t)
	for i := range 30 {
		a.ok("MSET", "x"+strconv.Itoa(i), "1", "y"+strconv.Itoa(i), "1")
	}
	same(t, a, b)
	b.promote()
	for i := range 20 {
		a.ok("MSET", "x"+strconv.Itoa(i), "a", "y"+strconv.Itoa(i), "a")
		b.ok("MSET", "x"+strconv.Itoa(i), "b", "y"+strconv.Itoa(i), "b", "z", "b")
	}
	old := [2]feed.Shard{a.feedInfo(0), a.feedInfo(1)}
	a.follow(b)
	same(t, b, a)
	c.follow(b)
	b.ok("MSET", "x", "c", "y", "c", "z", "c")
	same(t, b, c)
	for shard := range 2 {
		now := b.feedInfo(shard)
		g, fork, tail := uint64(old[shard].Gen), uint64(now.Lineage[len(now.Lineage)-1].ParentOff), uint64(now.Off)
		if now.Lineage[len(now.Lineage)-1].Parent != old[shard].Gen || uint64(old[shard].Off) <= fork {
			t.Fatalf("no fork: %+v, %+v", old[shard], now)
		}
		for _, k := range []struct {
			gen, off uint64
			want     string // at the promoted server, with LINEAGE: a number of frames, or the error
		}{
			{g, 0, fmt.Sprint(fork)},
			{g, fork - 1, "1"},
			{g, fork, fmt.Sprint(tail)},
			{g, fork + 1, "FEEDRESYNC"}, // the former source had frames there
			{g, uint64(old[shard].Off), "FEEDRESYNC"},
			{g, uint64(old[shard].Off) + 1, "FEEDRESYNC"},
			{g, 1<<64 - 1, "FEEDRESYNC"},
			{uint64(now.Gen), 0, fmt.Sprint(tail)},
			{uint64(now.Gen), tail - 1, "1"},
			{uint64(now.Gen), tail, "0"},
			{uint64(now.Gen), tail + 1, "ERR"},
			{uint64(now.Gen), 1<<64 - 1, "ERR"},
			{uint64(now.Gen) + 1, 0, "FEEDRESYNC"},
			{g - 1, 0, "FEEDRESYNC"},
			{0, 0, "FEEDRESYNC"},
			{1<<64 - 1, 1<<64 - 1, "FEEDRESYNC"},
		} {
			args := []string{"FEED.READ", strconv.Itoa(shard), strconv.FormatUint(k.gen, 10), strconv.FormatUint(k.off, 10), "COUNT", "4096", "WITHMETA"}
			r := b.do(append(args, "LINEAGE")...)
			got, _, _ := strings.Cut(r.Text(), " ")
			if !r.IsError() {
				got = strconv.Itoa(len(r.Elems[2].Elems))
			}
			if got != k.want {
				t.Errorf("%v: %s, want %s", args, got, k.want)
			}
			asPromoted(t, a, b, k.gen == uint64(now.Gen) || k.gen == g && k.off <= fork, args...)
			asPromoted(t, c, b, k.gen == uint64(now.Gen) && k.off >= uint64(c.feedInfo(shard).Base), args...)
		}
	}
}

// asPromoted checks that n answers as the promoted server does or, unless it has those frames, with FEEDRESYNC.
func asPromoted(t *testing.T, n, promoted *node, has bool, args ...string) {
	t.Helper()
	for _, args := range [][]string{args, append(args, "LINEAGE")} {
		x, r := n.do(args...), promoted.do(args...)
		if x.String() != r.String() && (has || !strings.HasPrefix(x.Text(), "FEEDRESYNC ")) {
			t.Errorf("%s: %v:\n%s\n%s has\n%s", n.name, args, x.String(), promoted.name, r.String())
		}
	}
}

// TestDamagedStream flips bits of what the source sends: the replica applies nothing that is damaged, says why the link is down, and goes on from
// its log.
func TestDamagedStream(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	p := proc.NewProxy(t, a.port)
	b.ok("REPLICAOF", "127.0.0.1", strconv.Itoa(p.Port))
	b.up(t)
	l := startLoad(t, proc.Loopback, target{a, 1}, 0, 2, time.Millisecond)
	reasons := make(map[string]bool)
	for range flags.Rounds(8) {
		b.up(t)
		connects := b.info("replication", "repl_connects")
		p.Damage("k:")
		eventually(t, "damage goes unnoticed", func() string {
			if p.Damaged() && b.info("replication", "repl_connects") != connects {
				return ""
			}
			if e := b.info("replication", "repl_error"); e != "" {
				reasons[strings.Join(strings.Fields(e)[:2], " ")] = true
			}
			return "the link is " + b.info("replication", "master_link_status")
		})
	}
	l.end()
	same(t, a, b)
	l.check(t, b)
	b.want(t, "repl_full_copies", "1")
	b.want(t, "repl_rewinds", "0")
	t.Log(reasons)
}

// TestSlowReplica: a replica that reads nothing costs the source no memory, however much is written, and no writer waits for it.
func TestSlowReplica(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.follow(a)
	b.up(t)
	value := strings.Repeat("x", 1<<20)
	write := func(n int) {
		for range n {
			a.ok("SET", "x"+strconv.Itoa(rand.IntN(4)), value)
		}
	}
	write(30)
	same(t, a, b)
	if err := b.Freeze(); err != nil {
		t.Fatal(err)
	}
	before := rss(t, a)
	write(400)
	if grown := rss(t, a) - before; grown > 100<<20 {
		t.Errorf("the source has grown by %d MiB while 400 MiB were written and a replica read nothing", grown>>20)
	}
	if err := b.Thaw(); err != nil {
		t.Fatal(err)
	}
	same(t, a, b)
	b.want(t, "repl_full_copies", "1")
}

func rss(t *testing.T, n *node) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.Pid()))
	if err != nil {
		t.Skip(err) // not Linux
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
