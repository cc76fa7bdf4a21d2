package mirror

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/testkit/proc"
)

// TestStormDuringCopy: counts are exact when the copy is made while they change, with keys created and deleted before and behind the
// scan.
func TestStormDuringCopy(t *testing.T) {
	b := newBed(t, "--shards", "3")
	b.storm(1, 20_000, nil)
	b.do(b.client(), "SET", "", "the empty key")
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 3 {
		writers.Go(func() { b.storm(uint64(10+i), 1<<30, stop) })
	}
	ready := make(chan int, 3)
	b.m.Ready = func(shard int) { ready <- shard }
	b.run()
	for range 3 {
		select {
		case <-ready:
		case <-time.After(60 * time.Second):
			t.Fatalf("no copy: %+v", b.m.Status())
		}
	}
	close(stop)
	writers.Wait()
	b.same(b.client())
	if n := b.copies(); n != 3 {
		t.Errorf("%d copies", n)
	}
}

// TestRestarts: after a clean restart the mirror goes on where it was. After SIGKILL the history goes on from where the log was cut, and
// with it the mirror, without a new copy; also if it was away meanwhile, and across a FLUSHALL.
func TestRestarts(t *testing.T) {
	b := newBed(t, "--shards", "2")
	b.storm(1, 5_000, nil)
	end := b.run()
	b.same(b.client())
	for round := range 6 {
		stop := make(chan struct{})
		var writers sync.WaitGroup
		writers.Go(func() { b.storm(uint64(round), 1<<30, stop) })
		b.storm(uint64(100+round), 2_000, nil)
		var err error
		if round%2 == 0 {
			err = b.srv.Stop()
		} else {
			err = b.srv.Kill()
		}
		close(stop)
		writers.Wait()
		if err != nil && round%2 == 0 {
			t.Fatal(err)
		}
		if round == 3 {
			end() // while it is away, the server comes back and changes
		}
		b.start()
		if round == 3 {
			b.storm(77, 1_000, nil)
			b.do(b.client(), "FLUSHALL")
			b.storm(78, 1_000, nil)
			b.m = b.mirror()
			end = b.run()
		}
		b.same(b.client())
		if n := b.copies(); round < 3 && n != 2 || round >= 3 && n != 0 {
			t.Errorf("round %d: %d copies", round, n)
		}
	}
}

// TestOtherData: when another server answers at the address, with other keys and then with another number of shards, nothing of the
// former one stays.
func TestOtherData(t *testing.T) {
	b := newBed(t, "--shards", "2")
	b.storm(1, 5_000, nil)
	b.run()
	b.same(b.client())
	for i, shards := range []string{"2", "4", "1"} {
		old := b.srv
		b.dir += fmt.Sprint("-", i)
		b.flags = []string{"--shards", shards}
		b.start()
		b.storm(uint64(50+i), 3_000, nil)
		if err := old.Kill(); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatal(err)
		}
		b.same(b.client())
	}
}

// TestFlushAllMeanwhile: FLUSHALL in the middle of a copy and afterwards.
func TestFlushAllMeanwhile(t *testing.T) {
	b := newBed(t, "--shards", "2")
	b.storm(1, 10_000, nil)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() { b.storm(2, 1<<30, stop) })
	writers.Go(func() {
		c := b.client()
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				if _, err := c.Must("FLUSHALL"); err != nil {
					b.t.Error(err)
					return
				}
			}
		}
	})
	b.run()
	time.Sleep(300 * time.Millisecond) // of storm, not waited for
	close(stop)
	writers.Wait()
	b.same(b.client())
}

// TestWindowOverrun: a consumer that is away for longer than the window is told so, by FEEDRESYNC; the mirror copies anew. A key deleted at the
// edge of the window is gone.
func TestWindowOverrun(t *testing.T) {
	b := newBed(t, "--shards", "1", "--feed-buffer-size", "10kb")
	c := b.client()
	b.do(c, "SET", "doomed", "1")
	b.storm(1, 1_000, nil)
	end := b.run()
	b.same(c)
	end()
	b.do(c, "DEL", "doomed")
	b.storm(2, 10_000, nil)
	b.m = b.mirror()
	b.run()
	b.same(c)
	if n := b.copies(); n != 1 {
		t.Errorf("%d copies after the window was overrun", n)
	}
	if _, there := b.shards[0].Lookup([]byte("doomed")); there {
		t.Error("a key whose DEL left the window is still there")
	}
}

// TestIdleFilterAdvances: changes of other keys move the position, so a mirror of quiet keys does not fall out of the window.
func TestIdleFilterAdvances(t *testing.T) {
	b := newBed(t, "--shards", "1", "--feed-buffer-size", "100kb")
	c := b.client()
	b.do(c, "SET", "quiet:1", "x")
	b.m.Prefixes = []string{"quiet:"}
	begun := make(chan struct{})
	var once sync.Once
	b.hook = func(batch *kevy.MirrorBatch) error {
		for _, ch := range batch.Changes {
			if !strings.HasPrefix(string(ch.Argv[1]), "quiet:") {
				t.Errorf("%q", ch.Argv)
			}
		}
		once.Do(func() { close(begun) })
		return nil
	}
	b.run()
	<-begun
	for range 3 {
		for range 40 {
			b.do(c, "SET", "loud", strings.Repeat("x", 1000))
		}
		// The status follows the hook of the last batch.
		for deadline := time.Now().Add(20 * time.Second); !b.there(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the position does not move")
			}
		}
	}
	if n := b.copies(); n != 1 {
		t.Errorf("%d copies", n)
	}
}

// TestLag: what Behind tells is right after the log was trimmed and after a FLUSHALL, and never negative.
func TestLag(t *testing.T) {
	b := newBed(t, "--shards", "1", "--feed-buffer-size", "10kb")
	c := b.client()
	b.storm(1, 500, nil)
	hold, release := make(chan struct{}), make(chan struct{})
	b.run()
	b.same(c)
	var once sync.Once
	b.mu.Lock()
	b.hook = func(*kevy.MirrorBatch) error {
		once.Do(func() { close(hold); <-release })
		return nil
	}
	b.mu.Unlock()
	b.do(c, "SET", "a", "1")
	<-hold
	b.storm(2, 2_000, nil)
	b.do(c, "BGREWRITEAOF")
	b.do(c, "FLUSHALL")
	close(release)
	b.same(c)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s := b.m.Status()[0]
		if n, known := s.Behind(); known && n == 0 {
			break
		} else if known && n > 10_000 {
			t.Fatalf("behind by %d: %+v", n, s)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s)
		}
	}
}

// TestRefusals end Run; others are waited out.
func TestRefusals(t *testing.T) {
	b := newBed(t, "--shards", "1")
	c := b.client()
	b.do(c, "ACL", "SETUSER", "reader", "on", ">pw", "+@all", "~a:*")
	b.do(c, "CONFIG", "SET", "requirepass", "secret")
	for name, m := range map[string]*kevy.Mirror{
		"NOAUTH":    {},
		"WRONGPASS": {Password: "wrong"},
		"NOPERM":    {User: "reader", Password: "pw"},
	} {
		m.Addr, m.Apply = b.srv.Addr, b.apply
		if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
	b.m.Password = "secret"
	errOwn := errors.New("the table is locked")
	b.hook = func(*kevy.MirrorBatch) error { return errOwn }
	if err := b.m.Run(t.Context()); !errors.Is(err, errOwn) || err.Error() != errOwn.Error() {
		t.Errorf("%v, want what Apply returned", err)
	}
}

// TestServerComesLater: a mirror that is started before its server waits for it.
func TestServerComesLater(t *testing.T) {
	b := newBed(t, "--shards", "1")
	if err := b.srv.Stop(); err != nil {
		t.Fatal(err)
	}
	port, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	nobody := fmt.Sprint("127.0.0.1:", port)
	b.addr.Store(&nobody)
	b.run()
	time.Sleep(100 * time.Millisecond) // some tries in vain; nothing depends on how many
	b.start()
	b.storm(1, 500, nil)
	b.same(b.client())
}
