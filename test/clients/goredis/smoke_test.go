package goredis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// client connects with the library's defaults (HELLO 3, CLIENT SETINFO, CLIENT MAINT_NOTIFICATIONS
// and whatever else it sends) unless opts change them, and empties the server.
func client(t *testing.T, change func(*redis.Options)) *redis.Client {
	t.Helper()
	addr := os.Getenv("KEVY_ADDR")
	if addr == "" {
		t.Fatal("KEVY_ADDR is not set: run test/clients/run")
	}
	opts := &redis.Options{Addr: addr}
	if change != nil {
		change(opts)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// both runs a test over RESP3 and RESP2.
func both(t *testing.T, f func(t *testing.T, c *redis.Client)) {
	t.Run("RESP3", func(t *testing.T) { f(t, client(t, nil)) })
	t.Run("RESP2", func(t *testing.T) { f(t, client(t, func(o *redis.Options) { o.Protocol = 2 })) })
}

func equal[T comparable](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil || got != want {
		t.Fatalf("%s: got %v, %v; want %v", what, got, err, want)
	}
}

func TestHandshake(t *testing.T) {
	c := client(t, func(o *redis.Options) { o.ClientName = "smoke" })
	ctx := t.Context()
	pong, err := c.Ping(ctx).Result()
	equal(t, "PING", pong, err, "PONG")
	name, err := c.ClientGetName(ctx).Result()
	equal(t, "CLIENT GETNAME", name, err, "smoke")
	info, err := c.ClientInfo(ctx).Result()
	if err != nil || info.Name != "smoke" || info.LibName == "" {
		t.Fatalf("CLIENT INFO: %+v, %v", info, err)
	}
	hello, err := c.Do(ctx, "HELLO").Result()
	if m, ok := hello.(map[any]any); err != nil || !ok || m["proto"] != int64(3) {
		t.Fatalf("HELLO: %v, %v", hello, err)
	}
	infos, err := c.Info(ctx, "server").Result()
	if err != nil || !strings.Contains(infos, "redis_version:") {
		t.Fatalf("INFO server: %q, %v", infos, err)
	}
}

func TestStrings(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		ok, err := c.Set(ctx, "k", "v", 0).Result()
		equal(t, "SET", ok, err, "OK")
		v, err := c.Get(ctx, "k").Result()
		equal(t, "GET", v, err, "v")
		if err := c.Get(ctx, "nosuch").Err(); !errors.Is(err, redis.Nil) {
			t.Fatalf("GET of nothing: %v", err)
		}
		set, err := c.SetNX(ctx, "k", "w", 0).Result()
		equal(t, "SET NX", set, err, false)
		n, err := c.IncrBy(ctx, "n", 41).Result()
		equal(t, "INCRBY", n, err, 41)
		f, err := c.IncrByFloat(ctx, "f", 1.5).Result()
		equal(t, "INCRBYFLOAT", f, err, 1.5)
		if err := c.MSet(ctx, "a", 1, "b", "two").Err(); err != nil {
			t.Fatal(err)
		}
		vals, err := c.MGet(ctx, "a", "nosuch", "b").Result()
		if err != nil || !slices.Equal(vals, []any{"1", nil, "two"}) {
			t.Fatalf("MGET: %v, %v", vals, err)
		}
		err = c.Incr(ctx, "b").Err()
		if err == nil || !strings.Contains(err.Error(), "not an integer") {
			t.Fatalf("INCR of a word: %v", err)
		}
		lcs, err := c.LCS(ctx, &redis.LCSQuery{Key1: "k", Key2: "b", Idx: true}).Result()
		if err != nil || lcs.Len != 0 {
			t.Fatalf("LCS: %+v, %v", lcs, err)
		}
		big := strings.Repeat("x", 3<<20)
		if err := c.Set(ctx, "big", big, 0).Err(); err != nil {
			t.Fatal(err)
		}
		v, err = c.Get(ctx, "big").Result()
		equal(t, "GET of 3 MiB", v == big, err, true)
	})
}

func TestExpiry(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		if err := c.Set(ctx, "k", "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		d, err := c.TTL(ctx, "k").Result()
		equal(t, "TTL", d, err, time.Hour)
		ok, err := c.ExpireGT(ctx, "k", time.Minute).Result()
		equal(t, "EXPIRE GT", ok, err, false)
		ok, err = c.Persist(ctx, "k").Result()
		equal(t, "PERSIST", ok, err, true)
		d, err = c.TTL(ctx, "k").Result()
		equal(t, "TTL of a key without deadline", d, err, -1)
		d, err = c.TTL(ctx, "nosuch").Result()
		equal(t, "TTL of nothing", d, err, -2)
		ok, err = c.PExpire(ctx, "k", 20*time.Millisecond).Result()
		equal(t, "PEXPIRE", ok, err, true)
		time.Sleep(60 * time.Millisecond)
		n, err := c.Exists(ctx, "k").Result()
		equal(t, "EXISTS after the deadline", n, err, 0)
	})
}

func TestPipeline(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 5000 {
				p.Set(ctx, fmt.Sprintf("key:%d", i), i, 0)
			}
			p.Get(ctx, "key:4999")
			p.DBSize(ctx)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		v, err := cmds[5000].(*redis.StringCmd).Result()
		equal(t, "GET in a pipeline", v, err, "4999")
		n, err := cmds[5001].(*redis.IntCmd).Result()
		equal(t, "DBSIZE in a pipeline", n, err, 5000)
		seen := map[string]bool{}
		it := c.Scan(ctx, 0, "key:*", 100).Iterator()
		for it.Next(ctx) {
			seen[it.Val()] = true
		}
		equal(t, "SCAN", len(seen), it.Err(), 5000)
	})
}

func TestTransaction(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		var n *redis.IntCmd
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "a", 1, 0)
			p.Set(ctx, "b", 1, time.Hour)
			n = p.IncrBy(ctx, "a", 5)
			return nil
		})
		equal(t, "MULTI/EXEC", n.Val(), err, 6)
		err = c.Watch(ctx, func(tx *redis.Tx) error {
			if err := c.Set(ctx, "a", "changed", 0).Err(); err != nil {
				return err
			}
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "a", "lost", 0)
				return nil
			})
			return err
		}, "a")
		if !errors.Is(err, redis.TxFailedErr) {
			t.Fatalf("EXEC after a watched key changed: %v", err)
		}
		v, err := c.Get(ctx, "a").Result()
		equal(t, "GET", v, err, "changed")
	})
}

func TestFeed(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		shards, err := c.Do(ctx, "FEED.SHARDS").Int()
		if err != nil || shards < 1 {
			t.Fatalf("FEED.SHARDS: %d, %v", shards, err)
		}
		tails := make([][]int64, shards)
		for i := range tails {
			if tails[i], err = c.Do(ctx, "FEED.TAIL", i).Int64Slice(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Set(ctx, "user:1", "Ann", 0).Err(); err != nil {
			t.Fatal(err)
		}
		var frames []any
		for i, tail := range tails {
			frames = append(frames, read(t, c, i, tail)...)
		}
		equal(t, "FEED.READ", fmt.Sprint(frames), nil, "[[0 [SET user:1 Ann]]]")
		stats, err := c.Do(ctx, "PREFIX.STATS", "user:").Result()
		if got := fmt.Sprint(stats); err != nil || got != "[keys 1 expires 0]" && got != "map[expires:0 keys:1]" {
			t.Fatalf("PREFIX.STATS: %s, %v", got, err)
		}
		err = c.Do(ctx, "FEED.READ", 0, 1, 0).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "FEEDRESYNC ") {
			t.Fatalf("FEED.READ of an unknown generation: %v", err)
		}
	})
}

// read returns the frames of one shard from a cursor on.
func read(t *testing.T, c *redis.Client, shard int, from []int64) []any {
	t.Helper()
	r, err := c.Do(t.Context(), "FEED.READ", shard, from[0], from[1], "PREFIX", "user:", "BLOCK", 20).Slice()
	if err != nil || len(r) != 3 {
		t.Fatalf("FEED.READ: %v, %v", r, err)
	}
	return r[2].([]any)
}

func TestConcurrentClients(t *testing.T) {
	c := client(t, func(o *redis.Options) { o.PoolSize = 50 })
	errs := make(chan error, 50)
	for range cap(errs) {
		go func() {
			ctx := context.Background()
			var err error
			for i := 0; i < 200 && err == nil; i++ {
				err = c.Incr(ctx, "n").Err()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	n, err := c.Get(t.Context(), "n").Int()
	equal(t, "GET", n, err, 200*cap(errs))
}
