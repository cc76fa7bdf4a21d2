package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

// rivals starts the two servers that a contest needs.
func rivals(t *testing.T) (redis, kevy *proc.Server) {
	redis = proc.RedisForTest(t)
	if *selfFlag {
		return redis, proc.RedisForTest(t)
	}
	return redis, proc.ForTest(t, "--shards", "4", "--appendfsync", "no")
}

// always is a contest that is the same beside every Redis.
func always(c contest) func(bool) contest { return func(bool) contest { return c } }

// compete plays streams for d, up to the first that differs, which it makes small and shows.
func compete(t *testing.T, d time.Duration, of func(seventh bool) contest, stream func(seed uint64, seventh bool) []Step) {
	redis, kevy := rivals(t)
	want, got, seventh := redis.Addr, kevy.Addr, strings.Contains(redis.Log(), "version=7.0")
	c := of(seventh)
	s := seed(t)
	streams, steps := 0, 0
	for end := time.Now().Add(d); time.Now().Before(end); s++ {
		all := stream(s, seventh)
		diff, err := c.run(want, got, all)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", s, err, redis.Explain(), kevy.Explain())
		}
		streams, steps = streams+1, steps+len(all)
		if diff == nil {
			continue
		}
		if diff.GotE != nil { // it is seldom that something does not come: what keeps it is worth more than a short stream
			t.Fatalf("seed %d: %s\n%s\nafter\n\n%s", s, diff, kevy.Explain(), Format(all[:diff.Step+1]))
		}
		small := Shrink(all[:diff.Step+1], func(s []Step) bool {
			d, err := c.run(want, got, s)
			return err == nil && d != nil && d.Class() == diff.Class()
		})
		last, err := c.run(want, got, small)
		if err != nil || last == nil {
			last = diff
		}
		t.Fatalf("seed %d: differs after\n\n%s\n%s\nbefore shrinking: %s", s, Format(small), last, diff)
	}
	t.Logf("%d streams, %d steps the same", streams, steps)
}
