package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/resp"
)

// Why a waiting command ends early; context.Cause of the context that parkWait hands out.
var (
	errGone           = errors.New("server: the client has gone")
	errStopping       = errors.New("server: shutting down")
	errUnblockTimeout = feed.ErrTimeUp
	errUnblockError   = errors.New("UNBLOCKED client unblocked via CLIENT UNBLOCK")
)

// Kinds of jobs.
const (
	jobRuns  = iota // works; its reply comes although the client stops sending
	jobWaits        // waits for something to happen; ends when the client goes
)

// job is a command that runs on a goroutine of its own while its connection is parked.
type job struct {
	w      resp.Writer
	ticket engine.Ticket
	ctx    context.Context // of jobWaits
	err    error           // a panic
}

// parkRun runs a command of the server that takes longer than a loop may be away: off the loop,
// with the connection parked, its reply delivered in order. Arguments that fn uses must be copied.
// Inside a transaction it runs in place.
func (s *session) parkRun(fn func(w *resp.Writer)) {
	if s.multi.running {
		fn(s.w)
		return
	}
	s.startJob(jobRuns, func(j *job) { fn(&j.w) })
}

// parkWait is parkRun for a command that waits for something to happen: ctx ends when the client
// goes, the server stops or CLIENT UNBLOCK says so.
func (s *session) parkWait(fn func(ctx context.Context, w *resp.Writer)) {
	if s.multi.running {
		fn(context.Background(), s.w)
		return
	}
	s.startJob(jobWaits, func(j *job) {
		fn(j.ctx, &j.w)
		if errors.Is(context.Cause(j.ctx), errUnblockError) {
			j.w.Buf = j.w.Buf[:0]
			j.w.Error(errUnblockError.Error())
		}
	})
}

// startJob parks the connection and runs fn on a goroutine.
func (s *session) startJob(kind int, fn func(*job)) {
	j := &job{w: resp.Writer{Proto: s.conn.W.Proto}, ticket: engine.Ticket{Client: s.id}}
	var cancel context.CancelCauseFunc
	if kind == jobWaits {
		j.ctx, cancel = context.WithCancelCause(s.srv.ctx)
		s.conn.Park()
	} else {
		s.conn.ParkRunning()
		s.jobRuns = true
	}
	s.work.begin(cancel)
	cmd, muted, began := s.cmd, s.muted(), time.Now()
	args := cloneArgs(s.args)
	s.args = nil
	if s.reply == replySkip {
		s.setReplyMode(replyOn)
	}
	s.srv.jobs.Go(func() {
		if kind == jobWaits {
			s.srv.blocked.Add(1)
			defer s.srv.blocked.Add(-1)
			defer cancel(nil)
		}
		j.run(s, fn)
		if cmd != nil {
			s.took(cmd, args, time.Since(began))
			if len(j.w.Buf) > 0 && j.w.Buf[0] == '-' {
				s.srv.stats.failed(cmd.ID, j.w.Buf)
			}
		}
		if s.work.end() {
			s.release()
			return
		}
		s.conn.Resume(func() { s.deliver(j, muted) })
	})
}

// run calls fn and keeps a panic from ending the process: the engine's locks are released by
// defer, and a planner that panics has changed nothing.
func (j *job) run(s *session, fn func(*job)) {
	defer func() {
		if p := recover(); p != nil {
			j.err = fmt.Errorf("%v", p)
			s.srv.log.Error("panic in a command: its connection is closed", "panic", p,
				"addr", s.conn.RemoteAddr(), "stack", string(debug.Stack()))
		}
	}()
	fn(j)
}

// deliver hands a job's reply to its connection. On the loop.
func (s *session) deliver(j *job, muted bool) {
	w := &s.conn.W
	s.w, s.offLoop, s.jobRuns = w, false, false
	defer s.drainInbox()
	s.commandOver(s.cmd)
	w.Proto = j.w.Proto
	if j.err != nil {
		w.Error("ERR internal error")
		s.conn.CloseAfterReply()
		return
	}
	start := len(w.Buf)
	if !muted {
		s.conn.Give(j.w.Buf)
	}
	if !j.ticket.Empty() {
		s.ticket().Merge(&j.ticket)
		if j.ticket.Writes() > 0 && !muted {
			s.spans = append(s.spans, span{start, len(w.Buf)})
		}
	}
	s.runAfter()
}
