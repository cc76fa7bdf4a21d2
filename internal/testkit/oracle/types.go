package oracle

import (
	"maps"
	"strconv"
	"strings"
)

// Keys that commands of one type prefer; generic commands mix them with all others.
var typedKeys = map[string][]string{
	"h": {"h1", "h2", "{tag}h"}, "l": {"l1", "l2", "{tag}l"}, "s": {"s1", "s2", "s3", "{tag}s"}, "z": {"z1", "z2", "{tag}z"}, "x": {"x1", "x2"},
	"g": {"geo1", "geo2"}, "p": {"p1", "p2", "p3"}, "b": {"b1", "b2", "b3"},
}

// lexKey holds members with equal scores: only those are ordered by their bytes. Commands on any key leave it alone.
const lexKey = "lex"

// numbersKey is a list of small numbers, for SORT.
const numbersKey = "numbers"

// mixedKeys are those that commands on any key take too.
var mixedKeys = func() (all []string) {
	for kind := range strings.SplitSeq("hlszxgpb", "") {
		all = append(all, typedKeys[kind]...)
	}
	return append(all, numbersKey, placeKey, "w_0", "w_1", "w_2")
}()

var pools = func() map[string][]string {
	all := maps.Clone(typePools)
	maps.Copy(all, rarePools)
	maps.Copy(all, hearPools)
	maps.Copy(all, accessPools)
	return all
}()

// typePools are what the letters of a form stand for. An upper-case letter is a pool with options of several words.
var typePools = map[string][]string{
	"f": {"a", "b", "c", "d", "e", "f1", "f2", "f3", "", "long" + strings.Repeat("n", 80)},
	"m": {
		"a", "b", "c", "d", "e", "", "-0", "01", "1", "2", "3", "70000", "-70000", "9223372036854775807", "9223372036854775808", "x\x00y",
		strings.Repeat("z", 80),
	},
	"e":   {"", "a", "b", "c", "d", "0", "-1", "127", "128", "65536", "007", "x\x00y", strings.Repeat("y", 70), strings.Repeat("w", 5000)},
	"S":   {"0", "1", "2", "3", "-1", "1.5", "-2.125", "inf", "-inf", "+inf", "1e3", "0x10", "nan", "x", ""},
	"B":   {"0", "1", "(1", "2", "(2", "-1", "1.5", "(-2.125", "inf", "-inf", "(inf", "1e3", "nan", "x", "("},
	"r":   {"0", "1", "2", "-1", "-2", "5", "-100", "100", "x", "1.5"},
	"L":   {"-", "+", "[a", "(a", "[c", "(c", "[", "(", "[z", "x", ""},
	"n":   {"0", "1", "2", "3", "5", "20", "-1", "x"},
	"W":   {"LEFT", "RIGHT", "left", "up"},
	"O":   {"BEFORE", "AFTER", "after", "foo"},
	"F":   {"NX", "XX", "GT", "LT", "CH", "INCR", "ch", "foo"},
	"T":   {"WITHSCORES", "LIMIT 0 2", "LIMIT 1 -1", "LIMIT -1 2", "REV", "BYSCORE", "LIMIT 1", "foo"},
	"A":   {"AGGREGATE MIN", "AGGREGATE MAX", "AGGREGATE SUM", "WITHSCORES", "WEIGHTS 2 0.5", "foo"},
	"I":   {"1-1", "2-1", "3", "4-5", "0", "0-1", "5-0", "9-9", "12-3", "20-1", "x", "-"},
	"o":   {"0", "1", "2", "7", "8", "9", "63", "100", "1000", "-1", "x", "4294967296"},
	"bit": {"0", "1", "0", "1", "2", "x"},
	"N":   {"-1", "0", "1", "-5", "3", "100"},
	"U":   {"BYTE", "BIT", "bit", "foo"},
	"Y":   {"u8", "i8", "u4", "i5", "u63", "i64", "u64", "u1", "x"},
	"V":   {"0", "1", "-1", "15", "255", "300", "9223372036854775807", "x"},
	"D":   {"WRAP", "SAT", "foo"},
	"P":   {"13.361389 38.115556", "15.087269 37.502669", "2.35 48.85", "-0.12 51.5", "200 1", "0 0"},
	"R":   {"200 km", "100 mi", "5000000 m", "1 ft", "x km"},
	"t":   {"0.01", "0.02", "x", "-1"},
}

// form is a shape of commands, and how often it comes: "hk f v" is a key of hashes, a field, a value. k is any key, v
// any value; words that are no pool stand for themselves. Fixed ones are never spoilt.
type form struct {
	weight int
	fixed  bool
	text   string
}

var typeForms = []form{
	{16, false, "HSET h f v"},
	{8, false, "HSET h f v f v f v"},
	{2, false, "HMSET h f v f v"},
	{4, false, "HSETNX h f v"},
	{6, false, "HGET h f"},
	{4, false, "HMGET h f f"},
	{8, false, "HGETALL h"},
	{8, false, "HDEL h f f"},
	{3, false, "HEXISTS h f"},
	{8, false, "HINCRBY h f i"},
	{6, false, "HINCRBYFLOAT h f fl"},
	{2, false, "HKEYS h"},
	{2, false, "HVALS h"},
	{3, false, "HLEN h"},
	{2, false, "HSTRLEN h f"},
	{2, true, "HRANDFIELD h 100000"},
	{3, true, "HSCAN h 0 COUNT 100000"},

	{12, false, "RPUSH l e e"},
	{12, false, "LPUSH l e e e"},
	{3, false, "LPUSHX l e"},
	{3, false, "RPUSHX l e e"},
	{6, false, "LPOP l"},
	{6, false, "RPOP l n"},
	{4, false, "LPOP l n"},
	{4, false, "LLEN l"},
	{12, false, "LRANGE l r r"},
	{4, false, "LINDEX l r"},
	{6, false, "LSET l r e"},
	{6, false, "LINSERT l O e e"},
	{6, false, "LREM l N e"},
	{6, false, "LTRIM l r r"},
	{3, false, "LPOS l e"},
	{3, false, "LPOS l e RANK N COUNT n"},
	{2, false, "LPOS l e COUNT n MAXLEN n"},
	{6, false, "LMOVE l1 l2 W W"},
	{3, false, "LMOVE l2 k W W"},
	{3, false, "RPOPLPUSH l1 {tag}l"},
	{3, false, "LMPOP 2 l l W"},
	{3, false, "LMPOP 1 l W COUNT n"},
	{1, true, "BLPOP l l t"},
	{1, true, "BRPOP l t"},
	{1, true, "BLMOVE l1 l2 W W t"},
	{1, true, "BLMPOP t 2 l l W"},
	{1, true, "BRPOPLPUSH l1 l2 t"},

	{14, false, "SADD s m m"},
	{6, false, "SADD s m m m m"},
	{8, false, "SREM s m m"},
	{3, false, "SCARD s"},
	{4, false, "SISMEMBER s m"},
	{3, false, "SMISMEMBER s m m"},
	{8, false, "SMEMBERS s"},
	{6, false, "SMOVE s s m"},
	{1, true, "SPOP s 100000"},
	{1, true, "SPOP s 0"},
	{2, true, "SRANDMEMBER s 100000"},
	{6, false, "SINTER s s"},
	{6, false, "SUNION s s"},
	{6, false, "SDIFF s s"},
	{3, false, "SINTERCARD 2 s s LIMIT n"},
	{4, false, "SINTERSTORE s s s"},
	{4, false, "SUNIONSTORE s s s"},
	{4, false, "SDIFFSTORE s s s"},
	{3, true, "SSCAN s 0 COUNT 100000"},

	{14, false, "ZADD z S m S m"},
	{8, false, "ZADD z F S m"},
	{4, false, "ZADD z F F S m S m"},
	{8, true, "ZINCRBY z S m"},
	{6, false, "ZREM z m m"},
	{3, false, "ZCARD z"},
	{4, false, "ZSCORE z m"},
	{3, false, "ZMSCORE z m m"},
	{4, true, "ZRANK z m"},
	{3, true, "ZREVRANK z m"},
	{3, false, "ZCOUNT z B B"},
	{8, false, "ZRANGE z r r"},
	{6, false, "ZRANGE z r r T"},
	{6, false, "ZRANGE z B B BYSCORE T"},
	{4, false, "ZRANGESTORE z z r r"},
	{3, false, "ZRANGEBYSCORE z B B T"},
	{3, false, "ZREVRANGEBYSCORE z B B"},
	{3, false, "ZREVRANGE z r r T"},
	{3, false, "ZREMRANGEBYRANK z r r"},
	{3, false, "ZREMRANGEBYSCORE z B B"},
	{4, false, "ZPOPMIN z n"},
	{4, false, "ZPOPMAX z"},
	{3, false, "ZMPOP 2 z z MIN COUNT n"},
	{4, false, "ZUNION 2 z z A"},
	{4, false, "ZINTER 2 z z A"},
	{4, false, "ZDIFF 2 z z WITHSCORES"},
	{4, false, "ZUNIONSTORE z 2 z s A"},
	{4, false, "ZINTERSTORE z 2 z z A"},
	{3, false, "ZDIFFSTORE z 2 z z"},
	{2, false, "ZINTERCARD 2 z z LIMIT n"},
	{1, true, "ZRANDMEMBER z 100000 WITHSCORES"},
	{2, true, "ZSCAN z 0 COUNT 100000"},
	{1, true, "BZPOPMIN z z t"},
	{1, true, "BZMPOP t 1 z MAX"},
	{6, true, "ZADD lex 0 m 0 m"},
	{3, true, "ZRANGE lex L L BYLEX"},
	{2, true, "ZREVRANGEBYLEX lex L L LIMIT 0 3"},
	{2, true, "ZLEXCOUNT lex L L"},
	{2, true, "ZREMRANGEBYLEX lex L L"},

	{14, true, "XADD x ID f v"},
	{4, true, "XADD x MAXLEN n ID f v f v"},
	{3, true, "XADD x NOMKSTREAM MINID I ID f v"},
	{3, false, "XLEN x"},
	{6, false, "XRANGE x - +"},
	{3, false, "XREVRANGE x + I COUNT n"},
	{3, false, "XRANGE x I I"},
	{4, false, "XDEL x I I"},
	{3, false, "XTRIM x MAXLEN n"},
	{2, false, "XTRIM x MINID I"},
	{4, true, "XREAD COUNT n STREAMS x x I I"},
	{1, true, "XREAD BLOCK 5 STREAMS x $"},
	{8, true, "XREADGROUP GROUP grp alice COUNT 2 STREAMS x >"},
	{4, true, "XREADGROUP GROUP grp bob STREAMS x >"},
	{3, true, "XREADGROUP GROUP grp bob COUNT n STREAMS x 0"},
	{6, true, "XACK x grp I I I"},
	{4, true, "XPENDING x grp"},
	{3, true, "XPENDING x grp - + 10"},
	{3, true, "XCLAIM x grp bob 0 I I"},
	{2, true, "XCLAIM x grp alice 0 I I JUSTID FORCE"},
	{3, true, "XAUTOCLAIM x grp alice 0 0 COUNT n"},
	{2, true, "XINFO GROUPS x"},
	{2, true, "XGROUP SETID x grp I"},
	{1, true, "XGROUP DESTROY x grp"},
	// Only IDs above all deleted ones, or those that are refused before the stream is looked at: of others 7.2 says that
	// they are below a deleted one, where 7.0 goes on.
	{1, true, "XSETID x 99999999999999-1"},
	{2, true, "XSETID x 99999999999999-2 ENTRIESADDED n"},
	{2, true, "XSETID x 99999999999999-3 ENTRIESADDED n MAXDELETEDID I"},
	{1, false, "XSETID x 1-1 MAXDELETEDID 99999999999999-9"},
	{1, false, "XSETID x I ENTRIESADDED -1"},
	{1, false, "XSETID x I MAXDELETEDID"},

	{10, false, "SETBIT b o bit"},
	{5, false, "GETBIT b o"},
	{5, false, "BITCOUNT b"},
	{4, false, "BITCOUNT b r r U"},
	{4, false, "BITPOS b bit r r U"},
	{3, false, "BITPOS b bit r"},
	{6, false, "BITOP AND b b b"},
	{4, false, "BITOP XOR b b k"},
	{3, false, "BITOP NOT b b"},
	{6, false, "BITFIELD b SET Y o V"},
	{4, false, "BITFIELD b OVERFLOW D INCRBY Y o V GET Y o"},
	// With FAIL something is written before: where nothing is, but for the string's length, Redis touches no watched key.
	{2, false, "BITFIELD b SET Y 0 0 OVERFLOW FAIL INCRBY Y o V GET Y o"},
	{2, false, "BITFIELD_RO b GET Y o"},
	{6, false, "PFADD p m m"},
	{4, true, "PFCOUNT p p"},
	{3, false, "PFMERGE p p p"},

	{6, true, "GEOADD g P m"},
	{2, false, "GEODIST g m m km"},
	{2, true, "GEOHASH g m m"},
	{2, true, "GEOSEARCH g FROMLONLAT 15 37 BYRADIUS R ASC"},
	{2, true, "GEOSEARCHSTORE g g FROMLONLAT 13 38 BYBOX 400 400 km ASC"},
	{2, true, "GEOPOS g m"},

	{3, true, "SORT l ALPHA"},
	{2, true, "SORT s ALPHA DESC LIMIT 0 5 STORE l"},
	{4, true, "RPUSH numbers o"},
	{2, true, "SORT numbers"},
	{2, true, "SORT numbers DESC STORE l"},
	{4, false, "TYPE k"},
	{4, false, "RENAME k k"},
	{4, false, "COPY k k REPLACE"},
	{4, false, "DEL k"},
}

// luaScripts are run by EVAL on random keys.
var luaScripts = []string{
	"return redis.call('GET', KEYS[1])",
	"redis.call('SET', KEYS[1], ARGV[1]) return redis.call('APPEND', KEYS[1], 'x')",
	"redis.call('LPUSH', KEYS[1], ARGV[1], 'b') redis.call('HSET', KEYS[2], 'f', ARGV[1]) return redis.call('LRANGE', KEYS[1], 0, -1)",
	"local r = redis.pcall('INCR', KEYS[1]) if type(r) == 'table' then return r.err end return r",
	"redis.call('SADD', KEYS[2], 'x') redis.call('ZADD', KEYS[2], 1, 'x') return 1",
	"return {1, 'two', {3, false, true}, redis.status_reply('OK'), 4.7}",
	"redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 1, 2) redis.call('RENAME', KEYS[1], KEYS[2]) return redis.call('TYPE', KEYS[2])",
	"return redis.error_reply('MY error')",
	"redis.call('SET', KEYS[1], 1, 'PX', 5000000) return redis.call('EXISTS', KEYS[1], KEYS[2])",
}

func typeRows() []row {
	rows := []row{
		{weight: 20, fixed: true, make: func(g *Gen) []string {
			return []string{"EVAL", g.pick(luaScripts), "2", g.key(), g.key(), g.value()}
		}},
	}
	return append(rows, formRows(typeForms)...)
}

func formRows(forms []form) (rows []row) {
	for _, f := range forms {
		words := strings.Fields(f.text)
		rows = append(rows, row{weight: f.weight, fixed: f.fixed, make: func(g *Gen) []string { return g.form(words) }})
	}
	return rows
}

func (g *Gen) form(words []string) []string {
	args := []string{words[0]}
	for _, w := range words[1:] {
		switch pool := pools[w]; {
		case w == "k":
			args = append(args, g.key())
		case w == "v":
			args = append(args, g.value())
		case w == "i":
			args = append(args, g.int())
		case w == "fl":
			args = append(args, g.pick([]string{"1.5", "0.25", "-1", "x", "5", "3.0e3"}))
		case w == "ID": // mostly greater than those before
			g.id++
			args = append(args, g.pick([]string{strconv.Itoa(g.id) + "-1", strconv.Itoa(g.id) + "-*", "5-1"}))
		case w == "at":
			args = append(args, g.place()...)
		case w == "#o":
			args = append(args, "#"+g.pick(pools["o"]))
		case typedKeys[w] != nil:
			args = append(args, g.typed(w))
		case multiWord[w]:
			args = append(args, strings.Fields(g.pick(pool))...)
		case pool != nil:
			args = append(args, g.pick(pool))
		default:
			args = append(args, w)
		}
	}
	return args
}

// typed is mostly a key of the kind, now and then any other.
func (g *Gen) typed(kind string) string {
	if kind != "x" && g.chance(6) {
		return g.key()
	}
	return g.pick(typedKeys[kind])
}

// group makes a consumer group with its consumers: Redis 7.0 makes them when they first get something.
func (g *Gen) group() Step {
	k := g.typed("x")
	s := Step{Conn: g.rng.IntN(numConns)}
	for _, args := range [][]string{
		{"XGROUP", "CREATE", k, "grp", g.pick([]string{"0", "$", "3-1"}), "MKSTREAM"},
		{"XGROUP", "CREATECONSUMER", k, "grp", "alice"},
		{"XGROUP", "CREATECONSUMER", k, "grp", "bob"},
	} {
		s.Cmds = append(s.Cmds, Command{Args: args})
	}
	return s
}

// look reads a key as each type.
func look(k string) (cmds []Command) {
	for _, args := range [][]string{
		{"LRANGE", k, "0", "-1"}, {"SMEMBERS", k}, {"HGETALL", k}, {"ZRANGE", k, "0", "-1", "WITHSCORES"}, {"XRANGE", k, "-", "+"},
	} {
		cmds = append(cmds, Command{Args: args})
	}
	return cmds
}
