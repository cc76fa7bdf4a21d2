package resp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// lingerLimit is the most lingering sockets at a time.
const lingerLimit = 1 << 10

// lingers decides whether the socket of a connection that broke the protocol stays open for a while. Closed
// with unread input it would be reset, and some clients then lose the reply that says why. Our
// side is shut down, and input is thrown away until the client hangs up or its time is over.
func (l *loop) lingers(c *Conn) bool {
	if !isProtocolError(c.reason) || c.state&(ended|hungup) != 0 || c.kill.Load() ||
		len(l.linger) >= lingerLimit || l.draining {
		return false
	}
	if unix.Shutdown(c.fd, unix.SHUT_WR) != nil {
		return false
	}
	c.state |= lingering
	c.active = l.now
	l.linger = append(l.linger, c)
	l.discard(c)
	return true
}

// discard throws away what a lingering socket received.
func (l *loop) discard(c *Conn) {
	for range 16 {
		n, errno := sysRead(c.fd, l.sc.in)
		if errno == syscall.EAGAIN {
			return
		}
		if errno != 0 || n == 0 {
			break
		}
	}
	c.active = 0 // the next sweep closes it
}

// endLingering closes the lingering sockets whose time is over.
func (l *loop) endLingering() {
	kept := l.linger[:0]
	for _, c := range l.linger {
		if l.now-c.active < int64(lingerTime) {
			kept = append(kept, c)
			continue
		}
		l.byFD[c.fd] = nil
		unix.Close(c.fd)
	}
	clear(l.linger[len(kept):])
	l.linger = kept
}
