package resp

import "golang.org/x/sys/unix"

// hungUp reports whether the peer of a socket has closed it, whether or not the loop has heard of it. If the
// socket was closed here meanwhile the answer means nothing, and the handler knows by Closed.
func hungUp(fd int) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p[:], 0)
	return err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}
