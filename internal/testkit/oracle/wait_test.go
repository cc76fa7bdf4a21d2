package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

// waitLen is the number of steps in one stream of clients that wait.
const waitLen = 120

// TestWaitingStreamSameAsRedis compares who is served, with what and when, of clients that wait for keys.
func TestWaitingStreamSameAsRedis(t *testing.T) {
	redis := proc.RedisForTest(t)
	want := redis.Addr
	seventh := strings.Contains(redis.Log(), "version=7.0")
	kevy := proc.ForTest(t, "--shards", "4", "--appendfsync", "no")
	got := kevy.Addr
	s := seed(t)
	streams, steps := 0, 0
	for end := time.Now().Add(*timeFlag / 4); time.Now().Before(end); s++ {
		stream := newWaitGen(s, seventh).stream(waitLen)
		diff, err := runWaiting(want, got, stream)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", s, err, redis.Explain(), kevy.Explain())
		}
		streams, steps = streams+1, steps+len(stream)
		if diff == nil {
			continue
		}
		if diff.GotE != nil { // it is seldom that something does not come: what keeps it is worth more than a short stream
			t.Fatalf("seed %d: %s\n%s\nafter\n\n%s", s, diff, kevy.Explain(), Format(stream[:diff.Step+1]))
		}
		small := Shrink(stream[:diff.Step+1], func(s []Step) bool {
			d, err := runWaiting(want, got, s)
			return err == nil && d != nil && d.Class() == diff.Class()
		})
		d, err := runWaiting(want, got, small)
		if err != nil || d == nil {
			d = diff
		}
		t.Fatalf("seed %d: differs after\n\n%s\n%s\nbefore shrinking: %s", s, Format(small), d, diff)
	}
	t.Logf("%d streams, %d steps the same", streams, steps)
}
