package resp

import (
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	loopEvents = 512     // taken from the kernel at a time
	writeLimit = 1 << 20 // queued bytes sent for one connection in one turn
	sweepEvery = 1000    // milliseconds between looks for idle connections
	yieldEvery = int64(5 * time.Millisecond)
	baseEvents = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
)

// loop is an event loop over epoll, edge triggered: a connection is read until a read comes up short, and
// EPOLLOUT is asked for only while the socket is full. One goroutine runs it; only mb, sleeping and count
// are touched by others.
type loop struct {
	turn
	all        *events
	ep, wakeFD int
	sleeping   atomic.Bool  // the goroutine is in, or about to enter, a waiting epoll_wait
	count      atomic.Int64 // connections placed here, to balance loops

	conns     []*Conn
	byFD      []*Conn // also those that linger
	work      []*Conn // connections with something to do in the next turn
	spare     []*Conn // memory of work
	events    [loopEvents]unix.EpollEvent
	acceptors []*acceptor // on the first loop
	linger    []*Conn
	in, out   uint64 // bytes of this turn
	nextSweep int64  // unix nanoseconds
	yielded   int64  // unix nanoseconds
	gen       int32
}

func newLoop(s *Server) (*loop, error) {
	l := &loop{}
	l.srv, l.tr, l.sc = s, l, newScratch(s.cfg.ReadBuffer)
	l.mb.wake = l.wake
	var err error
	if l.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if l.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(l.ep)
		return nil, err
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(l.wakeFD)}
	if err = unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, l.wakeFD, &ev); err != nil {
		unix.Close(l.ep)
		unix.Close(l.wakeFD)
		return nil, err
	}
	return l, nil
}

// wakeUp adds one to the eventfd. Its counter is never read (the edge of a change is enough), so
// it must not be able to fill up.
var wakeUp = binary.NativeEndian.AppendUint64(nil, 1)

// wake is called with the mailbox locked, by any goroutine.
func (l *loop) wake() {
	if l.sleeping.CompareAndSwap(true, false) {
		_, _ = unix.Write(l.wakeFD, wakeUp) // cannot fail: the counter does not fill up
	}
}

// run is the loop. It returns when the server has drained and no connection is left.
func (l *loop) run() {
	for {
		l.yield()
		n := l.wait()
		l.now = time.Now().UnixNano()
		if len(l.work) > 0 {
			l.doWork()
		}
		for i := range n {
			l.event(&l.events[i])
		}
		if l.mb.waiting.Load() {
			l.tasks()
		}
		l.finish()
		l.publish()
		if l.now >= l.nextSweep {
			l.sweep()
		}
		if l.draining && len(l.conns) == 0 && len(l.work) == 0 {
			break
		}
	}
	l.end()
}

// publish publishes the bytes of this turn.
func (l *loop) publish() {
	if l.in > 0 {
		l.srv.bytesIn.Add(l.in)
		l.in = 0
	}
	if l.out > 0 {
		l.srv.bytesOut.Add(l.out)
		l.out = 0
	}
}

// wait returns the number of events taken.
func (l *loop) wait() int {
	if len(l.work) > 0 || l.mb.waiting.Load() {
		return epollPoll(l.ep, l.events[:])
	}
	l.sleeping.Store(true)
	if l.mb.waiting.Load() {
		l.sleeping.Store(false)
		return epollPoll(l.ep, l.events[:])
	}
	n := epollWait(l.ep, l.events[:], l.timeout())
	l.sleeping.Store(false)
	return n
}

// yield lets other goroutines of this P run every few milliseconds. A goroutine that is never
// rescheduled is preempted by the runtime's monitor, which then takes the P away in every epoll_wait and
// polls for that every 20 us: half a microsecond of CPU per command at one command a request.
func (l *loop) yield() {
	if l.now-l.yielded > yieldEvery {
		l.yielded = l.now
		runtime.Gosched()
	}
}

// timeout returns how long the loop may sleep, in milliseconds.
func (l *loop) timeout() int {
	if l.srv.idle.Load() > 0 || len(l.linger) > 0 {
		return sweepEvery
	}
	return -1
}

// event handles what the kernel says about one descriptor.
func (l *loop) event(ev *unix.EpollEvent) {
	fd := int(ev.Fd)
	if fd == l.wakeFD {
		// The counter is never read: an edge comes with every write.
		return
	}
	if fd >= len(l.byFD) || l.byFD[fd] == nil {
		l.acceptEvent(fd)
		return
	}
	c := l.byFD[fd]
	if c.gen != ev.Pad {
		return
	}
	if c.state&lingering != 0 {
		l.discard(c)
		return
	}
	if ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.state |= hungup
		gone := ev.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0
		if c.state&parked != 0 && c.state&held == 0 && (gone || c.forfeit()) {
			l.close(c, io.EOF)
			return
		}
	}
	if ev.Events&unix.EPOLLOUT != 0 && c.state&blocked != 0 {
		c.state &^= blocked
		l.drainOutput(c)
		if c.state&closed == 0 {
			c.left()
		}
		if c.state&(closed|touched) == 0 {
			l.settle(c)
		}
	}
	if ev.Events&^unix.EPOLLOUT != 0 {
		c.state |= readable
		if c.state&(stopped|queued) == 0 {
			l.read(c)
		}
	}
}

// doWork serves the connections that asked for another turn.
func (l *loop) doWork() {
	work := l.work
	l.work, l.spare = l.spare[:0], work
	for i, c := range work {
		work[i] = nil
		c.state &^= queued
		if c.state&closed == 0 {
			l.serve(c)
		}
	}
}

func (l *loop) serve(c *Conn) {
	if c.out.size > 0 && c.state&blocked == 0 {
		if l.drainOutput(c); c.state&closed != 0 {
			return
		}
		c.left()
	}
	if c.state&stopped == 0 && c.rd.Buffered() > 0 {
		l.execute(c)
	}
	if c.state&(stopped|queued) == 0 && c.state&readable != 0 {
		l.read(c)
	}
	if c.state&(touched|closed) == 0 {
		l.settle(c)
	}
}

// read takes what has arrived and executes it: one buffer full, or a few of an argument that is larger.
func (l *loop) read(c *Conn) {
	for range turnReads {
		full := l.readOnce(c)
		if !full || c.state&stopped != 0 || c.rd.Buffered() <= carry {
			return
		}
	}
}

// readOnce reports whether there may be more.
func (l *loop) readOnce(c *Conn) (full bool) {
	dst := c.rd.Space()
	n, errno := sysRead(c.fd, dst)
	switch {
	case errno == syscall.EAGAIN:
		c.state &^= readable
		c.rd.Settle()
	case errno != 0:
		l.close(c, errno)
	case n == 0:
		c.state &^= readable
		c.rd.Settle()
		l.hangup(c)
	default:
		l.in += uint64(n)
		c.active = l.now
		c.rd.Advance(n)
		full = n == len(dst)
		if !full && c.state&hungup == 0 {
			c.state &^= readable
		} else {
			l.again(c)
		}
		l.execute(c)
	}
	return full
}

// again implements transport.
func (l *loop) again(c *Conn) {
	if c.state&queued == 0 {
		c.state |= queued
		l.work = append(l.work, c)
	}
}

// flush implements transport.
func (l *loop) flush(c *Conn) {
	if c.out.size > 0 {
		l.push(c, 0)
		if c.state&(blocked|queued) == 0 {
			l.drainOutput(c)
		}
		return
	}
	b := c.W.Buf
	n, errno := sysWrite(c.fd, b)
	switch {
	case errno == 0:
		l.out += uint64(n)
		if n == len(b) {
			l.recycle(c)
			return
		}
		l.push(c, n)
	case errno == syscall.EAGAIN:
		l.push(c, 0)
	default:
		l.close(c, errno)
		return
	}
	l.drainOutput(c)
}

// push queues W.Buf from byte n on.
func (l *loop) push(c *Conn, n int) {
	if len(c.W.Buf) > n && c.out.push(c.W.Buf[n:], &l.sc.pool) {
		c.W.Buf = nil
	} else if c.W.Buf != nil {
		l.recycle(c)
	}
}

// drainOutput sends queued output until the socket is full or the connection had its share of the turn.
func (l *loop) drainOutput(c *Conn) {
	for budget := writeLimit; c.out.size > 0; {
		if budget <= 0 {
			l.again(c)
			return
		}
		b := c.out.front()
		n, errno := sysWrite(c.fd, b[:min(len(b), writeLimit)])
		if errno == syscall.EAGAIN {
			l.arm(c, baseEvents|unix.EPOLLOUT)
			c.state |= blocked
			return
		}
		if errno != 0 {
			l.close(c, errno)
			return
		}
		budget -= n
		l.out += uint64(n)
		if chunk := c.out.pop(n); chunk != nil {
			l.sc.pool.put(chunk)
		}
	}
	l.arm(c, baseEvents)
}

// arm asks for events; they come at once if they hold already.
func (l *loop) arm(c *Conn, events uint32) {
	ev := unix.EpollEvent{Events: events, Fd: int32(c.fd), Pad: c.gen}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_MOD, c.fd, &ev); err != nil {
		l.srv.cfg.Logger.Error("epoll", "id", c.id, "error", err)
	}
}

// add begins a connection placed on this loop.
func (l *loop) add(c *Conn) {
	if l.draining {
		l.refuseLate(c)
		return
	}
	for len(l.byFD) <= c.fd {
		l.byFD = append(l.byFD, nil)
	}
	l.gen++
	c.gen, c.index = l.gen, len(l.conns)
	l.byFD[c.fd] = c
	l.conns = append(l.conns, c)
	ev := unix.EpollEvent{Events: baseEvents, Fd: int32(c.fd), Pad: c.gen}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, c.fd, &ev); err != nil {
		l.close(c, err)
		return
	}
	l.open(c)
}

// refuseLate closes a connection that comes too late.
func (l *loop) refuseLate(c *Conn) {
	unix.Close(c.fd)
	l.count.Add(-1)
	l.srv.clients.Add(-1)
}

// drop implements transport.
func (l *loop) drop(c *Conn) {
	last := len(l.conns) - 1
	l.conns[c.index] = l.conns[last]
	l.conns[c.index].index = c.index
	l.conns[last] = nil
	l.conns = l.conns[:last]
	l.count.Add(-1)
	if l.lingers(c) {
		return
	}
	l.byFD[c.fd] = nil
	unix.Close(c.fd)
}

// sweep closes what has been idle or has lingered for too long.
func (l *loop) sweep() {
	l.nextSweep = l.now + sweepEvery*int64(time.Millisecond)
	l.endLingering()
	idle := l.srv.idle.Load()
	if idle <= 0 {
		return
	}
	for _, v := range slices.Backward(l.conns) {
		if c := v; l.now-c.active > idle && c.state&(parked|held|idleExempt) == 0 {
			l.close(c, ErrIdle)
		}
	}
}

// end releases the loop's descriptors.
func (l *loop) end() {
	for _, k := range l.mb.close() {
		if k.kind == taskLoop {
			k.fn()
		}
	}
	for _, c := range l.linger {
		unix.Close(c.fd)
	}
	unix.Close(l.ep)
	unix.Close(l.wakeFD)
}
