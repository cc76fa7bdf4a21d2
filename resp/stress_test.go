package resp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAnnouncements has 1,000 clients announce 512 MiB each. Memory stays flat, others are served.
func TestAnnouncements(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		other := s.dial(t)
		other.send("PING\r\n")
		other.want("+PONG\r\n")
		const n = 1000
		conns := make([]*client, n)
		for i := range conns {
			conns[i] = s.dial(t)
		}
		eventually(t, "connected", func() bool { return s.Stats().Clients == n+1 })
		before := heap()
		for _, c := range conns {
			c.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nx")
		}
		eventually(t, "received", func() bool {
			var mu sync.Mutex
			got := 0
			s.Do(func(conns []*Conn) {
				mu.Lock()
				defer mu.Unlock()
				for _, c := range conns {
					if _, used, _ := c.QueryBuffer(); used > 0 {
						got++
					}
				}
			})
			return got == n
		})
		if grown := heap() - before; grown > 8<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		other.send("PING\r\n")
		other.want("+PONG\r\n")
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestIdleConnectionsHoldNothing checks that buffers are given back.
func TestIdleConnectionsHoldNothing(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, s *testServer) {
		c := s.dial(t)
		c.send("BIG 3000000\r\n" + strings.Repeat("PING\r\n", 1000))
		c.want("$3000000\r\n" + string(make([]byte, 3000000)) + "\r\n" + strings.Repeat("+PONG\r\n", 1000))
		s.Do(func(conns []*Conn) {
			for _, c := range conns {
				if c.rd.Held() != 0 || c.W.Buf != nil || cap(c.out.chunks) > 4 {
					t.Errorf("holds %d bytes of input, %d of output", c.rd.Held(), cap(c.W.Buf))
				}
			}
		})
	})
}

// TestCloseRaces closes, resumes and posts from many goroutines while clients come and go.
func TestCloseRaces(t *testing.T) {
	onBoth(t, Config{Loops: 2}, func(t *testing.T, s *testServer) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 40 {
					nc, err := net.Dial("tcp", s.addr)
					if err != nil {
						t.Error(err)
						return
					}
					nc.Write([]byte("PING\r\nLATER a\r\nPARK x\r\nPING\r\n*1\r\nx\r\n"))
					s.DoAsync(func(conns []*Conn) {
						for _, c := range conns {
							c.Resume(nil)
							c.Post(func() { c.W.Simple("push") })
							if c.ID()%3 == 0 {
								go c.Close()
							}
						}
					}, nil)
					nc.Close()
				}
			})
		}
		wg.Wait()
		eventually(t, "all closed", func() bool { return s.Stats().Clients == 0 })
	})
}

func TestTLS(t *testing.T) {
	s := startServer(t, Config{})
	addr, err := s.Listen("tcp", "127.0.0.1:0", ListenOptions{TLS: &tls.Config{Certificates: []tls.Certificate{testCertificate(t)}}})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := tls.Dial("tcp", addr.String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, nc)
	c.send("PING\r\nBIG 1000000\r\nLATER x\r\n")
	c.want("+PONG\r\n$1000000\r\n" + string(make([]byte, 1000000)) + "\r\n+x\r\n")
	plain := s.dial(t)
	plain.send("PING\r\n")
	plain.want("+PONG\r\n")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	c.wantEnd("")
}

func testCertificate(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestFairness: a client with an endless pipeline must not starve another on the same loop.
func TestFairness(t *testing.T) {
	onBoth(t, Config{Loops: 1}, func(t *testing.T, s *testServer) {
		busy, other := s.dial(t), s.dial(t)
		stop := make(chan struct{})
		go func() {
			pipeline := []byte(strings.Repeat("PING\r\n", 100000))
			for {
				if _, err := busy.Write(pipeline); err != nil {
					return
				}
			}
		}()
		go func() {
			buf := make([]byte, 1<<20)
			for {
				if _, err := busy.Read(buf); err != nil {
					close(stop)
					return
				}
			}
		}()
		var worst time.Duration
		for range 200 {
			start := time.Now()
			other.send("PING\r\n")
			other.want("+PONG\r\n")
			worst = max(worst, time.Since(start))
		}
		t.Log("worst", worst)
		if worst > 2*time.Second {
			t.Errorf("a PING took %v", worst)
		}
		busy.Close()
		<-stop
	})
}
