package server

import (
	"iter"
	"time"
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

	job   job       // of the script, reused
	run   func()    // runs it
	began time.Time // when it was resumed on a loop
	away  bool      // the script runs on a goroutine: it need not give way
}

func newScriptRoutine() *scriptRoutine {
	r := &scriptRoutine{}
	r.next, r.stop = iter.Pull(func(yield func(bool) bool) {
		r.yield = yield
		for ok := true; ok; ok = yield(true) {
			run := r.run
			r.run = nil
			run()
		}
	})
	return r
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
