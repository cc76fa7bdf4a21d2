package resp

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	routineBuffer = 4 << 10  // read buffer of a connection with a goroutine of its own
	readAhead     = 64 << 10 // input taken while a connection is stopped
)

// routines carries connections with goroutines of their own: every connection is a loop of one. It serves
// TLS, and everything on systems without epoll.
type routines struct {
	srv *Server
	wg  sync.WaitGroup // accepting and connections

	mu    sync.Mutex
	all   map[*routine]struct{} // guarded by mu
	drawn bool                  // guarded by mu: draining
}

func newRoutines(s *Server) *routines {
	return &routines{srv: s, all: make(map[*routine]struct{})}
}

// routine is one connection's loop. Whoever holds mu is on the loop: the reading goroutine after a
// read, the writing one between writes, and one started for tasks when they come.
type routine struct {
	turn
	b  *routines
	nc net.Conn
	c  *Conn

	mu      sync.Mutex
	input   sync.Cond // the reader may go on
	output  sync.Cond // the writer has something to do
	tasking bool      // guarded by mb.mu: a goroutine for tasks is on its way
	timed   bool      // owned by the reading goroutine: a read deadline is set
}

// accept implements backend.
func (b *routines) accept(l *listener) error {
	b.wg.Go(func() {
		var pause time.Duration
		for {
			nc, err := l.nl.Accept()
			if err == nil {
				pause = 0
				b.serveFrom(nc, l)
				continue
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			pause = min(max(2*pause, time.Millisecond), time.Second)
			b.srv.cfg.Logger.Warn("accept", "error", err)
			time.Sleep(pause)
		}
	})
	return nil
}

func (b *routines) serve(nc net.Conn) { b.serveFrom(nc, &listener{}) }

func (b *routines) serveFrom(nc net.Conn, l *listener) {
	if !b.srv.admit() {
		nc.SetWriteDeadline(time.Now().Add(time.Second))
		if l.opt.TLS == nil {
			_, _ = io.WriteString(nc, tooMany) // the connection is closed in any case
		}
		nc.Close()
		return
	}
	if tc, ok := nc.(*net.TCPConn); ok {
		d := b.srv.keepAlive()
		_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: d > 0, Idle: d, Interval: d / 3, Count: 3}) // it may be closed already
	}
	r := &routine{b: b}
	r.input.L, r.output.L = &r.mu, &r.mu
	r.srv, r.tr, r.sc = b.srv, r, newScratch(routineBuffer)
	r.sc.pool.limit = 64 << 10
	r.mb.wake = r.wake
	remote, local := addrText(nc.RemoteAddr(), l.path), addrText(nc.LocalAddr(), l.path)
	r.nc = wrapTLS(nc, l.opt.TLS)
	r.c = b.srv.newConn(&r.turn, -1, remote, local)
	b.mu.Lock()
	if b.drawn {
		b.mu.Unlock()
		b.srv.clients.Add(-1)
		nc.Close()
		return
	}
	b.all[r] = struct{}{}
	b.wg.Add(2)
	b.mu.Unlock()
	go r.read()
	go r.write()
}

// on runs fn on the loop, then ends the turn.
func (r *routine) on(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = time.Now().UnixNano()
	fn()
	for {
		r.tasks()
		if r.c.state&(queued|closed) == queued {
			r.c.state &^= queued
			r.execute(r.c)
		}
		r.finish()
		if r.c.state&closed != 0 || r.c.state&queued == 0 && !r.mb.waiting.Load() {
			break
		}
	}
	if r.c.state&(closed|touched) == 0 {
		r.settle(r.c)
	}
	r.input.Signal()
}

// read is the goroutine that takes input.
func (r *routine) read() {
	defer r.b.wg.Done()
	r.on(func() { r.open(r.c) })
	buf := make([]byte, routineBuffer)
	for r.mayRead() {
		r.deadline()
		n, err := r.nc.Read(buf)
		r.handshake(err)
		r.on(func() { r.arrived(buf[:n], err) })
		if err != nil && !isTimeout(err) {
			return
		}
		if n == len(buf) && n < readBuffer {
			buf = make([]byte, 2*n)
		}
	}
}

// handshake logs why a client of TLS could not be accepted, given the error of a read. One that only looks whether the port is open does not count.
func (r *routine) handshake(err error) {
	secure, ok := r.nc.(*tls.Conn)
	if err == nil || !ok || secure.ConnectionState().HandshakeComplete || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || isTimeout(err) {
		return
	}
	r.srv.cfg.Logger.Warn("TLS: a client is not accepted", "client", r.c.RemoteAddr(), "error", err)
}

// mayRead waits until more input is wanted. It returns false when none is any more.
func (r *routine) mayRead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.c
	for c.state&(closed|closing) == 0 && c.state&stopped != 0 && c.rd.Buffered() > readAhead {
		r.input.Wait()
	}
	return c.state&(closed|closing) == 0 && !r.draining
}

// deadline makes a read return when it is time to look whether the connection is idle.
func (r *routine) deadline() {
	var at time.Time
	if idle := time.Duration(r.srv.idle.Load()); idle > 0 {
		at = time.Now().Add(idle)
	}
	if !at.IsZero() || r.timed {
		r.timed = !at.IsZero()
		r.nc.SetReadDeadline(at)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// arrived takes the result of a read. On the loop.
func (r *routine) arrived(p []byte, err error) {
	c := r.c
	if c.state&closed != 0 {
		return
	}
	if len(p) > 0 {
		r.srv.bytesIn.Add(uint64(len(p)))
		c.active = r.now
		c.rd.Feed(p)
		r.execute(c)
	}
	switch {
	case err == nil:
	case isTimeout(err):
		if idle := r.srv.idle.Load(); idle > 0 && r.now-c.active >= idle && c.state&(parked|held|idleExempt) == 0 {
			r.close(c, ErrIdle)
		}
	case errors.Is(err, io.EOF):
		r.hangup(c)
	default:
		r.close(c, err)
	}
}

// write is the goroutine that sends output.
func (r *routine) write() {
	defer r.b.wg.Done()
	for {
		b := r.nextOutput()
		if b == nil {
			return
		}
		n, err := r.nc.Write(b)
		r.srv.bytesOut.Add(uint64(n))
		r.on(func() { r.written(len(b), err) })
	}
}

// nextOutput waits for bytes to send; nil says that there will be none.
func (r *routine) nextOutput() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.c.state&closed == 0 && r.c.out.size == 0 {
		r.output.Wait()
	}
	if r.c.state&closed != 0 {
		return nil
	}
	return r.c.out.seal()
}

func (r *routine) written(n int, err error) {
	c := r.c
	switch {
	case c.state&closed != 0:
	case err != nil:
		r.close(c, err)
	default:
		if chunk := c.out.pop(n); chunk != nil {
			r.sc.pool.put(chunk)
		}
		c.left()
		if c.state&touched == 0 {
			r.settle(c)
		}
	}
}

// wake is called with the mailbox locked, by any goroutine.
func (r *routine) wake() {
	if !r.tasking {
		r.tasking = true
		go r.on(func() {
			r.mb.mu.Lock()
			r.tasking = false
			r.mb.mu.Unlock()
		})
	}
}

// flush implements transport.
func (r *routine) flush(c *Conn) {
	if len(c.W.Buf) > 0 && c.out.push(c.W.Buf, &r.sc.pool) {
		c.W.Buf = nil
	} else if c.W.Buf != nil {
		r.recycle(c)
	}
	r.output.Signal()
}

// again implements transport.
func (r *routine) again(c *Conn) { c.state |= queued }

// drop implements transport.
func (r *routine) drop(c *Conn) {
	go hangUp(r.nc, isProtocolError(c.reason) && c.state&ended == 0)
	r.output.Signal()
	r.input.Signal()
	r.b.mu.Lock()
	delete(r.b.all, r)
	r.b.mu.Unlock()
}

// hangUp closes nc; TLS says goodbye first, which may take its time. To linger, see loop.lingers.
func hangUp(nc net.Conn, linger bool) {
	defer nc.Close()
	half, ok := nc.(interface{ CloseWrite() error })
	if linger && ok && half.CloseWrite() == nil {
		nc.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, nc, lingerBytes) // however it ends, it is closed
	}
}

// each implements backend.
func (b *routines) each(fn func(conns []*Conn), done func()) {
	b.mu.Lock()
	list := make([]*routine, 0, len(b.all))
	for r := range b.all {
		list = append(list, r)
	}
	b.mu.Unlock()
	left := newCountdown(len(list)+1, done)
	for _, r := range list {
		ok := r.mb.put(task{kind: taskLoop, fn: func() {
			if r.c.state&closed == 0 {
				fn([]*Conn{r.c})
			}
			left.one()
		}})
		if !ok {
			left.one()
		}
	}
	left.one()
}

// drain implements backend.
func (b *routines) drain(now bool) {
	b.mu.Lock()
	b.drawn = true
	list := make([]*routine, 0, len(b.all))
	for r := range b.all {
		list = append(list, r)
	}
	b.mu.Unlock()
	for _, r := range list {
		r.mb.put(task{kind: taskLoop, fn: func() {
			r.draining = true
			if now {
				r.close(r.c, ErrShutdown)
			} else if r.c.state&touched == 0 {
				r.settle(r.c)
			}
		}})
	}
}

// wait implements backend.
func (b *routines) wait() { b.wg.Wait() }
