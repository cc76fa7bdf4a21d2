package server

import (
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

var configHelp = []string{
	"GET <pattern>", "    Return parameters matching the glob-like <pattern> and their values.",
	"SET <directive> <value>", "    Set the configuration <directive> to <value>.",
	"RESETSTAT", "    Reset statistics reported by the INFO command.",
	"REWRITE", "    Rewrite the configuration file.",
}

func configHelpCommand(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], configHelp) }

func configGet(s *session, args [][]byte) {
	patterns := make([]string, 0, len(args)-2)
	for _, a := range args[2:] {
		patterns = append(patterns, string(a))
	}
	cfg := s.srv.config()
	names := config.Match(patterns, func(pattern, name string) bool {
		return command.Match([]byte(strings.ToLower(pattern)), []byte(name))
	})
	s.w.Map(len(names))
	for _, name := range names {
		text, _ := cfg.Get(name)
		s.w.BulkString(name)
		s.w.BulkString(text)
	}
}

// configSet is CONFIG SET name value ...: all or nothing.
func configSet(s *session, args [][]byte) {
	if len(args)%2 != 0 {
		s.w.Error(msgSyntax)
		return
	}
	var pairs []config.Pair
	for i := 2; i < len(args); i += 2 {
		pairs = append(pairs, config.Pair{Name: string(args[i]), Value: string(args[i+1])})
	}
	srv := s.srv
	srv.cfgMu.Lock()
	defer srv.cfgMu.Unlock()
	old := srv.config()
	next, changed, err := old.Change(pairs)
	if err != nil {
		s.w.Error(err.Error())
		return
	}
	if err := srv.applyAll(next, changed); err != nil {
		if err := srv.applyAll(old, changed); err != nil { // it was in force a moment ago
			srv.log.Error("CONFIG SET failed, and the former values could not be put back", "error", err)
		}
		s.w.Error(err.Error())
		return
	}
	srv.cfg.Store(next)
	s.onLoop(func() { srv.applyToShards(next, changed) })
	s.w.OK()
}

// applyAll is apply, and listens where the configuration says. REQUIRES: cfgMu.
func (srv *Server) applyAll(cfg *config.Config, keys []*config.Key) error {
	if err := srv.apply(cfg, keys); err != nil {
		return err
	}
	return srv.ports.apply(cfg, keys)
}

// apply puts values that have an effect into force. The error is CONFIG SET's reply.
func (srv *Server) apply(cfg *config.Config, keys []*config.Key) error {
	for _, k := range keys {
		switch k.Name {
		case "appendfsync":
			p, err := log.ParsePolicy(cfg.AppendFsync)
			if err != nil {
				return config.SetFailed(k.Name, err)
			}
			srv.eng.SetPolicy(p)
		case "maxclients":
			srv.rs.SetMaxClients(int(cfg.MaxClients))
		case "timeout":
			srv.rs.SetIdleTimeout(time.Duration(cfg.Timeout) * time.Second)
		case "tcp-keepalive":
			if err := srv.rs.SetKeepAlive(keepAlive(cfg)); err != nil {
				return config.SetFailed(k.Name, err)
			}
		case "proto-max-bulk-len":
			srv.rs.Limits().MaxBulk.Store(cfg.ProtoMaxBulkLen)
			srv.eng.SetMaxBulk(cfg.ProtoMaxBulkLen)
		case "client-query-buffer-limit":
			srv.rs.Limits().QueryBuffer.Store(cfg.QueryBufLimit)
		case "client-output-buffer-limit":
			srv.bounds.set(&cfg.OutputLimits)
			srv.rs.CheckOutput()
		case "maxmemory-clients", "maxmemory":
			srv.evictor.setLimit(srv, clientLimit(cfg))
		case "min-replicas-to-write", "min-replicas-max-lag", "replica-serve-stale-data":
			srv.applyReplication(cfg)
		case "tls-cert-file", "tls-key-file", "tls-ca-cert-file", "tls-auth-clients", "tls-protocols":
			if err := srv.applyTLS(cfg, k.Name); err != nil {
				return err
			}
		case "maxmemory-policy":
			srv.lfu.Store(strings.HasSuffix(cfg.MaxMemoryPolicy, "-lfu"))
		case "requirepass", "acllog-max-len", "acl-pubsub-default":
			srv.access.apply(cfg, k.Name)
		case "latency-tracking":
			on, _ := cfg.Get(k.Name)
			srv.stats.tracking.Store(on == "yes")
		case "slowlog-log-slower-than":
			setNumber(cfg, k.Name, &srv.slow.threshold)
		case "slowlog-max-len":
			setNumber(cfg, k.Name, &srv.slow.most)
			srv.slow.limit()
		case "latency-monitor-threshold":
			setNumber(cfg, k.Name, &srv.latency.threshold)
		case "notify-keyspace-events":
			srv.applyEvents(cfg)
		case "tracking-table-max-keys":
			setNumber(cfg, k.Name, &srv.tracking.maxKeys)
			srv.tracking.limit()
		case "loglevel":
			if v := srv.opt.LogLevel; v != nil {
				v.Set(SlogLevel(cfg.LogLevel))
			}
		}
	}
	return nil
}

// applyToShards puts into force what takes the shards' locks. REQUIRES: the caller holds none of them.
func (srv *Server) applyToShards(cfg *config.Config, keys []*config.Key) {
	limits, evicts, snapshots := false, false, false
	for _, k := range keys {
		limits = limits || limitKeys[k.Name]
		evicts = evicts || evictionKeys[k.Name]
		snapshots = snapshots || snapshotKeys[k.Name]
		if k.Name == "maxmemory" {
			srv.memory.setLimit(cfg.MaxMemory)
		}
	}
	if evicts {
		srv.eng.SetEviction(eviction(cfg))
	}
	if snapshots {
		srv.eng.SetSnapshotPolicy(SnapshotPolicy(cfg))
		srv.checkSnapshots()
	}
	if limits {
		srv.eng.SetLimits(Limits(cfg))
	}
}

// setNumber puts a number that is only kept as text into force.
func setNumber(cfg *config.Config, name string, to *atomic.Int64) {
	text, _ := cfg.Get(name)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		to.Store(n)
	}
}

// SlogLevel translates Redis's log levels.
func SlogLevel(level string) slog.Level {
	switch level {
	case "debug":
		return slog.LevelDebug
	case "verbose":
		return slog.LevelDebug + 1
	case "warning":
		return slog.LevelWarn
	case "nothing":
		return slog.LevelError + 100
	}
	return slog.LevelInfo
}

func configResetStat(s *session, _ [][]byte) {
	net := s.srv.rs.Stats()
	s.srv.netBase.Store(&net)
	s.srv.stats.reset()
	s.srv.memory.resetPeak()
	s.onLoop(s.srv.eng.ResetStats)
	s.w.OK()
}

func configRewrite(s *session, _ [][]byte) {
	if s.srv.config().File == "" {
		s.w.Error("ERR The server is running without a config file")
		return
	}
	if s.multi.running && len(s.after) > 0 { // what the transaction has put off belongs into the file
		s.w.OK()
		s.onLoop(func() { _ = s.srv.rewriteConfig() })
		return
	}
	s.parkRun(func(w *resp.Writer) {
		if err := s.srv.rewriteConfig(); err != nil {
			w.Error("ERR Rewriting config file: " + err.Error())
			return
		}
		w.OK()
	})
}

// rewriteConfig brings the configuration file up to date. What fails stands in the log too.
func (srv *Server) rewriteConfig() error {
	srv.cfgMu.Lock()
	defer srv.cfgMu.Unlock()
	cfg := srv.config().Clone()
	cfg.Users = srv.access.configured(cfg)
	err := cfg.Rewrite()
	if err != nil {
		srv.log.Warn("CONFIG REWRITE failed", "error", err)
	}
	return err
}
