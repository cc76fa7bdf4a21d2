package rueidis

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// client connects with the library's defaults: RESP3, and CLIENT TRACKING ON OPTIN for its cache.
func client(t *testing.T, change func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	addr := os.Getenv("KEVY_ADDR")
	if addr == "" {
		t.Fatal("KEVY_ADDR is not set: run test/clients/run")
	}
	opt := rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
	if change != nil {
		change(&opt)
	}
	c, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	do(t, c, "FLUSHALL")
	return c
}

// do sends a command that has to succeed.
func do(t *testing.T, c rueidis.Client, words ...string) rueidis.RedisResult {
	t.Helper()
	r := c.Do(t.Context(), c.B().Arbitrary(words...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", words, err)
	}
	return r
}

func same(t *testing.T, what string, got any, err error, want any) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, %v; want %v", what, got, err, want)
	}
}

// cached reads a key through the cache and tells whether it came from there.
func cached(t *testing.T, c rueidis.Client, key string) (value string, hit bool) {
	t.Helper()
	r := c.DoCache(t.Context(), c.B().Get().Key(key).Cache(), time.Minute)
	value, err := r.ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("GET %s through the cache: %v", key, err)
	}
	return value, r.IsCacheHit()
}

// reaches waits for the invalidation to arrive.
func reaches(t *testing.T, c rueidis.Client, key, want string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if v, _ := cached(t, c, key); v == want {
			return
		}
	}
	t.Fatalf("%s is not %q after 3 s: no invalidation came", key, want)
}

// changeUnderCache changes a cached key from another connection in several ways.
func changeUnderCache(t *testing.T, c, other rueidis.Client) {
	do(t, other, "SET", "user:k", "one")
	if v, hit := cached(t, c, "user:k"); v != "one" || hit {
		t.Fatalf("first read: %q, hit %v", v, hit)
	}
	if v, hit := cached(t, c, "user:k"); v != "one" || !hit {
		t.Fatalf("second read: %q, hit %v", v, hit)
	}
	do(t, other, "SET", "user:k", "two")
	reaches(t, c, "user:k", "two")
	do(t, other, "PEXPIRE", "user:k", "30")
	reaches(t, c, "user:k", "")
	do(t, other, "SET", "user:k", "three")
	reaches(t, c, "user:k", "three")
	do(t, other, "EVAL", "return redis.call('APPEND', KEYS[1], '!')", "1", "user:k")
	reaches(t, c, "user:k", "three!")
	do(t, other, "FLUSHALL")
	reaches(t, c, "user:k", "")
}

func TestCacheOptIn(t *testing.T) { changeUnderCache(t, client(t, nil), client(t, nil)) }

func TestCacheBroadcast(t *testing.T) {
	c := client(t, func(o *rueidis.ClientOption) { o.ClientTrackingOptions = []string{"PREFIX", "user:", "BCAST"} })
	changeUnderCache(t, c, client(t, nil))
}

func TestCacheMany(t *testing.T) {
	c, other := client(t, nil), client(t, nil)
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = "k" + strconv.Itoa(i)
		do(t, other, "SET", keys[i], "v")
	}
	for range 2 {
		m, err := rueidis.MGetCache(c, t.Context(), time.Minute, keys)
		last := m["k99"]
		v, _ := last.ToString()
		same(t, "MGET through the cache", v, err, "v")
	}
	do(t, other, "HSET", "h", "f", "1")
	r := c.DoCache(t.Context(), c.B().Hgetall().Key("h").Cache(), time.Minute)
	m, err := r.AsStrMap()
	same(t, "HGETALL through the cache", m, err, map[string]string{"f": "1"})
}

func TestTypes(t *testing.T) {
	c := client(t, nil)
	ctx := t.Context()
	n, err := c.Do(ctx, c.B().Hset().Key("h").FieldValue().FieldValue("a", "1").FieldValue("b", "2").Build()).AsInt64()
	same(t, "HSET", n, err, int64(2))
	m, err := c.Do(ctx, c.B().Hgetall().Key("h").Build()).AsStrMap()
	same(t, "HGETALL", m, err, map[string]string{"a": "1", "b": "2"})
	do(t, c, "RPUSH", "l", "x", "y")
	l, err := c.Do(ctx, c.B().Lrange().Key("l").Start(0).Stop(-1).Build()).AsStrSlice()
	same(t, "LRANGE", l, err, []string{"x", "y"})
	do(t, c, "SADD", "s", "1", "2")
	set, err := c.Do(ctx, c.B().Smembers().Key("s").Build()).AsIntSlice()
	same(t, "SMEMBERS", set, err, []int64{1, 2})
	do(t, c, "ZADD", "z", "1.5", "a", "2", "b")
	z, err := c.Do(ctx, c.B().Zrange().Key("z").Min("0").Max("-1").Withscores().Build()).AsZScores()
	same(t, "ZRANGE", z, err, []rueidis.ZScore{{Member: "a", Score: 1.5}, {Member: "b", Score: 2}})
	do(t, c, "XADD", "x", "1-0", "f", "v")
	x, err := c.Do(ctx, c.B().Xread().Count(1).Streams().Key("x").Id("0").Build()).AsXRead()
	same(t, "XREAD", x, err, map[string][]rueidis.XRangeEntry{"x": {{ID: "1-0", FieldValues: map[string]string{"f": "v"}}}})
	lua := rueidis.NewLuaScript("return redis.call('INCR', KEYS[1])")
	n, err = lua.Exec(ctx, c, []string{"n"}, nil).AsInt64()
	same(t, "EVALSHA", n, err, int64(1))
	pop, err := c.Do(ctx, c.B().Blpop().Key("l").Timeout(1).Build()).AsStrSlice()
	same(t, "BLPOP", pop, err, []string{"l", "x"})
}

func TestPipelineAndTransaction(t *testing.T) {
	c := client(t, nil)
	cmds := make(rueidis.Commands, 0, 500)
	for range cap(cmds) {
		cmds = append(cmds, c.B().Incr().Key("n").Build())
	}
	replies := c.DoMulti(t.Context(), cmds...)
	n, err := replies[499].AsInt64()
	same(t, "INCR in a pipeline", n, err, int64(500))
	err = c.Dedicated(func(d rueidis.DedicatedClient) error {
		d.Do(t.Context(), d.B().Watch().Key("n").Build())
		do(t, c, "SET", "n", "9")
		r := d.DoMulti(t.Context(), d.B().Multi().Build(), d.B().Incr().Key("n").Build(), d.B().Exec().Build())
		return r[2].Error()
	})
	if !rueidis.IsRedisNil(err) {
		t.Fatalf("EXEC after a watched key changed: %v", err)
	}
}

func TestPubSub(t *testing.T) {
	c := client(t, nil)
	got := make(chan string, 10)
	for _, cmd := range []rueidis.Completed{
		c.B().Subscribe().Channel("news").Build(), c.B().Psubscribe().Pattern("new*").Build(),
		c.B().Ssubscribe().Channel("shard").Build(),
	} {
		go func() {
			_ = c.Receive(t.Context(), cmd, func(m rueidis.PubSubMessage) { got <- m.Channel + " " + m.Pattern + " " + m.Message })
		}()
	}
	time.Sleep(100 * time.Millisecond)
	do(t, c, "PUBLISH", "news", "hello")
	do(t, c, "SPUBLISH", "shard", "hello")
	var all []string
	for range 3 {
		select {
		case m := <-got:
			all = append(all, m)
		case <-time.After(3 * time.Second):
			t.Fatalf("messages: %v", all)
		}
	}
	if s := strings.Join(all, ","); !strings.Contains(s, "news  hello") || !strings.Contains(s, "news new* hello") || !strings.Contains(s, "shard  hello") {
		t.Fatalf("messages: %q", all)
	}
}
