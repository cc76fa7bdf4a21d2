package redigo

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// conn dials an empty server.
func conn(t *testing.T) redis.Conn {
	t.Helper()
	addr := os.Getenv("KEVY_ADDR")
	if addr == "" {
		t.Fatal("KEVY_ADDR is not set: run test/clients/run")
	}
	c, err := redis.Dial("tcp", addr, redis.DialReadTimeout(5*time.Second), redis.DialClientName("smoke"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	return c
}

func same(t *testing.T, what string, got any, err error, want any) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, %v; want %v", what, got, err, want)
	}
}

func TestTypes(t *testing.T) {
	c := conn(t)
	ok, err := redis.String(c.Do("SET", "k", "v"))
	same(t, "SET", ok, err, "OK")
	if _, err := redis.String(c.Do("GET", "nosuch")); !errors.Is(err, redis.ErrNil) {
		t.Fatalf("GET of nothing: %v", err)
	}
	n, err := redis.Int(c.Do("HSET", redis.Args{"h"}.AddFlat(map[string]int{"a": 1, "b": 2})...))
	same(t, "HSET", n, err, 2)
	m, err := redis.IntMap(c.Do("HGETALL", "h"))
	same(t, "HGETALL", m, err, map[string]int{"a": 1, "b": 2})
	n, err = redis.Int(c.Do("RPUSH", "l", "x", "y"))
	same(t, "RPUSH", n, err, 2)
	l, err := redis.Strings(c.Do("BLPOP", "nosuch", "l", 1))
	same(t, "BLPOP", l, err, []string{"l", "x"})
	n, err = redis.Int(c.Do("SADD", "s", 3, 1, 2))
	same(t, "SADD", n, err, 3)
	ints, err := redis.Ints(c.Do("SMEMBERS", "s"))
	slices.Sort(ints)
	same(t, "SMEMBERS", ints, err, []int{1, 2, 3})
	n, err = redis.Int(c.Do("ZADD", "z", 1.5, "a", 2, "b"))
	same(t, "ZADD", n, err, 2)
	f, err := redis.Float64Map(c.Do("ZRANGE", "z", 0, -1, "WITHSCORES"))
	same(t, "ZRANGE", f, err, map[string]float64{"a": 1.5, "b": 2})
	pos, err := redis.Positions(c.Do("GEOPOS", "nosuch", "m"))
	same(t, "GEOPOS of nothing", pos, err, []*[2]float64{nil})
	slow, err := redis.Values(c.Do("SCAN", 0, "COUNT", 1000))
	same(t, "SCAN", len(slow), err, 2)
}

func TestStreams(t *testing.T) {
	c := conn(t)
	id, err := redis.String(c.Do("XADD", "x", "1-0", "f", "v"))
	same(t, "XADD", id, err, "1-0")
	_, err = c.Do("XGROUP", "CREATE", "x", "g", "0")
	same(t, "XGROUP CREATE", nil, err, nil)
	r, err := redis.Values(c.Do("XREADGROUP", "GROUP", "g", "ann", "STREAMS", "x", ">"))
	want := []any{[]any{[]byte("x"), []any{[]any{[]byte("1-0"), []any{[]byte("f"), []byte("v")}}}}}
	same(t, "XREADGROUP", r, err, want)
	n, err := redis.Int(c.Do("XACK", "x", "g", "1-0"))
	same(t, "XACK", n, err, 1)
}

func TestPipelineTransactionScript(t *testing.T) {
	c := conn(t)
	for range 1000 {
		if err := c.Send("INCR", "n"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := redis.Ints(c.Do(""))
	same(t, "pipeline", len(all), err, 1000)
	_ = c.Send("MULTI")
	_ = c.Send("INCR", "n")
	_ = c.Send("LPUSH", "n", "x")
	r, err := redis.Values(c.Do("EXEC"))
	same(t, "EXEC", r[0], err, int64(1001))
	if e, ok := r[1].(redis.Error); !ok || e.Error() != "WRONGTYPE Operation against a key holding the wrong kind of value" {
		t.Fatalf("EXEC: %v", r)
	}
	s := redis.NewScript(1, "return redis.call('INCRBY', KEYS[1], ARGV[1])")
	for _, want := range []int{1011, 1021} {
		n, err := redis.Int(s.Do(c, "n", 10))
		same(t, "EVALSHA or EVAL", n, err, want)
	}
}

func TestPubSub(t *testing.T) {
	c := conn(t)
	sub := redis.PubSubConn{Conn: conn(t)}
	if err := sub.Subscribe("news"); err != nil {
		t.Fatal(err)
	}
	same(t, "SUBSCRIBE", sub.Receive(), nil, redis.Subscription{Kind: "subscribe", Channel: "news", Count: 1})
	n, err := redis.Int(c.Do("PUBLISH", "news", "hello"))
	same(t, "PUBLISH", n, err, 1)
	same(t, "message", sub.Receive(), nil, redis.Message{Channel: "news", Data: []byte("hello")})
	if err := sub.Ping("x"); err != nil {
		t.Fatal(err)
	}
	same(t, "PING of a subscriber", sub.Receive(), nil, redis.Pong{Data: "x"})
}

func TestPool(t *testing.T) {
	c := conn(t)
	pool := &redis.Pool{
		MaxActive: 8, MaxIdle: 8, Wait: true, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", os.Getenv("KEVY_ADDR")) },
		TestOnBorrow: func(c redis.Conn, _ time.Time) error { _, err := c.Do("PING"); return err },
	}
	defer func() { _ = pool.Close() }()
	errs := make(chan error, 100)
	for range cap(errs) {
		go func() {
			p := pool.Get()
			_, err := p.Do("INCR", "n")
			_ = p.Close()
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	n, err := redis.Int(c.Do("GET", "n"))
	same(t, "GET", n, err, cap(errs))
}
