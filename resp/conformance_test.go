package resp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPipelineAndErrors(t *testing.T) {
	onBoth(t, Config{Loops: 2}, func(t *testing.T, s *testServer) {
		for _, tt := range protocolErrors {
			if tt.want == "" {
				continue
			}
			c := s.dial(t)
			if !tt.auth {
				c.send("AUTH no\r\n")
				c.want("+OK\r\n")
			}
			c.send("PING\r\n*1\r\n$4\r\nPING\r\n" + tt.in + "PING\r\n")
			c.wantEnd("+PONG\r\n+PONG\r\n-ERR Protocol error: " + strings.ReplaceAll(tt.want, "\r", " ") + "\r\n")
		}
	})
}

func TestRandomPipelineOverSocket(t *testing.T) {
	in, want := randomPipeline(rand.New(rand.NewPCG(7, 7)), 10<<20)
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		go func() {
			rng := rand.New(rand.NewPCG(8, 8))
			for rest := in; len(rest) > 0; {
				n := min(1+rng.IntN(1<<(4+rng.IntN(14))), len(rest))
				if _, err := c.Write(rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		var w Writer
		for _, args := range want {
			w.Buf = w.Buf[:0]
			w.Array(len(args) - 1)
			for _, a := range args[1:] {
				w.Bulk(a)
			}
			c.want(string(w.Buf))
		}
		if s.h.previewed.Load() < int64(len(want)/100) {
			t.Errorf("%d of %d requests were previewed", s.h.previewed.Load(), len(want))
		}
	})
}

func TestHalfClose(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		for _, n := range []int{1, 20000} {
			c := s.dial(t)
			c.send(strings.Repeat("PING\r\n", n) + "LATER x\r\nPING\r\nBIG 3000000\r\nPING\r\nincomplete")
			c.Conn.(*net.TCPConn).CloseWrite()
			time.Sleep(time.Duration(n) * time.Microsecond)
			c.wantEnd(strings.Repeat("+PONG\r\n", n) + "+x\r\n+PONG\r\n$3000000\r\n" + string(make([]byte, 3000000)) + "\r\n+PONG\r\n")
			eventually(t, "closed", func() bool { return s.Stats().Clients == 0 })
			s.h.wantClosed(t, io.EOF)
		}
	})
}

func TestHalfCloseWhileHeld(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("PING\r\nHOLD a\r\nPING\r\n")
		c.Conn.(*net.TCPConn).CloseWrite()
		cs := s.h.takeHeld(t, 1)
		c.wantNothing()
		cs[0].Release(func() {
			cs[0].W.Buf = append(cs[0].W.Buf[:0], "+rewritten\r\n"...)
		})
		c.wantEnd("+rewritten\r\n")
	})
}

func TestParkResume(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("PING\r\nPARK a\r\nPING\r\n")
		c.want("+PONG\r\n")
		p := s.h.take(t, "a")
		c.wantNothing()
		p.Post(func() { p.W.Simple("push") })
		c.want("+push\r\n")
		c.wantNothing()
		c.send("ECHO x\r\n")
		p.Resume(func() { p.W.Simple("resumed") })
		c.want("+resumed\r\n+PONG\r\n*1\r\n$1\r\nx\r\n")
		c.send("PARK b\r\n")
		s.h.take(t, "b")
		c.Close()
		eventually(t, "closed", func() bool { return s.Stats().Clients == 0 })
		p.Resume(func() { t.Error("resumed after the end") })
		p.Close()
	})
}

// TestManyWakeUps wakes a sleeping loop from outside more often than a byte can count.
func TestManyWakeUps(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("PARK a\r\n")
		p := s.h.take(t, "a")
		for range 1000 {
			time.Sleep(50 * time.Microsecond) // the loop goes to sleep
			p.Post(func() { p.W.Simple("x") })
			c.want("+x\r\n")
		}
	})
}

func TestHoldRelease(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c, other := s.dial(t), s.dial(t)
		c.send("PING\r\nHOLD a\r\n")
		h := s.h.takeHeld(t, 1)[0]
		c.send("PING\r\nPING\r\n")
		h.Post(func() { h.W.Simple("push") })
		c.wantNothing()
		other.send("PING\r\n")
		other.want("+PONG\r\n")
		h.Release(nil)
		c.want("+PONG\r\n+a\r\n+push\r\n+PONG\r\n+PONG\r\n")
	})
}

// TestReplyWhileReleased has a parked command reply in the turn in which the reply before it is released: the second one
// waits for what EndTurn says.
func TestReplyWhileReleased(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("HOLD a\r\nPARK p\r\n")
		p := s.h.take(t, "p")
		s.h.takeHeld(t, 1)
		p.Post(func() { // both in the next turn
			p.Resume(func() {
				p.Data.(*testSession).wantHold = true
				p.W.Simple("b")
			})
			p.Release(nil)
		})
		s.h.takeHeld(t, 1)
		c.wantNothing()
		p.Release(nil)
		c.want("+a\r\n+b\r\n")
	})
}

// TestPanicWhileHeld: a panic does not let go of replies that are withheld.
func TestPanicWhileHeld(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("HOLD a\r\nHOLD b\r\n")
		h := s.h.takeHeld(t, 1)[0]
		h.Post(func() { h.W.Simple("half"); panic("in Post") })
		c.wantNothing()
		h.Release(nil)
		c.wantEnd("+a\r\n+b\r\n-ERR internal error\r\n")
		s.h.wantClosed(t, ErrPanic)
	})
}

// TestReleaseAfterPanicInEndTurn: such a panic ends all holds, so a release that comes afterwards must not be taken for that of a
// later hold: the connection would never end.
func TestReleaseAfterPanicInEndTurn(t *testing.T) {
	panicked := make(chan struct{}, 1)
	hook := func(*Conn, any, []byte) { panicked <- struct{}{} }
	onBoth(t, Config{OnPanic: hook}, func(t *testing.T, s *testServer) {
		const big = 20 << 20 // more than the sockets take: the connection stays open until all is read
		c := s.dial(t)
		c.send(fmt.Sprintf("BIG %d\r\n", big))
		c.want("$")
		c.send("HOLD a\r\n")
		h := s.h.takeHeld(t, 1)[0]
		x := h.Data.(*testSession)
		h.Post(func() { x.panics = true })
		<-panicked
		h.Release(nil)
		h.Post(func() {
			x.wantHold, x.late = true, true
			h.W.Simple("late")
		})
		s.h.takeHeld(t, 1)[0].Release(nil)
		c.wantEnd(fmt.Sprintf("%d\r\n%s\r\n-ERR internal error\r\n+late\r\n", big, make([]byte, big)))
	})
}

// TestOrderUnderLoad has many clients whose commands park and hold at random; every reply must come in order.
func TestOrderUnderLoad(t *testing.T) {
	onBoth(t, Config{Loops: 2}, func(t *testing.T, s *testServer) {
		stop := make(chan struct{})
		var wg, releaser sync.WaitGroup
		releaser.Go(func() {
			for {
				s.h.mu.Lock()
				held := s.h.held
				s.h.held = nil
				s.h.mu.Unlock()
				for _, c := range held {
					c.Release(nil)
				}
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		})
		for i := range 20 {
			c := s.dial(t)
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 0))
				for range 30 {
					var in, want strings.Builder
					for j := range 1 + rng.IntN(50) {
						switch rng.IntN(12) {
						case 0:
							fmt.Fprintf(&in, "LATER l%d\r\n", j)
							fmt.Fprintf(&want, "+l%d\r\n", j)
						case 1:
							fmt.Fprintf(&in, "HOLD h%d\r\n", j)
							fmt.Fprintf(&want, "+h%d\r\n", j)
						default:
							fmt.Fprintf(&in, "ECHO %d\r\n", j)
							fmt.Fprintf(&want, "*1\r\n$%d\r\n%d\r\n", len(fmt.Sprint(j)), j)
						}
					}
					c.send(in.String())
					c.want(want.String())
				}
			})
		}
		wg.Wait()
		close(stop)
		releaser.Wait()
	})
}

func TestPanicIsContained(t *testing.T) {
	hooked := make(chan any, 2)
	hook := func(_ *Conn, v any, _ []byte) { hooked <- v }
	onBoth(t, Config{OnPanic: hook}, func(t *testing.T, s *testServer) {
		c, other := s.dial(t), s.dial(t)
		c.send("PING\r\nPANIC\r\nPING\r\n")
		c.wantEnd("+PONG\r\n-ERR internal error\r\n")
		if v := <-hooked; v != "test" {
			t.Errorf("hook got %v", v)
		}
		s.h.wantClosed(t, ErrPanic)
		other.send("PARK a\r\n")
		p := s.h.take(t, "a")
		p.Resume(func() { panic("in Resume") })
		other.wantEnd("-ERR internal error\r\n")
		<-hooked
	})
}

func TestMaxClients(t *testing.T) {
	onBoth(t, Config{MaxClients: 2}, func(t *testing.T, s *testServer) {
		a, b := s.dial(t), s.dial(t)
		a.send("PING\r\n")
		b.send("PING\r\n")
		a.want("+PONG\r\n")
		b.want("+PONG\r\n")
		s.dial(t).wantEnd(tooMany)
		if st := s.Stats(); st.Clients != 2 || st.Connections != 2 || st.Rejected != 1 {
			t.Errorf("%+v", st)
		}
		s.SetMaxClients(3)
		c := s.dial(t)
		c.send("QUIT\r\nPING\r\n")
		c.wantEnd("+OK\r\n")
	})
}

// TestClientThatNeverReads must be closed at the limit, without harm to others.
func TestClientThatNeverReads(t *testing.T) {
	bounds := &OutputBounds{}
	bounds.Set(32<<20, 0, 0)
	onBoth(t, Config{Output: bounds, Loops: 1}, func(t *testing.T, s *testServer) {
		c, other := s.dial(t), s.dial(t)
		c.Conn.(*net.TCPConn).SetReadBuffer(4096)
		go func() {
			for range 100 {
				if _, err := io.WriteString(c, strings.Repeat("BIG 100000\r\n", 20)); err != nil {
					return
				}
			}
		}()
		for range 50 {
			start := time.Now()
			other.send("PING\r\n")
			other.want("+PONG\r\n")
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("a PING took %v", d)
			}
		}
		s.h.wantClosed(t, ErrOutputLimit)
	})
}

// TestSlowReader gets large replies complete, in pieces.
func TestSlowReader(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send(strings.Repeat("BIG 1000000\r\nPING\r\n", 30))
		time.Sleep(50 * time.Millisecond)
		want := "$1000000\r\n" + string(make([]byte, 1000000)) + "\r\n+PONG\r\n"
		for range 30 {
			c.want(want)
		}
		eventually(t, "sent", func() bool {
			pending := 0
			s.Do(func(conns []*Conn) {
				for _, c := range conns {
					pending = c.OutputPending()
				}
			})
			return pending == 0
		})
	})
}

func TestKill(t *testing.T) {
	onBoth(t, Config{Loops: 2}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("PING\r\n")
		c.want("+PONG\r\n")
		s.Do(func(conns []*Conn) {
			for _, c := range conns {
				if c.RemoteAddr() == "" || c.LocalAddr() != s.addr || c.ID() == 0 {
					t.Errorf("%q %q %d", c.RemoteAddr(), c.LocalAddr(), c.ID())
				}
				c.Close()
			}
		})
		c.wantEnd("")
	})
}

func TestIdleTimeout(t *testing.T) {
	onBoth(t, Config{IdleTimeout: 300 * time.Millisecond}, func(t *testing.T, s *testServer) {
		parked, idle := s.dial(t), s.dial(t)
		parked.send("PARK a\r\n")
		p := s.h.take(t, "a")
		idle.send("PING\r\n")
		idle.wantEnd("+PONG\r\n")
		s.h.wantClosed(t, ErrIdle)
		p.Resume(func() { p.W.OK() })
		parked.want("+OK\r\n")
	})
}

// TestUnlisten: a listener goes, from a loop, and is at once free for another; connections stay.
func TestUnlisten(t *testing.T) {
	onBoth(t, Config{Loops: 2}, func(t *testing.T, s *testServer) {
		addr, err := s.Listen("tcp", "127.0.0.1:0", ListenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t, nc)
		c.send("PING\r\n")
		c.want("+PONG\r\n")
		for range 20 {
			s.Do(func([]*Conn) { s.Unlisten(addr) })
			if nc, err := net.Dial("tcp", addr.String()); err == nil {
				nc.Close()
				t.Fatal("still accepts")
			}
			var again net.Addr
			var once sync.Once
			s.Do(func([]*Conn) {
				once.Do(func() { again, err = s.Listen("tcp", addr.String(), ListenOptions{}) })
			})
			if err != nil {
				t.Fatal(err)
			}
			addr = again
			nc, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Fatal(err)
			}
			other := newClient(t, nc)
			other.send("PING\r\n")
			other.want("+PONG\r\n")
		}
		c.send("PING\r\n")
		c.want("+PONG\r\n")
	})
}

func TestUnixSocket(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		path := filepath.Join(t.TempDir(), "s")
		if _, err := s.Listen("unix", path, ListenOptions{Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Fatal(fi, err)
		}
		nc, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t, nc)
		c.send("PING\r\nBIG 1000000\r\n")
		c.want("+PONG\r\n$1000000\r\n" + string(make([]byte, 1000000)) + "\r\n")
		s.Do(func(conns []*Conn) {
			for _, c := range conns {
				if want := path + ":0"; c.RemoteAddr() != want || c.LocalAddr() != want {
					t.Errorf("%q, %q", c.RemoteAddr(), c.LocalAddr())
				}
			}
		})
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the socket's file is left")
		}
	})
}

func TestShutdown(t *testing.T) {
	onBoth(t, Config{Loops: 2}, func(t *testing.T, s *testServer) {
		idle, blocked, running, held := s.dial(t), s.dial(t), s.dial(t), s.dial(t)
		idle.send("PING\r\n")
		idle.want("+PONG\r\n")
		blocked.send("PARK b\r\n")
		running.send("PING\r\nPARKRUN r\r\nPING\r\n")
		held.send("HOLD h\r\n")
		s.h.take(t, "b")
		r := s.h.take(t, "r")
		h := s.h.takeHeld(t, 1)[0]
		done := make(chan error)
		go func() { done <- s.Shutdown(context.Background()) }()
		idle.wantEnd("")
		blocked.wantEnd("")
		running.want("+PONG\r\n")
		running.wantNothing()
		held.wantNothing()
		r.Resume(func() { r.W.OK() })
		running.wantEnd("+OK\r\n")
		h.Release(nil)
		held.wantEnd("+h\r\n")
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := net.Dial("tcp", s.addr); err == nil {
			t.Error("still accepts")
		}
		if _, err := s.Listen("tcp", "127.0.0.1:0", ListenOptions{}); err != ErrServerClosed {
			t.Error(err)
		}
	})
}

func TestShutdownInTime(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("PARKRUN r\r\n")
		s.h.take(t, "r")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		c.wantEnd("")
	})
}
