package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
)

var stormFlag = flag.Int("storm", 1200, "commands of each kind and writer in a storm")

const stormWriters = 3

// storm is one kind of command that counts: n of them by one writer add gain(n) to the sum of what probe tells of all keys.
type storm struct {
	name  string
	keys  int
	write func(key string, writer, n int) string
	probe func(key string) string // a command whose reply ends with a number
	gain  func(n int) int64
}

func storms() []storm {
	one := func(n int) int64 { return int64(n) }
	return []storm{
		{"INCR", 7, func(k string, _, _ int) string { return "INCR " + k }, func(k string) string { return "GET " + k }, one},
		{"APPEND", 5, func(k string, _, _ int) string { return "APPEND " + k + " x" }, func(k string) string { return "STRLEN " + k }, one},
		{
			"RPUSH", 4, func(k string, w, n int) string { return fmt.Sprintf("RPUSH %s element:%d:%d", k, w, n) },
			func(k string) string { return "LLEN " + k }, one,
		},
		{
			"ZINCRBY", 2, func(k string, _, n int) string { return fmt.Sprintf("ZINCRBY %s 1 m", k) },
			func(k string) string { return "ZSCORE " + k + " m" }, one,
		},
		{
			"ZINCRBY of many", 2, func(k string, w, n int) string { return fmt.Sprintf("ZINCRBY %s 1 m%d-%d", k, w, n) },
			func(k string) string { return "ZCOUNT " + k + " 1 1" }, one,
		},
		{
			"HINCRBY", 2, func(k string, _, n int) string { return fmt.Sprintf("HINCRBY %s f 1", k) },
			func(k string) string { return "HGET " + k + " f" }, one,
		},
		{
			"HINCRBY of many", 2, func(k string, w, n int) string { return fmt.Sprintf("HINCRBY %s field:%d:%d 1", k, w, n) },
			func(k string) string { return "HLEN " + k }, one,
		},
		{
			"XADD", 3, func(k string, w, n int) string { return fmt.Sprintf("XADD %s * w %d", k, w) },
			func(k string) string { return "XLEN " + k }, one,
		},
		{
			"SADD", 3, func(k string, w, n int) string { return fmt.Sprintf("SADD %s %d s%d-%d", k, w*1_000_000+n, w, n) },
			func(k string) string { return "SCARD " + k }, func(n int) int64 { return 2 * one(n) },
		},
		{
			"BITFIELD", 2, func(k string, _, _ int) string { return "BITFIELD " + k + " INCRBY u32 #0 1" },
			func(k string) string { return "BITFIELD " + k + " GET u32 #0" }, one,
		},
		{
			"LMOVE", 3, func(k string, w, n int) string {
				return fmt.Sprintf("MULTI ; LPUSH %s e ; LMOVE %s all LEFT RIGHT", k, k)
			},
			func(string) string { return "LLEN all" }, func(n int) int64 { return 3 * one(n) },
		},
		{"EVAL", 2, func(k string, _, n int) string {
			return fmt.Sprintf(`EVAL 'redis.call("HINCRBY", KEYS[1], "a", 1) redis.call("HINCRBY", KEYS[1], "a", ARGV[1]) return 1' 1 %s %d`, k, n%2)
		}, func(k string) string { return "HGET " + k + " a" }, func(n int) int64 { return one(n + n/2) }},
	}
}

func (st *storm) key(n int) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(st.name, " ", "-"), n%st.keys)
}

// sum asks for the counts of all keys.
func (st *storm) sum(s *gate.Store) (sum int64) {
	s.T.Helper()
	for i := range st.keys {
		sum += last(s.Do(st.probe(st.key(i))))
	}
	return sum
}

// last is the number in a reply's last line.
func last(reply string) (n int64) {
	lines := strings.Split(strings.TrimSuffix(reply, "\r\n"), "\r\n")
	_, _ = fmt.Sscan(strings.TrimPrefix(lines[len(lines)-1], ":"), &n)
	return n
}

// drops counts what a writer has sent of each storm, and what was acknowledged.
type drops struct{ sent, acked []atomic.Int64 }

// rain runs every storm on several goroutines until each has been written so many times, or stop is closed. No
// number of a writer comes again in another round.
func rain(s *gate.Store, round, each int, stop chan struct{}) (*sync.WaitGroup, []drops) {
	var wg sync.WaitGroup
	all := storms()
	counts := make([]drops, stormWriters)
	for w := range counts {
		d := drops{make([]atomic.Int64, len(all)), make([]atomic.Int64, len(all))}
		counts[w] = d
		wg.Go(func() {
			own := s.Session()
			for n := 0; n < each && !closed(stop); n++ {
				for i := range all {
					d.sent[i].Add(1)
					if _, err := own.Try(all[i].write(all[i].key(n), round*stormWriters+w, n)); err != nil {
						return
					}
					d.acked[i].Add(1)
				}
			}
		})
	}
	return &wg, counts
}

// TestStormKilled kills a store under a storm, time and again, each time with the power (always) or only the process
// (everysec): what was acknowledged is counted, what was not sent is not, and a restart counts the same.
func TestStormKilled(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	for _, policy := range []log.Policy{log.EverySec, log.Always} {
		t.Run(policy.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(policy), 11))
			fs := crashfs.New()
			base := make([]int64, len(storms()))
			for round := range rounds {
				fs = stormRound(t, fs, policy, round, rng, base)
			}
		})
	}
}

// stormRound is one life of the store; it returns what the crash left, and its counts in base.
func stormRound(t *testing.T, fs *crashfs.FS, policy log.Policy, round int, rng *rand.Rand, base []int64) *crashfs.FS {
	clock := &gate.Clock{MS: 1_800_000_000_000 + int64(round)}
	s := gate.Open(t, fs, 3, clock)
	s.E.SetPolicy(policy)
	all := storms()
	for i := range all {
		if got := all[i].sum(s); got != base[i] {
			t.Errorf("round %d: %s restarted: %d, was %d", round, all[i].name, got, base[i])
		}
	}
	stop := make(chan struct{})
	wg, counts := rain(s, round, 1_000_000, stop)
	for counts[0].acked[0].Load() < int64(1+rng.IntN(60)) {
		time.Sleep(time.Millisecond)
	}
	if rng.IntN(2) == 0 {
		if err := s.E.Save(); err != nil {
			t.Fatal(err)
		}
	}
	low, high := slices.Clone(base), slices.Clone(base)
	add := func(to []int64, of func(d *drops, i int) int64) {
		for i := range all {
			for w := range counts {
				to[i] += all[i].gain(int(of(&counts[w], i)))
			}
		}
	}
	add(low, func(d *drops, i int) int64 { return d.acked[i].Load() })
	after := fs.KillClone()
	if policy == log.Always {
		after = fs.CrashClone(rng)
	}
	add(high, func(d *drops, i int) int64 { return d.sent[i].Load() })
	close(stop)
	wg.Wait()
	_ = s.E.Close(false)
	r := gate.Open(t, after, 3, clock)
	for i := range all {
		base[i] = all[i].sum(r)
		if base[i] < low[i] || base[i] > high[i] {
			t.Errorf("round %d: %s: recovered %d; %d were acknowledged, %d sent", round, all[i].name, base[i], low[i], high[i])
		}
	}
	if err := r.E.Close(rng.IntN(2) == 0); err != nil {
		t.Fatal(err)
	}
	return after
}

// TestStormDuringSnapshot counts exactly while snapshots are taken: live, killed, restarted, restored, and when
// killed and restarted once more.
func TestStormDuringSnapshot(t *testing.T) {
	fs := crashfs.New()
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, fs, 2, clock)
	each := *stormFlag &^ 1
	if testing.Short() {
		each = min(each, 300)
	}
	wg, _ := rain(s, 0, each, nil)
	saves := 0
	for end := done(wg); saves == 0 || !closed(end); saves++ {
		if err := s.E.Save(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	check := func(what string, s *gate.Store) {
		t.Helper()
		all := storms()
		for i := range all {
			if got, want := all[i].sum(s), stormWriters*all[i].gain(each); got != want {
				t.Errorf("%s: %s: %d, want %d", what, all[i].name, got, want)
			}
		}
	}
	check("live", s)
	digest := s.Digest()
	killed := fs.KillClone()
	for _, what := range []string{"killed", "killed twice"} {
		k := gate.Open(t, killed, 2, clock)
		check(what, k)
		if d := k.Digest(); d != digest {
			t.Errorf("%s: digest %q, live %q", what, d, digest)
		}
		killed = killed.KillClone()
		_ = k.E.Close(false)
	}
	s.Close()
	again := gate.Open(t, fs, 2, clock)
	check("restarted", again)
	again.Close()
	if _, err := history.Restore(history.RestoreOptions{From: history.Source{FS: fs, Dir: gate.Dir}, FS: fs, To: "restored", Now: clock.Now}); err != nil {
		t.Fatal(err)
	}
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: fs, Dir: "restored"}})
	if err != nil {
		t.Fatal(err)
	}
	restored := gate.Over(t, e, fs, clock)
	check("restored", restored)
	restored.Close()
	t.Logf("%d snapshots", saves)
}

// TestStormDuringRestore restores from a directory that is in use and under a storm: the counts are those of the frames up to the cursors
// that the restore names, frame by frame, and groups are whole.
func TestStormDuringRestore(t *testing.T) {
	fs := crashfs.New()
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, fs, 2, clock)
	stop := make(chan struct{})
	wg, counts := rain(s, 0, 1_000_000, stop)
	src := history.Source{FS: fs, Dir: gate.Dir}
	var results []*history.Restored
	for i := range 4 {
		for counts[0].acked[0].Load() < int64(30*(i+1)) {
			time.Sleep(time.Millisecond)
		}
		if i == 2 {
			must(t, s.E.Save())
		}
		r, err := history.Restore(history.RestoreOptions{From: src, FS: fs, To: fmt.Sprint("restored", i), Now: clock.Now})
		must(t, err)
		results = append(results, r)
	}
	close(stop)
	wg.Wait()
	h, err := history.Open(src)
	must(t, err)
	defer h.Close()
	for i, r := range results {
		e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: fs, Dir: r.To}})
		must(t, err)
		restored := gate.Over(t, e, fs, clock)
		framed(t, h, r, restored)
		if len(r.Found) > 0 {
			t.Errorf("restore %d: %v", i, r.Found)
		}
		restored.Close()
	}
	s.Close()
}

// framed compares the counts of a restored store with the frames up to where it was restored.
func framed(t *testing.T, h *history.History, r *history.Restored, s *gate.Store) {
	t.Helper()
	frames := map[string]int64{}
	for shard := range r.Shards {
		must(t, h.Dump(history.DumpOptions{Shard: shard, To: &r.Shards[shard].To}, func(d *history.Dumped) error {
			name, _, _ := strings.Cut(string(d.Argv[1]), "-")
			frames[name+" "+string(d.Argv[0])]++
			return nil
		}))
	}
	all := storms()
	for i := range all {
		if frame := map[string]string{"INCR": "SET", "APPEND": "APPEND", "RPUSH": "RPUSH", "XADD": "XADD"}[all[i].name]; frame != "" {
			if got, want := all[i].sum(s), frames[all[i].name+" "+frame]; got != want || want == 0 {
				t.Errorf("%s: %d of %d frames", all[i].name, got, want)
			}
		}
	}
	for _, z := range all[3:5] { // both kinds of ZINCRBY log ZADD
		frames["ZINCRBY ZADD"] -= z.sum(s)
	}
	if n := frames["ZINCRBY ZADD"]; n != 0 {
		t.Errorf("ZINCRBY: %d frames more than counted", n)
	}
}

func done(wg *sync.WaitGroup) chan struct{} {
	c := make(chan struct{})
	go func() {
		wg.Wait()
		close(c)
	}()
	return c
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
