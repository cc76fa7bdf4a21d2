package oracle

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

const feedShards = 4

// TestFeedRunsOnRedis runs random streams on kevy and then kevy's change feed, from offset 0 of
// each shard's generation, on a stock redis-server: keys, values and deadlines must be the same.
func TestFeedRunsOnRedis(t *testing.T) {
	kevy := &Target{
		Name: "kevy",
		Addr: proc.ForTest(t, "--shards", strconv.Itoa(feedShards), "--appendfsync", "no").Addr,
	}
	redis := &Target{Name: "redis-server", Addr: proc.RedisForTest(t).Addr}
	t.Cleanup(kevy.Close)
	t.Cleanup(redis.Close)
	s := seed(t)
	frames := 0
	for end := time.Now().Add(min(*timeFlag, 5*time.Second)); time.Now().Before(end); s++ {
		for _, target := range []*Target{kevy, redis} {
			if err := target.reset(); err != nil {
				t.Fatal(err)
			}
		}
		for _, st := range NewGen(s).Stream(streamLen) {
			if _, err := kevy.run(st); err != nil {
				t.Fatalf("seed %d: %v", s, err)
			}
			time.Sleep(st.Sleep)
		}
		for shard := range feedShards {
			frames += replay(t, kevy.conns[1], redis.conns[1], shard)
		}
		want, got := keyspace(t, kevy.conns[1]), keyspace(t, redis.conns[1])
		if !slices.Equal(want, got) {
			i := 0
			for i < min(len(want), len(got)) && want[i] == got[i] {
				i++
			}
			t.Fatalf("seed %d: kevy holds %d keys, its feed makes %d; the first that differs:\n%s\n%s", s, len(want), len(got),
				want[min(i, len(want)-1)], got[min(i, len(got)-1)])
		}
	}
	t.Logf("%d frames", frames)
}

// replay runs the frames of a shard's current generation on another server.
func replay(t *testing.T, from, to *wire.Conn, shard int) (frames int) {
	t.Helper()
	tail, err := from.Must("FEED.TAIL", strconv.Itoa(shard))
	if err != nil {
		t.Fatal(err)
	}
	generation, offset := tail.Elems[0].Text(), "0"
	for {
		r, err := from.Must("FEED.READ", strconv.Itoa(shard), generation, offset)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Elems[2].Elems) == 0 {
			return frames
		}
		for i := range r.Elems[2].Elems {
			f := &r.Elems[2].Elems[i].Elems[1]
			to.QueueRaw(f.Raw)
			if err := to.Flush(); err != nil {
				t.Fatal(err)
			}
			reply, err := to.Read()
			if err != nil || reply.IsError() {
				t.Fatalf("frame %s: %s, %v", f.String(), reply.String(), err)
			}
			frames++
		}
		offset = r.Elems[1].Text()
	}
}

// keyspace lists every key with its value and deadline.
func keyspace(t *testing.T, c *wire.Conn) []string {
	t.Helper()
	must := func(args ...string) *wire.Reply {
		t.Helper()
		r, err := c.Must(args...)
		if err != nil {
			t.Fatal(err)
		}
		return &r
	}
	must("HELLO", "3") // the stream may have changed the protocol
	keys := must("KEYS", "*")
	var out []string
	for i := range keys.Elems {
		k := keys.Elems[i].Text()
		kind := must("TYPE", k).Text()
		var value string
		switch kind {
		case "string":
			value = must("GET", k).String()
		case "list":
			value = must("LRANGE", k, "0", "-1").String()
		case "set":
			value = strings.Join(sortedRaws(must("SMEMBERS", k)), "")
		case "hash":
			value = strings.Join(sortedPairs(must("HGETALL", k)), "")
		case "zset":
			value = must("ZRANGE", k, "0", "-1", "WITHSCORES").String()
		case "stream":
			value = stream(must, k)
		}
		out = append(out, wire.Quote([]byte(k))+" "+kind+" "+value+" "+must("PEXPIRETIME", k).Text())
	}
	slices.Sort(out)
	return out
}

// stream shows a stream's entries, its counters and its groups.
func stream(must func(args ...string) *wire.Reply, k string) string {
	value := must("XRANGE", k, "-", "+").String()
	info := must("XINFO", "STREAM", k)
	for _, name := range []string{"last-generated-id", "max-deleted-entry-id", "entries-added"} {
		if f, ok := info.Field(name); ok {
			value += " " + name + " " + f.Text()
		}
	}
	value += must("XINFO", "GROUPS", k).String()
	for i := range must("XINFO", "GROUPS", k).Elems {
		pending := must("XPENDING", k, must("XINFO", "GROUPS", k).Elems[i].Elems[1].Text(), "-", "+", "1000")
		for j := range pending.Elems {
			e := pending.Elems[j].Elems
			value += "\n" + e[0].Text() + " " + e[1].Text() + " " + e[3].Text()
		}
	}
	return value
}
