package oracle

import (
	"slices"
	"strconv"
	"strings"
)

// Commands and options that are seldom used: positions, SORT by patterns, groups of streams, payloads, scripts and
// functions by name, what a single node refuses, and the keys of commands.

var rarePools = map[string][]string{
	"Q":  {"WITHCOORD", "WITHDIST", "WITHHASH", "COUNT 3", "COUNT 1 ANY", "COUNT 0", "ASC", "DESC", "withdist", "ANY", "foo"},
	"QB": {"BYRADIUS 200 km", "BYRADIUS 5000 mi", "BYRADIUS -1 m", "BYBOX 400 300 km", "BYBOX 9000 9000 km", "BYBOX 1 x m", "BYRADIUS 1 parsec"},
	"QF": {"NX", "XX", "CH", "NX CH", "NX XX", "foo"},
	"w":  {"w_*", "w_*", "h*->f1", "*->f1", "nosort", "w_", "w_*->"},
	"#":  {"#", "w_*", "h*->f1", "nosuch_*", "*"},
	"K":  {"0", "1", "2", "3", "-1", "x", "9223372036854775807"},
	"E":  {"ENTRIESREAD 0", "ENTRIESREAD 2", "ENTRIESREAD -2", "ENTRIESREAD x", "MKSTREAM", "foo"},
	"XC": {"JUSTID", "FORCE", "IDLE 100", "TIME 1000", "RETRYCOUNT 5", "LASTID 1-1", "RETRYCOUNT -1", "IDLE x", "foo"},
	"RT": {"0", "5000000", "-1", "x", "33177117420000"},
	"RO": {"REPLACE", "ABSTTL", "IDLETIME 10", "FREQ 5", "FREQ 256", "IDLETIME -1", "foo", "replace"},
	"M":  {"MIN", "MAX", "foo"},
	"WT": {"1", "2", "1.5", "0.5", "1e3", "inf", "-inf", "0x10", "nan", "x", ""}, // none that makes a zero negative: its sign is lost here
	"payload": append(slices.Clone(payloads), // cut, with another checksum, of a later version
		payloads[0][:9], payloads[2][:20]+"x"+payloads[2][21:], "\x00\x05hello\xff\x00cr\xdfve4 \n", "", "junk"),
}

// multiWord are the pools whose members are several words.
var multiWord = map[string]bool{"T": true, "A": true, "P": true, "R": true, "Q": true, "QB": true, "QF": true, "E": true, "XC": true, "RO": true, "ACLWHAT": true}

// payloads are DUMP's of redis-server 7.0.15, one of each type.
var payloads = []string{
	"\x00\x05hello\n\x00cr\xdfve4 \n",
	"\x00\xc0{\n\x00H\xe2S\xe1\x00zg\xb9",
	"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x81b\x02\x03\x01\xff\n\x00\xdc\xa1\xe6}P\x05PH",
	"\x02\x02\x01b\x01a\n\x00u\xd9\x9d\x83^\xf8_e",
	"\x0b\x14\x04\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00p\x11\x01\x00\n\x00\x85\xd5\xc1\x06[\x1d\xd0U",
	"\x10\x11\x11\x00\x00\x00\x04\x00\x81f\x02\x01\x01\x81g\x02\x02\x01\xff\n\x00\xdc\xe0\x88\xc5x\xacl+",
	"\x11\x14\x14\x00\x00\x00\x04\x00\x81a\x02\x01\x01\x81b\x02\x832.5\x04\xff\n\x00\xd4Ln\xa4\xf6D\xd9\xd7",
	"\x13\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x1d\x1d\x00\x00\x00\n\x00\x01\x01\x00\x01\x01\x01\x81f\x02" +
		"\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\xff\x01\x01\x01\x01\x01\x00\x00\x01\x01\x01g\x00\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\x00\x00\n\x00\xff\x9a\xd3KH\xb2h\xce",
}

// placeKey holds members at places that no two share, so that an order by distance is one.
const placeKey = "places"

var rareForms = []form{
	{8, true, "GEOADD places at m"},
	{2, true, "GEOADD places QF at m at m"},
	{1, false, "GEOADD places at"},
	{4, true, "GEOSEARCH places FROMLONLAT at QB Q"},
	{4, true, "GEOSEARCH places QB FROMLONLAT at ASC Q Q"},
	{4, true, "GEOSEARCH places FROMMEMBER m QB DESC Q"},
	{2, false, "GEOSEARCH places FROMMEMBER m QB COUNT n ASC Q"},
	{2, true, "GEOSEARCHSTORE geo1 places FROMMEMBER m QB ASC Q"},
	{1, false, "GEOSEARCHSTORE geo1 k FROMLONLAT at QB"},
	{3, true, "GEORADIUS places at R ASC Q Q"},
	{1, false, "GEORADIUS places at R Q STORE geo1"},
	{2, true, "GEORADIUS_RO places at R DESC Q"},
	{3, true, "GEORADIUSBYMEMBER places m R ASC Q"},
	{1, true, "GEORADIUSBYMEMBER_RO places m R DESC Q"},
	{2, true, "GEORADIUSBYMEMBER places m R STORE geo2"},
	{3, false, "GEODIST places m m"},
	{2, false, "GEOPOS places m m"},
	{2, false, "GEOHASH places m m"},

	{3, true, "MSET w_0 i w_1 i w_2 i w_63 fl"},
	{2, true, "DEL w_1"},
	{3, true, "SORT numbers BY w_* GET # GET #"},
	{3, true, "SORT numbers BY w LIMIT 0 5 GET # GET #"},
	{2, true, "SORT numbers BY nosort DESC GET # LIMIT n n"},
	{2, true, "SORT l ALPHA GET # GET # STORE l"},
	{2, true, "SORT_RO numbers DESC LIMIT n n"},
	{1, false, "SORT_RO numbers ALPHA STORE l"},
	{2, true, "SORT z BY nosort DESC"},
	{1, false, "SORT k ALPHA ASC"},

	{2, true, "XGROUP CREATE x grp2 I"},
	{2, true, "XGROUP CREATE x grp2 $ E E"},
	{1, true, "XGROUP DESTROY x grp2"},
	{1, true, "XGROUP CREATECONSUMER x grp2 carol"},
	{2, true, "XGROUP SETID x grp2 I E"},
	{1, false, "XGROUP CREATE x"},
	{1, false, "XGROUP foo x"},
	{1, false, "XGROUP DELCONSUMER x nosuch carol"},
	{3, true, "XCLAIM x grp bob 0 I I XC XC"},
	{1, true, "XCLAIM x grp bob 1000000 I"},
	{2, true, "XAUTOCLAIM x grp bob 0 I JUSTID"},
	{1, true, "XAUTOCLAIM x grp bob 1000000 I COUNT n"},
	{1, true, "XCLAIM x grp bob 0"},
	{1, true, "XCLAIM x grp bob 0 junk"},
	{1, true, "XAUTOCLAIM x grp bob 0"},
	{2, true, "XPENDING x grp I + n bob"},
	{2, true, "XPENDING x grp IDLE 0 - + n alice"},
	{1, false, "XPENDING x grp IDLE x - + n"},
	{2, true, "XREAD STREAMS x x I $"},
	{1, false, "XREAD COUNT n STREAMS x x I"},
	{1, true, "XREADGROUP GROUP grp alice NOACK COUNT n STREAMS x >"},
	{1, false, "XREADGROUP GROUP nosuch alice STREAMS x >"},
	{3, true, "XINFO STREAM x"},
	{3, true, "XINFO CONSUMERS x grp"},
	{1, false, "XINFO CONSUMERS x nosuch"},
	{1, false, "XINFO foo x"},
	{2, true, "XRANGE x (I + COUNT n"},
	{1, false, "XADD x MAXLEN = n LIMIT n ID f v"},
	{1, false, "XADD x ID f"},
	{1, false, "XTRIM x MINID n LIMIT n"},
	{1, false, "XTRIM x foo n"},

	{3, true, "DUMP k"},
	{3, true, "RESTORE k RT payload RO"},
	{2, true, "RESTORE k 0 payload"},
	{2, false, "RESTORE k RT payload REPLACE RO RO"},

	{2, false, "ZRANGEBYLEX lex L L LIMIT r r"},
	{2, true, "ZRANGE lex L L BYLEX REV LIMIT 0 2"},
	{1, true, "ZRANGESTORE z lex L L BYLEX"},
	{2, false, "ZRANGESTORE z z B B BYSCORE LIMIT r r"},
	{1, false, "ZRANGESTORE z z r r REV WITHSCORES"},
	{1, true, "BZPOPMAX z z t"},
	{2, false, "ZUNION 3 z z s WEIGHTS WT WT WT A"},
	{1, false, "ZINTERSTORE z 2 z z WEIGHTS WT WT AGGREGATE M"},
	{1, false, "ZUNION K z z"},
	{1, false, "ZDIFF K z z"},
	{1, false, "SINTERCARD K s s"},
	{1, false, "LMPOP K l l LEFT"},
	{1, false, "ZMPOP K z z M"},
	{1, true, "HRANDFIELD h 0"},
	{1, true, "HRANDFIELD h 100000 WITHVALUES"},
	{1, true, "ZRANDMEMBER z x"},
	{1, true, "SRANDMEMBER s x"},
	{1, true, "SPOP s -1"},
	{1, false, "LCS k k LEN IDX"},
	{3, false, "BITFIELD b SET Y #o V GET Y #o"},
	{1, false, "BITOP foo b b"},
	{1, false, "BITOP NOT b b b"},
	{1, false, "MEMORY USAGE k SAMPLES n"},

	{2, false, "EVALSHA 4a2267357833227dd98abdedb8cf24b15a986445 K k"},
	{1, false, "SCRIPT EXISTS 4a2267357833227dd98abdedb8cf24b15a986445"},
	{1, true, "SCRIPT FLUSH"},
	{1, false, "SCRIPT FLUSH foo"},
	{1, false, "EVALSHA foo 0"},
	{2, false, "FCALL put K k v"},
	{2, true, "FCALL put 1 k v"},
	{2, true, "FCALL_RO look 1 k"},
	{1, true, "FCALL_RO put 1 k v"},
	{1, true, "FUNCTION DELETE lib"},
	{1, true, "FUNCTION LIST WITHCODE"},
	{1, false, "FUNCTION LIST LIBRARYNAME l*"},
	{1, true, "FUNCTION FLUSH"},
	{1, false, "FUNCTION DELETE nosuch"},
	{1, false, "FUNCTION foo"},

	{1, false, "MOVE k 0"},
	{1, false, "SWAPDB 0 0"},
	{1, false, "SWAPDB 0 x"},
	{1, true, "AUTH v"},
	{1, true, "AUTH default v"},
	{1, false, "CLUSTER INFO"},
	{1, false, "READONLY"},
	{1, false, "CONFIG GET nosuch"},
	{1, false, "CONFIG SET nosuch v"},
	{1, false, "CONFIG foo"},
	{1, false, "CLIENT foo"},
	{1, false, "CLIENT KILL nosuch"},
	{1, false, "CLIENT KILL ID x"},
	{1, false, "CLIENT KILL TYPE foo"},
	{1, false, "CLIENT UNBLOCK 999999"},
	{1, false, "CLIENT UNBLOCK 999999 foo"},
	{1, false, "CLIENT CACHING YES"},
	{1, false, "CLIENT TRACKING foo"},
	{1, true, "CLIENT TRACKING ON PREFIX a"},
	{1, true, "CLIENT PAUSE x"},
	{1, false, "CLIENT NO-EVICT foo"},
	{1, true, "CLIENT GETREDIR"},
	{1, false, "CLIENT TRACKINGINFO"},
	{1, false, "ACL WHOAMI"},
	{1, false, "ACL GETUSER nosuch"},
	{1, false, "ACL DELUSER nosuch"},
	{1, false, "ACL DELUSER default"},
	{1, false, "ACL foo"},
	{1, false, "PUBLISH k v"},
	{1, false, "PUBSUB CHANNELS"},
	{1, false, "PUBSUB NUMSUB k k"},
	{1, false, "PUBSUB NUMPAT"},
	{1, false, "LATENCY foo"},
	{1, true, "SLOWLOG GET x"},
	{1, true, "SLOWLOG foo"},
	{1, false, "MEMORY foo"},
	{1, false, "OBJECT FREQ k"},
	{1, false, "DEBUG foo"},
	{1, true, "REPLICAOF NO x"},
}

// The code of a library of functions.
const libraryCode = `#!lua name=lib
redis.register_function('put', function(keys, args) return redis.call('SET', keys[1], args[1] or 'none') end)
redis.register_function{function_name='look', callback=function(keys) return redis.call('EXISTS', keys[1]) end, flags={'no-writes'}}`

// loadedScript is what SCRIPT LOAD gets; forms of EVALSHA and SCRIPT EXISTS have its SHA1.
const loadedScript = "return KEYS[1]"

// roScripts are run by EVAL_RO.
var roScripts = []string{
	"return redis.call('GET', KEYS[1])", "return redis.call('SET', KEYS[1], 'x')", "return redis.pcall('DEL', KEYS[1])",
	"return redis.call('TYPE', KEYS[1])", "return {redis.call('EXISTS', KEYS[1])}", "#!lua flags=no-writes\nreturn 1",
}

func rareRows() []row {
	rows := []row{
		{weight: 2, fixed: true, make: func(g *Gen) []string {
			return []string{"FUNCTION", "LOAD", g.pick([]string{"REPLACE", "replace", "foo"}), libraryCode}
		}},
		{weight: 1, fixed: true, make: func(*Gen) []string { return []string{"FUNCTION", "LOAD", libraryCode} }},
		{weight: 2, fixed: true, make: func(*Gen) []string { return []string{"SCRIPT", "LOAD", loadedScript} }},
		{weight: 4, fixed: true, make: func(g *Gen) []string { return []string{"EVAL_RO", g.pick(roScripts), "1", g.key()} }},
		{weight: 9, fixed: true, make: func(g *Gen) []string {
			return append([]string{"COMMAND", g.pick([]string{"GETKEYS", "GETKEYS", "GETKEYSANDFLAGS"})}, g.request()...)
		}},
	}
	return append(rows, formRows(rareForms)...)
}

// request is a command of two words or more: 7.0 asks GETKEYS nothing about shorter ones.
func (g *Gen) request() []string {
	for {
		if args := g.command().Args; len(args) > 1 {
			return args
		}
	}
}

// place is a longitude and a latitude, now and then an odd one.
func (g *Gen) place() []string {
	if g.chance(5) {
		return strings.Fields(g.pick(pools["P"]))
	}
	degrees := func(most int) string {
		return strconv.FormatFloat(float64(g.rng.IntN(2*most*1000)-most*1000)/1000, 'f', -1, 64)
	}
	return []string{degrees(20), degrees(60)}
}

// consumerGone deletes a consumer and makes it again: Redis 7.0 makes consumers when they first get something.
func (g *Gen) consumerGone() Step {
	k, who := g.typed("x"), g.pick([]string{"alice", "bob"})
	return Step{Conn: g.rng.IntN(numConns), Cmds: []Command{
		{Args: []string{"DISCARD"}},
		{Args: []string{"XGROUP", "DELCONSUMER", k, "grp", who}},
		{Args: []string{"XGROUP", "CREATECONSUMER", k, "grp", who}},
	}}
}
