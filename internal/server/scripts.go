package server

import (
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/script"
	"github.com/kevydb/kevy/resp"
)

// scriptPatience is how long a loop waits for a script before that gives way: most scripts take less than
// parking does.
const scriptPatience = 200 * time.Microsecond

// scriptReply is what the buffer of a script's reply begins with.
const scriptReply = 1 << 10

// scripts is what the server has to do with Lua.
type scripts struct {
	rt   *script.Runtime
	gate scriptGate
}

func (x *scripts) init(srv *Server) {
	x.rt = script.New(srv.eng)
	x.gate.srv = srv
	x.rt.Log = func(level int, text string) {
		switch level {
		case script.LogDebug, script.LogVerbose:
			srv.log.Debug(text)
		case script.LogNotice:
			srv.log.Info(text)
		default:
			srv.log.Warn(text)
		}
	}
	c := srv.newCtx()
	c.W = &resp.Writer{}
	var t engine.Ticket
	_ = srv.eng.Script(c, &t, func() error { x.rt.Sync(); return nil })
}

func registerScripting(r registry) {
	for _, name := range []string{
		"eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "function|load", "function|delete",
		"function|flush", "function|list", "function|dump", "function|restore",
	} {
		r[name] = scriptCommand
	}
	r["function|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], functionHelp) }
	r["function|kill"] = func(s *session, _ [][]byte) { s.srv.scripts.rt.Kill(s.w, false) }
	r["function|stats"] = func(s *session, _ [][]byte) { s.srv.scripts.rt.Stats(s.w) }
	r["script|debug"] = scriptDebug
	r["script|exists"] = func(s *session, args [][]byte) { s.srv.scripts.rt.Exists(s.w, args[2:]) }
	r["script|flush"] = func(s *session, args [][]byte) { s.srv.scripts.rt.Flush(s.w, args[2:]) }
	r["script|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], scriptHelp) }
	r["script|kill"] = func(s *session, _ [][]byte) { s.srv.scripts.rt.Kill(s.w, true) }
	r["script|load"] = func(s *session, args [][]byte) { s.srv.scripts.rt.Load(s.w, args[2]) }
}

// scriptDebug is SCRIPT DEBUG: there is no debugger to be switched on.
func scriptDebug(s *session, args [][]byte) {
	switch {
	case isName(args[2], "no"):
		s.w.OK()
	case isName(args[2], "yes"), isName(args[2], "sync"):
		s.w.Error("ERR the debugger for scripts is not supported")
	default:
		s.w.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	}
}

// scriptCommand runs what needs the locks of all shards: scripts, and what shows or changes libraries.
func scriptCommand(s *session, args [][]byte) {
	if s.multi.running {
		s.scriptFailed = true
		if err := s.srv.scripts.rt.Run(s.inGroup, s.scriptHost()); err != nil {
			s.w.Error(err.Error())
		}
		return
	}
	s.startScript(s.cmd, args)
}

// startScript runs a script, beside its loop but while that waits. A script that gives way goes on on a goroutine, with
// the connection parked.
func (s *session) startScript(cmd *command.Command, args [][]byte) {
	muted, began := s.muted(), s.began
	s.work.begin(nil)
	s.offLoop, s.jobRuns, s.args = true, true, nil
	l := s.loop
	r := l.routine
	if r == nil {
		r = newScriptRoutine()
		l.routine = r
	}
	r.take(s, cmd, args)
	r.now, r.began = l.now(began), began
	l.gate.leave()
	ended := r.resume()
	if !ended {
		l.routine = nil
		r.away = true
		s.conn.ParkRunning()
		if s.reply == replySkip {
			s.setReplyMode(replyOn)
		}
		s.srv.jobs.Go(func() {
			r.resume()
			r.stop()
			s.finishScript(&r.job, cmd, muted, began)
		})
	}
	l.gate.enter()
	if ended {
		s.work.end()
		s.deliver(&r.job, muted)
	}
}

// finishScript hands the reply of a script that gave way to the loop.
func (s *session) finishScript(j *job, cmd *command.Command, muted bool, began time.Time) {
	gone := s.work.end()
	s.srv.stats.record(cmd.ID, time.Since(began))
	s.countFailure(cmd, j.w.Buf)
	if gone {
		s.release()
		return
	}
	s.conn.Resume(func() { s.deliver(j, muted) })
}

// runScript runs a script as a group of its own. On r.
func (s *session) runScript(r *scriptRoutine) {
	x, j, cmd := &s.srv.scripts, &r.job, r.cmd
	x.gate.begin(r.giveWayNow)
	defer x.gate.end()
	c := s.srv.takeCtx()
	defer s.srv.giveCtx(c)
	s.scriptFailed = true
	s.w, s.multi.running, s.inGroup = &j.w, true, c
	defer func() { s.multi.running, s.inGroup = false, nil }()
	c.Cmd, c.Args, c.W, c.NoTouch = cmd, r.args, &j.w, s.noTouch
	c.Rand, c.LFU = s.srv.random(), s.srv.lfu.Load()
	if !r.away {
		c.Turn = r.now
	}
	c.Before = s.watcher()
	defer func() { c.Before = nil }()
	h := s.scriptHost()
	h.GiveWay = r.maybeGiveWay
	err := s.srv.eng.Script(c, &j.ticket, func() error { return x.rt.Run(c, h) })
	if err != nil {
		j.w.Buf = j.w.Buf[:0]
		j.w.Error(err.Error())
	}
	c.Hits, c.Misses = 0, 0
}

// countFailure counts a script that has replied an error. When that of a command of the script is all there was, the error is counted
// already.
func (s *session) countFailure(cmd *command.Command, reply []byte) {
	switch {
	case len(reply) == 0 || reply[0] != '-':
	case s.scriptFailed || cmd.Group != "scripting":
		s.srv.stats.failed(cmd.ID, reply)
	default:
		s.srv.stats.rows[cmd.ID].failures.Add(1)
	}
}

// scriptHost is what the runtime needs to know of the session.
func (s *session) scriptHost() *script.Host {
	if s.host == nil {
		st := s.srv.stats
		s.host = &script.Host{
			Local: s.scriptLocal,
			Called: func(cmd *command.Command, args [][]byte, reply []byte, took time.Duration) {
				st.rows[cmd.ID].calls.Add(1)
				st.commands.Add(1)
				if cmd.Plan != nil {
					s.took(cmd, args, took)
				}
				if reply[0] == '-' && cmd.Plan != nil {
					st.failed(cmd.ID, reply)
				}
			},
			Refused: func(cmd *command.Command, text string) {
				if cmd != nil {
					st.rejected(cmd.ID)
				}
				if !strings.HasPrefix(text, "-") {
					text = "-ERR " + text
				}
				st.errorReply(text[1:])
			},
			Counted: func() { s.scriptFailed = false },
		}
	}
	s.host.OutOfMemory = s.srv.memory.full.Load()
	s.host.NoWrites = noWrites(s.srv.gate.Load())
	s.host.Allowed, s.host.May, s.host.GiveWay, s.host.Began = nil, nil, nil, s.began
	if s.srv.access.users.Restricted() {
		s.host.Allowed, s.host.May = s.scriptPermitted, s.scriptMay
	}
	return s.host
}

// scriptLocal runs a command of the server itself for a script.
func (s *session) scriptLocal(c *command.Ctx) error {
	w := s.w
	s.w = c.W
	defer func() { s.w = w }()
	s.execLocal(c)
	return nil
}

var functionHelp = []string{
	"LOAD [REPLACE] <FUNCTION CODE>",
	"    Create a new library with the given library name and code.",
	"DELETE <LIBRARY NAME>",
	"    Delete the given library.",
	"LIST [LIBRARYNAME PATTERN] [WITHCODE]",
	"    Return general information on all the libraries:",
	"    * Library name",
	"    * The engine used to run the Library",
	"    * Library description",
	"    * Functions list",
	"    * Library code (if WITHCODE is given)",
	"    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
	"STATS",
	"    Return information about the current function running:",
	"    * Function name",
	"    * Command used to run the function",
	"    * Duration in MS that the function is running",
	"    If no function is running, return nil",
	"    In addition, returns a list of available engines.",
	"KILL",
	"    Kill the current running function.",
	"FLUSH [ASYNC|SYNC]",
	"    Delete all the libraries.",
	"    When called without the optional mode argument, the behavior is determined by the",
	"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
	"    * ASYNC: Asynchronously flush the libraries.",
	"    * SYNC: Synchronously flush the libraries.",
	"DUMP",
	"    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
	"RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
	"    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
	"    control how to handle existing libraries (default APPEND):",
	"    * FLUSH: delete all existing libraries.",
	"    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
	"    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
	"      libraries with the new libraries (notice that even on this option there is a chance of failure",
	"      in case of functions name collision with another library).",
}

var scriptHelp = []string{
	"DEBUG (YES|SYNC|NO)",
	"    Set the debug mode for subsequent scripts executed.",
	"EXISTS <sha1> [<sha1> ...]",
	"    Return information about the existence of the scripts in the script cache.",
	"FLUSH [ASYNC|SYNC]",
	"    Flush the Lua scripts cache. Very dangerous on replicas.",
	"    When called without the optional mode argument, the behavior is determined by the",
	"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
	"    * ASYNC: Asynchronously flush the scripts cache.",
	"    * SYNC: Synchronously flush the scripts cache.",
	"KILL",
	"    Kill the currently executing Lua script.",
	"LOAD <script>",
	"    Load a script into the scripts cache without executing it.",
}
