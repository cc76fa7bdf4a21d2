package resp

import (
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below never wait, so they go to the kernel without telling the scheduler, which would
// cost more than some of them do.

// sysRead reads from a non-blocking socket.
func sysRead(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// sysWrite writes to a non-blocking socket.
func sysWrite(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// epollPoll returns events without waiting.
func epollPoll(ep int, events []unix.EpollEvent) int {
	n, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// epollWait waits for events; timeout in milliseconds, -1 for ever.
func epollWait(ep int, events []unix.EpollEvent, timeout int) int {
	n, _, e := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(timeout), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// prepareSocket sets what accepted sockets inherit from a listening one.
func prepareSocket(network string, rc syscall.RawConn, keepAlive time.Duration) error {
	if network == "unix" {
		return nil
	}
	var err error
	cerr := rc.Control(func(fd uintptr) { err = setTCP(int(fd), keepAlive) })
	if cerr != nil {
		return cerr
	}
	return err
}

func setTCP(fd int, keepAlive time.Duration) error {
	set := func(level, name, value int) error {
		return unix.SetsockoptInt(fd, level, name, value)
	}
	if err := set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := set(unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	if keepAlive < 0 {
		return set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
	}
	secs := max(int(keepAlive/time.Second), 1)
	if err := set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1); err != nil {
		return err
	}
	if err := set(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, secs); err != nil {
		return err
	}
	if err := set(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(secs/3, 1)); err != nil {
		return err
	}
	return set(unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
}

// sockaddrText returns an address as Redis shows it.
func sockaddrText(sa unix.Sockaddr, path string) string {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return (&net.TCPAddr{IP: a.Addr[:], Port: a.Port}).String()
	case *unix.SockaddrInet6:
		return (&net.TCPAddr{IP: a.Addr[:], Port: a.Port}).String()
	}
	return path + ":0"
}
