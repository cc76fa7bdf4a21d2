package resp

import (
	"testing"
	"time"
)

// TestSoftBound is exceeded when there is too much for too long, also if nothing happens any more.
func TestSoftBound(t *testing.T) {
	bounds := &OutputBounds{}
	bounds.Set(0, 1<<20, 0)
	onBoth(t, Config{Output: bounds, Loops: 1}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("BIG 40000000\r\n") // more than the system takes
		s.h.wantClosed(t, ErrOutputLimit)
	})
}

// TestBoundsOfOneTurn: a reply beyond the hard bound is not even begun.
func TestBoundsOfOneTurn(t *testing.T) {
	bounds := &OutputBounds{}
	bounds.Set(100000, 0, 0)
	onBoth(t, Config{Output: bounds, Loops: 1}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("BIG 90000\r\n")
		c.want("$90000\r\n" + string(make([]byte, 90000)) + "\r\n")
		c.send("BIG 100000\r\n")
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
		s.h.wantClosed(t, ErrOutputLimit)
	})
}

// TestSoftState counts from when the bound was exceeded last, without a break.
func TestSoftState(t *testing.T) {
	bounds := &OutputBounds{}
	bounds.Set(0, 100, 2)
	tr := &turn{srv: &Server{}, now: 1}
	c := &Conn{srv: tr.srv, t: tr, bounds: bounds}
	c.soft.timer = time.AfterFunc(time.Hour, func() {})
	defer c.soft.timer.Stop()
	second := int64(time.Second)
	for _, p := range []struct {
		at   int64
		size int
		want bool
	}{
		{1, 99, false},
		{2 * second, 100, false},
		{4 * second, 100, false},    // for 2 s
		{4*second + 1, 200, false},  // not yet for 3 s
		{5*second + 1, 200, true},   // for 3 s
		{6 * second, 99, false},     // over
		{7 * second, 100, false},    // again
		{9 * second, 100000, false}, // for 2 s
	} {
		tr.now = p.at
		if got := c.exceeds(p.size); got != p.want {
			t.Errorf("%d bytes at %d ms: %v", p.size, p.at/1e6, got)
		}
	}
}
