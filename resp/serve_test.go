package resp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// testHandler runs a few commands that use what a Conn offers.
type testHandler struct {
	opened    atomic.Int64
	executed  atomic.Int64
	previewed atomic.Int64
	turns     atomic.Int64

	mu     sync.Mutex
	parked map[string]*Conn // guarded by mu: by the name given to PARK
	held   []*Conn          // guarded by mu
	closed []error          // guarded by mu
}

type testSession struct {
	wantHold bool
	shown    [][]byte // by Preview, not yet run: their last arguments
	// panics lets EndTurn panic; late has it hold the connection although that is about to close.
	panics, late bool
}

func (h *testHandler) Preview(c *Conn, requests [][][]byte) {
	h.previewed.Add(int64(len(requests)))
	s := c.Data.(*testSession)
	s.shown = nil
	for _, args := range requests {
		s.shown = append(s.shown, bytes.Clone(args[len(args)-1]))
	}
}

func (h *testHandler) Opened(c *Conn) {
	h.opened.Add(1)
	c.Data = &testSession{}
}

func (h *testHandler) EndTurn(touched []*Conn) {
	h.turns.Add(1)
	for _, c := range touched {
		s := c.Data.(*testSession)
		if s.panics {
			s.panics = false
			panic("in EndTurn")
		}
		if s.wantHold && (s.late || !c.IsClosed()) {
			s.wantHold = false
			c.Hold()
			h.mu.Lock()
			h.held = append(h.held, c)
			h.mu.Unlock()
		}
	}
}

func (h *testHandler) Closed(_ *Conn, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = append(h.closed, err)
}

func (h *testHandler) park(c *Conn, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.parked == nil {
		h.parked = make(map[string]*Conn)
	}
	h.parked[name] = c
}

func (h *testHandler) Command(c *Conn, args [][]byte) {
	h.executed.Add(1)
	if s := c.Data.(*testSession); len(s.shown) > 0 {
		if !bytes.Equal(s.shown[0], args[len(args)-1]) {
			c.W.Error(fmt.Sprintf("ERR %q was announced, %q came", s.shown[0], args[1]))
		}
		s.shown = s.shown[1:]
	}
	arg := func(i int) string {
		if i < len(args) {
			return string(args[i])
		}
		return ""
	}
	switch strings.ToUpper(arg(0)) {
	case "PING":
		c.W.Simple("PONG")
	case "ECHO":
		c.W.Array(len(args) - 1)
		for _, a := range args[1:] {
			c.W.Bulk(a)
		}
	case "BIG":
		n, _ := strconv.Atoi(arg(1))
		c.W.Bulk(make([]byte, n))
	case "PARK":
		c.Park()
		h.park(c, arg(1))
	case "PARKRUN":
		c.ParkRunning()
		h.park(c, arg(1))
	case "LATER": // replies from another goroutine, some time
		c.ParkRunning()
		text := arg(1)
		go c.Resume(func() { c.W.Simple(text) })
	case "HOLD":
		c.Data.(*testSession).wantHold = true
		c.W.Simple(arg(1))
	case "AUTH":
		c.SetAuthenticated(arg(1) == "yes")
		c.W.OK()
	case "PANIC":
		c.W.Simple("half a reply")
		panic("test")
	case "QUIT":
		c.W.OK()
		c.CloseAfterReply()
	default:
		c.W.Error("ERR unknown command")
	}
}

func (h *testHandler) take(t *testing.T, name string) *Conn {
	t.Helper()
	var c *Conn
	eventually(t, "parked "+name, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		c = h.parked[name]
		return c != nil
	})
	return c
}

func (h *testHandler) takeHeld(t *testing.T, n int) []*Conn {
	t.Helper()
	var cs []*Conn
	eventually(t, "held", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.held) < n {
			return false
		}
		cs, h.held = h.held, nil
		return true
	})
	return cs
}

// wantClosed waits until a connection was closed with err.
func (h *testHandler) wantClosed(t *testing.T, err error) {
	t.Helper()
	eventually(t, "closed with "+err.Error(), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.ContainsFunc(h.closed, func(e error) bool { return errors.Is(e, err) })
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited too long for: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// testServer is a running server of one backend.
type testServer struct {
	*Server
	h    *testHandler
	addr string
}

// onBoth runs a test on event loops and on goroutines.
func onBoth(t *testing.T, cfg Config, test func(t *testing.T, s *testServer)) {
	for name, portable := range map[string]bool{"events": false, "goroutines": true} {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.Portable = portable
			test(t, startServer(t, cfg))
		})
	}
}

func startServer(t *testing.T, cfg Config) *testServer {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	h := &testHandler{}
	s, err := NewServer(h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Listen("tcp", "127.0.0.1:0", ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		if err := <-served; err != ErrServerClosed {
			t.Errorf("Serve: %v", err)
		}
		if n := s.Stats().Clients; n != 0 {
			t.Errorf("%d clients after the end", n)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := h.opened.Load(); int(n) != len(h.closed) {
			t.Errorf("Opened %d times, Closed %d times", n, len(h.closed))
		}
	})
	return &testServer{s, h, addr.String()}
}

// client is a connection whose reads end in time.
type client struct {
	net.Conn
	r *bufio.Reader
	t *testing.T
}

func (s *testServer) dial(t *testing.T) *client {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

func newClient(t *testing.T, nc net.Conn) *client {
	t.Cleanup(func() { nc.Close() })
	nc.SetReadDeadline(time.Now().Add(30 * time.Second))
	return &client{nc, bufio.NewReader(nc), t}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

// want reads exactly s.
func (c *client) want(s string) {
	c.t.Helper()
	got := make([]byte, len(s))
	n, err := io.ReadFull(c.r, got)
	if string(got[:n]) != s {
		c.t.Fatalf("got %.200q, %v; want %.200q", got[:n], err, s)
	}
}

// wantEnd reads exactly s and the end of the connection.
func (c *client) wantEnd(s string) {
	c.t.Helper()
	c.want(s)
	if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil {
		c.t.Fatalf("after %.100q: %.200q, %v", s, rest, err)
	}
}

// wantNothing checks that no reply is on its way.
func (c *client) wantNothing() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if b, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("got %q instead of nothing", b)
	}
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
}
