package resp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// listener is one bound address. The socket belongs to a net.Listener; backends that accept on their own
// use a duplicate.
type listener struct {
	nl   net.Listener
	addr net.Addr
	opt  ListenOptions
	path string // of a unix socket

	mu      sync.Mutex
	stopped bool     // guarded by mu
	onStop  []func() // guarded by mu
}

// bind opens a listening socket.
func (s *Server) bind(network, addr string, opt ListenOptions) (*listener, error) {
	l := &listener{opt: opt}
	if network == "unix" {
		l.path = addr
		if err := removeStale(addr); err != nil {
			return nil, err
		}
	}
	lc := net.ListenConfig{KeepAlive: -1, Control: func(network, _ string, rc syscall.RawConn) error {
		return prepareSocket(network, rc, s.keepAlive())
	}}
	lc.SetMultipathTCP(false)
	nl, err := lc.Listen(context.Background(), network, addr)
	if err != nil {
		return nil, err
	}
	l.nl, l.addr = nl, nl.Addr()
	if l.path != "" && opt.Mode != 0 {
		if err := os.Chmod(l.path, fs.FileMode(opt.Mode)); err != nil {
			return nil, errors.Join(err, nl.Close())
		}
	}
	return l, nil
}

// prepare sets anew what accepted sockets inherit.
func (l *listener) prepare(keepAlive time.Duration) error {
	sc, ok := l.nl.(syscall.Conn)
	if !ok {
		return nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	return prepareSocket(l.addr.Network(), rc, keepAlive)
}

// removeStale removes the socket file a former server left at path, and nothing else.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case fi.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("resp: %s exists and is not a socket", path)
	}
	return os.Remove(path)
}

// atStop has fn called when the listener stops, at once if it has.
func (l *listener) atStop(fn func()) {
	l.mu.Lock()
	if !l.stopped {
		l.onStop = append(l.onStop, fn)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	fn()
}

// stop accepts no more connections. A unix socket's file goes too.
func (l *listener) stop() {
	l.mu.Lock()
	fns := l.onStop
	stopped := l.stopped
	l.stopped, l.onStop = true, nil
	l.mu.Unlock()
	if stopped {
		return
	}
	for _, fn := range fns {
		fn()
	}
	l.nl.Close()
}

// addrText returns an address as Redis shows it.
func addrText(a net.Addr, path string) string {
	if a == nil || a.Network() == "unix" {
		return path + ":0"
	}
	return a.String()
}
