package resp

import (
	"errors"
	"sync/atomic"
	"time"
)

// Reasons a connection ends, as given to Handler.Closed. A client that hung up is io.EOF.
var (
	// ErrClosed: the server closed it (CloseAfterReply, Close).
	ErrClosed = errors.New("resp: connection closed")
	// ErrOutputLimit: the client left more unread than its OutputBounds allow.
	ErrOutputLimit = errors.New("resp: output buffer limit exceeded")
	// ErrIdle: nothing arrived for Config.IdleTimeout.
	ErrIdle = errors.New("resp: idle timeout")
	// ErrPanic: the handler panicked while serving this connection.
	ErrPanic = errors.New("resp: handler panicked")
	// ErrShutdown: the server shut down.
	ErrShutdown = errors.New("resp: server shut down")
)

// States of a connection, owned by its loop.
const (
	parked     = 1 << iota // a command waits; no further command runs
	running                // parked by ParkRunning: the reply comes even if the client stops sending
	held                   // replies are withheld; no further command runs
	closing                // closes once the output has left; no further command runs
	ended                  // the client sends no more
	closed                 // gone: nothing happens any more
	touched                // in the list of this turn
	queued                 // in the loop's list of connections with work left
	readable               // the socket may have more bytes (epoll)
	blocked                // the socket takes no bytes; EPOLLOUT is armed (epoll)
	lingering              // closed for the handler; the socket waits for the client to hang up (epoll)
	hungup                 // the kernel said that the client sends no more (epoll)
	opened                 // Handler.Opened ran
	idleExempt             // no idle timeout
	stopped    = parked | held | closing | closed
)

// Handler runs commands. All calls for one connection come from its loop, one at a time; different
// loops call at the same time. Calls must not block: a loop serves many connections.
type Handler interface {
	// Opened comes before the first command. It may append to c.W.
	Opened(c *Conn)
	// Command runs one complete request and appends its reply to c.W. args alias the input: they are
	// valid until Command returns.
	Command(c *Conn, args [][]byte)
	// EndTurn comes after all commands of all ready connections of a loop ran, before their replies
	// leave. It may call Hold on the touched connections. The slice is valid during the call.
	EndTurn(touched []*Conn)
	// Closed comes once, when the connection takes no more commands. c must not be used to reply.
	Closed(c *Conn, err error)
}

// Previewer is a Handler that wants to know what comes, to have it at hand: pipelined requests are shown
// before they run.
type Previewer interface {
	// Preview comes before some of the calls of Command, with requests that are to come on this connection. They
	// may not run, or change on the way. The slices are valid during the call.
	Preview(c *Conn, requests [][][]byte)
}

// OutputObserver is a Handler that wants to know what clients leave unread.
type OutputObserver interface {
	// Unsent comes on the connection's loop, after a turn or when the socket took some, if Conn.Unsent has changed.
	Unsent(c *Conn)
}

// Conn is one client. Fields and methods are for the connection's loop (that is, inside the Handler
// and in functions given to Resume, Release, Post and Server.Do) unless they say otherwise.
type Conn struct {
	// W takes the replies. Its buffer belongs to the loop between calls.
	W Writer
	// Data is the handler's own.
	Data any

	srv     *Server
	t       *turn
	rd      Reader
	out     output
	state   uint32
	hint    uint32 // size of recent outputs: what the next one begins with
	bounds  *OutputBounds
	soft    softState
	told    int   // what the OutputObserver knows
	active  int64 // unix nanoseconds of the last input
	kill    atomic.Bool
	claim   atomic.Int32
	holds   int32 // Holds without a Release
	reason  error // why it is closing
	id      uint64
	fd      int
	gen     int32 // tells this user of fd from former ones
	index   int   // place in the loop's list
	remote  string
	local   string
	created time.Time
}

// ID returns a number no other connection of the server has. Any goroutine.
func (c *Conn) ID() uint64 { return c.id }

// RemoteAddr returns "ip:port", or "path:0" for a unix socket. Any goroutine.
func (c *Conn) RemoteAddr() string { return c.remote }

// LocalAddr returns the address the client connected to. Any goroutine.
func (c *Conn) LocalAddr() string { return c.local }

// FD returns the socket's number, -1 if it has none. Any goroutine.
func (c *Conn) FD() int { return c.fd }

// Created returns the time of the accept. Any goroutine.
func (c *Conn) Created() time.Time { return c.created }

// LastActive returns the time input last arrived.
func (c *Conn) LastActive() time.Time { return time.Unix(0, c.active) }

// LoopData returns where the handler may keep what the connections of one loop share: calls of the
// Handler for connections with the same LoopData never overlap.
func (c *Conn) LoopData() *any { return &c.t.data }

// SetAuthenticated says whether requests of full size are allowed. A new connection is authenticated.
func (c *Conn) SetAuthenticated(ok bool) { c.rd.SetAuthenticated(ok) }

// SetIdleExempt says whether the idle timeout spares this connection (subscribers, replicas).
func (c *Conn) SetIdleExempt(on bool) {
	c.state &^= idleExempt
	if on {
		c.state |= idleExempt
	}
}

// QueryBuffer tells of the input not yet executed: the bytes of arguments that are complete, those behind them, and the
// rest of the buffer that holds both.
func (c *Conn) QueryBuffer() (args, used, free int) { return c.rd.usage() }

// OutputPending returns the bytes of replies that have not left.
func (c *Conn) OutputPending() int { return len(c.W.Buf) + c.out.size }

// Unsent returns the bytes of replies of former turns that the client has not taken.
func (c *Conn) Unsent() int { return c.out.size }

// IsClosed reports whether Closed was called or the connection is about to close.
func (c *Conn) IsClosed() bool { return c.state&(closing|closed) != 0 || c.kill.Load() }

// Claims on a parked connection.
const (
	unclaimed = iota
	claimed   // a reply is being made: a hang-up does not close the connection before it is sent
	forfeited // the client has hung up, nobody claims any more
)

// Claim asks, for a parked connection, whether somebody is there to take a reply, and if so keeps a client that only
// hangs up from closing it before Resume has sent that reply, or Unclaim was called. Any goroutine, one at a time.
func (c *Conn) Claim() bool {
	if c.kill.Load() || !c.claim.CompareAndSwap(unclaimed, claimed) {
		return false
	}
	if c.fd >= 0 && hungUp(c.fd) {
		c.Unclaim()
		return false
	}
	return true
}

// Unclaim ends a Claim without a reply. Any goroutine.
func (c *Conn) Unclaim() {
	c.claim.Store(unclaimed)
	c.Post(func() {}) // the client may have hung up meanwhile
}

// forfeit reports whether the connection's client has hung up and no reply is being made.
func (c *Conn) forfeit() bool {
	return c.state&running == 0 && (c.claim.CompareAndSwap(unclaimed, forfeited) || c.claim.Load() == forfeited)
}

// Park stops the connection after the command that calls it: no further command runs until Resume.
// Replies already built leave. If the client hangs up meanwhile, the connection closes.
func (c *Conn) Park() { c.state |= parked }

// ParkRunning is Park for a command that goes on elsewhere: a client that stops sending still gets its reply.
func (c *Conn) ParkRunning() { c.state |= parked | running }

// Parked reports whether the connection waits for Resume.
func (c *Conn) Parked() bool { return c.state&parked != 0 }

// Resume runs fn, which may be nil, on the connection's loop, then ends the Park and goes on with
// buffered input; EndTurn and the write follow. It does nothing if the connection closed. Any goroutine.
func (c *Conn) Resume(fn func()) { c.t.post(task{c, taskResume, fn}) }

// Hold withholds the replies in W.Buf, and stops further commands, until there was a Release for each Hold: while the
// connection is held, a command that was parked may add a reply that has to wait for something later. Inside
// EndTurn only.
func (c *Conn) Hold() {
	c.holds++
	c.state |= held
}

// Held reports whether replies are withheld.
func (c *Conn) Held() bool { return c.state&held != 0 }

// Release ends one Hold and runs fn, which may be nil and may rewrite W.Buf, on the connection's loop. If that was the
// last Hold, the replies leave after EndTurn, unless that holds them again, and input goes on. It does nothing if the connection closed.
// Any goroutine.
func (c *Conn) Release(fn func()) { c.t.post(task{c, taskRelease, fn}) }

// Post runs fn on the connection's loop, parked or held or not; what it appends to W is sent, after replies
// already withheld. It does nothing if the connection closed. Any goroutine.
func (c *Conn) Post(fn func()) { c.t.post(task{c, taskPost, fn}) }

// CloseAfterReply runs no further command and closes once all replies have left.
func (c *Conn) CloseAfterReply() {
	c.state |= closing
	if c.reason == nil {
		c.reason = ErrClosed
	}
}

// Close closes the connection soon, without regard to replies; no further command runs. Any goroutine.
func (c *Conn) Close() {
	if c.kill.CompareAndSwap(false, true) {
		c.t.post(task{c, taskClose, nil})
	}
}
