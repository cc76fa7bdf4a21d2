package replication

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/feed"
	"github.com/kevydb/kevy/internal/testkit/netns"
)

// world is three servers and two hosts of clients on a network that somebody tampers with. Clients at near are on the primary's side
// of every partition, those at far on the other.
type world struct {
	t         *testing.T
	rng       *rand.Rand
	net       *netns.Network
	hosts     map[*node]*netns.Host
	near, far *netns.Host

	primary *node
	others  [2]*node // the first one is promoted when the primary is lost, and has everything that was acknowledged
	chained bool     // the second one follows the first one, not the primary

	loads     [2]*load // at near and far
	seen      *history
	consumers []*consumer
	counts    map[*node]*counts
	acked     int
	resyncs   int
	lines     []string // what was done
}

// counts are the counters that a server's INFO should show.
type counts struct{ copies, served, rewinds int }

const nodePort = 6379

// TestNetwork loses packets, delays them, cuts links, partitions the network, kills and promotes, round for round, under load. No write that
// was acknowledged (WAIT) is lost, the servers end as one, no full copy is made where frames do, an isolated primary takes no writes for
// longer than min-replicas-max-lag allows, and no consumer sees a gap or another history.
func TestNetwork(t *testing.T) {
	rng := flags.Rand(t, 1)
	net, hosts := network(t, rng.Uint64(), "a", "b", "c", "near", "far")
	w := newWorld(t, rng, net, hosts)
	n := flags.Rounds(6)
	for i := range n {
		w.round(i)
		if t.Failed() {
			t.Logf("%d rounds; what was done:\n%s", i+1, strings.Join(w.lines, "\n"))
			return
		}
	}
	w.end()
	t.Logf("%d rounds, %d writes acknowledged by replicas, %d and %d frames, %d resyncs", n, w.acked, len(w.seen.frames[0]), len(w.seen.frames[1]), w.resyncs)
}

func newWorld(t *testing.T, rng *rand.Rand, net *netns.Network, hosts []*netns.Host) *world {
	t.Helper()
	w := &world{
		t: t, rng: rng, net: net, near: hosts[3], far: hosts[4], hosts: make(map[*node]*netns.Host),
		seen: newHistory(), counts: make(map[*node]*counts),
	}
	var nodes []*node
	for _, h := range hosts[:3] {
		n := newNodeOn(t, h, nodePort, h.Name, "--protected-mode=no", "--repl-timeout", "1", "--min-replicas-max-lag", "2")
		w.hosts[n] = h
		nodes = append(nodes, n)
		w.counts[n] = new(counts)
	}
	w.primary, w.others = nodes[0], [2]*node(nodes[1:])
	w.arrange()
	for _, n := range nodes {
		n.ok("CONFIG", "SET", "min-replicas-to-write", "1")
		n.flags = append(n.flags, "--min-replicas-to-write", "1")
		w.counts[n].served = w.number(n, "stats", "sync_full")
	}
	for _, n := range w.others {
		w.counts[n].copies = 1 // the first one
	}
	w.consume(nodes)
	for i, from := range []*netns.Host{w.near, w.far} {
		w.loads[i] = startLoad(t, from, w.target(), 100*i, 3, 6*time.Millisecond)
		w.loads[i].pause()
	}
	return w
}

// consume has consumers of both shards at each server, and two that move.
func (w *world) consume(nodes []*node) {
	w.t.Helper()
	stop, wg := make(chan struct{}), new(sync.WaitGroup)
	for i := range 2 * (len(nodes) + 1) {
		from, n := []*netns.Host{w.near, w.far}[w.rng.IntN(2)], nodes[i/2%len(nodes)]
		c := &consumer{name: fmt.Sprintf("consumer %d", i), from: from, shard: i % 2, moves: i/2 == len(nodes), seen: w.seen}
		c.at.Store(n)
		conn, err := n.Dial()
		if err != nil {
			w.t.Fatal(err)
		}
		c.cursor, err = feed.Tail(conn, c.shard)
		conn.Close()
		if err != nil {
			w.t.Fatal(err)
		}
		w.consumers = append(w.consumers, c)
		wg.Go(func() { c.run(stop) })
	}
	w.t.Cleanup(func() { close(stop); wg.Wait() })
}

// target is the primary, where both replicas must have a write unless one of them can't be promoted.
func (w *world) target() target {
	if w.chained {
		return target{w.primary, 1}
	}
	return target{w.primary, 2}
}

func (w *world) did(format string, args ...any) {
	w.lines = append(w.lines, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// pause is a time between the bounds, in milliseconds, for the load.
func (w *world) pause(least, most int) {
	time.Sleep(time.Duration(least+w.rng.IntN(most-least+1)) * time.Millisecond)
}

func (w *world) nodes() []*node { return []*node{w.primary, w.others[0], w.others[1]} }

// number returns a counter of INFO.
func (w *world) number(n *node, section, field string) int {
	w.t.Helper()
	v, err := strconv.Atoi(n.info(section, field))
	if err != nil {
		w.t.Fatalf("%s: %s: %v", n.name, field, err)
	}
	return v
}

func (w *world) follow(n, of *node) {
	w.t.Helper()
	w.did("%s follows %s", n.name, of.name)
	n.follow(of)
	w.counts[n].copies, w.counts[n].rewinds = 0, 0
}

// arrange has the replicas follow the primary, or the second one the first one, by chance. The load is at rest.
func (w *world) arrange() {
	w.t.Helper()
	w.chained = w.rng.IntN(2) == 0
	sources := [2]*node{w.primary, w.primary}
	if w.chained {
		sources[1] = w.others[0]
	}
	for i, n := range w.others {
		if n.source != sources[i] {
			w.follow(n, sources[i])
		}
		n.up(w.t)
	}
	if w.rng.IntN(4) == 0 {
		w.nodes()[w.rng.IntN(3)].do("BGSAVE") // at any time; one that is under way is as good
	}
	w.did("primary %s, then %s and %s, chained: %v", w.primary.name, w.others[0].name, w.others[1].name, w.chained)
}

// round does one bad thing, or a few, and checks what comes of it.
func (w *world) round(i int) {
	w.t.Helper()
	w.did("round %d", i)
	w.arrange()
	start := w.starts()
	resyncs := make(map[*consumer]int)
	for _, c := range w.consumers {
		if c.moves && w.rng.IntN(2) == 0 {
			c.at.Store(w.nodes()[w.rng.IntN(3)])
		}
		_, resyncs[c] = c.state()
	}
	to := w.target()
	for _, l := range w.loads {
		l.to.Store(&to)
		l.resume()
	}
	w.pause(50, 300)
	forked := false
	switch what := w.rng.IntN(10); {
	case what < 4:
		w.promotion()
		forked = true
	case what < 6:
		w.kills(1 + w.rng.IntN(3))
	case what == 6:
		w.freeze()
	default:
		w.tamper()
		if w.rng.IntN(3) == 0 {
			w.kills(1)
		}
	}
	w.did("heal")
	w.net.Heal()
	w.pause(50, 300)
	for _, l := range w.loads {
		l.pause()
	}
	w.check(start, resyncs, forked)
}

// starts returns the primary's cursors.
func (w *world) starts() (out [2]feed.Cursor) {
	w.t.Helper()
	c, err := w.primary.Dial()
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	for i := range out {
		if out[i], err = feed.Tail(c, i); err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

// link is one of the two links that frames take, from the source to the replica.
func (w *world) link() (from, to *netns.Host) {
	n := w.others[w.rng.IntN(2)]
	return w.hosts[n.source], w.hosts[n]
}

// tamper makes a link bad for a while.
func (w *world) tamper() {
	from, to := w.link()
	if w.rng.IntN(2) == 0 {
		from, to = to, from
	}
	var f netns.Fault
	both := w.rng.IntN(2) == 0
	switch w.rng.IntN(4) {
	case 0:
		f.Loss = 0.02 + 0.3*w.rng.Float64()
	case 1:
		f.Delay = time.Duration(1+w.rng.IntN(60)) * time.Millisecond
		f.Jitter = time.Duration(w.rng.IntN(40)) * time.Millisecond
	case 2:
		f.CutAfter = 1 + w.rng.IntN(100_000)
	case 3:
		f.Down = true
	}
	w.did("from %s to %s, both ways: %v: %+v", from.Name, to.Name, both, f)
	w.net.Set(from, to, f)
	if both {
		w.net.Set(to, from, f)
	}
	w.pause(100, 2500)
}

// kills kills servers, each at any moment, and starts them again.
func (w *world) kills(times int) {
	for range times {
		n := w.nodes()[w.rng.IntN(3)]
		w.kill(n)
		w.pause(0, 400)
		w.restart(n)
		w.pause(50, 600)
	}
}

// freeze stops a server for a while: its connections stay, and nothing comes from it.
func (w *world) freeze() {
	w.t.Helper()
	n := w.nodes()[w.rng.IntN(3)]
	w.did("freeze %s", n.name)
	if err := n.Freeze(); err != nil {
		w.t.Fatal(err)
	}
	w.pause(100, 2500)
	if err := n.Thaw(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) kill(n *node) {
	w.counters(n)
	w.did("kill %s", n.name)
	_ = n.Kill()
}

func (w *world) restart(n *node) {
	w.did("start %s", n.name)
	n.restart()
	w.counts[n] = new(counts)
}

// promotion makes the first replica the primary while the old one goes on: cut off, killed, or neither.
func (w *world) promotion() {
	was, next, third := w.primary, w.others[0], w.others[1]
	parted, kill := w.rng.IntN(2) == 0, w.rng.IntN(3)
	if parted {
		w.did("%s and near are cut off", was.name)
		w.net.Part(w.hosts[was], w.near)
		w.pause(0, 1000)
	}
	switch {
	case kill == 1:
		w.kill(was)
	case parted && w.rng.IntN(2) == 0:
		w.isolated(was)
	}
	w.did("promote %s", next.name)
	next.promote()
	if third.source != next {
		w.follow(third, next)
	}
	w.primary = next
	w.loads[1].to.Store(&target{next, 1})
	w.pause(200, 1000) // writes on both sides
	if kill == 2 {
		w.kill(was)
	}
	if w.rng.IntN(2) == 0 {
		w.did("heal")
		w.net.Heal()
		w.pause(0, 300)
	}
	to := []*node{next, third}[w.rng.IntN(2)] // the third one may have frames itself that the new primary has not
	if kill == 0 {
		w.follow(was, to)
	} else {
		was.source = to
		w.restart(was)
	}
	w.others = [2]*node{third, was}
	w.loads[0].to.Store(&target{next, 1})
	w.pause(50, 500)
}

// isolated waits until a primary without replicas refuses writes; then it takes none.
func (w *world) isolated(n *node) {
	w.t.Helper()
	eventually(w.t, n.name+" takes writes without replicas", func() string {
		if r := n.do("SET", "isolated", "1"); !strings.HasPrefix(r.Text(), "NOREPLICAS") {
			return r.String()
		}
		return ""
	})
	before := n.cursors()
	w.pause(50, 200)
	if after := n.cursors(); before != after {
		w.t.Errorf("%s, which refuses writes, goes on:\n%s\n%s", n.name, before, after)
	}
	w.did("%s refuses writes", n.name)
}

// check waits until all servers are the same, and looks at everything. The load is at rest.
func (w *world) check(start [2]feed.Cursor, resyncs map[*consumer]int, forked bool) {
	w.t.Helper()
	for _, n := range w.others {
		n.up(w.t)
		same(w.t, w.primary, n)
	}
	for _, l := range w.loads {
		w.acked += l.checkFresh(w.t, w.primary)
	}
	for _, n := range w.nodes() {
		if forked && n.source != nil {
			w.counts[n].rewinds = w.number(n, "replication", "repl_rewinds") // those that were due
		}
		w.counters(n)
	}
	end := w.starts()
	w.caughtUp()
	for _, c := range w.consumers {
		_, n := c.state()
		n -= resyncs[c]
		w.resyncs += n
		// A log that was never taken back, read by who was not elsewhere, has no reason for it.
		if n > 0 && (!forked || c.at.Load() == w.primary) {
			w.t.Errorf("%s at %s has missed something %d times", c.name, c.at.Load().name, n)
		}
	}
	w.whole(start, end)
	for _, bad := range w.seen.bad {
		w.t.Error(bad)
	}
}

// counters checks that a server has neither taken nor given full copies, nor taken its log back without a reason.
func (w *world) counters(n *node) {
	w.t.Helper()
	want, got := *w.counts[n], counts{served: w.number(n, "stats", "sync_full")}
	if n.source == nil {
		want.copies, want.rewinds = 0, 0
	} else {
		got.copies, got.rewinds = w.number(n, "replication", "repl_full_copies"), w.number(n, "replication", "repl_rewinds")
	}
	if got != want {
		w.t.Errorf("%s: full copies taken and given, rewinds: %v, want %v", n.name, got, want)
	}
}

// caughtUp waits until all consumers are at the end.
func (w *world) caughtUp() {
	w.t.Helper()
	end := w.starts()
	for _, c := range w.consumers {
		eventually(w.t, c.name+" is not at the end", func() string {
			if at, _ := c.state(); at != end[c.shard] {
				return fmt.Sprintf("%v of shard %d at %s, which ends at %v", at, c.shard, c.at.Load().name, end[c.shard])
			}
			return ""
		})
	}
}

// whole reads the primary's feed once more, from before the round: its frames are those that consumers have seen, none of which is missing.
func (w *world) whole(start, end [2]feed.Cursor) {
	w.t.Helper()
	c, err := w.primary.Dial()
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	for shard := range start {
		for at := start[shard]; at != end[shard]; {
			frames, next, err := feed.Read(c, shard, at, "COUNT", "4096", "WITHMETA", "LINEAGE")
			if err != nil || next == at {
				w.t.Fatalf("%s: reading from %v of shard %d on: %d frames, %v", w.primary.name, at, shard, len(frames), err)
			}
			if known := w.seen.add(w.primary.name, shard, frames); known != len(frames) {
				w.t.Errorf("%d of %d frames behind %v of shard %d were seen by no consumer", len(frames)-known, len(frames), at, shard)
			}
			at = next
		}
	}
}

// end checks everything once more.
func (w *world) end() {
	for _, l := range w.loads {
		l.end()
	}
	for _, n := range w.nodes() {
		for _, l := range w.loads {
			l.check(w.t, n)
		}
	}
}
