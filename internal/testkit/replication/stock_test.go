package replication

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

// TestStockInstead: a stock Redis stands where a kevy was whose copy had begun to come.
func TestStockInstead(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	value := make([]byte, 64<<10) // random: it is not compressed
	for i := range 200 {
		_, _ = rand.Read(value) // never fails
		a.ok("SET", fmt.Sprint("k", i), string(value))
	}
	redis := proc.RedisForTest(t, "--repl-diskless-sync-delay", "0")
	c, err := redis.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Must("SET", "from", "redis"); err != nil {
		t.Fatal(err)
	}
	b.ok("REPLICAOF", "127.0.0.1", strconv.Itoa(turning(t, a.port, redis.Port, 5<<20)))
	b.up(t)
	b.want(t, "repl_source", "stock")
	if got := b.ok("GET", "from").Text(); got != "redis" || b.ok("DBSIZE").Text() != "1" {
		t.Errorf("from %s, %s keys", got, b.ok("DBSIZE").String())
	}
}

// turning passes connections on to a port until so many bytes have come from there, and to another one from then on. It returns its own.
func turning(t *testing.T, first, then int, bytes int64) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var turned atomic.Bool
	pass := func(in net.Conn) {
		defer in.Close() //nolint:errcheck // over
		to, most := first, bytes
		if turned.Load() {
			to, most = then, 1<<62
		}
		out, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(to)))
		if err != nil {
			return
		}
		defer out.Close() //nolint:errcheck // over
		go func() { _, _ = io.Copy(out, in) }()
		if n, _ := io.CopyN(in, out, most); n == most {
			turned.Store(true)
		}
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go pass(in)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
