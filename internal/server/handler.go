package server

import (
	"slices"
	"strings"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/resp"
)

// handler is the server as the event loops see it.
type handler struct{ srv *Server }

// Opened implements resp.Handler.
func (h handler) Opened(c *resp.Conn) {
	s := newSession(h.srv, c, h.srv.loopOf(c))
	c.Data = s
	h.srv.scripts.gate.opened(s.loop)
	h.srv.clients.add(s)
	if h.srv.denied(c) {
		c.Refuse(msgDenied)
	}
}

// Closed implements resp.Handler.
func (h handler) Closed(c *resp.Conn, _ error) {
	s, ok := c.Data.(*session)
	if !ok {
		return
	}
	h.srv.clients.remove(s)
	h.srv.pause.forget(s)
	h.srv.scripts.gate.forget(s)
	h.srv.scripts.gate.closed(s.loop)
	s.loop.gate.enter()
	defer s.loop.gate.leave()
	if h.srv.gate.Load()&gateScript != 0 {
		go s.ended() // what it gives up is behind locks that a script may hold for long
		return
	}
	s.ended()
}

// ended gives up what a session holds whose connection has closed.
func (s *session) ended() {
	s.work.stopWaiting()
	s.endWait()
	if !s.work.close() {
		s.release()
	}
}

// Command implements resp.Handler.
func (h handler) Command(c *resp.Conn, args [][]byte) {
	s := c.Data.(*session)
	if len(args) == 0 {
		return
	}
	s.loop.gate.enter()
	defer s.loop.gate.leave()
	cmd, bad := command.Resolve(args)
	if s.gate|h.srv.gate.Load() != 0 {
		if s.gate&gateHears != 0 {
			s.drainInbox() // what the command before has brought
		}
		s.slowPath(cmd, args, bad)
		return
	}
	if cmd == nil {
		s.rejectRequest(args, bad)
		return
	}
	s.execute(cmd, args)
}

// execute runs a command whose time has come: not queued, not paused, not refused.
func (s *session) execute(cmd *command.Command, args [][]byte) {
	s.cmd = cmd
	if s.srv.monitored(cmd) {
		if cmd.Name == "exec" { // comes behind its commands
			defer func(args [][]byte) { s.srv.monitors.show(cmd, args, s.monitorAddr()) }(cloneArgs(args))
		} else {
			s.srv.monitors.show(cmd, args, s.monitorAddr())
		}
	}
	if s.track.on {
		s.noteRead(cmd, args)
	}
	if cmd.Plan == nil {
		s.loop.count(cmd.ID)
		s.handle(cmd, args)
		return
	}
	if cmd.Flags&command.Slow != 0 {
		s.loop.count(cmd.ID)
		if s.srv.handlers[cmd.ID] != nil { // it knows what is for the planner
			s.handle(cmd, args)
			return
		}
		s.runSlow(cmd, args)
		return
	}
	s.runData(cmd, args)
}

// runData runs a data command on the loop.
func (s *session) runData(cmd *command.Command, args [][]byte) {
	l, w := s.loop, &s.conn.W
	l.count(cmd.ID)
	c, t := l.ctx, s.ticket()
	c.Cmd, c.Args, c.W, c.NoTouch = cmd, args, w, s.noTouch
	c.Rand, c.LFU = l.random(), s.srv.lfu.Load()
	l.readTurn()
	writes, start := t.Writes(), len(w.Buf)
	switch {
	case cmd.Flags&command.Blocking != 0:
		if s.runBlocking(c, t) {
			return
		}
	default:
		began := l.clock(s)
		s.srv.eng.Run(c, t)
		l.mark(s)
		s.took(cmd, args, l.marked-began)
	}
	if t.Writes() != writes {
		s.spans = append(s.spans, span{start, len(w.Buf)})
	}
	if cmd.Flags&command.ReadOnly != 0 {
		l.hits += c.Hits
		l.misses += c.Misses
	}
	c.Hits, c.Misses = 0, 0
	if start < len(w.Buf) && w.Buf[start] == '-' {
		s.srv.stats.failed(cmd.ID, w.Buf[start:])
	}
}

// runSlow runs a data command on a goroutine of its own while the connection is parked.
func (s *session) runSlow(cmd *command.Command, args [][]byte) {
	args = cloneArgs(args)
	s.args = args
	s.startJob(jobRuns, func(j *job) {
		c := s.srv.takeCtx()
		defer s.srv.giveCtx(c)
		c.Cmd, c.Args, c.W, c.NoTouch = cmd, args, &j.w, s.noTouch
		c.Rand, c.LFU = s.srv.random(), s.srv.lfu.Load()
		s.srv.eng.Run(c, &j.ticket)
	})
}

// handle runs a command of the server itself.
func (s *session) handle(cmd *command.Command, args [][]byte) {
	fn := s.srv.handlers[cmd.ID]
	if fn == nil { // a container's name without a subcommand
		s.srv.stats.rejected(cmd.ID)
		s.reject(command.ArityError(cmd))
		return
	}
	w, start, inExec := s.w, len(s.w.Buf), s.multi.running
	began := s.clock(inExec)
	s.began = s.srv.stats.start.Add(began)
	s.args = args
	fn(s, args)
	if !inExec && s.conn.Parked() {
		return // the session may be its job's now, and the job counts
	}
	s.args = nil
	s.took(cmd, args, s.mark(inExec)-began)
	if start < len(w.Buf) && w.Buf[start] == '-' {
		s.countFailure(cmd, w.Buf[start:])
	}
}

// rejectRequest answers a request that names no command or has a wrong number of arguments.
func (s *session) rejectRequest(args [][]byte, text string) {
	name := string(args[0])
	if strings.EqualFold(name, "host:") || strings.EqualFold(name, "post") {
		s.srv.log.Warn("possible SECURITY ATTACK detected: POST or Host: commands are sent to kevy, "+
			"likely by a web browser made to (cross protocol scripting); connection closed", "addr", s.conn.RemoteAddr())
		s.conn.Close()
		return
	}
	row := rowOf(args)
	if row == nil {
		s.reject(text)
		return
	}
	s.cmd = row
	s.refuse(row, text)
}

// rowOf finds the row a refused request was meant for, or nil.
func rowOf(args [][]byte) *command.Command {
	row := command.Lookup(args[0])
	if row != nil && len(row.Sub) > 0 && len(args) > 1 {
		return row.Subcommand(args[1])
	}
	return row
}

// reject answers a command that is not run with an error. Inside MULTI it dooms the transaction.
func (s *session) reject(text string) {
	s.multi.doom()
	s.srv.stats.errorReply(text)
	s.w.Error(text)
}

func cloneArgs(args [][]byte) [][]byte {
	var k keptArgs
	return k.keep(args)
}

// keptArgs is memory for copies of a request's arguments.
type keptArgs struct {
	args [][]byte
	buf  []byte
}

// keep returns copies of args, valid until the next call.
func (k *keptArgs) keep(args [][]byte) [][]byte {
	n := 0
	for _, a := range args {
		n += len(a)
	}
	if k.buf == nil || cap(k.buf) < n {
		k.buf = make([]byte, 0, n)
	}
	k.buf, k.args = k.buf[:0], slices.Grow(k.args[:0], len(args))
	for _, a := range args {
		start := len(k.buf)
		k.buf = append(k.buf, a...)
		k.args = append(k.args, k.buf[start:len(k.buf):len(k.buf)])
	}
	return k.args
}

// Preview implements resp.Previewer. It takes shard locks, so it keeps to the rules of commands that do.
func (h handler) Preview(c *resp.Conn, requests [][][]byte) {
	l := c.Data.(*session).loop
	l.gate.enter()
	defer l.gate.leave()
	if h.srv.gate.Load()&gateScript == 0 {
		l.prefetcher.Prefetch(h.srv.eng, requests)
	}
}
