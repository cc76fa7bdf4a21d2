package gate

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
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
	return &Store{T: t, E: e, FS: fs, Clock: clock, ctx: e.NewCtx()}
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

// Try runs one command given as words ("" is an empty word) and returns the raw reply once it is
// safe. MULTI...EXEC is written as one command: "MULTI ; SET a 1 ; INCR a".
func (s *Store) Try(line string) (string, error) {
	s.T.Helper()
	var t engine.Ticket
	s.w.Buf = s.w.Buf[:0]
	s.ctx.W = &s.w
	if rest, ok := strings.CutPrefix(line, "MULTI ; "); ok {
		var queue []engine.Queued
		for _, l := range strings.Split(rest, " ; ") {
			args, cmd := s.parse(l)
			queue = append(queue, engine.Queued{Cmd: cmd, Args: args})
		}
		s.E.Exec(s.ctx, queue, nil, &t, func(*command.Ctx) {})
	} else {
		s.ctx.Args, s.ctx.Cmd = s.parse(line)
		s.E.Run(s.ctx, &t)
	}
	done, err := s.E.Settle(&t)
	if err == nil && !done {
		end := make(chan error, 1)
		s.E.OnSafe(&t, func(err error) { end <- err })
		err = <-end
	}
	return string(s.w.Buf), err
}

func (s *Store) parse(line string) ([][]byte, *command.Command) {
	s.T.Helper()
	var args [][]byte
	for _, w := range strings.Fields(line) {
		if w == `""` {
			w = ""
		}
		if n, ok := strings.CutPrefix(w, "now+"); ok {
			var d int64
			fmt.Sscan(n, &d)
			w = fmt.Sprint(s.Clock.MS + d)
		}
		args = append(args, []byte(w))
	}
	cmd, _ := command.Resolve(args)
	if cmd == nil || cmd.Plan == nil {
		s.T.Fatalf("%s: no such data command", line)
	}
	return args, cmd
}

// Digest returns the digest of everything.
func (s *Store) Digest() string {
	s.T.Helper()
	return s.Do(`PREFIX.DIGEST ""`)
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
