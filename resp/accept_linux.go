package resp

import (
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// acceptLimit is the most connections accepted from one socket in one turn.
const acceptLimit = 256

// acceptor is a listening socket on the first loop, level triggered.
type acceptor struct {
	fd   int
	path string // of a unix socket
}

// events are the event loops of a server.
type events struct {
	srv   *Server
	loops []*loop
	wg    sync.WaitGroup
	spare *os.File // given up for a moment when descriptors run out; owned by the first loop
}

// newEvents starts the loops.
func newEvents(s *Server) (backend, error) {
	e := &events{srv: s}
	for range s.cfg.Loops {
		l, err := newLoop(s)
		if err != nil {
			for _, l := range e.loops {
				l.end()
			}
			return nil, err
		}
		e.loops = append(e.loops, l)
	}
	e.spare, _ = os.Open(os.DevNull)
	for _, l := range e.loops {
		l.all = e
		e.wg.Go(l.run)
	}
	return e, nil
}

// accept implements backend.
func (e *events) accept(nl *listener) error {
	fd, err := duplicate(nl, e.srv.cfg.Backlog)
	if err != nil {
		return err
	}
	first := e.loops[0]
	a := &acceptor{fd: fd, path: nl.path}
	first.post(task{kind: taskLoop, fn: func() { first.startAccept(a) }})
	nl.atStop(func() {
		_ = unix.Shutdown(a.fd, unix.SHUT_RDWR) // nobody can connect from now on; the loop may be in the middle of an accept
		first.post(task{kind: taskLoop, fn: func() { first.stopAccept(a) }})
	})
	return nil
}

// each implements backend.
func (e *events) each(fn func(conns []*Conn), done func()) {
	left := newCountdown(len(e.loops), done)
	for _, l := range e.loops {
		if !l.mb.put(task{kind: taskLoop, fn: func() { fn(l.conns); left.one() }}) {
			left.one()
		}
	}
}

// drain implements backend.
func (e *events) drain(now bool) {
	for _, l := range e.loops {
		l.post(task{kind: taskLoop, fn: func() {
			l.draining = true
			for _, v := range slices.Backward(l.conns) {
				if c := v; now {
					l.close(c, ErrShutdown)
				} else if c.state&touched == 0 {
					l.settle(c)
				}
			}
		}})
	}
}

// wait implements backend.
func (e *events) wait() {
	e.wg.Wait()
	if e.spare != nil {
		e.spare.Close()
	}
}

// duplicate returns a descriptor of our own for a listening socket.
func duplicate(l *listener, backlog int) (int, error) {
	type filer interface{ File() (*os.File, error) }
	f, err := l.nl.(filer).File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.SetNonblock(fd, true); err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (l *loop) startAccept(a *acceptor) {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(a.fd)}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, a.fd, &ev); err != nil {
		l.srv.cfg.Logger.Error("accept", "error", err)
		return
	}
	l.acceptors = append(l.acceptors, a)
}

func (l *loop) stopAccept(a *acceptor) {
	l.acceptors = slices.DeleteFunc(l.acceptors, func(b *acceptor) bool { return a == b })
	unix.Close(a.fd)
}

// acceptEvent takes the connections that wait at a listening socket.
func (l *loop) acceptEvent(fd int) {
	for _, a := range l.acceptors {
		if a.fd != fd {
			continue
		}
		for range acceptLimit {
			if !l.acceptOne(a) {
				return
			}
		}
	}
}

// acceptOne returns false when no further connection waits.
func (l *loop) acceptOne(a *acceptor) bool {
	fd, sa, err := unix.Accept4(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	switch err {
	case nil:
	case unix.EINTR, unix.ECONNABORTED:
		return true
	case unix.EMFILE, unix.ENFILE:
		l.outOfFiles(a)
		return false
	case unix.EAGAIN, unix.EINVAL: // EINVAL: it has been stopped
		return false
	default:
		l.srv.cfg.Logger.Warn("accept", "error", err)
		return false
	}
	if !l.srv.admit() {
		_, _ = sysWrite(fd, []byte(tooMany)) // the connection is closed in any case
		unix.Close(fd)
		return true
	}
	local, _ := unix.Getsockname(fd)
	to := l.all.leastLoaded()
	to.count.Add(1)
	c := l.srv.newConn(&to.turn, fd, sockaddrText(sa, a.path), sockaddrText(local, a.path))
	if to == l {
		l.add(c)
		return true
	}
	if !to.mb.put(task{kind: taskLoop, fn: func() { to.add(c) }}) {
		to.refuseLate(c)
	}
	return true
}

func (e *events) leastLoaded() *loop {
	best := e.loops[0]
	for _, l := range e.loops[1:] {
		if l.count.Load() < best.count.Load() {
			best = l
		}
	}
	return best
}

// outOfFiles turns one waiting client away when no descriptor is left, so that it does not wait for ever and
// the loop does not spin.
func (l *loop) outOfFiles(a *acceptor) {
	l.srv.cfg.Logger.Warn("accept: out of file descriptors")
	if l.all.spare == nil {
		return
	}
	l.all.spare.Close()
	if fd, _, err := unix.Accept4(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC); err == nil {
		unix.Close(fd)
		l.srv.rejected.Add(1)
	}
	l.all.spare, _ = os.Open(os.DevNull)
}
