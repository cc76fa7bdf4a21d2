package server

import (
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/command"
)

// pauser is CLIENT PAUSE, and what FAILOVER needs of it: commands that are held back wait parked, in the order of their arrival.
type pauser struct {
	srv *Server

	mu      sync.Mutex
	all     time.Time // no command until then
	writes  time.Time // no write until then
	held    bool      // no write, whatever clients say: a failover is under way
	timer   *time.Timer
	waiting []postponed
}

// postponed is a command that came during a pause.
type postponed struct {
	s    *session
	cmd  *command.Command
	args [][]byte
}

// begin pauses until the given time; a running pause is never shortened. Once all is paused, it
// stays so until the later end of both.
func (p *pauser) begin(until time.Time, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writes.Before(until) {
		p.writes = until
	}
	if all || time.Now().Before(p.all) {
		p.all = p.writes
	}
	p.schedule()
}

// schedule sets the gate and the timer for the end. REQUIRES: p.mu held.
func (p *pauser) schedule() {
	now := time.Now()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	over := !now.Before(p.writes)
	if over {
		p.all, p.writes = time.Time{}, time.Time{}
	} else {
		p.timer = time.AfterFunc(p.writes.Sub(now), p.expired)
	}
	p.srv.setGate(gatePauseWrite, p.held || !over)
	p.srv.setGate(gatePauseAll, now.Before(p.all))
	p.srv.eng.HoldExpiry(p.held || !over)
	if over {
		p.resume() // what is still held back waits again
	}
}

func (p *pauser) expired() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule()
}

// end ends the pause (CLIENT UNPAUSE).
func (p *pauser) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = time.Time{}
	p.schedule()
}

// hold pauses writes, or ends that, beside what clients ask for.
func (p *pauser) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
	p.schedule()
}

// postpone parks the session's connection with a command for later. It reports false if the pause
// is over.
func (p *pauser) postpone(s *session, cmd *command.Command, args [][]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held && !time.Now().Before(p.writes) {
		return false
	}
	s.conn.Park()
	s.srv.blocked.Add(1)
	p.waiting = append(p.waiting, postponed{s, cmd, cloneArgs(args)})
	return true
}

// resume lets the postponed commands run. REQUIRES: p.mu held.
func (p *pauser) resume() {
	for _, w := range p.waiting {
		p.srv.blocked.Add(-1)
		w.s.conn.Resume(func() { w.s.again(w.cmd, w.args) })
	}
	p.waiting = nil
}

// forget drops the postponed command of a session that has closed.
func (p *pauser) forget(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		if p.waiting[i].s == s {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.srv.blocked.Add(-1)
			return
		}
	}
}

// again runs a command that was postponed; it may be postponed again.
func (s *session) again(cmd *command.Command, args [][]byte) {
	s.loop.gate.enter()
	defer s.loop.gate.leave()
	s.slowPath(cmd, args, "")
}
