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

// Proxy passes connections on to a port of the loopback address, stalls and cuts them, and damages what the server sends.
type Proxy struct {
	Port int

	mark atomic.Pointer[string] // of Damage

	mu      sync.Mutex
	conns   []net.Conn
	allowed int           // bytes from the server that may pass; below zero: all
	changed chan struct{} // closed, and replaced, when that is set anew or connections are cut
}

// NewProxy returns a proxy for a port, which ends with the test.
func NewProxy(t testing.TB, to int) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Port: l.Addr().(*net.TCPAddr).Port, allowed: -1, changed: make(chan struct{})}
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
			k := p.allow(1+rand.IntN(len(b)), in)
			if k == 0 {
				return
			}
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

// Allow lets so many bytes from the server pass from now on, and what comes behind them wait; below zero: all of them. Any goroutine.
func (p *Proxy) Allow(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = n
	p.wakeLocked()
}

func (p *Proxy) wakeLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// allow takes up to n of the bytes that may pass, for which it waits. None: the connection has been cut.
func (p *Proxy) allow(n int, in net.Conn) int {
	for {
		k, changed := p.take(n, in)
		if k != 0 || changed == nil {
			return k
		}
		<-changed
	}
}

// take is allow, but for the waiting: for changed.
func (p *Proxy) take(n int, in net.Conn) (k int, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !slices.Contains(p.conns, in):
		return 0, nil
	case p.allowed < 0:
		return n, nil
	}
	k = min(n, p.allowed)
	p.allowed -= k
	return k, p.changed
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	conns := slices.Clone(p.conns)
	p.conns = nil
	p.wakeLocked()
	p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}
