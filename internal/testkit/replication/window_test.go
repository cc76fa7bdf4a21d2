package replication

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// served reads the feed of a shard from its base on, and returns the base and how many bytes that were.
func (n *node) served(shard int) (base int64, bytes int) {
	n.t.Helper()
	tail := n.ok("FEED.TAIL", strconv.Itoa(shard))
	gen := tail.Elems[0].Text()
	end, _ := tail.Elems[1].Int()
	info := n.info("feed", fmt.Sprintf("shard%d", shard))
	_, text, _ := strings.Cut(info, "base=")
	text, _, _ = strings.Cut(text, ",")
	base, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n.t.Fatalf("INFO says %q", info)
	}
	for at := base; at < end; {
		reply := n.ok("FEED.READ", strconv.Itoa(shard), gen, strconv.FormatInt(at, 10), "COUNT", "4096")
		bytes += len(reply.String())
		at, _ = reply.Elems[1].Int()
	}
	if refused, err := n.try("FEED.READ", strconv.Itoa(shard), gen, "0"); err != nil || base > 0 && !strings.Contains(refused.Text(), "FEEDRESYNC") {
		n.t.Errorf("before the base: %s %v", refused.String(), err)
	}
	return base, bytes
}

// TestReplicaLeavesWindow: what consumers may read stays as long without a replica, with one in step, after a snapshot, after the
// replica has gone, and after a restart.
func TestReplicaLeavesWindow(t *testing.T) {
	flags := []string{"--feed-buffer-size", "200kb", "--log-segment-size", "64kb"}
	a, b := newNode(t, "a", flags...), newNode(t, "b", flags...)
	write := func(round int) {
		t.Helper()
		for i := range 40 {
			a.ok("MSET", fmt.Sprintf("x%d", i), strings.Repeat("v", 1000), fmt.Sprintf("y%d", i), strings.Repeat("w", 1000), "round", strconv.Itoa(round))
		}
	}
	full := 0
	check := func(when string) {
		t.Helper()
		for shard := range 2 {
			base, bytes := a.served(shard)
			if base > 0 {
				full++
			}
			if base > 0 && bytes < 150_000 {
				t.Errorf("%s: shard %d serves %d bytes from %d on", when, shard, bytes, base)
			}
		}
	}
	for round := range 8 {
		write(round)
	}
	check("alone")
	b.follow(a)
	b.up(t)
	write(8)
	same(t, a, b)
	check("with a replica in step")
	a.ok("SAVE")
	check("after a snapshot")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	write(9)
	check("without the replica")
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	a.restart()
	check("restarted")
	b.restart()
	same(t, a, b)
	check("with the replica again")
	if full < 6 {
		t.Errorf("the window was full %d times only", full)
	}
	b.want(t, "repl_full_copies", "0")
}
