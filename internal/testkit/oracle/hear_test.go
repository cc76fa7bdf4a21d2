package oracle

import (
	"slices"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

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
	compete(t, *timeFlag/hearPart, always(hearContest(plainTracking, same)), func(seed uint64, seventh bool) []Step {
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

// TestOwners: the reply to an UNSUBSCRIBE of all that finds nothing, or its last one, is not followed by another of it.
func TestOwners(t *testing.T) {
	change := func(name string, left int) wire.Reply {
		n := wire.Reply{Kind: '$', Str: []byte(name), Null: name == ""}
		return wire.Reply{Kind: '*', Elems: []wire.Reply{{Kind: '$', Str: []byte("unsubscribe")}, n, {Kind: ':', Str: strconv.AppendInt(nil, int64(left), 10)}}}
	}
	cmds := []Command{{Args: []string{"UNSUBSCRIBE"}}, {Args: []string{"UNSUBSCRIBE", "x", "y"}}, {Args: []string{"HELLO"}}}
	for _, first := range [][]wire.Reply{
		{change("", 0)},
		{change("", 2)},
		{change("a", 0)},
		{change("a", 2), change("b", 1)},
		{{Kind: '-', Str: []byte("NOPERM")}},
	} {
		left := 0
		if n := first[len(first)-1].Elems; n != nil {
			count, _ := n[2].Int()
			left = int(count)
		}
		owner := owners(cmds, slices.Concat(first, []wire.Reply{change("x", left), change("y", left), {Kind: '%'}}))
		for j, want := range slices.Concat(slices.Repeat(cmds[:1], len(first)), []Command{cmds[1], cmds[1], cmds[2], foreign}) {
			if got := owner(j); !slices.Equal(got.Args, want.Args) {
				t.Errorf("reply %d behind %d of the first: of %s, want %s", j, len(first), got, want)
			}
		}
	}
}
