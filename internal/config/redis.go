package config

import "math"

const maxInt = math.MaxInt32

// redisKeys are Redis 7.2's other parameters, stored and reported with Redis's defaults: those in acts have their effect,
// nothing acts on the others (Compat). What Redis cannot change at run time and kevy does not have is Fixed.
func redisKeys() []Key {
	rows := redisStructureKeys()
	rows = append(rows, redisServerKeys()...)
	rows = append(rows, redisPersistenceKeys()...)
	rows = append(rows, redisReplicationKeys()...)
	rows = append(rows, redisClusterKeys()...)
	rows = append(rows, redisTLSKeys()...)
	rows = append(rows, redisFixedKeys()...)
	for i := range rows {
		row := &rows[i]
		row.Live = !row.Fixed && row.Kind != Source
		row.Compat = !acts[row.Name]
		switch {
		case row.Help != "":
		case row.Compat:
			row.Help = "Redis parameter: stored and reported, no effect"
		default:
			row.Help = "as in Redis"
		}
	}
	return rows
}

// acts are those of Redis's parameters that the server acts on although they have no field in Config.
var acts = map[string]bool{
	"hash-max-listpack-entries": true, "hash-max-listpack-value": true, "set-max-intset-entries": true,
	"set-max-listpack-entries": true, "set-max-listpack-value": true, "zset-max-listpack-entries": true,
	"zset-max-listpack-value": true, "list-max-listpack-size": true, "stream-node-max-entries": true,
	"hll-sparse-max-bytes": true, "lfu-log-factor": true, "lfu-decay-time": true, "maxmemory-samples": true,
	"maxmemory-eviction-tenacity": true, "maxmemory-clients": true, "tracking-table-max-keys": true,
	"slowlog-log-slower-than": true, "slowlog-max-len": true, "acllog-max-len": true, "acl-pubsub-default": true,
	"latency-monitor-threshold": true, "latency-tracking": true, "latency-tracking-info-percentiles": true,
	"notify-keyspace-events": true, "busy-reply-threshold": true, "min-replicas-to-write": true, "min-replicas-max-lag": true,
	"rdbcompression": true, "replicaof": true, "replica-serve-stale-data": true, "replica-announce-ip": true, "replica-announce-port": true,
	"replica-announced": true, "replica-priority": true, "repl-timeout": true, "repl-backlog-size": true, "repl-backlog-ttl": true, "masteruser": true, "masterauth": true,
	"bind-source-addr": true, "shutdown-on-sigint": true, "shutdown-on-sigterm": true,
}

func flag(name, value string, aliases ...string) Key {
	return Key{Name: name, Kind: Bool, Default: value, Aliases: aliases}
}

func number(name, value string, low, high int64, aliases ...string) Key {
	return Key{Name: name, Kind: Int, Default: value, Min: low, Max: high, Aliases: aliases}
}

func size(name, value string, low int64, aliases ...string) Key {
	return Key{Name: name, Kind: Size, Default: value, Min: low, Aliases: aliases}
}

func word(name, value string, words ...string) Key {
	return Key{Name: name, Kind: Enum, Default: value, Enum: words}
}

func text(name, value string, aliases ...string) Key {
	return Key{Name: name, Kind: Text, Default: value, Aliases: aliases}
}

func fixed(name, value string) Key {
	return Key{Name: name, Kind: Text, Default: value, Fixed: true}
}

// only is a parameter that can be set to the one value it has.
func only(name, value string) Key {
	return Key{Name: name, Kind: Enum, Default: value, Enum: []string{value}, Help: "Redis parameter: this value only"}
}

func hidden(k Key) Key {
	k.Hidden = true
	return k
}

// redisStructureKeys tune how Redis stores values.
func redisStructureKeys() []Key {
	return []Key{
		number("hash-max-listpack-entries", "512", 0, 0, "hash-max-ziplist-entries"),
		size("hash-max-listpack-value", "64", 0, "hash-max-ziplist-value"),
		number("set-max-intset-entries", "512", 0, 0),
		number("set-max-listpack-entries", "128", 0, 0),
		size("set-max-listpack-value", "64", 0),
		number("zset-max-listpack-entries", "128", 0, 0, "zset-max-ziplist-entries"),
		size("zset-max-listpack-value", "64", 0, "zset-max-ziplist-value"),
		number("list-max-listpack-size", "-2", math.MinInt32, maxInt, "list-max-ziplist-size"),
		number("list-compress-depth", "0", 0, maxInt),
		size("stream-node-max-bytes", "4096", 0),
		number("stream-node-max-entries", "100", 0, 0),
		size("hll-sparse-max-bytes", "3000", 0),
		number("lfu-log-factor", "10", 0, maxInt),
		number("lfu-decay-time", "1", 0, maxInt),
		number("maxmemory-samples", "5", 1, maxInt),
		number("maxmemory-eviction-tenacity", "10", 0, 100),
		{Name: "maxmemory-clients", Kind: SizePercent, Default: "0"},
		number("active-expire-effort", "1", 1, 10),
		flag("activerehashing", "yes"),
		flag("lazyfree-lazy-eviction", "no"),
		flag("lazyfree-lazy-expire", "no"),
		flag("lazyfree-lazy-server-del", "no"),
		flag("lazyfree-lazy-user-del", "no"),
		flag("lazyfree-lazy-user-flush", "no"),
		flag("activedefrag", "no"),
		size("active-defrag-ignore-bytes", "104857600", 1),
		number("active-defrag-threshold-lower", "10", 0, 1000),
		number("active-defrag-threshold-upper", "100", 0, 1000),
		number("active-defrag-cycle-min", "1", 1, 99),
		number("active-defrag-cycle-max", "25", 1, 99),
		number("active-defrag-max-scan-fields", "1000", 1, 0),
		flag("jemalloc-bg-thread", "yes"),
		number("tracking-table-max-keys", "1000000", 0, 0),
		word("sanitize-dump-payload", "no", "no", "yes", "clients"),
	}
}

// redisServerKeys concern clients, scripts and monitoring.
func redisServerKeys() []Key {
	return []Key{
		number("slowlog-log-slower-than", "10000", -1, 0),
		number("slowlog-max-len", "128", 0, 0),
		number("acllog-max-len", "128", 0, 0),
		number("latency-monitor-threshold", "0", 0, 0),
		flag("latency-tracking", "yes"),
		{Name: "latency-tracking-info-percentiles", Kind: Percentiles, Default: "50 99 99.9"},
		{Name: "notify-keyspace-events", Kind: Events},
		number("busy-reply-threshold", "5000", 0, 0, "lua-time-limit"),
		{Name: "hz", Kind: Int, Default: "10", Max: maxInt, Least: 1, Most: 500},
		flag("dynamic-hz", "yes"),
		word("acl-pubsub-default", "resetchannels", "allchannels", "resetchannels"),
		flag("crash-log-enabled", "yes"),
		flag("crash-memcheck-enabled", "yes"),
		word("oom-score-adj", "no", "no", "yes", "relative", "absolute"),
		text("oom-score-adj-values", "0 200 800"),
		text("proc-title-template", "{title} {listen-addr} {server-mode}"),
		text("ignore-warnings", ""),
		text("bind-source-addr", ""),
		text("locale-collate", ""),
		{Name: "shutdown-on-sigint", Kind: List, Default: "default", Enum: shutdownWords()},
		{Name: "shutdown-on-sigterm", Kind: List, Default: "default", Enum: shutdownWords()},
		word("propagation-error-behavior", "ignore", "ignore", "panic", "panic-on-replicas"),
		hidden(flag("use-exit-on-panic", "no")),
		hidden(number("watchdog-period", "0", 0, maxInt)),
		hidden(number("key-load-delay", "0", math.MinInt32, maxInt)),
		hidden(number("rdb-key-save-delay", "0", math.MinInt32, maxInt)),
		hidden(size("loading-process-events-interval-bytes", "2097152", 1024)),
	}
}

func shutdownWords() []string { return []string{"default", "save", "nosave", "now", "force"} }

// redisPersistenceKeys concern RDB and AOF files, which kevy does not have.
func redisPersistenceKeys() []Key {
	return []Key{
		{
			Name: "appendonly", Kind: Enum, Default: "yes", Enum: []string{"yes"},
			Help: "always yes: the log is the primary structure",
		},
		flag("no-appendfsync-on-rewrite", "no"),
		flag("aof-load-truncated", "yes"),
		flag("aof-use-rdb-preamble", "yes"),
		flag("aof-timestamp-enabled", "no"),
		flag("aof-rewrite-incremental-fsync", "yes"),
		hidden(flag("aof-disable-auto-gc", "no")),
		flag("rdb-save-incremental-fsync", "yes"),
		flag("rdbcompression", "yes"),
		flag("rdb-del-sync-files", "no"),
	}
}

// redisReplicationKeys concern replication.
func redisReplicationKeys() []Key {
	return []Key{
		{Name: "replicaof", Aliases: []string{"slaveof"}, Kind: Source, Help: "the server to follow: HOST PORT"},
		flag("replica-serve-stale-data", "yes", "slave-serve-stale-data"),
		flag("replica-read-only", "yes", "slave-read-only"),
		flag("replica-lazy-flush", "no", "slave-lazy-flush"),
		flag("replica-ignore-maxmemory", "yes", "slave-ignore-maxmemory"),
		flag("replica-ignore-disk-write-errors", "no"),
		flag("replica-announced", "yes"),
		text("replica-announce-ip", "", "slave-announce-ip"),
		number("replica-announce-port", "0", 0, 65535, "slave-announce-port"),
		number("replica-priority", "100", 0, maxInt, "slave-priority"),
		flag("repl-disable-tcp-nodelay", "no"),
		flag("repl-diskless-sync", "yes"),
		number("repl-diskless-sync-delay", "5", 0, maxInt),
		number("repl-diskless-sync-max-replicas", "0", 0, maxInt),
		word("repl-diskless-load", "disabled", "disabled", "on-empty-db", "swapdb"),
		number("repl-timeout", "60", 1, maxInt),
		number("repl-ping-replica-period", "10", 1, maxInt, "repl-ping-slave-period"),
		{Name: "repl-backlog-size", Kind: Size, Default: "1048576", Min: 1, Least: 16 << 10, Most: math.MaxInt64},
		number("repl-backlog-ttl", "3600", 0, 0),
		number("min-replicas-to-write", "0", 0, maxInt, "min-slaves-to-write"),
		number("min-replicas-max-lag", "10", 0, maxInt, "min-slaves-max-lag"),
		text("masteruser", ""),
		{Name: "masterauth", Kind: Text, Secret: true},
	}
}

// redisClusterKeys are stored; there is no cluster mode.
func redisClusterKeys() []Key {
	return []Key{
		flag("cluster-require-full-coverage", "yes"),
		flag("cluster-replica-no-failover", "no", "cluster-slave-no-failover"),
		flag("cluster-allow-reads-when-down", "no"),
		flag("cluster-allow-pubsubshard-when-down", "yes"),
		flag("cluster-allow-replica-migration", "yes"),
		number("cluster-replica-validity-factor", "10", 0, maxInt, "cluster-slave-validity-factor"),
		number("cluster-migration-barrier", "1", 0, maxInt),
		number("cluster-node-timeout", "15000", 0, 0),
		hidden(number("cluster-ping-interval", "1000", 1, maxInt)),
		text("cluster-announce-ip", ""),
		text("cluster-announce-hostname", ""),
		text("cluster-announce-human-nodename", ""),
		number("cluster-announce-port", "0", 0, 65535),
		number("cluster-announce-tls-port", "0", 0, 65535),
		number("cluster-announce-bus-port", "0", 0, 65535),
		size("cluster-link-sendbuf-limit", "0", 0),
		word("cluster-preferred-endpoint-type", "ip", "ip", "hostname", "unknown-endpoint"),
	}
}

// redisTLSKeys are what Redis has to say about TLS beyond tlsKeys: Go decides that.
func redisTLSKeys() []Key {
	return []Key{
		only("tls-key-file-pass", ""),
		only("tls-client-cert-file", ""),
		only("tls-client-key-file", ""),
		only("tls-client-key-file-pass", ""),
		only("tls-dh-params-file", ""),
		only("tls-ca-cert-dir", ""),
		only("tls-ciphers", ""),
		only("tls-ciphersuites", ""),
		only("tls-prefer-server-ciphers", "no"),
		only("tls-cluster", "no"),
		only("tls-session-caching", "yes"), // tickets, which need no memory here
		only("tls-session-cache-size", "0"),
		only("tls-session-cache-timeout", "604800"),
	}
}

// redisFixedKeys are facts about this server under Redis's names.
func redisFixedKeys() []Key {
	return []Key{
		fixed("databases", "1"),
		fixed("cluster-enabled", "no"),
		fixed("cluster-config-file", "nodes.conf"),
		fixed("cluster-port", "0"),
		fixed("daemonize", "no"),
		fixed("supervised", "no"),
		fixed("pidfile", ""),
		fixed("logfile", ""),
		fixed("always-show-logo", "no"),
		fixed("set-proc-title", "no"),
		fixed("disable-thp", "no"),
		fixed("io-threads", "1"),
		fixed("io-threads-do-reads", "no"),
		fixed("socket-mark-id", "0"),
		fixed("syslog-enabled", "no"),
		fixed("syslog-ident", "redis"),
		fixed("syslog-facility", "local0"),
		fixed("server_cpulist", ""),
		fixed("bio_cpulist", ""),
		fixed("aof_rewrite_cpulist", ""),
		fixed("bgsave_cpulist", ""),
		fixed("rdbchecksum", "yes"),
		fixed("dbfilename", "dump.rdb"),
		fixed("appendfilename", "appendonly.aof"),
		fixed("appenddirname", "appendonlydir"),
		fixed("enable-protected-configs", "no"),
		fixed("enable-module-command", "no"),
	}
}
