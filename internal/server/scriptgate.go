package server

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/command"
)

// A script holds the locks of all shards, for as long as it likes. Loops must not wait for them: they have SCRIPT
// KILL to serve. So before a script takes the locks it closes the gate (gateScript) and waits until no loop is in the middle of
// a command; from then on a loop runs only commands that take no shard lock, and postpones the others until
// the script has ended, or refuses them once it is busy (busy-reply-threshold).

// gateSpin is how long a loop waits for a script of another loop before it postpones a command.
const gateSpin = 50 * time.Microsecond

// loopGate says whether a loop is in the middle of a command that may take shard locks.
type loopGate struct{ inside atomic.Bool }

func (g *loopGate) enter() { g.inside.Store(true) }

func (g *loopGate) leave() { g.inside.Store(false) }

// await waits until the loop is not in the middle of a command.
func (g *loopGate) await() {
	for i := 0; g.inside.Load(); i++ {
		if i < 200 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// scriptGate postpones commands while a script runs.
type scriptGate struct {
	srv *Server

	mu      sync.Mutex
	holders int // scripts that run or are about to
	loops   []*loop
	waiting []postponed
	timer   *time.Timer // for the time when the script is busy
}

// opened counts a connection of a loop.
func (g *scriptGate) opened(l *loop) {
	l.conns++
	if l.conns == 1 {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.loops = append(slices.Clip(g.loops), l)
	}
}

// closed counts a connection of a loop off.
func (g *scriptGate) closed(l *loop) {
	l.conns--
	if l.conns == 0 {
		if l.routine != nil {
			l.routine.stop()
			l.routine = nil
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.loops = slices.DeleteFunc(slices.Clone(g.loops), func(o *loop) bool { return o == l })
	}
}

// begin closes the gate. When it returns no loop takes a shard lock until end. wait, if set, is called if another script has
// closed it: that one may hold the locks for as long as it likes.
func (g *scriptGate) begin(wait func()) {
	g.mu.Lock()
	g.holders++
	others := g.holders > 1
	if !others {
		g.srv.setGate(gateScript, true)
	}
	loops := g.loops
	g.mu.Unlock()
	if others && wait != nil {
		wait()
	}
	for _, l := range loops {
		l.gate.await()
	}
}

// end opens the gate if no other script runs.
func (g *scriptGate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holders--
	if g.holders == 0 {
		g.srv.setGate(gateScript, false)
		g.resume()
	}
}

// resume runs what was postponed. REQUIRES: g.mu held.
func (g *scriptGate) resume() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	for _, w := range g.waiting {
		g.srv.blocked.Add(-1)
		w.s.conn.Resume(func() { w.s.again(w.cmd, w.args) })
	}
	g.waiting = nil
}

// postpone parks the session's connection with a command for later. It reports false if no script runs any more. On the loop.
func (g *scriptGate) postpone(s *session, cmd *command.Command, args [][]byte, busyIn time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holders == 0 {
		return false
	}
	s.conn.Park()
	g.srv.blocked.Add(1)
	g.waiting = append(g.waiting, postponed{s, cmd, cloneArgs(args)})
	if g.timer == nil && busyIn > 0 {
		g.timer = time.AfterFunc(busyIn, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.timer = nil
			g.resume()
		})
	}
	return true
}

// forget drops the postponed command of a session that has closed.
func (g *scriptGate) forget(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(w postponed) bool {
		if w.s == s {
			g.srv.blocked.Add(-1)
			return true
		}
		return false
	})
}

// busyLimit is after what time a script is busy, 0 for never.
func (srv *Server) busyLimit() time.Duration {
	text, _ := srv.config().Get("busy-reply-threshold")
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(min(ms, 1<<40)) * time.Millisecond
}

// duringScript refuses or postpones a command that must not run while a script does. It reports false if the command may
// run now. On the loop.
func (s *session) duringScript(cmd *command.Command, args [][]byte) bool {
	g := &s.srv.scripts.gate
	locks := s.locksWatched(cmd)
	queued := s.multi.on && !s.multi.immediate(cmd)
	if cmd.Flags&command.AllowBusy != 0 && !locks {
		return false
	}
	limit := s.srv.busyLimit()
	if text := s.srv.scripts.rt.Busy(limit); text != "" && cmd.Flags&command.AllowBusy == 0 {
		s.refuse(cmd, text)
		return true
	}
	if queued {
		return false
	}
	for end := time.Now().Add(gateSpin); time.Now().Before(end); runtime.Gosched() {
		if s.srv.gate.Load()&gateScript == 0 {
			return false
		}
	}
	busyIn := limit
	if limit > 0 {
		busyIn = max(limit-s.srv.scripts.rt.Running(), 0) + time.Millisecond
	}
	if cmd.Flags&command.AllowBusy != 0 {
		busyIn = 0
	}
	return g.postpone(s, cmd, args, busyIn)
}

// locksWatched reports whether a command takes shard locks for the keys the session watches.
func (s *session) locksWatched(cmd *command.Command) bool {
	switch cmd.Name {
	case "watch":
		return true
	case "unwatch", "discard", "reset", "quit":
		return s.multi.watch != nil && !s.multi.watch.Empty()
	}
	return false
}
