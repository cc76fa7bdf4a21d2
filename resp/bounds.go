package resp

import (
	"sync/atomic"
	"time"
)

// DefaultOutputHard is the bound of Config.Output where none is given, in bytes.
const DefaultOutputHard = 256 << 20

// uncounted is what the replies of one turn may take without being counted: Redis keeps small replies outside of what its
// limits count, so that they can always be sent.
const uncounted = 16 << 10

// OutputBounds say how much a class of clients may leave unread. They may be changed at any time from any goroutine;
// Server.CheckOutput has connections notice at once. 0 means no bound.
type OutputBounds struct {
	hard, soft, softSeconds atomic.Int64
}

// Set changes the bounds: a connection is closed that has hard bytes of replies unread, or soft bytes for
// more than the given number of seconds.
func (b *OutputBounds) Set(hard, soft, seconds int64) {
	b.hard.Store(hard)
	b.soft.Store(soft)
	b.softSeconds.Store(seconds)
}

// SetOutputBounds makes the connection one of the class that has these bounds.
func (c *Conn) SetOutputBounds(b *OutputBounds) { c.bounds = b }

// softState is since when a connection has exceeded its soft bound.
type softState struct {
	since int64 // unix nanoseconds, 0 if it does not
	timer *time.Timer
}

// exceeds notes that the connection has size bytes unread and reports whether that is too much, or has been for too
// long. On the loop.
func (c *Conn) exceeds(size int) bool {
	n := int64(size)
	if hard := c.bounds.hard.Load(); hard > 0 && n >= hard {
		return true
	}
	soft := c.bounds.soft.Load()
	if soft <= 0 || n < soft {
		c.soft.since = 0
		return false
	}
	patience := time.Duration(c.bounds.softSeconds.Load()) * time.Second
	if c.soft.since == 0 {
		c.soft.since = c.t.now
		c.lookAgain(patience + time.Second)
		return false
	}
	return time.Duration(c.t.now-c.soft.since)/time.Second > patience/time.Second
}

// left notes that output has left or has come to wait. On the loop, without output in W.
func (c *Conn) left() {
	if c.soft.since != 0 && int64(c.out.size) < c.bounds.soft.Load() {
		c.soft.since = 0
	}
	if c.told != c.out.size && c.srv.observer != nil {
		c.told = c.out.size
		c.srv.observer.Unsent(c)
	}
}

// lookAgain has the bounds checked later, also if nothing happens until then.
func (c *Conn) lookAgain(after time.Duration) {
	if c.soft.timer == nil {
		c.soft.timer = time.AfterFunc(after, c.look)
		return
	}
	c.soft.timer.Reset(after)
}

// look has the bounds checked. Any goroutine.
func (c *Conn) look() { c.Post(func() {}) }

// CheckOutput checks the bounds of all connections soon. Any goroutine.
func (s *Server) CheckOutput() {
	s.DoAsync(func(conns []*Conn) {
		for _, c := range conns {
			c.look()
		}
	}, nil)
}

// unread is what the bounds count of the replies that wait to be sent.
func (c *Conn) unread() int {
	if len(c.W.Buf) <= uncounted {
		return c.out.size
	}
	return c.out.size + len(c.W.Buf)
}

// refusal is why a connection was refused. Its socket stays open for the client to read that.
func refusal(text string) error { return &ProtocolError{text} }

// Refuse answers a new connection with an error, closes it and counts it as rejected. text is without the leading "-".
func (c *Conn) Refuse(text string) {
	c.W.Error(text)
	c.reason = refusal(text)
	c.state |= closing
	c.srv.rejected.Add(1)
	c.srv.total.Add(^uint64(0))
}
