package config

import "math"

// ownKeys are the keys that kevy acts on.
func ownKeys() []Key {
	rows := append(networkKeys(), tlsKeys()...)
	rows = append(rows, accessKeys()...)
	rows = append(rows, clientKeys()...)
	rows = append(rows, processKeys()...)
	rows = append(rows, storageKeys()...)
	rows = append(rows, snapshotKeys()...)
	rows = append(rows, feedKeys()...)
	return append(rows, archiveKeys()...)
}

// networkKeys say where to listen.
func networkKeys() []Key {
	return []Key{
		{
			Name: "bind", Kind: List, Default: "127.0.0.1", Live: true, Again: true, Max: 16,
			Help:  "addresses to listen on: * is all of IPv4, ::* all of IPv6; one with a leading - may be missing",
			field: func(c *Config) any { return &c.Bind },
		},
		{
			Name: "port", Kind: Int, Default: "6379", Max: 65535, Live: true,
			Help:  "TCP port; 0 turns TCP off",
			field: func(c *Config) any { return &c.Port },
		},
		{
			Name: "unixsocket", Kind: Text,
			Help:  "path of a unix socket to listen on as well",
			field: func(c *Config) any { return &c.UnixSocket },
		},
		{
			Name: "unixsocketperm", Kind: Octal, Default: "0", Max: 0o777,
			Help:  "mode of the unix socket, octal; 0 leaves it to the umask",
			field: func(c *Config) any { return &c.UnixSocketPerm },
		},
		{
			Name: "metrics-port", Kind: Int, Default: "0", Max: 65535, Live: true,
			Help:  "TCP port that serves metrics to Prometheus, over HTTP at /metrics, on the addresses of bind; 0: none",
			field: func(c *Config) any { return &c.MetricsPort },
		},
		{
			Name: "tcp-backlog", Kind: Int, Default: "511", Max: math.MaxInt32,
			Help:  "reported; the kernel's somaxconn decides",
			field: func(c *Config) any { return &c.TCPBacklog },
		},
		{
			Name: "tcp-keepalive", Kind: Int, Default: "300", Max: math.MaxInt32, Live: true,
			Help:  "seconds between keep-alive probes; 0 turns them off",
			field: func(c *Config) any { return &c.TCPKeepalive },
		},
	}
}

// tlsKeys concern the port that speaks TLS.
func tlsKeys() []Key {
	return []Key{
		{
			Name: "tls-port", Kind: Int, Default: "0", Max: 65535, Live: true,
			Help:  "TCP port that speaks TLS; 0: none",
			field: func(c *Config) any { return &c.TLSPort },
		},
		{
			Name: "tls-cert-file", Kind: Text, Live: true,
			Help:  "PEM file of the server's certificate",
			field: func(c *Config) any { return &c.TLSCert },
		},
		{
			Name: "tls-key-file", Kind: Text, Live: true,
			Help:  "PEM file of the certificate's key",
			field: func(c *Config) any { return &c.TLSKey },
		},
		{
			Name: "tls-ca-cert-file", Kind: Text, Live: true,
			Help:  "PEM file of the authorities that sign clients' certificates",
			field: func(c *Config) any { return &c.TLSCACert },
		},
		{
			Name: "tls-auth-clients", Kind: Enum, Live: true, Default: "yes", Enum: []string{"no", "yes", "optional"},
			Help:  "whether clients of the TLS port need a certificate",
			field: func(c *Config) any { return &c.TLSAuthClients },
		},
		{
			Name: "tls-protocols", Kind: Text, Live: true,
			Help:  "versions of TLS: TLSv1.2 TLSv1.3 is the default",
			field: func(c *Config) any { return &c.TLSProtocols },
		},
		{
			Name: "tls-replication", Kind: Bool, Live: true, Default: "no",
			Help:  "speak TLS to the server that is followed (replicaof)",
			field: func(c *Config) any { return &c.TLSReplication },
		},
	}
}

// clientKeys bound what clients may do.
func clientKeys() []Key {
	return []Key{
		{
			Name: "timeout", Kind: Int, Default: "0", Max: math.MaxInt32, Live: true,
			Help:  "seconds after which an idle client is closed; 0 never",
			field: func(c *Config) any { return &c.Timeout },
		},
		{
			Name: "maxclients", Kind: Int, Default: "10000", Min: 1, Max: math.MaxUint32, Live: true,
			Help:  "clients connected at once; more are refused",
			field: func(c *Config) any { return &c.MaxClients },
		},
		{
			Name: "proto-max-bulk-len", Kind: Size, Default: "512mb", Min: 1 << 20, Live: true,
			Help:  "largest single argument of a request",
			field: func(c *Config) any { return &c.ProtoMaxBulkLen },
		},
		{
			Name: "client-query-buffer-limit", Kind: Size, Default: "1gb", Min: 1 << 20, Live: true,
			Help:  "largest unfinished request of one client",
			field: func(c *Config) any { return &c.QueryBufLimit },
		},
		{
			Name: "client-output-buffer-limit", Kind: OutputBounds, Live: true,
			Default: "normal 1gb 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
			Help:    "unread replies by class: class hard soft seconds ...; a client beyond is closed",
			field:   func(c *Config) any { return &c.OutputLimits },
		},
		{
			Name: "client-default-resp", Kind: Int, Default: "2", Min: 2, Max: 3, Live: true,
			Help:  "protocol that new connections, and those after RESET, speak until HELLO: 2 or 3",
			field: func(c *Config) any { return &c.DefaultRESP },
		},
		{
			Name: "enable-debug-command", Kind: Enum, Default: "local",
			Enum:  []string{"no", "yes", "local"},
			Help:  "who may use DEBUG; local: clients on this machine",
			field: func(c *Config) any { return &c.DebugCommand },
		},
	}
}

// accessKeys say who may come in.
func accessKeys() []Key {
	return []Key{
		{
			Name: "protected-mode", Kind: Bool, Default: "yes", Live: true,
			Help:  "refuse clients of other machines while the default user has no password",
			field: func(c *Config) any { return &c.ProtectedMode },
		},
		{
			Name: "requirepass", Kind: Text, Live: true, Secret: true,
			Help:  "password of the default user; empty: none needed",
			field: func(c *Config) any { return &c.RequirePass },
		},
		{
			Name: "aclfile", Kind: Text,
			Help:  "file of users that ACL LOAD and SAVE use; read at the start",
			field: func(c *Config) any { return &c.ACLFile },
		},
		{
			Name: "user", Local: "users", Kind: Users, Private: true,
			Help:  "users of the ACL: name rule ...; an array in the file, a flag for each, lines in the environment",
			field: func(c *Config) any { return &c.Users },
		},
	}
}

// processKeys concern the process.
func processKeys() []Key {
	return []Key{
		{
			Name: "loops", Kind: Int, Default: "0", Max: 1024,
			Help:  "event loops; 0: half the CPUs",
			field: func(c *Config) any { return &c.Loops },
		},
		{
			Name: "shutdown-timeout", Kind: Int, Default: "10", Max: math.MaxInt32, Live: true,
			Help:  "seconds that running commands have to finish when the server stops",
			field: func(c *Config) any { return &c.ShutdownTimeout },
		},
		{
			Name: "loglevel", Kind: Enum, Default: "notice", Live: true,
			Enum:  []string{"debug", "verbose", "notice", "warning", "nothing"},
			Help:  "least important message that is logged",
			field: func(c *Config) any { return &c.LogLevel },
		},
		{
			Name: "logformat", Kind: Enum, Default: "text", Enum: []string{"text", "json"},
			Help:  "form of the log lines",
			field: func(c *Config) any { return &c.LogFormat },
		},
	}
}

// storageKeys concern data and memory.
func storageKeys() []Key {
	return []Key{
		{
			Name: "dir", Kind: Text, Default: "./kevy-data",
			Help:  "data directory",
			field: func(c *Config) any { return &c.Dir },
		},
		{
			Name: "shards", Kind: Int, Default: "0", Max: 32,
			Help:  "shards of a new data directory; 0: one per CPU, at most 16",
			field: func(c *Config) any { return &c.Shards },
		},
		{
			Name: "appendfsync", Kind: Enum, Default: "everysec", Live: true,
			Enum:  []string{"everysec", "always", "no"},
			Help:  "when the log is synced to disk",
			field: func(c *Config) any { return &c.AppendFsync },
		},
		{
			Name: "maxmemory", Kind: Size, Default: "0", Live: true,
			Help:  "bytes above which keys are evicted or writes that need memory refused; 0: no limit",
			field: func(c *Config) any { return &c.MaxMemory },
		},
		{
			Name: "maxmemory-policy", Kind: Enum, Default: "noeviction", Live: true,
			Enum: []string{
				"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
				"allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction",
			},
			Help:  "which keys go when maxmemory is reached",
			field: func(c *Config) any { return &c.MaxMemoryPolicy },
		},
	}
}

// snapshotKeys say when snapshots are taken and which stay. By default there are no rules of time, as the log alone
// keeps the data: a snapshot bounds the log, so the log's growth is what asks for one.
func snapshotKeys() []Key {
	return []Key{
		{
			Name: "save", Kind: SaveRules, Live: true,
			Help:  "snapshot after so many seconds if so many changes: seconds changes ...",
			field: func(c *Config) any { return &c.Save },
		},
		{
			Name: "auto-aof-rewrite-percentage", Section: "snapshot", Local: "growth_percentage", Kind: Int,
			Default: "100", Max: math.MaxInt32, Live: true,
			Help:  "snapshot when the log behind the last one has grown by so much of it; 0: never",
			field: func(c *Config) any { return &c.GrowthPercent },
		},
		{
			Name: "auto-aof-rewrite-min-size", Section: "snapshot", Local: "growth_min_size", Kind: Size,
			Default: "64mb", Live: true,
			Help:  "but not before snapshot and log together are that large",
			field: func(c *Config) any { return &c.GrowthMin },
		},
		{
			Name: "stop-writes-on-bgsave-error", Kind: Bool, Default: "yes", Live: true,
			Help:  "refuse writes while the last snapshot has failed and there are save rules",
			field: func(c *Config) any { return &c.StopWrites },
		},
		{
			Name: "snapshot-keep", Section: "snapshot", Kind: Int, Default: "2", Min: 1, Max: 1 << 20, Live: true,
			Help:  "snapshot sets that stay, the newest included",
			field: func(c *Config) any { return &c.SnapshotKeep },
		},
		{
			Name: "snapshot-keep-time", Section: "snapshot", Kind: Duration, Default: "0", Live: true,
			Help:  "age up to which all snapshot sets stay: 90s, 12h, 7d",
			field: func(c *Config) any { return &c.SnapshotKeepTime },
		},
	}
}

// feedKeys concern the change feed and the log it is read from.
func feedKeys() []Key {
	return []Key{
		{
			Name: "feed-enabled", Section: "feed", Kind: Bool, Default: "yes",
			Help:  "serve the change feed (FEED.READ)",
			field: func(c *Config) any { return &c.FeedEnabled },
		},
		{
			Name: "feed-buffer-size", Section: "feed", Local: "feed_buffer_size", Kind: Size,
			TopLevel: true, Default: "64mb", Min: 1, Max: 1 << 30,
			Help:  "bytes per shard that FEED.READ serves back from the tail, at most 1gb",
			field: func(c *Config) any { return &c.FeedBufferSize },
		},
		{
			Name: "feed-retention", Section: "feed", Kind: Enum, Default: "window",
			Enum:  []string{"window", "log"},
			Help:  "window: FEED.READ serves feed_buffer_size; log: all the log on disk",
			field: func(c *Config) any { return &c.FeedRetention },
		},
		{
			Name: "log-keep-bytes", Section: "log", Kind: Size, Default: "0",
			Help:  "bytes of log per shard to keep although a snapshot covers them",
			field: func(c *Config) any { return &c.LogKeepBytes },
		},
		{
			Name: "log-keep-time", Section: "log", Kind: Duration, Default: "0",
			Help:  "age up to which log is kept although a snapshot covers it: 90s, 12h, 7d",
			field: func(c *Config) any { return &c.LogKeepTime },
		},
		{
			Name: "log-seal-after", Section: "log", Kind: Duration, Default: "10m",
			Help:  "how long ago a log segment must have ended to be compressed, if it is still there",
			field: func(c *Config) any { return &c.LogSealAfter },
		},
		{
			Name: "log-segment-size", Section: "log", Kind: Size, Default: "64mb",
			Min: 64 << 10, Max: 4 << 30,
			Help:  "size at which a new log segment is begun",
			field: func(c *Config) any { return &c.LogSegmentSize },
		},
	}
}

// archiveKeys say where the history is copied to.
func archiveKeys() []Key {
	return []Key{
		{
			Name: "archive-url", Section: "archive", Kind: Text,
			Help:  "where segments and snapshots are copied to: file:///dir or s3://bucket/prefix?endpoint=...&region=...",
			field: func(c *Config) any { return &c.ArchiveURL },
		},
		{
			Name: "archive-interval", Section: "archive", Kind: Duration, Default: "60s",
			Help:  "how far the archive may be behind: what is new is sent that often",
			field: func(c *Config) any { return &c.ArchiveInterval },
		},
		{
			Name: "archive-keep-time", Section: "archive", Kind: Duration, Default: "0",
			Help:  "age up to which every point stays restorable from the archive: 12h, 30d; 0: see archive-keep-sets",
			field: func(c *Config) any { return &c.ArchiveKeepTime },
		},
		{
			Name: "archive-keep-sets", Section: "archive", Kind: Int, Default: "0", Max: 1 << 20,
			Help:  "newest snapshot sets that stay in the archive at least; with archive-keep-time 0 too, everything stays",
			field: func(c *Config) any { return &c.ArchiveKeepSets },
		},
	}
}
