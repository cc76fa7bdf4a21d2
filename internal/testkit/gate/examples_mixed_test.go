package gate

import (
	"fmt"
	"maps"
)

const (
	library  = `'#!lua name=lib\n redis.register_function("put", function(k, a) redis.call("SET", k[1], a[1]) redis.call("RPUSH", k[2], a[1]) return 1 end)'`
	library2 = `'#!lua name=lib\n redis.register_function("put", function(k, a) return redis.call("SADD", k[1], a[1]) end)'`
	several  = `EVAL 'redis.call("SET", KEYS[1], "x", "PX", 700) redis.call("HSET", KEYS[2], "f", 1) redis.call("SADD", KEYS[3], 1, 2, "y") ` +
		`redis.call("ZADD", KEYS[4], 1, "m") redis.call("XADD", KEYS[5], "*", "f", "v") redis.call("DEL", KEYS[1]) return redis.call("SPOP", KEYS[3])' 5 a b c d e`
)

func init() {
	maps.Copy(examples, map[string][][]string{
		"eval": {
			{several},
			{`EVAL 'return redis.call("GET", KEYS[1])' 1 a`},
			{several, several},
			{"MULTI ; " + several + " ; INCR n"},
			{`EVAL 'redis.call("SET", KEYS[1], 1) error("late")' 1 a`},
			{`EVAL 'redis.call("SET", KEYS[1], 1) redis.call("FLUSHALL") redis.call("SET", KEYS[2], 2)' 2 a b`},
			{`SET a 1 PX 5`, "tick 10", `EVAL 'return redis.call("INCR", KEYS[1])' 1 a`},
		},
		"evalsha": {{`EVAL 'return redis.call("INCR", KEYS[1])' 1 a`, "EVALSHA f793247de6e1e3c553cd42d39c812df499e679e4 1 a"}},
		"fcall":   {{"FUNCTION LOAD " + library, "FCALL put 2 a b 7"}, {"FCALL put 2 a b 7"}},
		"function|load": {
			{"FUNCTION LOAD " + library},
			{"FUNCTION LOAD " + library, "FUNCTION LOAD " + library},
			{"FUNCTION LOAD " + library, "FUNCTION LOAD REPLACE " + library2},
			{"MULTI ; SET a 1 ; FUNCTION LOAD " + library + " ; FCALL put 2 a b 7"},
		},
		"function|delete": {{"FUNCTION LOAD " + library, "FUNCTION DELETE lib"}, {"FUNCTION DELETE lib"}},
		"function|flush":  {{"FUNCTION LOAD " + library, "SET a 1", "FUNCTION FLUSH"}, {"FUNCTION LOAD " + library, "FLUSHALL"}},
		"function|restore": {
			{"FUNCTION RESTORE junk"},
			{"FUNCTION LOAD " + library, "dump FUNCTION DUMP", "FUNCTION FLUSH", "FUNCTION RESTORE $dump"},
			{"FUNCTION LOAD " + library, "dump FUNCTION DUMP", "FUNCTION LOAD REPLACE " + library2, "FUNCTION RESTORE $dump REPLACE"},
		},
	})
	sequences = append(sequences, mixed...)
	for _, kind := range kinds {
		sequences = append(sequences, moved(kind.verb)...)
	}
	for _, kind := range kinds {
		if kind.name != "string" {
			sequences = append(sequences, large(kind.name, kind.change...))
		}
	}
}

// kinds make a small value of each type at the key K, and change a large one at a.
var kinds = []struct {
	name, verb string
	change     []string
}{
	{"string", "SET K v", nil},
	{"hash", "HSET K f 1 g 2", []string{"HSET a f7 new x y", "HDEL a f1 f2 f9999", "HPEXPIREAT a now+5 FIELDS 2 f3 f4", "tick 10", "HINCRBY a f10 5"}},
	{"list", "RPUSH K 1 2 x", []string{"LSET a 5000 new", "LPUSH a z", "LINSERT a BEFORE e7000 y", "LREM a 1 e9000", "LPOP a 300", "LTRIM a 10 9000", "RPOPLPUSH a a"}},
	{"set", "SADD K 1 2 x", []string{"SADD a new 1", "SREM a 0 7 21 e1 e2", "SPOP a 100", "SMOVE a b e4", "SDIFFSTORE c a b"}},
	{"zset", "ZADD K 1 x 2.5 y", []string{"ZADD a 7 m1 -1 new", "ZREM a m2 m9999", "ZINCRBY a 3 m4", "ZPOPMIN a 100", "ZREMRANGEBYRANK a 5 500", "ZRANGESTORE b a 10 3000"}},
	{"stream", "XADD K 1-1 f v", []string{
		"XGROUP CREATE a g 0", "XREADGROUP GROUP g c COUNT 600 STREAMS a >", "XACK a g 1-1 5-1", "XDEL a 7-1 8-1",
		"XTRIM a MINID 500", "XCLAIM a g d 0 550-1",
	}},
}

// moved renames and copies a value with and without a deadline, onto nothing and onto others.
func moved(verb string) (scripts [][]string) {
	at := func(key string) string { return fmt.Sprintf("%s%s%s", verb[:idx(verb)], key, verb[idx(verb)+1:]) }
	return [][]string{
		{at("a"), "PEXPIRE a 500", "RENAME a b", "COPY b c", "save", "RENAME c d", "DEL b"},
		{at("a"), "SET b x PX 500", "RENAME a b", "COPY b e", "PEXPIRE e 5", "tick 10", "RENAMENX b e"},
		{at("a"), "HSET b f 1", "PEXPIRE b 900", "COPY a b", "COPY a b REPLACE", "MULTI ; RENAME a c ; COPY c a ; PEXPIRE a 50 ; RENAME b d", "COPY d a REPLACE"},
		{at("a"), "PEXPIRE a 5", "tick 10", "RENAME a b", "COPY a b", at("a"), "RENAME a b"},
	}
}

// idx is where the K of a verb's form stands.
func idx(verb string) int {
	for i := 1; i+1 < len(verb); i++ {
		if verb[i] == 'K' && verb[i-1] == ' ' {
			return i
		}
	}
	panic("no key")
}

// large makes a value that has long outgrown its packed form, changes it with a snapshot in the middle, and moves it.
func large(kind string, change ...string) []string {
	n := 10_500
	if kind == "stream" {
		n = 2_000
	}
	script := []string{fmt.Sprintf("fill %s a %d", kind, n)}
	for i, line := range change {
		if i == len(change)/2 {
			script = append(script, "COPY a k", "save")
		}
		script = append(script, line)
	}
	return append(script, "PEXPIRE a 900", "RENAME a z", "MULTI ; COPY z y ; DEL k ; SET k 1", "save", "PERSIST z", "DEL y")
}

// mixed are sequences over many types: groups over several shards, expiry of keys and fields, scripts.
var mixed = [][]string{
	{
		"MULTI ; SET a 1 ; HSET b f 1 ; RPUSH c 1 2 ; SADD d 1 x ; ZADD e 1 m ; XADD f 1-1 k v ; SETBIT g 9 1 ; PFADD h x",
		"MULTI ; INCR a ; HDEL b f ; LPOP c ; SREM d 1 x ; ZINCRBY e 2 m ; XADD f 2-1 k v ; BITOP NOT g g ; PFMERGE i h", "DEL a c e",
	},
	{"SET a 1", "DEL a", "HSET a f 1", "SET a 2", "DEL a", "RPUSH a 1", "SADD b 1", "RENAME b a", "ZADD c 1 x", "COPY c a REPLACE", "XADD d 1-1 f v", "RENAME d a"},
	{"HSET a f 1 g 2", "HPEXPIREAT a now+5 FIELDS 1 f", "PEXPIRE a 20", "tick 10", "MULTI ; HLEN a ; SADD b 1 ; RENAME a c", "tick 20", "EXISTS c", "HSET c f 1"},
	{several, "SET a 1", "MULTI ; " + several + " ; LPUSH z 1", "save", several, "tick 800", "GET a", "FUNCTION LOAD " + library, "FCALL put 2 q r 7"},
	{"FUNCTION LOAD " + library, "save", "FCALL put 2 a b 7", "FUNCTION LOAD REPLACE " + library2, "FCALL put 2 c d 7", "FLUSHALL", "FCALL put 2 c d 8", "FUNCTION FLUSH"},
	{
		"SADD s 3 1 2", "SET w1 5", "SET w2 4", "SET w3 9", "SORT s BY w* GET # GET w* STORE l", "ZADD z 1 a", "ZUNIONSTORE z 2 z s", "SUNIONSTORE s s", "RPOPLPUSH l l",
		"GEOADD g 13.361389 38.115556 p 15.087269 37.502669 q", "GEOSEARCHSTORE h g FROMLONLAT 15 37 BYRADIUS 200 km", "RENAME g h",
	},
	{
		"SET a v PX 5", "RPUSH b 1", "PEXPIRE b 5", "ZADD c 1 x", "PEXPIRE c 5", "XADD d 1-1 f v", "PEXPIRE d 5", "tick 10", "MULTI ; RPUSH b 2 ; ZADD c 2 y ; XADD d 1-1 f w ; APPEND a z",
		"SUNIONSTORE a e", "SMOVE a b x",
	},
	{
		"XADD s 1-1 f v", "XGROUP CREATE s g 0", "XGROUP CREATECONSUMER s g c", "XREADGROUP GROUP g c STREAMS s >", "RENAME s t", "COPY t u", "save", "XACK t g 1-1",
		"XDEL t 1-1", "XAUTOCLAIM u g d 0 0", "XSETID t 9-9", "XADD t * f v", "COPY t u REPLACE",
	},
	{"fill hash h 400", "fill set s 400", "fill zset z 400", "fill list l 400", "MULTI ; HDEL h f1 ; SREM s 0 ; ZREM z m1 ; LPOP l ; FLUSHALL ; HSET h f 1 ; SADD s 1", "RPUSH l 1"},
}
