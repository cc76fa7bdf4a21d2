package server

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

func (c *client) number(section, name string) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.field(section, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// TestEviction: every policy keeps the limit, and only takes keys that it may take.
func TestEviction(t *testing.T) {
	for _, policy := range []string{
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
	} {
		t.Run(policy, func(t *testing.T) {
			s := start(t, testOptions{})
			c := s.client()
			volatile := strings.HasPrefix(policy, "volatile")
			c.want("CONFIG SET maxmemory-policy "+policy, "+OK")
			limit := c.number("memory", "used_memory") + 200<<10
			for i := range 20 {
				c.want(fmt.Sprintf("SET keep:%d v", i), "+OK")
			}
			c.want(fmt.Sprintf("CONFIG SET maxmemory %d", limit), "+OK")
			value := strings.Repeat("x", 1000)
			for i := range 1000 {
				c.want(fmt.Sprintf("SET key:%d %s EX %d", i, value, 10000-i), "+OK")
			}
			if got := c.number("memory", "used_memory"); got > limit+8<<10 {
				t.Errorf("%d bytes are used, the limit is %d", got, limit)
			}
			if n := c.number("stats", "evicted_keys"); n < 700 || n > 990 {
				t.Errorf("%d keys were evicted", n)
			}
			if volatile {
				c.want("EXISTS keep:0 keep:1 keep:2 keep:3 keep:4 keep:5 keep:6 keep:7 keep:8 keep:9", ":10")
			}
			if policy == "volatile-ttl" {
				c.want("EXISTS key:0 key:1 key:2 key:3 key:4", ":5")
			}
			c.want("CONFIG SET maxmemory 1", "+OK")
			eventually(t, "background eviction", func() bool {
				return c.do("EXISTS key:0 key:1") == ":0" && (!volatile || c.do("DBSIZE") == ":20") // all that may go has gone
			})
			if volatile {
				c.want("SET keep:1 v", "-OOM*")
				c.want("DBSIZE", ":20")
			}
			c.want("CONFIG SET maxmemory 0", "+OK")
			c.want("SET keep:1 v", "+OK")
		})
	}
}

// TestEvictionChoice: what was used lately, or often, stays.
func TestEvictionChoice(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 maxmemory-samples 20", "+OK")
	for i := range 200 {
		c.want(fmt.Sprintf("SET key:%d v", i), "+OK")
	}
	c.want("OBJECT FREQ key:0", ":5")
	for range 10 {
		c.want("GET key:0", "v")
	}
	c.want("OBJECT FREQ key:0", ":15")
	c.want(fmt.Sprintf("CONFIG SET maxmemory %d", c.number("memory", "used_memory")-4000), "+OK")
	eventually(t, "eviction", func() bool { return c.number("stats", "evicted_keys") > 10 })
	c.want("EXISTS key:0", ":1")
	c.want("CONFIG SET maxmemory 0 maxmemory-policy noeviction", "+OK")
}

// TestMemoryInTransaction: CONFIG SET of what takes shards' locks works while a transaction holds them.
func TestMemoryInTransaction(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("MULTI", "+OK")
	c.want("SET x 1", "+QUEUED")
	c.want("CONFIG SET maxmemory 1 hash-max-listpack-entries 5 maxmemory-policy allkeys-lru", "+QUEUED")
	c.want("EXEC", "*[+OK +OK]")
	c.want("CONFIG SET maxmemory 0", "+OK")
}

// TestAccessClock: a write is an access.
func TestAccessClock(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("SET x 1", "+OK")
	c.want("HSET h f v", ":1")
	time.Sleep(1100 * time.Millisecond)
	if got := c.do("OBJECT IDLETIME h"); got == ":0" {
		t.Errorf("idle time %s", got)
	}
	c.want("SET x 2", "+OK")
	c.want("OBJECT IDLETIME x", ":0")
}

// TestEvictionIsToldFirst: the invalidation of a key evicted for a command comes before the command's reply.
func TestEvictionIsToldFirst(t *testing.T) {
	c := start(t, testOptions{}).client()
	c.want("HELLO 3", "%[*")
	c.want("CLIENT TRACKING ON", "+OK")
	c.want("CONFIG SET maxmemory-policy volatile-random", "+OK")
	c.want("SETEX volatile 10000 x", "+OK")
	c.want("GET volatile", "x")
	used, err := strconv.Atoi(c.field("memory", "used_memory"))
	if err != nil {
		t.Fatal(err)
	}
	c.want("CONFIG SET maxmemory "+strconv.Itoa(used+100<<10), "+OK")
	// At once, so that what evicts in the background does not come between.
	c.Queue(wire.Bytes("SETBIT", "big", "16000000", "0"))
	c.send("GETBIT big 0")
	if got := c.read(); got != ":0" {
		t.Errorf("SETBIT: %s", got)
	}
	if got := c.read(); !strings.Contains(got, "invalidate") || !strings.Contains(got, "volatile") {
		t.Errorf("before the reply: %s", got)
	}
	if got := c.read(); got != ":0" {
		t.Errorf("the reply: %s", got)
	}
}
