package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/server"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// serve is kevy serve.
func serve(args []string, stdout, stderr io.Writer) int {
	cfg, err := config.Load(args, os.Environ(), stdout)
	switch {
	case errors.Is(err, config.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "kevy:", err)
		return exitUsage
	}
	level := new(slog.LevelVar)
	level.Set(server.SlogLevel(cfg.LogLevel))
	logger := newLogger(stderr, cfg.LogFormat, level)
	if err := serveConfig(cfg, logger, level); err != nil {
		logger.Error("kevy cannot go on", "error", err)
		return exitFailed
	}
	return exitOK
}

func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// serveConfig runs a server until a signal or SHUTDOWN ends it.
func serveConfig(cfg *config.Config, logger *slog.Logger, level *slog.LevelVar) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	spareProcessors(cfg.LoopCount())
	spareCollections()
	store, err := archiveStore(cfg)
	if err != nil {
		return err
	}
	eng, report, err := engine.Open(engineOptions(cfg, logger))
	if err != nil {
		return explain(cfg, err)
	}
	shipping, err := startArchiving(cfg, eng, store, logger)
	if err != nil {
		return errors.Join(err, eng.Close(true))
	}
	srv, err := server.New(server.Options{
		Config: cfg, Engine: eng, Logger: logger, LogLevel: level, Version: version, Commit: commit(),
		Archive: shipping.status(),
	})
	if err == nil {
		err = srv.Listen()
	}
	if err != nil {
		shipping.end()
		return errors.Join(err, eng.Close(true))
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve() }()
	logReady(logger, cfg, report)
	for {
		select {
		case sig := <-signals:
			logger.Info("stopping", "signal", sig.String())
			if srv.SaveAtSignal(signalKey(sig)) != nil {
				continue // as Redis: data that was to be saved and is not is no reason to end
			}
		case <-srv.StopRequested():
			logger.Info("stopping", "signal", "SHUTDOWN")
		case err := <-served:
			shipping.end()
			return errors.Join(err, eng.Close(true))
		}
		return stop(srv, eng, shipping, cfg, logger, signals)
	}
}

func signalKey(sig os.Signal) string {
	if sig == syscall.SIGINT {
		return "shutdown-on-sigint"
	}
	return "shutdown-on-sigterm"
}

// spareProcessors lets two more goroutines run than there are event loops, or as many as there are CPUs if that is
// more: a snapshot being written and a reader of the feed then share the CPUs with the loops by the grace of
// the operating system, which is finer than that of the Go scheduler. GOMAXPROCS in the environment has the last word.
func spareProcessors(loops int) {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < loops+2 {
		runtime.GOMAXPROCS(loops + 2)
	}
}

// heapGrowth is GOGC here. What grows with the data lies outside of the Go heap: that is small, and
// would be collected for every few megabytes of garbage, such as scripts and reads of the feed make.
const heapGrowth = 300

// spareCollections lets the Go heap grow further between collections. GOGC in the environment has the last word.
func spareCollections() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}

// sealAfter is log-seal-after for the log, whose zero is another one.
func sealAfter(cfg *config.Config) time.Duration {
	if cfg.LogSealAfter == 0 {
		return -time.Millisecond
	}
	return cfg.LogSealAfter
}

func engineOptions(cfg *config.Config, logger *slog.Logger) engine.Options {
	policy, err := log.ParsePolicy(cfg.AppendFsync)
	if err != nil {
		policy = log.Always // not reached: the table has the same words
	}
	limits := server.Limits(cfg)
	snapshots := server.SnapshotPolicy(cfg)
	holdFor := ""
	if cfg.ArchiveURL != "" {
		holdFor = archive.Floor
	}
	return engine.Options{
		Logger: logger, HoldFor: holdFor,
		Limits: &limits, Snapshots: &snapshots, Collect: debug.FreeOSMemory,
		Log: log.Options{
			FS: vfs.OS(), Dir: filepath.ToSlash(cfg.Dir), Shards: cfg.ShardCount(),
			SegmentBytes: cfg.LogSegmentSize, Window: cfg.FeedBufferSize, SealAfter: sealAfter(cfg),
			ServeAll: cfg.FeedRetention == "log", Policy: policy, Follower: follows(cfg),
		},
	}
}

// follows reports whether the server is to follow another one.
func follows(cfg *config.Config) bool {
	of, _ := cfg.Get("replicaof")
	return of != ""
}

// logReady writes the line that says who runs where, and what recovery did.
func logReady(logger *slog.Logger, cfg *config.Config, r *engine.Report) {
	var generations []string
	for _, sh := range r.Log.Shards {
		generations = append(generations, sh.Tail.String())
	}
	recovery := "unclean stop: a new generation begins"
	switch {
	case r.Log.Created:
		recovery = "new data directory"
	case r.Log.Clean:
		recovery = "clean stop: the cursors go on"
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		dir = cfg.Dir
	}
	logger.Info("kevy is ready",
		"version", version, "pid", os.Getpid(), "address", addresses(cfg), "dir", dir,
		"shards", len(r.Log.Shards), "cursors", strings.Join(generations, " "), "recovery", recovery,
		"snapshot", r.Snapshot, "keys", r.Keys, "frames", r.Frames, "took", r.Took.Round(time.Millisecond).String(),
		"appendfsync", cfg.AppendFsync)
	if r.Log.Created {
		warnOfRedis(logger, dir)
	}
}

// warnOfRedis says that what Redis has left in a new data directory is not read.
func warnOfRedis(logger *slog.Logger, dir string) {
	for _, left := range []struct{ name, flag string }{{"dump.rdb", ""}, {"appendonlydir", "--aof "}, {"appendonly.aof", "--aof "}} {
		at := filepath.Join(dir, left.name)
		if _, err := os.Stat(at); err == nil {
			logger.Warn("this data directory is new and empty: what Redis has left there is not read",
				"file", at, "import", "kevy import "+left.flag+shellWord(at)+" --to NEWDIR")
		}
	}
}

func addresses(cfg *config.Config) string {
	var out []string
	for _, at := range []struct {
		port int64
		kind string
	}{{cfg.Port, ""}, {cfg.TLSPort, "tls://"}} {
		for _, host := range cfg.Bind {
			if at.port != 0 {
				out = append(out, at.kind+net.JoinHostPort(strings.TrimPrefix(host, "-"), fmt.Sprint(at.port)))
			}
		}
	}
	if cfg.UnixSocket != "" {
		out = append(out, cfg.UnixSocket)
	}
	return strings.Join(out, " ")
}

// stop ends the server: no new connections, running commands finish, the log is synced and marked
// clean. An interrupt meanwhile ends the process at once, as in Redis: that is somebody at a terminal who won't wait. Supervisors send
// SIGTERM more than once.
func stop(srv *server.Server, eng *engine.Engine, shipping *archiving, cfg *config.Config, logger *slog.Logger, signals <-chan os.Signal) error {
	go func() {
		for sig := range signals {
			if sig == syscall.SIGINT {
				logger.Warn("interrupted while stopping: ending at once; the next start recovers")
				os.Exit(exitFailed)
			}
			logger.Info("already stopping; an interrupt (SIGINT) ends it at once", "signal", sig.String())
		}
	}()
	limit := srv.ShutdownTimeout()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	defer shipping.end()
	if err := srv.Shutdown(ctx); err != nil {
		return fmt.Errorf("commands still ran after shutdown-timeout (%s): the log is whole, but not "+
			"marked clean, so the next start begins a new generation: %w", limit, err)
	}
	shipping.finish(ctx, logger)
	if err := eng.Close(true); err != nil {
		return fmt.Errorf("closing the log: %w (what was acknowledged is safe as far as appendfsync %s promises)",
			err, cfg.AppendFsync)
	}
	logger.Info("stopped cleanly")
	return nil
}

// explain adds to an error of opening the data directory what to do about it.
func explain(cfg *config.Config, err error) error {
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("data directory %s is in use by another kevy: stop that one, or choose another "+
			"directory with --dir: %w", cfg.Dir, err)
	case errors.Is(err, log.ErrVersion) || errors.Is(err, snapshot.ErrVersion):
		return fmt.Errorf("data directory %s was written by another version of kevy: start that version: %w",
			cfg.Dir, err)
	case errors.Is(err, log.ErrCorrupt) || errors.Is(err, snapshot.ErrCorrupt):
		return fmt.Errorf("data directory %s is damaged; nothing was changed: %w", cfg.Dir, err)
	case errors.Is(err, log.ErrNoManifest):
		return fmt.Errorf("data directory %s; nothing was changed: %w", cfg.Dir, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("data directory %s: not permitted for this user: %w", cfg.Dir, err)
	}
	return fmt.Errorf("data directory %s: %w", cfg.Dir, err)
}
