package killloop

import (
	"fmt"
	"strconv"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// typeCommands are the commands of a batch on the collection types; each makes its key show the batch's number.
var typeCommands = []command{
	one("HINCRBY", "hash", func(k string, _ int) []string { return []string{"HINCRBY", k, "n", "1"} }),
	one("HSET many", "fields", func(k string, n int) []string { return []string{"HSET", k, "field:" + strconv.Itoa(n), "x"} }),
	one("RPUSH", "list", func(k string, n int) []string { return []string{"RPUSH", k, "element:" + strconv.Itoa(n)} }),
	one("SADD", "set", func(k string, n int) []string { return []string{"SADD", k, strconv.Itoa(n * 3)} }),
	one("SADD strings", "members", func(k string, n int) []string { return []string{"SADD", k, "m" + strconv.Itoa(n)} }),
	one("ZADD", "zset", func(k string, n int) []string { return []string{"ZADD", k, strconv.Itoa(n % 17), strconv.Itoa(n)} }),
	one("XADD", "stream", func(k string, n int) []string { return []string{"XADD", k, "*", "n", strconv.Itoa(n)} }),
	one("EVAL", "script", func(k string, _ int) []string {
		return []string{"EVAL", "redis.call('RPUSH', KEYS[1], 'a', 'b') return redis.call('LPOP', KEYS[1])", "1", k}
	}),
	{
		name: "MULTI/EXEC over types",
		request: func(p string, n int) [][]string {
			i := strconv.Itoa(n)
			return [][]string{
				{"MULTI"},
				{"HSET", p + "g0", i, i},
				{"LPUSH", p + "g1", i},
				{"SADD", p + "g2", i},
				{"ZADD", p + "g3", i, i},
				{"XADD", p + "g4", "*", "n", i},
				{"PFADD", p + "hll", i},
				{"SETBIT", p + "bits", i, "1"},
				{"EXEC"},
			}
		},
		check: func(get func(string) (string, bool), p string) (int, error) {
			return alike(get, p, "g0", "g1", "g2", "g3", "g4")
		},
	},
	{
		name: "script over types",
		request: func(p string, n int) [][]string {
			return [][]string{{"EVAL", "for i = 1, 3 do redis.call('LPUSH', KEYS[i], ARGV[1]) end", "3", p + "e0", p + "e1", p + "e2", strconv.Itoa(n)}}
		},
		check: func(get func(string) (string, bool), p string) (int, error) { return alike(get, p, "e0", "e1", "e2") },
	},
	{
		name: "LMOVE over shards",
		request: func(p string, n int) [][]string {
			return [][]string{{"RPUSH", p + "from", strconv.Itoa(n)}, {"LMOVE", p + "from", p + "to", "LEFT", "RIGHT"}}
		},
		check: func(get func(string) (string, bool), p string) (int, error) {
			from, _ := number(get, p+"from")
			to, err := number(get, p+"to")
			if err == nil && from > 1 {
				err = fmt.Errorf("%d elements wait to be moved", from)
			}
			return to, err
		},
	},
}

// typeKeys are the keys of typeCommands.
var typeKeys = []string{
	"hash", "fields", "list", "set", "members", "zset", "stream", "script", "g0", "g1", "g2", "g3", "g4", "hll", "bits",
	"e0", "e1", "e2", "from", "to",
}

func init() { batchCommands = append(batchCommands, typeCommands...) }

func one(name, key string, request func(k string, n int) []string) command {
	return command{
		name:    name,
		request: func(p string, n int) [][]string { return [][]string{request(p+key, n)} },
		check:   func(get func(string) (string, bool), p string) (int, error) { return number(get, p+key) },
	}
}

// shown reads the number that a key of another type than string shows: a counter field, or how many elements there are.
func shown(c *wire.Conn, key string) (string, bool, error) {
	kind, err := c.Must("TYPE", key)
	if err != nil {
		return "", false, err
	}
	verbs := map[string]string{"hash": "HLEN", "list": "LLEN", "set": "SCARD", "zset": "ZCARD", "stream": "XLEN"}
	verb, ok := verbs[kind.Text()]
	if !ok {
		return "", false, nil
	}
	if kind.Text() == "hash" {
		if n, err := c.Must("HGET", key, "n"); err != nil || !n.Null {
			return n.Text(), true, err
		}
	}
	n, err := c.Must(verb, key)
	return n.Text(), true, err
}
