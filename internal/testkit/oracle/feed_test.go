package oracle

import (
	"slices"
	"strconv"
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
			t.Fatalf("seed %d: kevy holds\n%q\nits feed makes\n%q", s, want, got)
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
	keys, err := c.Must("KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range keys.Elems {
		k := keys.Elems[i].Text()
		v, err1 := c.Must("GET", k)
		d, err2 := c.Must("PEXPIRETIME", k)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		out = append(out, wire.Quote([]byte(k))+" "+v.String()+" "+d.Text())
	}
	slices.Sort(out)
	return out
}
