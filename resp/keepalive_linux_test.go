package resp

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// keepIdle returns after how many seconds probes of a connection begin, 0 for never.
func keepIdle(t *testing.T, c *Conn) (secs int) {
	t.Helper()
	look := func(fd uintptr) {
		on, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		if err == nil && on != 0 {
			secs, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		}
		if err != nil {
			t.Error(err)
		}
	}
	r, ok := c.t.tr.(*routine)
	if !ok {
		look(uintptr(c.fd))
		return secs
	}
	rc, err := r.nc.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := rc.Control(look); err != nil {
		t.Error(err)
	}
	return secs
}

// TestKeepAlive: connections have the keepalive time of when they came.
func TestKeepAlive(t *testing.T) {
	onBoth(t, Config{Loops: 1, KeepAlive: 100 * time.Second}, func(t *testing.T, s *testServer) {
		want := map[string]int{}
		for _, secs := range []int{100, 77, 0, 50, 1 << 20} {
			d := time.Duration(secs) * time.Second
			if secs == 0 {
				d = -1
			}
			if err := s.SetKeepAlive(d); err != nil {
				t.Fatal(err)
			}
			nc, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			c := newClient(t, nc)
			c.send("PING\r\n")
			c.want("+PONG\r\n")
			want[nc.LocalAddr().String()] = min(secs, int(maxKeepAlive/time.Second))
		}
		var found atomic.Int64
		s.Do(func(conns []*Conn) {
			for _, c := range conns {
				secs, ok := want[c.RemoteAddr()]
				if got := keepIdle(t, c); !ok || got != secs {
					t.Errorf("%s: %d s, want %d", c.RemoteAddr(), got, secs)
				}
				found.Add(1)
			}
		})
		if n := int(found.Load()); n != len(want) {
			t.Errorf("%d connections", n)
		}
	})
}
