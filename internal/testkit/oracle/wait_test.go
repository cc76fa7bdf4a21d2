package oracle

import "testing"

// waitLen is the number of steps in one stream of clients that wait.
const waitLen = 120

// TestWaitingStreamSameAsRedis compares who is served, with what and when, of clients that wait for keys.
func TestWaitingStreamSameAsRedis(t *testing.T) {
	compete(t, *timeFlag/4, always(contest{open: openWaiters, diff: diffWaiting}), func(seed uint64, seventh bool) []Step {
		return newWaitGen(seed, seventh).stream(waitLen)
	})
}
