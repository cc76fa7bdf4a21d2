package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// TestCrashOfReplica ends the process, or the power, before every step of a replica that applies groups over several shards while their parts come in
// any order: promoted, it has each of them as a whole or not at all, and following again it becomes what its source is.
func TestCrashOfReplica(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for _, policy := range []log.Policy{log.EverySec, log.Always} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%v/%d", policy, seed), func(t *testing.T) {
				crashOfReplica(t, policy, rand.New(rand.NewPCG(uint64(seed), 11)))
			})
		}
	}
}

func crashOfReplica(t *testing.T, policy log.Policy, rng *rand.Rand) {
	const shards = 4
	clock := &gate.Clock{MS: 1_800_000_000_000}
	source := openSeeded(t, shards, rng.Uint64(), clock)
	defer source.Close()
	var groups [][]string // the keys of each
	for i := range 40 {
		clock.Advance(int64(rng.IntN(2)))
		line, keys := randomGroup(i, rng)
		source.Do(line)
		source.Do(fmt.Sprintf("SET single%d 1", i))
		groups = append(groups, keys)
	}
	base := crashfs.New()
	ffs := faultfs.New(base)
	r := followOn(t, ffs, source, clock, 1<<10) // segments end all the time
	r.E.SetPolicy(policy)
	var between []crashed
	crashes := crashesOf(ffs, base, 1, rand.New(rand.NewPCG(rng.Uint64(), 1)), func() {
		trickle(t, source, r, rng, func() { between = append(between, crashed{base.KillClone(), "more is applied"}) })
	})
	crashes = append(crashes, between...)
	r.Close()
	seen := make(map[int]bool)
	for i, c := range crashes {
		if i%8 == 0 {
			followsOn(t, source, c.step, c.fs.KillClone())
		}
		promoted := gate.Open(t, c.fs, shards, clock)
		whole := 0
		for g, keys := range groups {
			switch n := promoted.Do("EXISTS " + strings.Join(keys, " ")); n {
			case ":0\r\n":
			case fmt.Sprintf(":%d\r\n", len(keys)):
				whole++
			default:
				t.Errorf("before %s: of group %d (%v) there is %q", c.step, g, keys, n)
			}
		}
		seen[whole] = true
		promoted.Close()
	}
	// Those between the calls of Apply are the same each time, whatever the committers do: there are as many numbers at least.
	if len(seen) < 10 {
		t.Errorf("%d crashes show %d different numbers of groups", len(crashes), len(seen))
	}
}

// openSeeded opens a new store whose keys lie on the same shards each time.
func openSeeded(t testing.TB, shards int, hashSeed uint64, clock *gate.Clock) *gate.Store {
	t.Helper()
	fs := crashfs.New()
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: fs, Dir: gate.Dir, Shards: shards, HashSeed: hashSeed}})
	if err != nil {
		t.Fatal(err)
	}
	return gate.Over(t, e, fs, clock)
}

// randomGroup returns a command, or a transaction, and the keys that it makes, which are its own.
func randomGroup(i int, rng *rand.Rand) (line string, keys []string) {
	for j := range 2 + rng.IntN(2) {
		keys = append(keys, fmt.Sprintf("g%d-%d", i, j))
	}
	switch {
	case i%13 == 12:
		return "MULTI ; SET before 1 ; FLUSHALL ; RPUSH " + strings.Join(keys, " x ; RPUSH ") + " y", keys
	case rng.IntN(2) == 0:
		return "MULTI ; SET " + strings.Join(keys, " 1 ; SET ") + " 1", keys
	}
	return "MSET " + strings.Join(keys, " 1 ") + " 1", keys
}

// trickle brings r to where source is, a few frames of a shard at a time, some shards long before others, and calls applied after each time.
func trickle(t testing.TB, source, r *gate.Store, rng *rand.Rand, applied func()) {
	a := r.E.NewApplier()
	left := make([][]engine.Foreign, source.E.Shards())
	n := 0
	for _, p := range source.FramesFor(r) {
		left[p.Shard] = append(left[p.Shard], p)
		n++
	}
	for n > 0 {
		i := rng.IntN(len(left))
		k := min(len(left[i]), rng.IntN(6))
		if err := a.Apply(left[i][:k]); err != nil {
			t.Fatal(err)
		}
		left[i] = left[i][k:]
		n -= k
		applied()
	}
}

// TestRewindCrash takes a replica back over a FLUSHALL, with a crash before every step: it is as it was at the one point or the other, can be taken back
// further, to right behind its snapshot, and follows on from there.
func TestRewindCrash(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	source := gate.Open(t, crashfs.New(), 2, clock)
	defer source.Close()
	base := crashfs.New()
	ffs := faultfs.New(base)
	r := followOn(t, ffs, source, clock, 1<<10)
	var points []point
	for i, line := range []string{"MSET a 1 b 2", "RPUSH l x y", "MULTI ; SET c 1 ; FLUSHALL ; SET d 2", "MSET e 1 f 2", "DEL e"} {
		for j := range 20 {
			source.Do(fmt.Sprintf("MSET k%d %d n%d 1", j, i, i))
		}
		source.Do(line)
		apply(t, source, r)
		points = append(points, point{source.Cursors(), source.Digest() + source.Libraries()})
		if i == 0 {
			if err := r.E.Save(); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := points[len(points)-1]
	crashes := crashesOf(ffs, base, 1, rand.New(rand.NewPCG(1, 1)), func() { takeBack(t, r, points[3]) })
	seen := make(map[bool]int)
	for _, c := range crashes {
		again := openFollower(t, c.fs, clock, 1<<10)
		was := slices.Equal(again.Cursors(), points[3].at)
		seen[was]++
		found := again.Digest() + again.Libraries()
		if was && found != points[3].state || slices.Equal(again.Cursors(), end.at) && found != end.state {
			t.Errorf("before %s: at %v with another state", c.step, again.Cursors())
		}
		if was {
			for i := 2; i >= 0; i-- {
				takeBack(t, again, points[i])
			}
		}
		apply(t, source, again)
		if again.Digest()+again.Libraries() != end.state || !slices.Equal(again.Cursors(), end.at) {
			t.Errorf("before %s: the replica goes on to %v, its source is at %v", c.step, again.Cursors(), end.at)
		}
		again.Close()
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("crashes: %v", seen)
	}
	for i := 2; i >= 0; i-- {
		takeBack(t, r, points[i])
	}
	r.Close()
}

// point is the state at cursors.
type point struct {
	at    []log.Cursor
	state string
}

func takeBack(t *testing.T, s *gate.Store, to point) {
	t.Helper()
	if _, err := s.E.Rewind(to.at); err != nil {
		t.Fatal(err)
	}
	if got := s.Digest() + s.Libraries(); got != to.state || !slices.Equal(s.Cursors(), to.at) {
		t.Errorf("taken back to %v: at %v", to.at, s.Cursors())
	}
}

// TestReadOfReplicaWaitsForGroup: under always, what a group over several shards has done is read on a replica when all of it is durable, also when groups
// with greater ids, on other shards, came before it.
func TestReadOfReplicaWaitsForGroup(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, vfs.NewMem(), 4, clock)
	defer s.Close()
	key := make([]string, 4) // by shard
	c := s.E.NewCtx()
	for i := 0; len(key[0])*len(key[1])*len(key[2])*len(key[3]) == 0; i++ {
		k := fmt.Sprint("k", i)
		key[c.ShardOf([]byte(k))] = k
	}
	s.Do("MSET " + key[2] + " 1 " + key[3] + " 1") // comes last
	s.Do("MSET " + key[0] + " 1 " + key[1] + " 1")
	ffs := faultfs.New(crashfs.New())
	r := followOn(t, ffs, s, clock, 0)
	defer r.Close()
	r.E.SetPolicy(log.Always)
	a := r.E.NewApplier()
	release := make([]chan struct{}, 4) // the syncs of a shard
	for i := range release {
		release[i] = make(chan struct{})
	}
	ffs.Inject(func(op faultfs.Op) error {
		for i := range release {
			if op.Kind == faultfs.OpSync && strings.Contains(op.Path, fmt.Sprintf("shard-%02d", i)) {
				<-release[i]
			}
		}
		return nil
	})
	parts := s.FramesFor(r)
	for _, later := range []bool{true, false} {
		for i := range parts {
			if (parts[i].Shard < 2) == later {
				if err := a.Apply(parts[i : i+1]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i := range 3 {
		close(release[i])
		if err := r.E.Dir().Log(i).Sync(); err != nil {
			t.Fatal(err)
		}
	}
	_ = read(t, r, key[0]) // settles what can be
	if read(t, r, key[2]) {
		t.Error("a group is read, and one of its parts is not durable")
	}
	close(release[3])
	if err := r.E.Dir().Log(3).Sync(); err != nil {
		t.Fatal(err)
	}
	if !read(t, r, key[2]) {
		t.Error("a group that is durable is waited for")
	}
}

// read reports whether a key can be read at once.
func read(t *testing.T, s *gate.Store, key string) bool {
	t.Helper()
	var ticket engine.Ticket
	c := s.E.NewCtx()
	c.W = &resp.Writer{}
	c.Args = [][]byte{[]byte("GET"), []byte(key)}
	c.Cmd = command.Lookup(c.Args[0])
	s.E.Run(c, &ticket)
	if got := string(c.W.Buf); got != "$1\r\n1\r\n" {
		t.Errorf("GET %s: %q", key, got)
	}
	done, err := s.E.Settle(&ticket)
	if err != nil {
		t.Fatal(err)
	}
	return done
}
