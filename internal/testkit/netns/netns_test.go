package netns

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// pair is two hosts and a TCP connection from the first one to the second.
func pair(t *testing.T) (n *Network, a, b *Host, from, to net.Conn) {
	t.Helper()
	n, hosts, err := New(1, "a", "b")
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	a, b = hosts[0], hosts[1]
	var l net.Listener
	err = b.Do(func() error { l, err = net.Listen("tcp", net.JoinHostPort(b.IP(), "7000")); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	err = a.Do(func() error { from, err = net.Dial("tcp", net.JoinHostPort(b.IP(), "7000")); return err })
	if err != nil {
		t.Fatal(err)
	}
	to = <-accepted
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	return n, a, b, from, to
}

// silent reports that nothing comes for a while.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("%d bytes have come, %v", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("%q, %v, want %q", b, err, text)
	}
}

func TestFaults(t *testing.T) {
	n, a, b, from, to := pair(t)
	send(t, from, "one")
	receive(t, to, "one")
	n.Set(a, b, Fault{Down: true})
	send(t, to, "two") // the other direction is whole
	receive(t, from, "two")
	send(t, from, "three")
	silent(t, to)
	n.Heal()
	receive(t, to, "three") // TCP sends it again
	n.Part(a)
	send(t, to, "four")
	silent(t, from)
	n.Heal()
	receive(t, from, "four")
	n.Both(a, b, Fault{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1})
	began := time.Now()
	send(t, from, "five")
	receive(t, to, "five")
	if d := time.Since(began); d < 20*time.Millisecond {
		t.Errorf("a packet that is late by 20 ms has come after %s", d)
	}
}

// TestCut: the wire is cut amid what is sent.
func TestCut(t *testing.T) {
	n, a, b, from, to := pair(t)
	n.Set(a, b, Fault{CutAfter: 5000})
	send(t, from, string(make([]byte, 20_000)))
	if err := to.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(to)
	if len(got) == 0 || len(got) >= 20_000 || err == nil {
		t.Errorf("%d bytes of 20000 have come, %v", len(got), err)
	}
}
