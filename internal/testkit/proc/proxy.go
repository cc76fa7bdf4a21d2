package proc

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy passes connections on to a port of the loopback address, cuts them, and damages what the server sends.
type Proxy struct {
	Port int

	mark atomic.Pointer[string] // of Damage

	mu    sync.Mutex
	conns []net.Conn
}

// NewProxy returns a proxy for a port, which ends with the test.
func NewProxy(t testing.TB, to int) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Port: l.Addr().(*net.TCPAddr).Port}
	t.Cleanup(func() { _ = l.Close(); p.Cut() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(to)))
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go p.pass(in, out)
		}
	}()
	return p
}

// pass passes the server's bytes on in pieces of any length, so that a cut comes anywhere.
func (p *Proxy) pass(in, out net.Conn) {
	defer in.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := out.Read(buf)
		p.spoil(buf[:n])
		for b := buf[:n]; len(b) > 0; {
			k := 1 + rand.IntN(len(b))
			if _, err := in.Write(b[:k]); err != nil {
				return
			}
			b = b[k:]
		}
		if err != nil {
			return
		}
	}
}

// Damage flips one bit of the next bytes from the server that hold mark, in its place. Any goroutine.
func (p *Proxy) Damage(mark string) { p.mark.Store(&mark) }

// Damaged reports whether that has happened.
func (p *Proxy) Damaged() bool { return p.mark.Load() == nil }

func (p *Proxy) spoil(b []byte) {
	mark := p.mark.Load()
	if mark == nil {
		return
	}
	if at := bytes.Index(b, []byte(*mark)); at >= 0 && p.mark.CompareAndSwap(mark, nil) {
		b[at] ^= 1 << rand.IntN(8)
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	conns := slices.Clone(p.conns)
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}
