package oracle

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

var (
	seedFlag = flag.Uint64("oracle.seed", 1, "seed of the random streams (0: a new one)")
	timeFlag = flag.Duration("oracle.time", defaultTime(), "how long to run random streams")
	selfFlag = flag.Bool("oracle.self", false, "compare redis-server with itself")
)

func defaultTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("ORACLE_TIME")); err == nil {
		return d
	}
	return 5 * time.Second
}

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

// mostDifferences is how many streams that differ end a run: one of a night shows more than the first.
const mostDifferences = 10

// streamLen is the number of commands in one stream; both servers start each one empty.
const streamLen = 300

func seed(t *testing.T) uint64 {
	s := *seedFlag
	if s == 0 {
		s = rand.Uint64() >> 1
	}
	t.Logf("seed %d (repeat with -oracle.seed %d)", s, s)
	return s
}

func pair(t *testing.T) *Pair {
	t.Helper()
	p := &Pair{Want: target("redis-server", proc.RedisForTest(t))}
	if *selfFlag {
		p.Got = target("redis-server again", proc.RedisForTest(t))
	} else {
		p.Got = target("kevy", proc.ForTest(t, "--shards", "4", "--appendfsync", "no"))
	}
	t.Cleanup(p.Close)
	return p
}

func target(name string, s *proc.Server) *Target {
	return &Target{Name: name, Addr: s.Addr, Why: s.Explain}
}

func TestStreamSameAsRedis(t *testing.T) { runStreams(t, pair(t), *timeFlag) }

// TestOracleAgreesWithItself makes sure that a difference means something.
func TestOracleAgreesWithItself(t *testing.T) {
	p := &Pair{
		Want: &Target{Name: "redis-server", Addr: proc.RedisForTest(t).Addr},
		Got:  &Target{Name: "redis-server again", Addr: proc.RedisForTest(t).Addr},
	}
	t.Cleanup(p.Close)
	runStreams(t, p, min(*timeFlag, 2*time.Second))
}

func runStreams(t *testing.T, p *Pair, d time.Duration) {
	s := seed(t)
	streams, commands, unstable, differ := 0, 0, 0, 0
	for end := time.Now().Add(d); time.Now().Before(end); s++ {
		steps := NewGen(s).Stream(streamLen)
		diff, err := p.Run(steps)
		if err != nil {
			for _, x := range []*Target{p.Want, p.Got} {
				if x.Why != nil {
					t.Log(x.Name, x.Why())
				}
			}
			t.Fatal(err)
		}
		streams++
		for _, st := range steps {
			commands += len(st.Cmds)
		}
		if diff == nil {
			continue
		}
		if !report(t, p, s, steps[:diff.Step+1], diff) {
			unstable++
		} else if differ++; differ == mostDifferences {
			return
		}
	}
	t.Logf("%d streams, %d commands the same, %d streams differed, %d once and not again", streams, commands, differ, unstable)
	if unstable > 2+streams/100 {
		t.Errorf("too many streams differ only sometimes: %d of %d", unstable, streams)
	}
}

// report shrinks a failing stream and fails the test with it. A stream that does not differ again
// is not a failure by itself: something outside (a stalled machine) made a difference in time.
func report(t *testing.T, p *Pair, seed uint64, steps []Step, first *Difference) bool {
	fails := func(s []Step) bool {
		d, err := p.Run(s)
		return err == nil && d != nil && d.Class() == first.Class()
	}
	if !fails(steps) {
		t.Logf("seed %d: differed once and not again:\n%s", seed, first)
		return false
	}
	small := Shrink(steps, fails)
	d, err := p.Run(small)
	if err != nil || d == nil {
		d = first
	}
	t.Errorf("seed %d: replies differ after\n\n%s\n%s\nbefore shrinking: %s", seed, Format(small), d, first)
	return true
}

func TestShrink(t *testing.T) {
	steps := NewGen(1).Stream(100)
	steps = append(steps[:50:50], append([]Step{
		{Cmds: []Command{{Args: []string{"PING"}}, {Args: []string{"SET", "culprit", "1", "2"}}}},
	}, steps[50:]...)...)
	small := Shrink(steps, func(s []Step) bool {
		for _, st := range s {
			for _, c := range st.Cmds {
				if len(c.Args) > 1 && c.Args[1] == "culprit" {
					return true
				}
			}
		}
		return false
	})
	if got := Format(small); got != "# connection 0 (RESP2)\nSET culprit\n" {
		t.Errorf("shrunk to:\n%s", got)
	}
}

func TestGenIsDeterministic(t *testing.T) {
	first, second := NewGen(7).Stream(500), NewGen(7).Stream(500)
	if Format(first) != Format(second) {
		t.Error("the same seed made two streams")
	}
}
