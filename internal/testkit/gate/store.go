package gate

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/script"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// Clock is a clock that only moves when told to. The engine reads it from other goroutines: after
// it has been given away, MS is changed by Advance only.
type Clock struct{ MS int64 }

// Now returns unix ms.
func (c *Clock) Now() int64 { return atomic.LoadInt64(&c.MS) }

// Advance moves the clock on.
func (c *Clock) Advance(ms int64) { atomic.AddInt64(&c.MS, ms) }

// Store is an engine under test.
type Store struct {
	T     testing.TB
	E     *engine.Engine
	FS    vfs.FS
	Clock *Clock
	ctx   *command.Ctx
	w     resp.Writer
	rt    *script.Runtime
	host  script.Host
	dump  string // what $dump stands for
}

// Dir is the data directory of all stores.
const Dir = "data"

// Open opens a store over fs. Keys expire only when touched or by Tick.
func Open(t testing.TB, fs vfs.FS, shards int, clock *Clock) *Store {
	t.Helper()
	e, _, err := engine.Open(engine.Options{
		Now: clock.Now,
		Log: log.Options{FS: fs, Dir: Dir, Shards: shards, Policy: log.EverySec, SegmentBytes: 64 << 10},
	})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	e.SetActiveExpire(false)
	return Over(t, e, fs, clock)
}

// Over returns a store over an open engine.
func Over(t testing.TB, e *engine.Engine, fs vfs.FS, clock *Clock) *Store {
	s := &Store{T: t, E: e, FS: fs, Clock: clock, ctx: e.NewCtx(), rt: script.New(e)}
	s.host.Local = func(c *command.Ctx) error {
		c.W.Error("ERR no such data command")
		return nil
	}
	return s
}

// Session returns s for use by another goroutine.
func (s *Store) Session() *Store {
	own := *s
	own.ctx, own.w = s.E.NewCtx(), resp.Writer{}
	return &own
}

// Do is Try for commands that the log must take.
func (s *Store) Do(line string) string {
	s.T.Helper()
	reply, err := s.Try(line)
	if err != nil {
		s.T.Errorf("%s: %v", line, err)
	}
	return reply
}

// Try runs one command given as words and returns the raw reply once it is safe: '...' is a word with spaces
// in it, "" an empty one, now+N the clock plus N ms, $dump what Dump has returned. MULTI...EXEC is written as one
// command: "MULTI ; SET a 1 ; INCR a".
func (s *Store) Try(line string) (string, error) {
	s.T.Helper()
	return s.TryBefore(line, func() {})
}

// TryBefore is Try with something done between the command and the wait for it to be safe.
func (s *Store) TryBefore(line string, before func()) (string, error) {
	s.T.Helper()
	var t engine.Ticket
	s.w.Buf = s.w.Buf[:0]
	s.ctx.W = &s.w
	if rest, ok := strings.CutPrefix(line, "MULTI ; "); ok {
		var queue []engine.Queued
		for l := range strings.SplitSeq(rest, " ; ") {
			args, cmd := s.parse(l)
			queue = append(queue, engine.Queued{Cmd: cmd, Args: args})
		}
		s.E.Exec(s.ctx, queue, nil, &t, func(c *command.Ctx) {
			if err := s.rt.Run(c, &s.host); err != nil {
				c.W.Error(err.Error())
			}
		})
	} else {
		s.ctx.Args, s.ctx.Cmd = s.parse(line)
		s.one(&t)
	}
	before()
	err := s.E.Await(&t)
	return string(s.w.Buf), err
}

// Dump runs a command whose reply is a string, for use as $dump.
func (s *Store) Dump(line string) {
	s.T.Helper()
	_, s.dump, _ = strings.Cut(s.Do(line), "\r\n")
	s.dump = strings.TrimSuffix(s.dump, "\r\n")
}

// one runs a data command, or a row without a planner: a script.
func (s *Store) one(t *engine.Ticket) {
	s.T.Helper()
	if s.ctx.Cmd.Plan != nil {
		s.E.Run(s.ctx, t)
		return
	}
	if err := s.E.Script(s.ctx, t, func() error { return s.rt.Run(s.ctx, &s.host) }); err != nil {
		s.T.Fatal(err)
	}
}

func (s *Store) parse(line string) ([][]byte, *command.Command) {
	s.T.Helper()
	var args [][]byte
	for _, w := range words(line) {
		if n, ok := strings.CutPrefix(w, "now+"); ok {
			var d int64
			fmt.Sscan(n, &d)
			w = fmt.Sprint(s.Clock.Now() + d)
		}
		if w == "$dump" {
			w = s.dump
		}
		args = append(args, []byte(w))
	}
	cmd, _ := command.Resolve(args)
	if cmd == nil || cmd.Plan == nil && cmd.Group != "scripting" {
		s.T.Fatalf("%s: no such data command", line)
	}
	return args, cmd
}

// words splits a line at its blanks, but not those within '...'.
func words(line string) (ws []string) {
	for {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			return ws
		}
		quoted := line[0] == '\''
		var w string
		if quoted {
			w, line, _ = strings.Cut(line[1:], "'")
			w = strings.ReplaceAll(w, `\n`, "\n")
		} else {
			w, line, _ = strings.Cut(line, " ")
		}
		if w == `""` {
			w = ""
		}
		ws = append(ws, w)
	}
}

// Wide returns a command whose group lies on all shards of a store. On which one a key lies is random; so these are many.
func Wide(value string) string {
	var b strings.Builder
	b.WriteString("MSET")
	for i := range 64 {
		fmt.Fprintf(&b, " wide%d %s", i, value)
	}
	return b.String()
}

// Digest returns the digest of all keys.
func (s *Store) Digest() string {
	s.T.Helper()
	return s.Do(`PREFIX.DIGEST ""`)
}

// Libraries returns the code of all libraries of functions.
func (s *Store) Libraries() (code string) {
	s.T.Helper()
	var t engine.Ticket
	if err := s.E.Script(s.ctx, &t, func() error { code = librariesOf(s.E.Libraries()); return nil }); err != nil {
		s.T.Fatal(err)
	}
	return code
}

func librariesOf(l *state.Libraries) string {
	var b strings.Builder
	l.RebuildLibraries(func(e *effect.Effect) bool {
		b.Write(e.Args[len(e.Args)-1])
		return true
	})
	return b.String()
}

// Cursors returns every shard's tail.
func (s *Store) Cursors() (cs []log.Cursor) {
	for i := range s.E.Shards() {
		cs = append(cs, s.E.Dir().Log(i).Tail())
	}
	return cs
}

// Close closes the store cleanly.
func (s *Store) Close() {
	s.T.Helper()
	if err := s.E.Close(true); err != nil {
		s.T.Fatalf("close: %v", err)
	}
}
