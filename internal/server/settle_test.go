package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// TestRepliesAfterAFailedWrite: when the log cannot be written, no reply of a command that logged
// something leaves; reads of the same pipeline are answered, and so are later ones.
func TestRepliesAfterAFailedWrite(t *testing.T) {
	for _, policy := range []string{"everysec", "always"} {
		t.Run(policy, func(t *testing.T) {
			fs := faultfs.New(vfs.NewMem())
			s := start(t, testOptions{fs: fs, set: map[string]string{"appendfsync": policy}})
			c, other := s.client(), s.client()
			c.want("MSET a 1 b 1", "+OK")
			fail := faultfs.OnPath(".seg", faultfs.FailNth(faultfs.OpWriteAt, 1, nil))
			if policy == "always" {
				fail = faultfs.OnPath(".seg", faultfs.FailNth(faultfs.OpSync, 1, nil))
			}
			fs.Inject(fail)
			for _, line := range []string{"SET a 2", "PING x", "GET nokey", "MULTI", "INCR b", "INCR b", "EXEC", "DEL nokey", "SET c 1", "PING y"} {
				c.Queue(wire.Bytes(strings.Fields(line)...))
			}
			if err := c.Flush(); err != nil {
				t.Fatal(err)
			}
			const lost = "-MISCONF Errors writing to the log*"
			for i, want := range []string{lost, "x", "nil", "+OK", "+QUEUED", "+QUEUED", lost, ":0", lost, "y"} {
				if got := c.read(); !fits(got, want) {
					t.Errorf("reply %d: %s, want %s", i, got, want)
				}
			}
			c.want("SET d 1", "-MISCONF*")
			c.want("PING", "+PONG")
			other.want("GET nokey", "nil")
			if got := other.field("persistence", "aof_last_write_status"); got != "err" {
				t.Errorf("aof_last_write_status:%s", got)
			}
			if got := other.field("persistence", "log_error"); got == "" {
				t.Error("INFO does not show the log's error")
			}
			if got := other.field("errorstats", "errorstat_MISCONF"); got != "count=4" {
				t.Errorf("errorstat_MISCONF:%s", got)
			}
		})
	}
}

// TestFullDiskShows: while writes are refused for space INFO says so.
func TestFullDiskShows(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	c := start(t, testOptions{fs: fs}).client()
	status := func() string {
		return c.field("persistence", "aof_last_write_status") + " " + c.field("persistence", "log_error")
	}
	if got := status(); got != "ok " {
		t.Error(got)
	}
	fs.SetFull(true)
	big := strings.Repeat("x", 1<<20)
	for i := 0; c.do(fmt.Sprintf("SET k%d %s", i, big)) == "+OK"; i++ {
		if i == 1000 {
			t.Fatal("the disk is never full")
		}
	}
	if got := status(); got != "err "+log.ErrDiskFull.Error() {
		t.Error(got)
	}
	fs.SetFull(false)
	eventually(t, "writes again", func() bool { return c.do("SET k "+big) == "+OK" })
	eventually(t, "no shard is short of space", func() bool { return status() == "ok " })
}

// TestRepliesHeldUnderAlways: under appendfsync always a write is not answered before its fsync is
// done; clients that wait for nothing are served meanwhile.
func TestRepliesHeldUnderAlways(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	s := start(t, testOptions{fs: fs, set: map[string]string{"appendfsync": "always", "loops": "1"}})
	w, r := s.client(), s.client()
	w.want("SET k 0", "+OK")
	release := make(chan struct{})
	var synced atomic.Bool
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpSync && strings.HasSuffix(op.Path, ".seg") {
			<-release
			synced.Store(true)
		}
		return nil
	})
	w.Queue(wire.Bytes("SET", "k", "1"))
	w.Queue(wire.Bytes("GET", "k"))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r.want("PING", "+PONG")
	r.want("ECHO x", "x")
	w.silent()
	r.send("GET k") // sees what is not durable yet: must wait too
	r.silent()
	if synced.Load() {
		t.Fatal("the fsync is done already")
	}
	close(release)
	for _, want := range []string{"+OK", "1"} {
		if got := w.read(); got != want {
			t.Errorf("held reply %s, want %s", got, want)
		}
	}
	if got := r.read(); got != "1" {
		t.Errorf("held read %s", got)
	}
}

// TestAlwaysUnderLoad checks that holds and releases of many clients end in an answer for each.
func TestAlwaysUnderLoad(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"appendfsync": "always", "loops": "2"}})
	const clients, rounds = 8, 60
	done := make(chan string, clients)
	for i := range clients {
		c := s.client()
		go func() {
			for j := range rounds {
				for k := range 4 {
					c.Queue(wire.Bytes("INCR", fmt.Sprintf("c%d", (i+k)%5)))
				}
				c.Queue(wire.Bytes("MSET", fmt.Sprintf("m%d", i), "1", fmt.Sprintf("n%d", j), "2"))
				if err := c.Flush(); err != nil {
					done <- err.Error()
					return
				}
				for range 5 {
					if r, err := c.Read(); err != nil || r.IsError() {
						done <- fmt.Sprint(show(&r), err)
						return
					}
				}
			}
			done <- ""
		}()
	}
	for range clients {
		if text := <-done; text != "" {
			t.Error(text)
		}
	}
	c := s.client()
	sum := 0
	for i := range 5 {
		var n int
		if _, err := fmt.Sscan(c.do(fmt.Sprintf("GET c%d", i)), &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != clients*rounds*4 {
		t.Errorf("counters add up to %d, want %d", sum, clients*rounds*4)
	}
}

// TestDiskFull: writes are refused while the disk is full, and resume by themselves.
func TestDiskFull(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	s := start(t, testOptions{fs: fs})
	c := s.client()
	c.want("SET a 1", "+OK")
	fs.SetFull(true)
	big := strings.Repeat("x", 1<<20)
	eventually(t, "refused", func() bool {
		return strings.HasPrefix(c.do("SET big "+big), "-MISCONF The log's disk is full")
	})
	c.want("GET a", "1")
	fs.SetFull(false)
	eventually(t, "accepted again", func() bool {
		time.Sleep(20 * time.Millisecond)
		return c.do("SET a 2") == "+OK"
	})
}

// TestServedWhileHeld serves a waiting client whose earlier reply is withheld for its fsync: the second reply must wait for the
// fsync that covers it, not leave with the first one's.
func TestServedWhileHeld(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	s := start(t, testOptions{fs: fs, set: map[string]string{"appendfsync": "always", "loops": "1", "shards": "1"}})
	a, b := s.client(), s.client()
	a.want("SET k 0", "+OK")
	turns := syncsInTurns(t, fs)
	a.Queue(wire.Bytes("SET", "k", "1"))
	a.Queue(wire.Bytes("BLPOP", "q", "0"))
	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}
	first := <-turns
	s.waitBlocked(1)
	b.send("RPUSH q x")
	s.waitBlocked(0)
	first <- nil
	second := <-turns
	a.silent()
	b.silent()
	fs.Inject(nil)
	second <- nil
	for _, want := range []string{"+OK", "*[q x]"} {
		if got := a.read(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := b.read(); got != ":1" {
		t.Error(got)
	}
}

// syncsInTurns has each sync of a segment announce itself, and wait to be told how it ends, for as long as the test runs.
func syncsInTurns(t *testing.T, fs *faultfs.FS) (turns chan chan error) {
	turns = make(chan chan error, 8)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpSync && strings.HasSuffix(op.Path, ".seg") {
			turn := make(chan error)
			turns <- turn
			select {
			case err := <-turn:
				return err
			case <-over:
			}
		}
		return nil
	})
	return turns
}

// TestServedWhileReleased serves a waiting client on another loop while its own one is busy, and then lets go of its earlier reply: its
// loop finds both at once. The second reply must wait for its fsync all the same, and must not leave when that fails.
func TestServedWhileReleased(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fsync fails: ", fails), func(t *testing.T) {
			fs := faultfs.New(vfs.NewMem())
			s := start(t, testOptions{fs: fs, set: map[string]string{"appendfsync": "always", "loops": "2", "shards": "1"}})
			a, b := s.client(), s.client() // one on each loop
			b.want("SET k 0", "+OK")
			var id uint64
			if _, err := fmt.Sscanf(a.do("CLIENT ID"), ":%d", &id); err != nil {
				t.Fatal(err)
			}
			own := s.clients.find(id)
			turns := syncsInTurns(t, fs)
			a.Queue(wire.Bytes("SET", "k", "1"))
			a.Queue(wire.Bytes("BLPOP", "q", "0"))
			if err := a.Flush(); err != nil {
				t.Fatal(err)
			}
			first := <-turns
			s.waitBlocked(1)
			busy, goOn := make(chan struct{}), make(chan struct{})
			s.rs.DoAsync(func(conns []*resp.Conn) {
				if slices.Contains(conns, own.conn) {
					close(busy)
					<-goOn
				}
			}, nil)
			<-busy
			b.send("RPUSH q x")
			eventually(t, "served", own.claimed.Load)
			time.Sleep(5 * time.Millisecond) // what the loop has to do with it is waiting
			first <- nil
			second := <-turns // now the release is waiting too
			close(goOn)
			a.silent()
			b.silent()
			fs.Inject(nil)
			want := []string{"+OK", "*[q x]", ":1"}
			if fails {
				second <- errors.New("bad disk")
				want = []string{"*", "-MISCONF*", "-MISCONF*"} // of the first one it is known that it is durable; it may be refused
			} else {
				second <- nil
			}
			for i, got := range []string{a.read(), a.read(), b.read()} {
				if !fits(got, want[i]) {
					t.Errorf("reply %d: %s, want %s", i, got, want[i])
				}
			}
		})
	}
}
