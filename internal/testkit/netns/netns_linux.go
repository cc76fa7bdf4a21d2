package netns

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// makeHost makes the namespace of a host and its device.
func makeHost(h *Host) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("%w: a network namespace: %w", ErrUnavailable, err)
		}
		ns, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		if err != nil {
			return err
		}
		h.ns = ns
		if h.tun, err = openTun(); err != nil {
			return err
		}
		return configure(h)
	})
}

const device = "wire0"

// openTun makes the device in the namespace of the thread. It passes IP packets without further headers.
func openTun() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: /dev/net/tun: %w", ErrUnavailable, err)
	}
	ifr, err := unix.NewIfreq(device)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		_ = unix.Close(fd) // err is the news
		return nil, fmt.Errorf("%w: a tun device: %w", ErrUnavailable, err)
	}
	return os.NewFile(uintptr(fd), device), nil
}

// configure gives the device its address and puts it, and the loopback device, into use.
func configure(h *Host) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }() // it has only carried the requests
	addr, mask := h.addr.As4(), [4]byte{255, 255, 255, 0}
	for _, step := range []struct {
		name    string
		request uint
		fill    func(*unix.Ifreq) error
	}{
		{device, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(addr[:]) }},
		{device, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask[:]) }},
		{device, unix.SIOCSIFFLAGS, up},
		{"lo", unix.SIOCSIFFLAGS, up},
	} {
		ifr, err := unix.NewIfreq(step.name)
		if err == nil {
			err = step.fill(ifr)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, step.request, ifr)
		}
		if err != nil {
			return fmt.Errorf("netns: configuring %s: %w", step.name, err)
		}
	}
	return nil
}

func up(r *unix.Ifreq) error {
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return nil
}

// enter moves the thread into the host's namespace.
func (h *Host) enter() error { return unix.Setns(int(h.ns.Fd()), unix.CLONE_NEWNET) }

// onThread runs f on a thread of its own, which ends with it: it may be in another namespace then.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- f()
	}()
	return <-done
}
