package resp

import "sync/atomic"

// countdown calls done when one was called n times. Any goroutine.
type countdown struct {
	left atomic.Int64
	done func()
}

func newCountdown(n int, done func()) *countdown {
	c := &countdown{done: done}
	c.left.Store(int64(n))
	return c
}

func (c *countdown) one() {
	if c.left.Add(-1) == 0 && c.done != nil {
		c.done()
	}
}
