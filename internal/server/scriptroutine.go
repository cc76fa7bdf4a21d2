package server

import (
	"iter"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/resp"
)

// scriptRoutine runs scripts, one after the other, on a stack of its own. Resuming it is a direct switch, without the scheduler,
// and its stack stays as deep as scripts need it: a goroutine for each script costs several times what the script does.
//
// A script that takes long gives way (yield): whoever resumed it goes on and decides where the rest of the script is run.
// Used by one goroutine at a time.
type scriptRoutine struct {
	next  func() (ended, ok bool)
	stop  func()
	yield func(ended bool) bool

	// of the script; memory is reused
	s     *session
	cmd   *command.Command
	args  [][]byte
	kept  keptArgs
	job   job
	now   int64     // its clock, unix ms, unless it has to wait for another one
	began time.Time // when it was resumed on a loop
	away  bool      // the script runs on a goroutine: it need not give way

	maybeGiveWay func() // giveWay, made once
}

// keptMost is how many bytes of arguments a routine keeps memory for.
const keptMost = 64 << 10

func newScriptRoutine() *scriptRoutine {
	r := &scriptRoutine{}
	r.maybeGiveWay = r.giveWay
	run := func(*job) { r.s.runScript(r) }
	r.next, r.stop = iter.Pull(func(yield func(bool) bool) {
		r.yield = yield
		for ok := true; ok; ok = yield(true) {
			r.job.run(r.s, run)
			r.leave()
		}
	})
	return r
}

// take makes a command the next one to be run, with copies of its arguments: a parked connection reads on.
func (r *scriptRoutine) take(s *session, cmd *command.Command, args [][]byte) {
	r.s, r.cmd = s, cmd
	if strings.HasPrefix(cmd.Name, "eval") {
		r.args = r.kept.keep(args)
	} else {
		r.args = cloneArgs(args) // FUNCTION STATS shows them
	}
	j := &r.job
	j.w = resp.Writer{Buf: resp.TakeBuffer(scriptReply), Proto: s.conn.W.Proto}
	j.ticket.Reset()
	j.ticket.Client, j.err = s.id, nil
}

// leave lets go of what the script had but its job, which is to be delivered.
func (r *scriptRoutine) leave() {
	r.s, r.cmd, r.args = nil, nil, nil
	if cap(r.kept.buf) > keptMost || cap(r.kept.args) > keptMost/32 {
		r.kept = keptArgs{}
	}
}

// resume runs the script, or goes on with it, and reports whether it has ended.
func (r *scriptRoutine) resume() (ended bool) {
	ended, _ = r.next()
	return ended
}

// giveWay lets the loop go on that waits for the script, if it has waited for long enough. The script calls it.
func (r *scriptRoutine) giveWay() {
	if !r.away && time.Since(r.began) > scriptPatience {
		r.yield(false)
	}
}

// giveWayNow is giveWay however short the script has run: it has to wait for another one.
func (r *scriptRoutine) giveWayNow() {
	if !r.away {
		r.yield(false)
	}
}
