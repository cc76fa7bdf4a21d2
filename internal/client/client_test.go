package client

import (
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"
)

// over returns a connection whose peer sends reply and closes; sent receives what it got.
func over(t *testing.T, reply string) (c *Conn, sent chan string) {
	t.Helper()
	near, far := net.Pipe()
	sent = make(chan string, 1)
	go func() {
		buf := make([]byte, 1<<16)
		n, _ := far.Read(buf)
		_, _ = io.Copy(far, strings.NewReader(reply))
		_ = far.Close()
		sent <- string(buf[:n])
	}()
	c = New(near)
	t.Cleanup(c.Close)
	return c, sent
}

func TestDo(t *testing.T) {
	for reply, want := range map[string]any{
		"+OK\r\n":         "OK",
		":-5\r\n":         int64(-5),
		"$-1\r\n":         nil,
		"*-1\r\n":         nil,
		"$0\r\n\r\n":      "",
		"$3\r\na\r\n\r\n": "a\r\n",
		"*3\r\n:1\r\n*1\r\n$1\r\nx\r\n-ERR y\r\n": []any{int64(1), []any{"x"}, Error("ERR y")},
		"-ERR no\r\n": Error("ERR no"),
	} {
		c, sent := over(t, reply)
		got, err := c.Do(time.Second, "GET", "k\r\n")
		if e, ok := want.(Error); ok {
			if !errors.Is(err, e) {
				t.Errorf("%q: %v", reply, err)
			}
		} else if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v", reply, got, err)
		}
		if s := <-sent; s != "*2\r\n$3\r\nGET\r\n$3\r\nk\r\n\r\n" {
			t.Errorf("sent %q", s)
		}
	}
}

// TestUnreadable: what no server may send, or only a part of it, is an error and reserves nothing.
func TestUnreadable(t *testing.T) {
	for _, reply := range []string{
		"", "\r\n", "+OK", "+OK\n", "$3\r\nab", "$3\r\nabcde", "$-2\r\n", "$700000000\r\n", "$9223372036854775807\r\n", "$x\r\n",
		"*2\r\n:1\r\n", "*-2\r\n", "!x\r\n", "+" + strings.Repeat("x", 1<<17) + "\r\n", strings.Repeat("*1\r\n", 50),
		"$600000000\r\nx",
	} {
		c, _ := over(t, reply)
		if v, err := c.Do(time.Second, "X"); err == nil || errors.As(err, new(Error)) {
			t.Errorf("%.40q: %v, %v", reply, v, err)
		}
	}
}

func TestTyped(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
	c, _ := over(t, "*3\r\n:7\r\n$3145728\r\n"+string(big)+"\r\n*0\r\n-ERR gone\r\n:-1\r\n+x\r\n")
	if err := c.Send(time.Second, []byte("X")); err != nil {
		t.Fatal(err)
	}
	if err := c.Tuple(3); err != nil {
		t.Error(err)
	}
	if n, err := c.Uint(); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if b, err := c.Bulk(); !bytes.Equal(b, big) || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if err := c.Tuple(1); !errors.Is(err, ErrProtocol) {
		t.Errorf("a tuple of another length: %v", err)
	}
	if _, err := c.Array(); !errors.Is(err, Error("ERR gone")) {
		t.Errorf("an error reply: %v", err)
	}
	if _, err := c.Uint(); !errors.Is(err, ErrProtocol) {
		t.Errorf("a negative number: %v", err)
	}
	if _, err := c.Bulk(); !errors.Is(err, ErrProtocol) {
		t.Errorf("another kind: %v", err)
	}
}
