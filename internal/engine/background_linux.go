package engine

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// backgroundNice is by how much the priority of background work is lowered.
const backgroundNice = 10

// inBackground runs fn on a thread of lower priority and returns when it has ended: where there are fewer CPUs than work, the
// event loops and the clients go first. fn must not take a lock that others want: it may be kept waiting for long with it. It calls giveWay
// after each small piece of work: otherwise a thread that wakes on this CPU, whatever its priority, may wait until the slice of time
// is over that the system gave to this one, which is milliseconds. A panic of fn is the caller's.
func inBackground(fn func(giveWay func())) {
	done := make(chan error, 1)
	go func() {
		defer func() {
			var panicked error
			if p := recover(); p != nil {
				panicked = fmt.Errorf("%v\n%s", p, debug.Stack())
			}
			done <- panicked
		}()
		runtime.LockOSThread() // for good: the thread ends with the goroutine, since its priority could not be raised again
		tid := unix.Gettid()
		if was, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err == nil { // the system call's answer is 20 - nice
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, 20-was+backgroundNice) // it is faster, not wrong, without
		}
		fn(giveWay)
	}()
	if p := <-done; p != nil {
		panic(p)
	}
}

// giveWay lets another thread have the CPU, if one waits for it.
func giveWay() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
