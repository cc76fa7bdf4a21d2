package oracle

import (
	"slices"
	"strings"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// param is a parameter of CONFIG that both servers know: what every stream begins with, and what it is set to.
type param struct {
	name, begin string
	values      []string
}

var (
	boolValues   = []string{"yes", "no", "YES", "nO", "", "maybe", "1"}
	numberValues = []string{"0", "1", "-1", "5", "64", "100", "1000", "65536", "-5", "-6", "x", "", "1.5", "99999999999", "9223372036854775807", "9223372036854775808", "1kb", " 5", "+5", "0x10"}
	sizeValues   = []string{"0", "1", "100", "1kb", "1k", "1MB", "1mb", "2g", "5GB", "-1", "x", "1.5mb", "10%", "1048576", "9223372036854775807", "1 mb"}
)

func choices(values ...string) []string { return append(values, "", "foo", "YES") }

var params = []param{
	{"activerehashing", "yes", boolValues},
	{"lazyfree-lazy-eviction", "no", boolValues},
	{"lazyfree-lazy-user-del", "no", boolValues},
	{"rdbcompression", "yes", boolValues},
	{"stop-writes-on-bgsave-error", "yes", boolValues},
	{"dynamic-hz", "yes", boolValues},
	{"replica-serve-stale-data", "yes", boolValues},
	{"latency-tracking", "yes", boolValues},
	{"hash-max-listpack-entries", "512", numberValues},
	{"hash-max-ziplist-value", "64", sizeValues},
	{"list-max-listpack-size", "-2", numberValues},
	{"list-compress-depth", "0", numberValues},
	{"set-max-intset-entries", "512", numberValues},
	{"zset-max-listpack-entries", "128", numberValues},
	{"zset-max-listpack-value", "64", sizeValues},
	{"hll-sparse-max-bytes", "3000", sizeValues},
	{"stream-node-max-entries", "100", numberValues},
	{"stream-node-max-bytes", "4096", sizeValues},
	{"slowlog-max-len", "128", numberValues},
	{"slowlog-log-slower-than", "10000", numberValues},
	{"latency-monitor-threshold", "0", numberValues},
	{"tcp-keepalive", "300", numberValues},
	{"maxmemory-samples", "5", numberValues},
	{"lfu-log-factor", "10", numberValues},
	{"lfu-decay-time", "1", numberValues},
	{"tracking-table-max-keys", "1000000", numberValues},
	{"acllog-max-len", "128", numberValues},
	{"active-expire-effort", "1", numberValues},
	{"hz", "10", []string{"0", "1", "100", "500", "501", "x", "-1", ""}},
	{"repl-backlog-size", "1mb", []string{"0", "1", "16kb", "16383", "2mb", "x", "-1"}},
	{"busy-reply-threshold", "5000", numberValues},
	{"repl-timeout", "60", numberValues},
	{"proto-max-bulk-len", "512mb", []string{"1mb", "2mb", "512mb", "1", "x", "-1", "4gb"}},
	{"client-query-buffer-limit", "1gb", []string{"1mb", "2mb", "1gb", "1", "x", "-1", "4gb"}},
	// No value that makes the server full: what it holds is its own affair.
	{"maxmemory", "0", []string{"0", "2g", "5GB", "1000mb", "x", "-1", "1.5gb", "10%"}},
	{"maxmemory-policy", "noeviction", choices("noeviction", "allkeys-lru", "volatile-lfu", "volatile-ttl", "allkeys-random", "ALLKEYS-LRU")},
	{"appendfsync", "everysec", choices("no", "everysec", "always", "ALWAYS")},
	{"loglevel", "notice", []string{"notice", "warning", "verbose", "debug", "NOTICE"}},
	{"auto-aof-rewrite-percentage", "100", numberValues},
	{"auto-aof-rewrite-min-size", "64mb", sizeValues},
	{"notify-keyspace-events", "", []string{"KEA", "", "K$", "gKE", "Kq", "xEm", "A", "tn"}},
	{"client-output-buffer-limit", "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60", []string{"pubsub 1mb 1mb 5", "slave 256mb 64mb 60", "replica 1 1 1", "foo 1 1 1", "pubsub x 1 1", "pubsub 1 1", "", "pubsub 1 1 1 replica 2 2 2", "pubsub 1 1 -1"}},
	{"latency-tracking-info-percentiles", "50 99 99.9", []string{"", "0", "50", "0.1 100", "101", "-1", "x", "50 50", "99.99999"}},
}

// newParamsGen makes streams of CONFIG.
func newParamsGen(seed uint64) *hearGen {
	name := func(g *Gen) string {
		n := params[g.rng.IntN(len(params))].name
		if g.chance(10) {
			n = strings.ToUpper(n)
		}
		return n
	}
	pair := func(g *Gen) []string {
		p := params[g.rng.IntN(len(params))]
		n := p.name
		if g.chance(3) {
			n = "nosuch"
		}
		return []string{n, g.pick(p.values)}
	}
	config := func(weight int, args func(g *Gen) []string) row {
		return row{weight: weight, fixed: true, make: func(g *Gen) []string { return append([]string{"CONFIG"}, args(g)...) }}
	}
	return &hearGen{Gen: NewGen(seed), lone: kills, rows: []row{
		config(30, func(g *Gen) []string { return append([]string{"SET"}, pair(g)...) }),
		config(10, func(g *Gen) []string { return append(append([]string{"SET"}, pair(g)...), pair(g)...) }),
		config(5, func(g *Gen) []string {
			return append(append(append([]string{"SET"}, pair(g)...), pair(g)...), pair(g)...)
		}),
		config(20, func(g *Gen) []string { return []string{"GET", name(g)} }),
		config(5, func(g *Gen) []string { return []string{"GET", name(g), "nosuch", name(g)} }),
		config(4, func(g *Gen) []string {
			return []string{"GET", g.pick([]string{"*max*", "hash*", "?z", "lfu-*", "nosuch*", "[lm]*"})}
		}),
		config(1, func(g *Gen) []string { return []string{"SET", name(g)} }),
		config(1, func(*Gen) []string { return []string{"SET"} }),
		config(1, func(*Gen) []string { return []string{"GET"} }),
		config(1, func(*Gen) []string { return []string{"RESETSTAT"} }),
		config(1, func(*Gen) []string { return []string{"RESETSTAT", "x"} }),
		config(1, func(*Gen) []string { return []string{"foo"} }),
	}}
}

// plainParams is a server with the parameters as every stream begins.
func plainParams(c *wire.Conn) error {
	args := []string{"CONFIG", "SET"}
	for _, p := range params {
		args = append(args, p.name, p.begin)
	}
	_, err := c.Must(args...)
	return err
}

// sameParams compares replies to CONFIG: those to patterns by the parameters that both servers are known to have.
func sameParams(cmd Command, want, got *wire.Reply) bool {
	if cmd.Sub() != "GET" || want.IsError() || want.Kind != got.Kind {
		return same(cmd, want, got)
	}
	if !strings.ContainsAny(strings.Join(cmd.Args[2:], ""), "*?[") {
		return samePairs(want, got)
	}
	return !slices.ContainsFunc(params, func(p param) bool {
		w, ok := want.Field(p.name)
		g, has := got.Field(p.name)
		return ok != has || ok && string(w.Raw) != string(g.Raw)
	})
}
