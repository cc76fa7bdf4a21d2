package goredis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestStreams(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		for _, id := range []string{"1-1", "1-2", "2-0"} {
			got, err := c.XAdd(ctx, &redis.XAddArgs{Stream: "s", ID: id, Values: []string{"f", id}}).Result()
			equal(t, "XADD", got, err, id)
		}
		n, err := c.XLen(ctx, "s").Result()
		equal(t, "XLEN", n, err, 3)
		msgs, err := c.XRange(ctx, "s", "(1-1", "+").Result()
		same(t, "XRANGE", msgs, err, []redis.XMessage{{ID: "1-2", Values: map[string]any{"f": "1-2"}}, {ID: "2-0", Values: map[string]any{"f": "2-0"}}})
		streams, err := c.XRead(ctx, &redis.XReadArgs{Streams: []string{"s", "1-2"}, Count: 10, Block: -1}).Result()
		same(t, "XREAD", streams, err, []redis.XStream{{Stream: "s", Messages: msgs[1:]}})
		info, err := c.XInfoStream(ctx, "s").Result()
		equal(t, "XINFO STREAM", info.LastGeneratedID, err, "2-0")
		n, err = c.XTrimMaxLen(ctx, "s", 1).Result()
		equal(t, "XTRIM", n, err, 2)
	})
}

func TestStreamGroups(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		ok, err := c.XGroupCreateMkStream(ctx, "s", "g", "$").Result()
		equal(t, "XGROUP CREATE", ok, err, "OK")
		err = c.XGroupCreate(ctx, "s", "g", "$").Err()
		if err == nil || !strings.HasPrefix(err.Error(), "BUSYGROUP") {
			t.Fatalf("XGROUP CREATE again: %v", err)
		}
		got := make(chan []redis.XStream, 1)
		go func() {
			r, _ := c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "ann", Streams: []string{"s", ">"}, Block: 5 * time.Second}).Result()
			got <- r
		}()
		time.Sleep(50 * time.Millisecond)
		c.XAdd(ctx, &redis.XAddArgs{Stream: "s", ID: "5-1", Values: []string{"k", "v"}})
		msg := redis.XMessage{ID: "5-1", Values: map[string]any{"k": "v"}}
		same(t, "XREADGROUP BLOCK", <-got, nil, []redis.XStream{{Stream: "s", Messages: []redis.XMessage{msg}}})
		pending, err := c.XPending(ctx, "s", "g").Result()
		same(t, "XPENDING", pending, err, &redis.XPending{Count: 1, Lower: "5-1", Higher: "5-1", Consumers: map[string]int64{"ann": 1}})
		claimed, next, err := c.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: "s", Group: "g", Consumer: "bob", Start: "0"}).Result()
		same(t, "XAUTOCLAIM", claimed, err, []redis.XMessage{msg})
		equal(t, "XAUTOCLAIM", next, err, "0-0")
		groups, err := c.XInfoGroups(ctx, "s").Result()
		same(t, "XINFO GROUPS", groups, err, []redis.XInfoGroup{{Name: "g", Consumers: 2, Pending: 1, LastDeliveredID: "5-1", EntriesRead: 1}})
		n, err := c.XAck(ctx, "s", "g", "5-1").Result()
		equal(t, "XACK", n, err, 1)
	})
}

func TestScripts(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		script := redis.NewScript(`local v = redis.call('INCRBY', KEYS[1], ARGV[1]) return {v, redis.status_reply('FINE'), false, cjson.encode({a = 1})}`)
		r, err := script.Run(ctx, c, []string{"n"}, 4).Slice()
		same(t, "EVALSHA or EVAL", r, err, []any{int64(4), "FINE", nil, `{"a":1}`})
		r, err = script.Run(ctx, c, []string{"n"}, 5).Slice()
		equal(t, "EVALSHA", r[0], err, any(int64(9)))
		is, err := c.ScriptExists(ctx, script.Hash(), "0000").Result()
		same(t, "SCRIPT EXISTS", is, err, []bool{true, false})
		err = c.Eval(ctx, `return redis.error_reply('MINE of course')`, nil).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "MINE") {
			t.Fatalf("EVAL of an error: %v", err)
		}
		lib := "#!lua name=smoke\nredis.register_function('twice', function(keys, args) return args[1] * 2 end)"
		name, err := c.FunctionLoadReplace(ctx, lib).Result()
		equal(t, "FUNCTION LOAD", name, err, "smoke")
		n, err := c.FCall(ctx, "twice", nil, 21).Int()
		equal(t, "FCALL", n, err, 42)
		libs, err := c.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: "smoke"}).Result()
		if err != nil || len(libs) != 1 || libs[0].Functions[0].Name != "twice" {
			t.Fatalf("FUNCTION LIST: %+v, %v", libs, err)
		}
	})
}

func TestPubSub(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		sub := c.Subscribe(ctx, "news")
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		if err := sub.PSubscribe(ctx, "user.*"); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.Receive(ctx); err != nil || m.(*redis.Subscription).Count != 2 {
			t.Fatalf("PSUBSCRIBE: %v, %v", m, err)
		}
		for _, ch := range []string{"news", "user.1"} {
			n, err := c.Publish(ctx, ch, "hello").Result()
			equal(t, "PUBLISH", n, err, 1)
			msg, err := sub.ReceiveTimeout(ctx, 5*time.Second)
			if m, ok := msg.(*redis.Message); err != nil || !ok || m.Channel != ch || m.Payload != "hello" {
				t.Fatalf("message: %v, %v", msg, err)
			}
		}
		if err := sub.Ping(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		pong, err := sub.ReceiveTimeout(ctx, 5*time.Second)
		if p, ok := pong.(*redis.Pong); err != nil || !ok || p.Payload != "x" {
			t.Fatalf("PING of a subscriber: %v, %v", pong, err)
		}
		nums, err := c.PubSubNumSub(ctx, "news").Result()
		same(t, "PUBSUB NUMSUB", nums, err, map[string]int64{"news": 1})
	})
}

func TestWrongType(t *testing.T) {
	c := client(t, nil)
	c.Set(t.Context(), "k", "v", 0)
	err := c.LPush(t.Context(), "k", "x").Err()
	if err == nil || errors.Is(err, redis.Nil) || !strings.HasPrefix(err.Error(), "WRONGTYPE ") {
		t.Fatalf("LPUSH onto a string: %v", err)
	}
}
