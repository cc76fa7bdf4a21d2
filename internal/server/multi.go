package server

import (
	"bytes"
	"runtime/debug"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
)

const msgExecAbort = "EXECABORT Transaction discarded because of previous errors."

// multi is a session's transaction and its watched keys.
type multi struct {
	on      bool // between MULTI and EXEC or DISCARD
	doomed  bool // a command was refused: EXEC will abort
	running bool // EXEC runs the queue
	queue   []engine.Queued
	bytes   int           // of the queued arguments
	flags   command.Flags // of all queued commands
	scripts bool          // there are scripts among them
	roles   bool          // and commands that change the server's role
	tracks  bool          // and CLIENT TRACKING
	locks   bool          // a command needs the lock of a shard
	watch   *engine.Watch // nil until the first WATCH

	stats *engine.Stats // taken before EXEC for commands that would need shard locks
}

// doom makes EXEC abort, if there is a transaction.
func (m *multi) doom() { m.doomed = m.doomed || m.on }

// immediate reports whether a command runs at once inside MULTI.
func (m *multi) immediate(cmd *command.Command) bool {
	switch cmd.Name {
	case "exec", "discard", "multi", "watch", "quit", "reset":
		return true
	}
	return false
}

// discard ends the transaction and forgets the watched keys.
func (s *session) discard() {
	m := &s.multi
	if m.watch != nil {
		m.watch.Clear()
	}
	*m = multi{watch: m.watch}
	s.gate &^= gateMulti
}

// enqueue queues a command. A doomed transaction needs no memory for what will not run.
func (s *session) enqueue(cmd *command.Command, args [][]byte) {
	m := &s.multi
	if !m.doomed && (m.watch == nil || !m.watch.Dirty()) {
		own := cloneArgs(args)
		for _, a := range own {
			m.bytes += len(a)
		}
		m.queue = append(m.queue, engine.Queued{Cmd: cmd, Args: own})
		m.flags |= s.flagsOf(cmd, args)
		m.scripts = m.scripts || cmd.Group == "scripting"
		m.tracks = m.tracks || cmd.Name == "client|tracking"
		m.roles = m.roles || cmd.Name == "replicaof" || cmd.Name == "slaveof"
		m.locks = m.locks || cmd.Scope != command.ScopeNone
	}
	s.w.Simple("QUEUED")
}

func multiCommand(s *session, _ [][]byte) {
	if s.multi.on {
		s.w.Error("ERR MULTI calls can not be nested")
		return
	}
	s.multi.on = true
	s.gate |= gateMulti
	s.w.OK()
}

func discardCommand(s *session, _ [][]byte) {
	if !s.multi.on {
		s.w.Error("ERR DISCARD without MULTI")
		return
	}
	s.discard()
	s.w.OK()
}

func watchCommand(s *session, args [][]byte) {
	m := &s.multi
	if m.on {
		s.w.Error("ERR WATCH inside MULTI is not allowed")
		return
	}
	if m.watch == nil {
		m.watch = s.srv.eng.NewWatch()
	}
	if !m.watch.Dirty() {
		for _, key := range args[1:] {
			m.watch.Add(key)
		}
	}
	s.w.OK()
}

func unwatchCommand(s *session, _ [][]byte) {
	// Inside a transaction the keys are let go when it is over.
	if !s.multi.running && s.multi.watch != nil {
		s.multi.watch.Clear()
	}
	s.w.OK()
}

// abortExec answers an EXEC that was refused, and ends the transaction.
func (s *session) abortExec(cause string) {
	s.discard()
	text := "EXECABORT Transaction discarded because of: " + cause
	s.srv.stats.errorReply(text)
	s.w.Error(text)
}

func execCommand(s *session, _ [][]byte) {
	m := &s.multi
	switch {
	case !m.on:
		s.w.Error("ERR EXEC without MULTI")
		return
	case m.doomed:
		s.discard()
		s.w.Error(msgExecAbort)
		return
	}
	if s.needsStats() {
		stats := s.srv.eng.Stats()
		m.stats = &stats
	}
	m.locks = m.locks || m.watch != nil
	if m.flags&command.Slow != 0 || m.roles && !m.locks {
		s.execOffLoop()
		return
	}
	c, t, w := s.loop.ctx, s.ticket(), s.w
	writes, start := t.Writes(), len(w.Buf)
	s.execQueue(c, t)
	if t.Writes() != writes {
		s.spans = append(s.spans, span{start, len(w.Buf)})
	}
	s.discard()
	s.runAfter()
}

// execOffLoop runs a transaction that may take long on a goroutine. The loop leaves the session alone meanwhile.
func (s *session) execOffLoop() {
	s.offLoop = true
	s.startJob(jobRuns, func(j *job) {
		s.w = &j.w
		if s.multi.scripts {
			s.srv.scripts.gate.begin(nil)
			defer s.srv.scripts.gate.end()
		}
		c := s.srv.takeCtx()
		defer s.srv.giveCtx(c)
		defer s.discard()
		s.execQueue(c, &j.ticket)
	})
}

// needsStats reports whether the queue shows what only the engine's locks give.
func (s *session) needsStats() bool {
	for i := range s.multi.queue {
		if s.multi.queue[i].Cmd.Name == "info" {
			return true
		}
	}
	return false
}

// execQueue runs the queue as one group and writes EXEC's reply to s.w.
func (s *session) execQueue(c *command.Ctx, t *engine.Ticket) {
	m := &s.multi
	start := len(s.w.Buf)
	c.W, c.NoTouch, c.Rand, c.LFU = s.w, s.noTouch, s.srv.random(), s.srv.lfu.Load()
	m.running = true
	c.Before = s.watcher()
	c.Took = func(cmd *command.Command, args [][]byte, ns int64) { s.took(cmd, args, time.Duration(ns)) }
	if s.srv.access.users.Restricted() {
		c.Permit = s.queuedPermitted
	}
	defer func() { c.Before, c.Permit, c.Took = nil, nil, nil }()
	ran := s.srv.eng.Exec(c, m.queue, m.watch, t, s.execLocal)
	m.running = false
	c.Hits, c.Misses = 0, 0 // reads and writes are mixed
	if ran {
		s.countExec(s.w.Buf[start:])
	}
}

// execLocal runs a command of the server itself inside a transaction. A panic must not reach the
// engine, which has a group half made.
func (s *session) execLocal(c *command.Ctx) {
	start := len(s.w.Buf)
	group, by, outer := s.inGroup, s.cmd, s.outer
	if outer == nil {
		s.outer = by
	}
	defer func() {
		s.pending, s.inGroup, s.cmd, s.outer = nil, group, by, outer
		if p := recover(); p != nil {
			s.srv.log.Error("panic in a command: its connection is closed", "panic", p, "command", c.Cmd.Name,
				"addr", s.conn.RemoteAddr(), "stack", string(debug.Stack()))
			s.w.Buf = s.w.Buf[:start]
			s.w.Error("ERR internal error")
			s.closeAfterReply()
		}
	}()
	s.cmd, s.pending, s.inGroup = c.Cmd, c.Pending, c
	s.handle(c.Cmd, c.Args)
}

// countExec counts the commands of a transaction that ran, and those that failed.
func (s *session) countExec(reply []byte) {
	st := s.srv.stats
	for i := range s.multi.queue {
		st.rows[s.multi.queue[i].Cmd.ID].calls.Add(1)
	}
	st.commands.Add(uint64(len(s.multi.queue)))
	if !bytes.Contains(reply, []byte("\n-")) {
		return
	}
	eachReply(reply, func(i int, one []byte) {
		q := s.multi.queue
		if i < len(q) && len(one) > 0 && one[0] == '-' && q[i].Cmd.Plan != nil {
			st.failed(q[i].Cmd.ID, one)
		}
	})
}
