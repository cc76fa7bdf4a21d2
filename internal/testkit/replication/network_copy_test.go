package replication

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/netns"
)

// network makes hosts, or skips the test where that is not possible.
func network(t *testing.T, seed uint64, names ...string) (*netns.Network, []*netns.Host) {
	t.Helper()
	net, hosts, err := netns.New(seed, names...)
	if errors.Is(err, netns.ErrUnavailable) {
		t.Skipf("no hosts of its own: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(net.Close)
	return net, hosts
}

// TestCopyOverCuts: a full copy over a link that is cut again and again goes on where it was, while the source is written to.
func TestCopyOverCuts(t *testing.T) {
	net, hosts := network(t, flags.Seed(t), "a", "b")
	onHost := func(h *netns.Host) *node {
		return newNodeOn(t, h, nodePort, h.Name, "--protected-mode=no", "--repl-timeout", "1", "--auto-aof-rewrite-percentage", "0")
	}
	a, b := onHost(hosts[0]), onHost(hosts[1])
	value := make([]byte, 1<<20)
	for i := range 8 {
		for j := range value {
			value[j] = byte(rand.Uint32()) // not to be compressed
		}
		a.ok("SET", "big"+strconv.Itoa(i), string(value))
	}
	b.follow(a)
	syncing := func(want string) {
		eventually(t, "a copy is under way: "+want, func() string {
			got := b.info("replication", "master_sync_in_progress")
			if got == want || b.info("replication", "master_link_status") == "up" {
				return ""
			}
			return got + ", " + b.info("replication", "repl_error")
		})
	}
	resumed, had := 0, 0
	for cut := 0; ; cut++ {
		syncing("1")
		if b.info("replication", "master_link_status") == "up" {
			break
		}
		if have, err := strconv.Atoi(b.info("replication", "master_sync_read_bytes")); err == nil {
			if have < had {
				t.Fatalf("the copy had %d bytes and has %d", had, have)
			}
			if had > 0 {
				resumed++
			}
			had = have
		}
		net.Both(hosts[0], hosts[1], netns.Fault{CutAfter: 3 << 20})
		syncing("0")
		a.ok("MSET", "x"+strconv.Itoa(cut), "1", "y"+strconv.Itoa(cut), "2")
		net.Heal()
	}
	same(t, a, b)
	b.want(t, "repl_full_copies", "1")
	if resumed == 0 || !strings.Contains(b.Log(), "going on with the full copy") {
		t.Error("no copy was interrupted: the test tests nothing")
	}
}
