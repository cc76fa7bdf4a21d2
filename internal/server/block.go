package server

import (
	"errors"
	"time"

	"github.com/kevydb/kevy/internal/acl"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// runBlocking runs a data command that may have to wait. Then the connection is parked, and no goroutine
// waits with it: the engine calls back. It reports whether the command waits.
func (s *session) runBlocking(c *command.Ctx, t *engine.Ticket) (waits bool) {
	muted := s.muted()
	cmd, began := s.cmd, time.Now()
	w := s.srv.eng.RunBlocking(c, t, func() *engine.Waiter {
		args, refused := cloneArgs(c.Args), &refusal{}
		s.srv.blocked.Add(1)
		return &engine.Waiter{
			W:      resp.Writer{Proto: s.conn.W.Proto},
			Ticket: engine.Ticket{Client: s.id},
			Claim:  s.claim, Unclaim: s.unclaim,
			Permit: func(cmd *command.Command, args [][]byte) string {
				return refused.decide(s.account.Load().User(), cmd, args)
			},
			Done: func(w *engine.Waiter) {
				s.conn.Resume(func() {
					if refused.why != acl.Granted {
						s.refusedLate(cmd, refused)
					} else {
						s.took(cmd, args, time.Since(began))
					}
					s.unblocked(w, muted, refused.why != acl.Granted)
				})
			},
		}
	})
	if w == nil {
		s.took(cmd, c.Args, time.Since(began))
		return false
	}
	c.Hits, c.Misses = 0, 0
	// Done may have been called by now, but what it asks for comes after this command.
	s.conn.Park()
	s.work.setWait(w)
	if s.reply == replySkip {
		s.setReplyMode(replyOn)
	}
	return true
}

// refusal is why a command that has waited must not run any more.
type refusal struct {
	why          acl.Reason
	user, object string
}

// decide checks a request as permitted does, but leaves it to the session's loop to count and log a denial.
func (r *refusal) decide(u *acl.User, cmd *command.Command, args [][]byte) string {
	why, at := u.Check(cmd, args)
	if why == acl.Granted {
		return ""
	}
	*r = refusal{why: why, user: u.Name, object: cmd.Name}
	if why != acl.DeniedCommand {
		r.object = string(args[at])
	}
	return "NOPERM " + u.Explain(why, cmd, args, at, false)
}

// refusedLate counts a command that began to wait as one that was refused. On the loop.
func (s *session) refusedLate(cmd *command.Command, r *refusal) {
	s.srv.stats.uncount(cmd.ID)
	s.srv.stats.rejected(cmd.ID)
	s.noteDenied(r.why, s.context(), r.user, r.object)
}

// unblocked hands the reply of a command that has waited to its connection. On the loop.
func (s *session) unblocked(w *engine.Waiter, muted, refused bool) {
	s.endWait()
	s.commandOver(s.cmd)
	s.claimed.Store(false)
	defer s.drainInbox()
	switch {
	case len(w.W.Buf) == 0 || w.W.Buf[0] != '-':
	case refused:
		s.srv.stats.errorReply(string(w.W.Buf[1:]))
	default:
		s.srv.stats.failed(s.cmd.ID, w.W.Buf)
	}
	out := &s.conn.W
	start := len(out.Buf)
	if !muted {
		out.Raw(w.W.Buf)
	}
	if w.Ticket.Empty() {
		return
	}
	s.ticket().Merge(&w.Ticket)
	if w.Ticket.Writes() > 0 && !muted {
		s.spans = append(s.spans, span{start, len(out.Buf)})
	}
}

// claim and unclaim stand between the engine that serves a waiting client and its connection.
func (s *session) claim() bool {
	if !s.conn.Claim() {
		return false
	}
	s.claimed.Store(true)
	return true
}

func (s *session) unclaim() {
	s.conn.Unclaim()
	s.claimed.Store(false)
	s.conn.Post(s.inbox.drain)
}

// endWait notes the end of a wait, by its reply or the connection's end. On the loop.
func (s *session) endWait() {
	if s.work.setWait(nil) != nil {
		s.srv.blocked.Add(-1)
	}
}

// setWait sets what the session waits for in the engine and returns what it waited for before.
func (k *work) setWait(w *engine.Waiter) (old *engine.Waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, k.wait = k.wait, w
	return old
}

// stopWaiting ends a wait of the session in the engine without a reply: the client is about to go. Any goroutine.
func (k *work) stopWaiting() {
	if w := k.waiting(); w != nil {
		w.Cancel()
	}
}

func (k *work) waiting() *engine.Waiter {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wait
}

// unblock ends the command the session waits in, as CLIENT UNBLOCK asks; it reports whether there was one.
func (k *work) unblock(cause error) bool {
	w := k.waiting()
	switch {
	case w == nil:
		return k.interrupt(cause)
	case errors.Is(cause, errUnblockError):
		return w.Fail(cause.Error())
	}
	return w.Timeout()
}
