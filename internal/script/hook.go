package script

import (
	"errors"
	"sync/atomic"
	"time"
)

// hookEvery is how many instructions pass between two looks at whether the script is to end. A call of redis.call counts
// for hookCall of them.
const (
	hookEvery = 1024
	hookCall  = 32
)

// errStopped is the text of the error that ends a killed script; the error handler replaces it.
var errStopped = errors.New("script stopped")

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// hook is the context.Context of a Lua state. The interpreter asks Done before every instruction, which makes it a
// count hook: while the script may go on, Done is a channel that never gets ready.
//
// Owned by the goroutine that runs the script, but for stop.
type hook struct {
	left int
	stop atomic.Bool
	// limit, if set, is when a FUNCTION LOAD has taken too long.
	limit time.Time
	// giveWay, if set, is called at each look.
	giveWay func()
}

// Done implements context.Context.
func (h *hook) Done() <-chan struct{} {
	h.left--
	if h.left > 0 {
		return nil
	}
	return h.look()
}

func (h *hook) look() <-chan struct{} {
	if h.stop.Load() || h.overdue() {
		h.left = 0 // at every instruction from now on: a pcall must not catch it
		return closedChan
	}
	h.left = hookEvery
	if h.giveWay != nil {
		h.giveWay()
	}
	return nil
}

func (h *hook) overdue() bool { return !h.limit.IsZero() && time.Now().After(h.limit) }

// Err implements context.Context.
func (h *hook) Err() error { return errStopped }

// Deadline implements context.Context.
func (h *hook) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (h *hook) Value(any) any { return nil }
