package resp

import (
	"errors"
	"io"
	"runtime/debug"
	"time"
)

// What one connection may do in one turn before others have theirs.
const (
	turnCommands = 1 << 10  // commands
	turnReplies  = 64 << 10 // bytes of replies
	turnReads    = 4        // reads of an argument that does not fit into one
	previewed    = 16       // requests that the handler sees before it runs them
)

// How long the socket of a client that broke the protocol stays open, for the client to read the reason, and how
// much of its input is thrown away meanwhile.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20
)

// transport moves a connection's bytes. Its methods are called on the loop.
type transport interface {
	// flush sends W.Buf and queued output as far as it goes without waiting, and arranges for the rest.
	flush(c *Conn)
	// again sets c's state queued and gives it another turn: it has input left or may read.
	again(c *Conn)
	// drop closes the socket. Nothing of c is used afterwards.
	drop(c *Conn)
}

// turn is what every loop does, whatever moves its bytes:
//
//  1. run the commands of connections with input     execute
//  2. run tasks from other goroutines                tasks
//  3. Handler.EndTurn with the connections touched   finish
//  4. send the replies of those not held
//
// Owned by the loop's goroutine but for post.
type turn struct {
	srv      *Server
	tr       transport
	sc       *scratch
	mb       mailbox
	touched  []*Conn
	now      int64      // unix nanoseconds at the begin of the turn
	draining bool       // the server shuts down: no further command runs
	coming   [][][]byte // memory for Previewer
	data     any        // the handler's, see Conn.LoopData
}

// post hands a task to the loop. Any goroutine.
func (t *turn) post(k task) { t.mb.put(k) }

// touch makes c part of this turn and lends it an output buffer.
func (t *turn) touch(c *Conn) {
	if c.state&touched == 0 {
		c.state |= touched
		t.touched = append(t.touched, c)
	}
	if c.W.Buf == nil {
		c.W.Buf = t.sc.pool.get(int(c.hint))
	}
}

// recycle takes back the output buffer of c, all of which has left.
func (t *turn) recycle(c *Conn) {
	b := c.W.Buf
	c.W.Buf = nil
	// Quick to grow, slow to shrink. One connection's large replies say nothing about another's.
	c.hint = max(uint32(min(len(b), turnReplies)), c.hint-c.hint>>4)
	t.sc.pool.put(b)
}

// execute runs commands of c that have arrived.
func (t *turn) execute(c *Conn) {
	if c.state&stopped != 0 || c.rd.Buffered() == 0 || t.draining {
		c.rd.Settle()
		return
	}
	t.touch(c)
	more := t.commands(c)
	c.rd.Settle()
	if more {
		t.tr.again(c)
	}
}

// commands returns whether it stopped because c had its share of the turn.
func (t *turn) commands(c *Conn) (more bool) {
	h, mark := t.srv.h, len(c.W.Buf)
	defer func() {
		if p := recover(); p != nil {
			t.panicked(c, mark, p)
		}
	}()
	for range turnCommands {
		if p := t.srv.previewer; p != nil && t.sc.next == len(t.sc.ahead) {
			c.rd.split(previewed)
			if t.coming = c.rd.coming(t.coming[:0]); len(t.coming) > 1 {
				p.Preview(c, t.coming)
			}
		}
		args, err := c.rd.Next()
		if err != nil {
			if !errors.Is(err, ErrIncomplete) {
				t.refuse(c, err)
			}
			return false
		}
		mark = len(c.W.Buf)
		h.Command(c, args)
		if c.state&stopped != 0 || c.kill.Load() {
			return false
		}
		if len(c.W.Buf) >= turnReplies {
			return true
		}
	}
	return true
}

// refuse ends a connection whose input breaks the protocol or a limit, after the replies of what came before.
func (t *turn) refuse(c *Conn, err error) {
	if isProtocolError(err) {
		c.W.Error("ERR " + err.Error())
	}
	t.srv.cfg.Logger.Debug("closing client", "id", c.id, "addr", c.remote, "error", err)
	c.reason = err
	c.state |= closing
}

// panicked ends a connection whose handler panicked; the reply begun at mark is replaced. Replies that are withheld stay so
// until they are released.
func (t *turn) panicked(c *Conn, mark int, p any) {
	stack := debug.Stack()
	t.srv.cfg.Logger.Error("panic in handler", "id", c.id, "addr", c.remote, "panic", p, "stack", string(stack))
	if hook := t.srv.cfg.OnPanic; hook != nil {
		hook(c, p, stack)
	}
	c.W.Buf = c.W.Buf[:min(mark, len(c.W.Buf))]
	c.W.Error("ERR internal error")
	c.reason = ErrPanic
	c.state = c.state&^(parked|running) | closing
}

// call runs fn for c, which must be touched.
func (t *turn) call(c *Conn, fn func()) {
	mark := len(c.W.Buf)
	defer func() {
		if p := recover(); p != nil {
			t.panicked(c, mark, p)
		}
	}()
	fn()
}

// open begins a connection, unless it was closed already.
func (t *turn) open(c *Conn) {
	if c.state&closed != 0 {
		return
	}
	c.state |= opened
	t.touch(c)
	t.call(c, func() { t.srv.h.Opened(c) })
}

// tasks runs what was in the mailbox. What arrives meanwhile has to wait for the next turn.
func (t *turn) tasks() {
	for _, k := range t.mb.take() {
		t.task(k)
	}
}

func (t *turn) task(k task) {
	c := k.c
	switch {
	case k.kind == taskLoop:
		k.fn()
		return
	case c.state&closed != 0:
		return
	case k.kind == taskClose:
		t.close(c, ErrClosed)
		return
	}
	switch k.kind { // before fn, which may park c anew, or asks whether it is held
	case taskResume:
		c.state &^= parked | running
		c.claim.Store(unclaimed)
	case taskRelease:
		c.holds = max(0, c.holds-1) // a panic in EndTurn has ended all of them
		if c.holds == 0 {
			c.state &^= held
		}
	}
	if k.fn != nil {
		t.touch(c)
		t.call(c, k.fn)
	}
	switch k.kind {
	case taskResume:
		t.touch(c)
		t.proceed(c)
	case taskRelease:
		if c.state&held == 0 {
			t.touch(c) // what has come in this turn may have to be withheld: EndTurn says
			t.tr.again(c)
		}
	}
}

// proceed goes on with input that arrived while c was stopped.
func (t *turn) proceed(c *Conn) {
	if c.rd.Buffered() > 0 {
		t.execute(c)
	}
	if c.state&closed == 0 {
		t.tr.again(c)
	}
}

// finish ends the turn.
func (t *turn) finish() {
	if len(t.touched) == 0 {
		return
	}
	t.endTurn()
	for i, c := range t.touched {
		c.state &^= touched
		t.touched[i] = nil
		if c.state&(held|closed) == 0 {
			t.send(c)
		}
	}
	t.touched = t.touched[:0]
}

// endTurn contains a panic in Handler.EndTurn: nobody knows what was made safe, so no reply leaves, and nobody knows who
// was to be released.
func (t *turn) endTurn() {
	defer func() {
		if p := recover(); p != nil {
			for _, c := range t.touched {
				if c.state&closed == 0 {
					t.panicked(c, 0, p)
					c.state &^= held
					c.holds = 0
				}
			}
		}
	}()
	t.srv.h.EndTurn(t.touched)
}

// send sends what c has to send and closes c if that was all.
func (t *turn) send(c *Conn) {
	if len(c.W.Buf) > 0 || c.out.size > 0 {
		if n := c.unread(); c.exceeds(n) {
			t.srv.cfg.Logger.Warn("closing client: output buffer limit", "id", c.id, "addr", c.remote, "bytes", n)
			t.close(c, ErrOutputLimit)
			return
		}
		t.tr.flush(c)
		if c.state&closed != 0 {
			return
		}
		c.left()
	} else if c.W.Buf != nil {
		t.recycle(c)
	}
	t.settle(c)
}

// settle closes c if nothing remains to be done for it.
func (t *turn) settle(c *Conn) {
	switch {
	case c.state&(held|closed) != 0:
	case c.out.size > 0 || len(c.W.Buf) > 0:
	case c.state&closing != 0:
		t.close(c, c.reason)
	case c.state&parked != 0:
		if c.state&(ended|hungup) != 0 && c.forfeit() {
			t.close(c, io.EOF)
		} else if t.draining && c.forfeit() {
			t.close(c, ErrShutdown)
		}
	case t.draining:
		t.close(c, ErrShutdown)
	case c.state&(ended|queued) == ended:
		t.close(c, io.EOF)
	}
}

// hangup notes that the client sends no more. Without a reply under way there is nothing to wait for.
func (t *turn) hangup(c *Conn) {
	c.state |= ended
	if c.state&touched == 0 {
		t.settle(c)
	}
}

// close ends c at once.
func (t *turn) close(c *Conn, err error) {
	if c.state&closed != 0 {
		return
	}
	c.state |= closed
	t.tr.drop(c)
	c.rd.Close()
	if c.W.Buf != nil {
		t.sc.pool.put(c.W.Buf)
		c.W.Buf = nil
	}
	c.out = output{}
	if c.soft.timer != nil {
		c.soft.timer.Stop()
	}
	t.srv.clients.Add(-1)
	if c.state&opened != 0 {
		t.closedHook(c, err)
	}
}

func (t *turn) closedHook(c *Conn, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			t.srv.cfg.Logger.Error("panic in handler", "id", c.id, "panic", p, "stack", string(stack))
			if hook := t.srv.cfg.OnPanic; hook != nil {
				hook(c, p, stack)
			}
		}
	}()
	t.srv.h.Closed(c, err)
}
