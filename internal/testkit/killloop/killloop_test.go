package killloop

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/feed"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/rounds"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

var flags = rounds.Register("kill", "for each appendfsync policy")

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

const (
	numShards  = 4
	numWorkers = 4
)

// loop is one data directory over many rounds.
type loop struct {
	t      *testing.T
	rng    *rand.Rand
	dir    string
	policy string

	srv     *proc.Server
	conn    *wire.Conn
	info    [numShards]feed.Shard // at the start of the round
	settled map[string]string     // what earlier rounds left
	batches int                   // acknowledged so far
	cut     int                   // workers killed within a batch
}

func TestKillLoop(t *testing.T) {
	n := flags.Rounds(5)
	for i, policy := range []string{"always", "everysec", "no"} {
		t.Run(policy, func(t *testing.T) {
			l := &loop{
				t:       t,
				rng:     flags.Rand(t, uint64(i)),
				dir:     filepath.Join(t.TempDir(), "data"),
				policy:  policy,
				settled: map[string]string{},
			}
			l.start()
			for r := range n {
				l.round(r)
				if t.Failed() {
					t.Logf("log of the server:\n%s", l.srv.Log())
					break
				}
			}
			l.conn.Close()
			if err := l.srv.Stop(); err != nil {
				t.Error(err)
			}
			t.Logf("%d batches acknowledged, %d cut by SIGKILL, %d keys", l.batches, l.cut, len(l.settled))
		})
	}
}

func (l *loop) flags() []string {
	// Snapshots come by themselves as well, at any moment.
	return []string{
		"--shards", strconv.Itoa(numShards), "--appendfsync", l.policy,
		"--auto-aof-rewrite-min-size", "200kb", "--log-segment-size", "64kb", "--feed-buffer-size", "4mb",
	}
}

// start starts the server and notes where its shards are.
func (l *loop) start() {
	l.t.Helper()
	srv, err := proc.StartKevy(l.dir, l.flags()...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { srv.KillAndCheck(l.t) })
	c, err := srv.Dial()
	if err != nil {
		l.t.Fatal(err)
	}
	l.srv, l.conn = srv, c
	for i := range l.info {
		if l.info[i], err = feed.Info(c, i); err != nil {
			l.t.Fatal(err)
		}
	}
}

// round loads the server, ends it and checks what the next start finds. Every fifth end is a clean
// one.
func (l *loop) round(r int) {
	before := l.info
	workers, seen := l.load(r, r%5 == 4)
	if r%5 == 4 {
		l.cleanRestart()
	} else {
		l.crashRestart(before, seen)
	}
	if l.t.Failed() {
		return
	}
	l.verify(r, workers)
	if l.rng.IntN(8) == 0 {
		l.flush()
	}
}

// load runs workers and followers; then it kills the server, unless clean is wanted.
func (l *loop) load(r int, clean bool) (workers []*worker, seen [numShards]*follower) {
	l.t.Helper()
	var working, following sync.WaitGroup
	stop := make(chan struct{})
	for i := range seen {
		f, err := follow(l.srv.Addr, i, l.info[i].Cursor, &following)
		if err != nil {
			l.t.Fatal(err)
		}
		seen[i] = f
	}
	for i := range numWorkers {
		w, err := newWorker(l.srv.Addr, fmt.Sprintf("w%d:%d:", r, i))
		if err != nil {
			l.t.Fatal(err)
		}
		workers = append(workers, w)
		working.Go(func() { w.run(stop) })
	}
	l.wait()
	if clean {
		close(stop)
		working.Wait()
		return workers, seen // the followers end with the server
	}
	if err := l.srv.Kill(); err != nil {
		l.t.Fatal(err)
	}
	close(stop)
	working.Wait()
	following.Wait()
	for _, f := range seen {
		if f.err != nil {
			l.t.Errorf("round %d: follower: %v", r, f.err)
		}
	}
	return workers, seen
}

// wait passes a random time; in a third of the rounds a snapshot is under way at its end.
func (l *loop) wait() {
	first := time.Duration(10+l.rng.IntN(300)) * time.Millisecond
	time.Sleep(first)
	if l.rng.IntN(3) == 0 {
		// One that has begun by itself is as good.
		if _, err := l.conn.Must("BGSAVE", "SCHEDULE"); err != nil && !strings.Contains(err.Error(), "already in progress") {
			l.t.Error(err)
		}
		time.Sleep(time.Duration(l.rng.IntN(60)) * time.Millisecond)
	}
}

// crashRestart starts the killed server again, sometimes after killing it once more while it starts.
func (l *loop) crashRestart(before [numShards]feed.Shard, seen [numShards]*follower) {
	l.conn.Close()
	for l.rng.IntN(4) == 0 {
		s, err := proc.LaunchKevy(l.dir, l.flags()...)
		if err != nil {
			l.t.Fatal(err)
		}
		time.Sleep(time.Duration(1+l.rng.IntN(120)) * time.Millisecond)
		if err := s.Kill(); err != nil {
			l.t.Fatal(err)
		}
	}
	l.start()
	for i, now := range l.info {
		if err := checkBump(before[i], now, seen[i].seen); err != nil {
			l.t.Errorf("shard %d: %v\nbefore %+v\nnow %+v", i, err, before[i], now)
		}
	}
}

// checkBump wants a new generation at offset 0 whose lineage leads back to the killed one, not
// before what a consumer had seen of it.
func checkBump(before, now feed.Shard, seen feed.Cursor) error {
	switch {
	case now.Gen <= before.Gen:
		return fmt.Errorf("generation went from %d to %d", before.Gen, now.Gen)
	case now.Off != 0:
		return fmt.Errorf("the new generation begins at offset %d", now.Off)
	case seen.Gen != before.Gen:
		return fmt.Errorf("the follower was in generation %d, not %d", seen.Gen, before.Gen)
	}
	for gen := now.Gen; ; {
		i := slices.IndexFunc(now.Lineage, func(g feed.Generation) bool { return g.Gen == gen })
		if i < 0 {
			return fmt.Errorf("the lineage does not name generation %d", gen)
		}
		g := now.Lineage[i]
		if g.Cause != "crash" {
			return fmt.Errorf("generation %d has cause %q", g.Gen, g.Cause)
		}
		if g.Parent == before.Gen {
			if g.ParentOff < seen.Off {
				return fmt.Errorf("forked off at %d, but a consumer had read up to %d", g.ParentOff, seen.Off)
			}
			return nil
		}
		if g.ParentOff != 0 {
			return fmt.Errorf("generation %d, killed while it started, ends at %d", g.Parent, g.ParentOff)
		}
		gen = g.Parent
	}
}

// cleanRestart stops the server and wants the same cursors and frames of the next one.
func (l *loop) cleanRestart() {
	var tails [numShards]feed.Cursor
	var frames [numShards][]feed.Frame
	for i := range tails {
		tails[i], frames[i] = l.recent(i)
	}
	l.conn.Close()
	if err := l.srv.Stop(); err != nil {
		l.t.Fatal(err)
	}
	l.start()
	for i := range tails {
		tail, again := l.recent(i)
		if tail != tails[i] {
			l.t.Errorf("shard %d: cursor %v before a clean stop, %v after it", i, tails[i], tail)
		}
		if !slices.Equal(frames[i], again) {
			l.t.Errorf("shard %d: other frames after a clean stop: %d and %d", i, len(frames[i]), len(again))
		}
	}
}

// recent returns a shard's tail and its newest frames.
func (l *loop) recent(shard int) (feed.Cursor, []feed.Frame) {
	l.t.Helper()
	info, err := feed.Info(l.conn, shard)
	if err != nil {
		l.t.Fatal(err)
	}
	tail, err := feed.Tail(l.conn, shard)
	if err != nil {
		l.t.Fatal(err)
	}
	from := feed.Cursor{Gen: tail.Gen, Off: max(info.Base, tail.Off-500)}
	frames, _, err := feed.Read(l.conn, shard, from, "COUNT", "4096")
	if err != nil {
		l.t.Fatal(err)
	}
	return tail, frames
}

// verify checks the workers' keys and everything that earlier rounds left, and that there is
// nothing else.
func (l *loop) verify(r int, workers []*worker) {
	l.t.Helper()
	for _, w := range workers {
		if w.err != nil {
			l.t.Errorf("round %d: %s: %v", r, w.prefix, w.err)
		}
		l.batches += slices.Min(w.acked)
		if slices.Min(w.acked) < w.batch {
			l.cut++
		}
		vals := l.read(w.keys())
		err := w.verify(func(k string) (string, bool) { v, ok := vals[k]; return v, ok })
		if err != nil {
			l.t.Errorf("round %d, %s: %s: %v", r, l.policy, w.prefix, err)
		}
		maps.Copy(l.settled, vals)
	}
	l.verifySettled(r)
}

func (l *loop) verifySettled(r int) {
	l.t.Helper()
	keys := make([]string, 0, len(l.settled))
	for k := range l.settled {
		keys = append(keys, k)
	}
	now := l.read(keys)
	for k, v := range l.settled {
		if got, ok := now[k]; got != v || !ok {
			l.t.Errorf("round %d: %s held %.40q, now %.40q (exists: %v)", r, k, v, got, ok)
		}
	}
	if n, _ := l.must("DBSIZE").Int(); int(n) != len(l.settled) {
		l.t.Errorf("round %d: %d keys, expected %d", r, n, len(l.settled))
	}
}

// read returns the values of those keys that exist: the text of strings, the number that others show.
func (l *loop) read(keys []string) map[string]string {
	l.t.Helper()
	vals := map[string]string{}
	for part := range slices.Chunk(keys, 500) {
		r := l.must(append([]string{"MGET"}, part...)...)
		for i := range r.Elems {
			if !r.Elems[i].Null {
				vals[part[i]] = r.Elems[i].Text()
				continue
			}
			v, ok, err := shown(l.conn, part[i])
			if err != nil {
				l.t.Fatal(err)
			}
			if ok {
				vals[part[i]] = v
			}
		}
	}
	return vals
}

// flush empties the server; what earlier rounds left must not come back.
func (l *loop) flush() {
	l.t.Helper()
	l.must("FLUSHALL")
	clear(l.settled)
	for i := range l.info {
		info, err := feed.Info(l.conn, i)
		if err != nil {
			l.t.Fatal(err)
		}
		if info.Gen <= l.info[i].Gen || info.Off != 0 {
			l.t.Errorf("shard %d: FLUSHALL at %v led to %v", i, l.info[i].Cursor, info.Cursor)
		}
		l.info[i] = info
	}
}

func (l *loop) must(args ...string) *wire.Reply {
	l.t.Helper()
	r, err := l.conn.Must(args...)
	if err != nil {
		l.t.Fatal(err)
	}
	return &r
}
