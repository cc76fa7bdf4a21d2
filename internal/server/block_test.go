package server

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// waitBlocked waits until n clients are blocked.
func (s *testServer) waitBlocked(n int64) {
	s.t.Helper()
	for end := time.Now().Add(5 * time.Second); s.blocked.Load() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%d clients are blocked, want %d", s.blocked.Load(), n)
		}
	}
}

func TestBlockedClientsAreServedInOrder(t *testing.T) {
	s := start(t, testOptions{})
	var waiting []*client
	for i := range 4 {
		c := s.client()
		c.send([]string{"BLPOP k1 k2 0", "BRPOP k2 0", "BLMPOP 0 2 k2 k3 LEFT COUNT 2", "BLMOVE k2 k4 LEFT RIGHT 0"}[i])
		s.waitBlocked(int64(i + 1))
		waiting = append(waiting, c)
	}
	w := s.client()
	w.want("RPUSH k2 a b c d e f", ":6")
	for i, c := range waiting {
		want := []string{"*[k2 a]", "*[k2 f]", "*[k2 *[b c]]", "d"}[i]
		if got := c.read(); got != want {
			t.Errorf("client %d got %s, want %s", i, got, want)
		}
	}
	s.waitBlocked(0)
	for key, want := range map[string]string{"k2": "1", "k4": "1"} {
		r, _ := w.Do("LLEN", key)
		if n, _ := r.Int(); fmt.Sprint(n) != want {
			t.Errorf("%s has %d elements, want %s", key, n, want)
		}
	}
	// A chain: what is moved serves the next one, all within one command.
	a, b := s.client(), s.client()
	a.send("BLMOVE x y LEFT LEFT 0")
	s.waitBlocked(1)
	b.send("BLPOP y 0")
	s.waitBlocked(2)
	w.do("RPUSH x v")
	r, _ := w.Do("EXISTS", "x", "y")
	if n, _ := r.Int(); n != 0 {
		t.Errorf("%d of two lists are left", n)
	}
	for _, c := range []*client{a, b} {
		if _, err := c.Read(); err != nil {
			t.Error(err)
		}
	}
}

// What adds nothing to a stream leaves the readers that wait for it in their places, also in the queues of other keys.
func TestBlockedReadersKeepTheirPlaces(t *testing.T) {
	s := start(t, testOptions{})
	w, first, second := s.client(), s.client(), s.client()
	w.do("XGROUP CREATE x1 g $ MKSTREAM")
	w.do("XGROUP CREATE x2 g $ MKSTREAM")
	w.do("XADD x1 1-1 f v")
	w.do("XREADGROUP GROUP g carol STREAMS x1 >")
	first.send("XREADGROUP GROUP g bob COUNT 1 BLOCK 0 STREAMS x1 x2 > >")
	s.waitBlocked(1)
	second.send("XREADGROUP GROUP g alice BLOCK 0 STREAMS x2 >")
	s.waitBlocked(2)
	for _, line := range []string{
		"XGROUP CREATECONSUMER x1 g dave", "XCLAIM x1 g dave 0 1-1", "XACK x1 g 1-1", "XGROUP DELCONSUMER x1 g dave", "XDEL x1 1-1",
		"XSETID x1 5-0", "XGROUP SETID x1 g 0", "EXPIRE x1 1000", "PERSIST x1",
	} {
		w.do(line)
	}
	w.do("XADD x2 2-1 f v")
	if got := first.read(); !strings.Contains(got, "2-1") {
		t.Errorf("who came first got %s", got)
	}
	w.do("XADD x2 3-1 f v")
	if got := second.read(); !strings.Contains(got, "3-1") {
		t.Errorf("who came second got %s", got)
	}
}

func TestBlockedTimeouts(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	for _, line := range []string{"BLPOP a b 0.05", "BLMOVE a b LEFT LEFT 0.05", "BLMPOP 0.05 1 a LEFT"} {
		began := time.Now()
		r, err := c.Do(strings.Fields(line)...)
		took := time.Since(began)
		if err != nil || !r.Null || took < 49*time.Millisecond || took > time.Second {
			t.Errorf("%s: %s, %v after %v", line, show(&r), err, took)
		}
	}
	s.waitBlocked(0)
	w := s.client()
	w.want("RPUSH a 1", ":1")
	w.want("LLEN a", ":1")
	c.send("BLPOP x y x 5")
	s.waitBlocked(1)
	for name, want := range map[string]string{"blocked_clients": "1", "clients_in_timeout_table": "1", "total_blocking_keys": "2"} {
		if got := w.field("clients", name); got != want {
			t.Errorf("%s:%s, want %s", name, got, want)
		}
	}
	w.want("LPUSH y v", ":1")
	if got := c.read(); got != "*[y v]" {
		t.Error(got)
	}
	for _, name := range []string{"blocked_clients", "clients_in_timeout_table", "total_blocking_keys"} {
		if got := w.field("clients", name); got != "0" {
			t.Errorf("%s:%s afterwards", name, got)
		}
	}
}

func TestUnblockAndTransactions(t *testing.T) {
	s := start(t, testOptions{})
	c, w := s.client(), s.client()
	r, _ := c.Do("CLIENT", "ID")
	id, _ := r.Int()
	c.send("BLPOP k 0")
	s.waitBlocked(1)
	w.want(fmt.Sprintf("CLIENT UNBLOCK %d ERROR", id), ":1")
	if r, err := c.Read(); err != nil || !r.IsError() || !strings.HasPrefix(r.Text(), "UNBLOCKED") {
		t.Errorf("%s %v", show(&r), err)
	}
	w.want(fmt.Sprintf("CLIENT UNBLOCK %d", id), ":0")
	c.send("BLPOP k 0")
	s.waitBlocked(1)
	w.want(fmt.Sprintf("CLIENT UNBLOCK %d", id), ":1")
	if r, err := c.Read(); err != nil || !r.Null {
		t.Errorf("%s %v", show(&r), err)
	}
	// What a transaction takes back by itself serves nobody.
	c.send("BLPOP k 0")
	s.waitBlocked(1)
	for _, line := range []string{"MULTI", "RPUSH k a", "DEL k", "SET k s", "DEL k", "BLPOP k 0", "EXEC"} {
		w.do(line)
	}
	s.waitBlocked(1)
	for _, line := range []string{"MULTI", "RPUSH k a", "LPUSH k b", "EXEC"} {
		w.do(line)
	}
	if r, err := c.Read(); err != nil || r.Elems[1].Text() != "b" {
		t.Errorf("%s %v: want b", show(&r), err)
	}
	// Commands behind a blocking one wait for it.
	c.send("BLPOP nope 0.02")
	c.send("ECHO x")
	if r, err := c.Read(); err != nil || !r.Null {
		t.Error(show(&r), err)
	}
	if r, err := c.Read(); err != nil || r.Text() != "x" {
		t.Error(show(&r), err)
	}
}

// TestElementsAreNotLost closes and kills waiting clients while elements are pushed: nothing is popped for one of them.
func TestElementsAreNotLost(t *testing.T) {
	s := start(t, testOptions{})
	w := s.client()
	for i := range 300 {
		c := s.client()
		r, _ := c.Do("CLIENT", "ID")
		id, _ := r.Int()
		c.send("BLPOP q r 0")
		s.waitBlocked(1)
		if i%2 == 0 {
			c.Close()
		} else {
			w.do(fmt.Sprint("CLIENT KILL ID ", id))
		}
		w.want("RPUSH q x", ":1")
		w.want("LLEN q", ":1")
		w.want("DEL q", ":1")
		s.waitBlocked(0)
	}
}

// TestElementsAreDelivered has clients come, wait and hang up at random while others push: what was popped was also
// received, by clients that had stopped sending too.
func TestElementsAreDelivered(t *testing.T) {
	t.Run("loops", func(t *testing.T) { testDelivery(t, testOptions{}) })
	t.Run("always", func(t *testing.T) { testDelivery(t, testOptions{set: map[string]string{"appendfsync": "always"}}) })
	t.Run("goroutines", func(t *testing.T) { testDelivery(t, testOptions{portable: true}) })
}

func testDelivery(t *testing.T, o testOptions) {
	s := start(t, o)
	const producers, consumers, each = 3, 8, 300
	stop := make(chan struct{})
	var mu sync.Mutex
	seen := map[string]int{}
	var consuming, producing sync.WaitGroup
	for i := range consumers {
		consuming.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, x := range consumeOnce(t, s.addr, rng) {
					mu.Lock()
					seen[x]++
					mu.Unlock()
				}
			}
		})
	}
	for p := range producers {
		producing.Go(func() { produce(t, s.addr, p, each) })
	}
	producing.Wait()
	time.Sleep(50 * time.Millisecond)
	close(stop)
	consuming.Wait()
	w := s.client()
	for _, key := range []string{"q1", "q2"} {
		r, err := w.Do("LRANGE", key, "0", "-1")
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Elems {
			seen[r.Elems[i].Text()]++
		}
	}
	for x, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", x, n)
		}
	}
	if len(seen) != producers*each {
		t.Errorf("%d elements, want %d", len(seen), producers*each)
	}
}

// produce pushes n elements of its own to two lists in turn.
func produce(t *testing.T, addr string, id, n int) {
	c, err := wire.Dial(addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	for i := range n {
		if _, err := c.Must("RPUSH", []string{"q1", "q2"}[i%2], fmt.Sprint(id, "-", i)); err != nil {
			t.Error(err)
		}
	}
}

// consumeOnce waits for elements on a connection of its own, stops sending after a moment, and returns all it got.
func consumeOnce(t *testing.T, addr string, rng *rand.Rand) (got []string) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer nc.Close()
	var req []byte
	for range 1 + rng.IntN(3) {
		req = wire.AppendCommand(req, wire.Bytes("BLPOP", "q1", "q2", "0"))
	}
	if _, err := nc.Write(req); err != nil {
		return nil
	}
	time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	_ = nc.(*net.TCPConn).CloseWrite()
	data, err := io.ReadAll(nc)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	replies, err := wire.Parse(data)
	if err != nil {
		t.Error(err)
	}
	for i := range replies {
		got = append(got, replies[i].Elems[1].Text())
	}
	return got
}
