package server

import (
	"strings"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
)

// Reasons of the whole server to send commands through the slow path.
const (
	gatePauseWrite = 1 << (iota + 8) // CLIENT PAUSE WRITE
	gatePauseAll                     // CLIENT PAUSE ALL
	gateMemory                       // maxmemory is set
	gateScript                       // a script runs, or is about to
	gateACL                          // somebody may not do everything
	gateSnapshot                     // snapshots fail and stop-writes-on-bgsave-error says that writes are refused
	gateClients                      // maxmemory-clients is set
	gateReplicas                     // min-replicas-to-write asks for more replicas than there are
	gateFollower                     // the server follows another one
	gateStale                        // and has no link to it, and replica-serve-stale-data says that nothing is served then
)

const (
	msgNoAuth  = "NOAUTH Authentication required."
	msgOOM     = "OOM command not allowed when used memory > 'maxmemory'."
	msgNoMulti = "ERR Command not allowed inside a transaction"
)

// slowPath runs one request with all the checks. bad is the error if cmd is nil.
func (s *session) slowPath(cmd *command.Command, args [][]byte, bad string) {
	if s.gate&gateReply == 0 {
		s.checked(cmd, args, bad)
		return
	}
	if s.reply == replySkipNext {
		s.reply = replySkip
	}
	start := len(s.conn.W.Buf)
	s.checked(cmd, args, bad)
	if s.conn.Parked() {
		return // postponed, or the session may be its job's now
	}
	if s.muted() && !repliesByPush(cmd) {
		s.conn.W.Buf = s.conn.W.Buf[:start]
		s.dropSpans(start)
	}
	if s.reply == replySkip {
		s.setReplyMode(replyOn)
	}
}

func (s *session) muted() bool { return s.reply == replyOff || s.reply == replySkip }

func (s *session) setReplyMode(mode uint8) {
	s.reply = mode
	if mode == replyOn {
		s.gate &^= gateReply
	} else {
		s.gate |= gateReply
	}
}

// dropSpans forgets the spans from start on: their replies do not exist.
func (s *session) dropSpans(start int) {
	for n := len(s.spans); n > 0 && s.spans[n-1].start >= start; n-- {
		s.spans = s.spans[:n-1]
	}
}

// checked runs, queues, postpones or refuses one request, in the order in which Redis checks.
func (s *session) checked(cmd *command.Command, args [][]byte, bad string) {
	if s.track.caching {
		defer func() {
			if !s.conn.Parked() { // or it is over later
				s.commandOver(rowOf(args))
			}
		}()
	}
	if cmd == nil {
		s.rejectRequest(args, bad)
		return
	}
	s.cmd = cmd
	gate := s.srv.gate.Load()
	switch {
	case gate&gateClients != 0 && s.evictedBy(args):
	case s.gate&gateAuth != 0 && cmd.Flags&command.NoAuth == 0 && s.mustLogin():
		s.refuse(cmd, msgNoAuth)
	case s.multi.on && cmd.Flags&command.NoMulti != 0:
		s.refuse(cmd, msgNoMulti)
	case gate&gateACL != 0 && !s.permitted(cmd, args):
	case gate&gateScript != 0 && s.duringScript(cmd, args):
	case gate&gateMemory != 0 && gate&gateScript == 0 && !s.makeRoom() && s.needsMemory(cmd, args):
		s.refuse(cmd, msgOOM)
	case gate&gateNoWrites != 0 && s.writeRefused(cmd, args, gate):
	case gate&gateStale != 0 && cmd.Flags&command.Stale == 0:
		s.refuse(cmd, msgStale)
	case s.gate&gateSubscriber != 0 && !s.w.RESP3() && !subscriberMay(cmd):
		s.refuse(cmd, msgSubscriber(cmd))
	case gate&(gatePauseAll|gatePauseWrite) != 0 && s.paused(cmd, args, gate) && s.srv.pause.postpone(s, cmd, args):
	case s.multi.on && !s.multi.immediate(cmd):
		s.enqueue(cmd, args)
	default:
		s.execute(cmd, args)
	}
}

// refuse rejects a command that exists. A refused EXEC ends the transaction.
func (s *session) refuse(cmd *command.Command, text string) {
	s.srv.stats.rejected(cmd.ID)
	if cmd.Name == "exec" {
		s.abortExec(strings.TrimPrefix(text, "ERR "))
		return
	}
	s.reject(text)
}

// makeRoom evicts what is above maxmemory and reports whether there is room. The client is told of its keys that went
// before it gets the command's reply: what that shows is the state without them.
func (s *session) makeRoom() bool {
	before := s.srv.eng.Evicted()
	room := s.srv.memory.room(s.ticket())
	if s.srv.eng.Evicted() != before {
		s.drainInbox()
	}
	return room
}

// needsMemory reports whether the command must not run above maxmemory: one that may take memory,
// an EXEC of such, or anything that a transaction would queue.
func (s *session) needsMemory(cmd *command.Command, args [][]byte) bool {
	if cmd.Name == "exec" {
		return s.multi.flags&command.DenyOOM != 0
	}
	return s.flagsOf(cmd, args)&command.DenyOOM != 0 || (s.multi.on && !leavesMulti(cmd))
}

// writes reports whether the command is a write, or an EXEC of one.
func (s *session) writes(cmd *command.Command, args [][]byte) bool {
	if cmd.Name == "exec" {
		return s.multi.flags&command.Write != 0
	}
	return s.flagsOf(cmd, args)&command.Write != 0
}

// gateNoWrites are the reasons to refuse writes.
const gateNoWrites = gateSnapshot | gateReplicas | gateFollower

const (
	// msgSnapshots refuses writes while snapshots fail (stop-writes-on-bgsave-error).
	msgSnapshots = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors " +
		"during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for " +
		"details about the RDB error."
	msgNoReplicas = "NOREPLICAS Not enough good replicas to write."
	msgStale      = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
)

// noWrites is the error with which writes are refused, empty if they are not.
func noWrites(gate uint32) string {
	switch {
	case gate&gateFollower != 0:
		return engine.ReadOnly
	case gate&gateSnapshot != 0:
		return msgSnapshots
	case gate&gateReplicas != 0:
		return msgNoReplicas
	}
	return ""
}

// writeRefused refuses a write; PING too, as Redis does, while nothing can be stored.
func (s *session) writeRefused(cmd *command.Command, args [][]byte, gate uint32) bool {
	if !s.writes(cmd, args) && (gate&gateSnapshot == 0 || cmd.Name != "ping") {
		return false
	}
	s.refuse(cmd, noWrites(gate))
	return true
}

func leavesMulti(cmd *command.Command) bool {
	switch cmd.Name {
	case "discard", "quit", "reset":
		return true
	}
	return false
}

// paused reports whether a pause holds the command back.
func (s *session) paused(cmd *command.Command, args [][]byte, gate uint32) bool {
	if s.replica {
		return false
	}
	if gate&gatePauseAll != 0 {
		return true
	}
	flags := s.flagsOf(cmd, args)
	if cmd.Name == "exec" {
		flags |= s.multi.flags
	}
	return flags&(command.Write|command.MayReplicate) != 0
}

// flagsOf returns a request's flags: those of its row, or what the script it runs has declared.
func (s *session) flagsOf(cmd *command.Command, args [][]byte) command.Flags {
	if cmd.Group == "scripting" {
		return s.srv.scripts.rt.Flags(cmd, args)
	}
	return cmd.Flags
}

// isName compares a word of a request with a lower-case name, whatever its case.
func isName(arg []byte, name string) bool {
	if len(arg) != len(name) {
		return false
	}
	for i, b := range arg {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		if b != name[i] {
			return false
		}
	}
	return true
}
