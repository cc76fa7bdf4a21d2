package oracle

import "testing"

// hearPart is the part of -oracle.time for each kind of streams of clients that hear of each other.
const hearPart = 20

// TestPubSubStreamSameAsRedis compares the messages of channels, patterns and shard channels.
func TestPubSubStreamSameAsRedis(t *testing.T) {
	compete(t, *timeFlag/hearPart, always(hearContest(plain, same)), func(seed uint64, seventh bool) []Step {
		return newPubSubGen(seed, seventh).stream()
	})
}

// TestNotifyStreamSameAsRedis compares the keyspace notifications of each write.
func TestNotifyStreamSameAsRedis(t *testing.T) {
	compete(t, *timeFlag/hearPart, always(hearContest(plain, same)), func(seed uint64, _ bool) []Step {
		return newNotifyGen(seed).stream()
	})
}

// TestTrackingStreamSameAsRedis compares which keys clients are told to drop from their caches.
func TestTrackingStreamSameAsRedis(t *testing.T) {
	compete(t, *timeFlag/hearPart, always(hearContest(plain, same)), func(seed uint64, seventh bool) []Step {
		return newTrackingGen(seed, seventh).stream()
	})
}

// TestAccessStreamSameAsRedis compares users, their rules, and what they are refused.
func TestAccessStreamSameAsRedis(t *testing.T) {
	compete(t, *timeFlag/hearPart, func(seventh bool) contest { return hearContest(plainUsers, sameAccess(seventh)) }, func(seed uint64, seventh bool) []Step {
		return newAccessGen(seed, seventh).stream()
	})
}

// TestConfigStreamSameAsRedis compares what parameters accept, refuse and show.
func TestConfigStreamSameAsRedis(t *testing.T) {
	compete(t, *timeFlag/hearPart, always(hearContest(plainParams, sameParams)), func(seed uint64, _ bool) []Step {
		return newParamsGen(seed).stream()
	})
}
