package kevy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/internal/script"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// ErrClosed is returned by every operation after Close.
var ErrClosed = errors.New("kevy: the store is closed")

// Store is an open store. All methods are safe for concurrent use.
type Store struct {
	Commands // reads and writes, each on its own

	cfg     Config
	e       *engine.Engine
	feed    *feed.Feed
	scripts *script.Runtime
	replica *replica.Follower // nil: the store follows nobody
	calls   sync.Pool         // *call

	mu     sync.RWMutex // held for reading by every operation, for writing by Close
	closed bool
}

// Open opens the store of cfg, creating its directory if there is none, and recovers it. It fails
// if another process has the directory open, or if what lies there cannot be read: data that cannot be
// read is never taken for empty.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.likeSource(); err != nil {
		return nil, err
	}
	e, _, err := engine.Open(cfg.options())
	if err != nil {
		return nil, fmt.Errorf("kevy: opening %s: %w", cfg.Dir, err)
	}
	s := &Store{cfg: cfg, e: e, scripts: script.New(e)}
	s.feed = feed.New(e.DirAfter, cfg.Feed, func(shard int) { _ = e.Flush(shard) })
	s.calls.New = func() any { return &call{ctx: e.NewCtx()} }
	s.Commands = Commands{run: s.run}
	if cfg.ReplicaOf == "" {
		return s, nil
	}
	if s.replica, err = follow(&cfg, e); err != nil {
		return nil, errors.Join(fmt.Errorf("kevy: %w", err), e.Close(true))
	}
	return s, nil
}

// likeSource sets the number of shards of a new replica.
func (c *Config) likeSource() (err error) {
	if c.ReplicaOf == "" || c.Shards != 0 || c.Dir != "" && engine.CheckEmpty(c.options().Log.FS, filepath.ToSlash(c.Dir)) != nil {
		return nil // what is wrong with the directory, opening it tells
	}
	if c.Shards, err = c.sourceShards(); err != nil {
		return fmt.Errorf("kevy: asking %s how many shards it has (Config.Shards says it without that): %w", c.ReplicaOf, err)
	}
	return nil
}

// Close makes everything durable, marks the directory clean, so that cursors stay valid over the
// next Open, and closes it. Operations still running end first. After a failed write or fsync of the log it returns
// why: the directory is not marked clean, and what the policy has not made durable may be lost.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.replica != nil {
		s.replica.Stop()
	}
	return s.e.Close(true)
}

// Snapshot writes a snapshot of the store into its directory and drops the log that it makes
// unneeded. It returns when the snapshot is durable; writers go on meanwhile.
func (s *Store) Snapshot() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	return wireError(s.e.Save())
}

// enter keeps the store open until s.mu.RUnlock.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return ErrClosed
	}
	return nil
}

// call is the reusable state of one operation.
type call struct {
	ctx    *command.Ctx
	w      resp.Writer
	ticket engine.Ticket
}

// run executes one command and hands its reply, valid until read returns.
func (s *Store) run(args [][]byte, read func(reply []byte) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	c := s.calls.Get().(*call)
	defer s.calls.Put(c)
	c.w.Buf = c.w.Buf[:0]
	c.ticket.Reset()
	cmd, err := s.lookup(args)
	if err != nil {
		return err
	}
	c.ctx.Cmd, c.ctx.Args, c.ctx.W = cmd, args, &c.w
	switch {
	case cmd.Plan != nil:
		s.e.Run(c.ctx, &c.ticket)
	case cmd.Group == "scripting" && cmd.Scope == command.ScopeAll:
		if err := s.e.Script(c.ctx, &c.ticket, func() error { return s.local(c.ctx) }); err != nil {
			return err
		}
	default:
		if err := s.local(c.ctx); err != nil {
			return err
		}
		return read(c.w.Buf)
	}
	if err := s.safe(&c.ticket); err != nil {
		return err
	}
	return read(c.w.Buf)
}

// safe waits until everything of t is as safe as the policy promises.
func (s *Store) safe(t *engine.Ticket) error {
	if err := s.e.Await(t); err != nil {
		return Error(engine.Misconf(err))
	}
	return nil
}

// lookup finds the row of a request, and checks its arity and that a replica may run it.
func (s *Store) lookup(args [][]byte) (*command.Command, error) {
	cmd, err := rowOf(args)
	if err == nil && s.replica != nil && cmd.Flags&command.Write != 0 {
		return nil, ErrReadOnly
	}
	return cmd, err
}

func rowOf(args [][]byte) (*command.Command, error) {
	if len(args) == 0 {
		return nil, errors.New("kevy: empty command")
	}
	cmd := command.Lookup(args[0])
	if cmd == nil {
		return nil, Error(command.UnknownCommandError(args))
	}
	if len(cmd.Sub) > 0 && len(args) > 1 {
		if cmd = cmd.Subcommand(args[1]); cmd == nil {
			return nil, Error(command.UnknownSubcommandError(args))
		}
	}
	if !cmd.ArityOK(len(args)) {
		return nil, Error(command.ArityError(cmd))
	}
	return cmd, nil
}

// local runs the rows without a planner that make sense without a connection.
func (s *Store) local(c *command.Ctx) error {
	if c.Cmd.Group == "scripting" {
		return s.script(c)
	}
	switch c.Cmd.Name {
	case "ping":
		if len(c.Args) > 1 {
			c.W.Bulk(c.Args[1])
		} else {
			c.W.Simple("PONG")
		}
	case "echo":
		c.W.Bulk(c.Args[1])
	case "time":
		now := s.e.Now()
		c.W.Array(2)
		c.W.BulkString(fmt.Sprint(now / 1000))
		c.W.BulkString(fmt.Sprint(now % 1000 * 1000))
	case "feed.shards":
		s.feed.Shards(c.W)
	case "feed.tail":
		s.feed.Tail(c.Args, c.W, c.Pending)
	case "feed.read":
		s.feed.Read(context.Background(), c.Args, c.W, false)
	case "feed.scan":
		s.feed.Scan(c.Args, c.W, s.freezer(c))
	case "feed.info":
		s.feed.Info(c.Args, c.W)
	default:
		return fmt.Errorf("kevy: %q needs a connection: an embedded store has none", c.Cmd.Name)
	}
	return nil
}

// script runs a row of the group scripting.
func (s *Store) script(c *command.Ctx) error {
	switch c.Cmd.Name {
	case "script|load":
		s.scripts.Load(c.W, c.Args[2])
	case "script|exists":
		s.scripts.Exists(c.W, c.Args[2:])
	case "script|flush":
		s.scripts.Flush(c.W, c.Args[2:])
	case "script|kill":
		s.scripts.Kill(c.W, true)
	case "function|kill":
		s.scripts.Kill(c.W, false)
	case "function|stats":
		s.scripts.Stats(c.W)
	default:
		if c.Nested == nil || c.Cmd.Scope != command.ScopeAll {
			return fmt.Errorf("kevy: %q needs a connection: an embedded store has none", c.Cmd.Name)
		}
		return s.scripts.Run(c, &script.Host{Began: time.Now(), Local: s.local})
	}
	return nil
}

// Restore makes the new data directory to with the state that the store in from had at a cursor
// (the first change not to apply). from is only read, and may be open; to must not exist or be empty. The
// restored store begins a new generation.
func Restore(from, to string, at log.Cursor) error {
	_, err := history.Restore(history.RestoreOptions{
		From: history.Source{Dir: filepath.ToSlash(from)}, To: filepath.ToSlash(to), Point: history.At(at),
	})
	if err != nil {
		return fmt.Errorf("kevy: %w", err)
	}
	return nil
}
