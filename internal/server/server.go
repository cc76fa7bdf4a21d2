package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/internal/pubsub"
	"github.com/kevydb/kevy/resp"
)

// cronPeriod is how often the server looks at its counters and at maxmemory.
const cronPeriod = 100 * time.Millisecond

// Options configure a Server.
type Options struct {
	Config *config.Config
	Engine *engine.Engine
	Logger *slog.Logger // nil discards
	// LogLevel, if set, follows the loglevel key.
	LogLevel *slog.LevelVar
	// Version and Commit are kevy's own.
	Version, Commit string
	// Archive, if there is one, tells INFO how far the archive is.
	Archive func() archive.Status
	// Portable serves connections as on systems without epoll.
	Portable bool
}

// Server serves an engine to RESP clients. All methods are safe for concurrent use.
type Server struct {
	opt  Options
	eng  *engine.Engine
	feed *feed.Feed
	log  *slog.Logger
	rs   *resp.Server

	cfg      atomic.Pointer[config.Config]
	cfgMu    sync.Mutex // one CONFIG SET or REWRITE, or Listen, at a time
	gate     atomic.Uint32
	lfu      atomic.Bool                // maxmemory-policy is an LFU one
	handlers []func(*session, [][]byte) // by command id

	hub      *pubsub.Hub
	events   atomic.Uint32 // notify-keyspace-events, as command.EventClass
	wantedMu sync.Mutex
	tracking tracking
	monitors monitors
	slow     slowlog
	latency  latencyMonitor
	clients  clients
	pause    pauser
	scripts  scripts
	stats    *stats
	netBase  atomic.Pointer[resp.Stats] // counters at the last CONFIG RESETSTAT
	memory   memory
	bounds   outputBounds
	secure   atomic.Pointer[tls.Config] // what the TLS port speaks
	ports    ports
	evictor  evictor
	metrics  exporter
	access   access
	repl     replication
	ids      identity

	ctx     context.Context // ends when the server stops
	cancel  context.CancelCauseFunc
	jobs    sync.WaitGroup
	blocked atomic.Int64
	ctxs    sync.Pool

	stop     chan StopRequest
	stopping atomic.Bool
}

// StopRequest is a client's SHUTDOWN.
type StopRequest struct {
	// Save says that the client asked for a snapshot, which was taken.
	Save bool
}

// New returns a server that does not listen yet.
func New(o Options) (*Server, error) {
	srv := &Server{opt: o, eng: o.Engine, log: o.Logger, stats: newStats(), stop: make(chan StopRequest, 1)}
	if srv.log == nil {
		srv.log = slog.New(slog.DiscardHandler)
	}
	srv.cfg.Store(o.Config.Clone())
	srv.hub = pubsub.New(command.Match)
	srv.tracking.init(srv)
	srv.eng.Listen(notifier{srv})
	srv.clients.byID = make(map[uint64]*session)
	srv.pause.srv = srv
	srv.scripts.init(srv)
	srv.netBase.Store(&resp.Stats{})
	srv.ids.init()
	srv.initReplication()
	srv.handlers = handlers()
	srv.access.init(srv)
	srv.ports.init(srv)
	if err := srv.metrics.init(srv); err != nil {
		return nil, err
	}
	srv.ctx, srv.cancel = context.WithCancelCause(context.Background())
	cfg := o.Config
	rs, err := resp.NewServer(handler{srv}, resp.Config{
		Loops:       cfg.LoopCount(),
		MaxClients:  int(cfg.MaxClients),
		MaxBulk:     cfg.ProtoMaxBulkLen,
		QueryBuffer: cfg.QueryBufLimit,
		Output:      &srv.bounds.normal,
		IdleTimeout: time.Duration(cfg.Timeout) * time.Second,
		KeepAlive:   keepAlive(cfg),
		Backlog:     int(cfg.TCPBacklog),
		Portable:    o.Portable,
		Logger:      srv.log,
	})
	if err != nil {
		return nil, err
	}
	srv.rs = rs
	srv.feed = srv.newFeed(cfg.FeedEnabled)
	srv.memory.init(srv)
	if cfg.TLSPort != 0 {
		if _, err := tlsConfig(cfg); err != nil { // apply does not say what is wrong
			return nil, err
		}
	}
	if err := srv.apply(cfg, config.Keys()); err != nil {
		return nil, err
	}
	srv.applyToShards(cfg, config.Keys())
	if err := srv.access.load(); err != nil {
		return nil, err
	}
	return srv, nil
}

// keepAlive is tcp-keepalive as package resp has it.
func keepAlive(cfg *config.Config) time.Duration {
	if cfg.TCPKeepalive == 0 {
		return -1
	}
	return time.Duration(cfg.TCPKeepalive) * time.Second
}

// Serve runs the server until Shutdown.
func (srv *Server) Serve() error {
	srv.startReplication()
	srv.jobs.Go(srv.cron)
	srv.jobs.Go(srv.memory.background)
	err := srv.rs.Serve()
	if errors.Is(err, resp.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops accepting, lets running commands finish and sends their replies. When ctx ends
// first the rest is closed. The engine stays open; nothing uses it afterwards. Where stock replicas are is kept for the next start.
func (srv *Server) Shutdown(ctx context.Context) error {
	srv.stopping.Store(true)
	srv.pause.end()
	srv.pause.hold(false)
	srv.stopReplication()
	srv.scripts.rt.Stop()
	srv.cancel(errStopping)
	err := errors.Join(srv.rs.Shutdown(ctx), srv.metrics.http.Shutdown(ctx))
	done := make(chan struct{})
	go func() { srv.jobs.Wait(); close(done) }()
	select {
	case <-done:
		srv.rememberStreams()
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return err
}

// ShutdownTimeout is how long Shutdown may take, as the configuration in force has it.
func (srv *Server) ShutdownTimeout() time.Duration {
	return time.Duration(srv.config().ShutdownTimeout) * time.Second
}

// StopRequested delivers a client's SHUTDOWN.
func (srv *Server) StopRequested() <-chan StopRequest { return srv.stop }

// config returns the configuration in force. Read-only.
func (srv *Server) config() *config.Config { return srv.cfg.Load() }

func (srv *Server) setGate(bits uint32, on bool) {
	for {
		old := srv.gate.Load()
		next := old &^ bits
		if on {
			next = old | bits
		}
		if srv.gate.CompareAndSwap(old, next) {
			return
		}
	}
}

// cron looks after what no client asks for.
func (srv *Server) cron() {
	t := time.NewTicker(cronPeriod)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			srv.sampleRates(now)
			srv.memory.check()
			srv.checkSnapshots()
			srv.cutSilent()
			srv.forgetStreams()
			srv.checkReplicas()
		case <-srv.ctx.Done():
			return
		}
	}
}

func (srv *Server) newCtx() *command.Ctx { return srv.eng.NewCtx() }

// takeCtx lends a context to a goroutine.
func (srv *Server) takeCtx() *command.Ctx {
	if c, ok := srv.ctxs.Get().(*command.Ctx); ok {
		return c
	}
	return srv.newCtx()
}

func (srv *Server) giveCtx(c *command.Ctx) {
	c.Reset()
	c.W, c.Args, c.Cmd, c.Turn = nil, nil, nil, 0
	srv.ctxs.Put(c)
}

func (srv *Server) random() uint64 { return rand.Uint64() } //nolint:gosec // RANDOMKEY
