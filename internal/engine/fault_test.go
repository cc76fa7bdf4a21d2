package engine_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// TestFailedLogRefusesWrites fails the write or the fsync of the log: the write in flight and all later
// ones are refused, reads go on and show what a restart will show.
func TestFailedLogRefusesWrites(t *testing.T) {
	for name, c := range map[string]struct {
		policy log.Policy
		inject faultfs.Injector
	}{
		"write":       {log.EverySec, faultfs.OnPath(".seg", faultfs.FailNth(faultfs.OpWriteAt, 1, nil))},
		"short write": {log.EverySec, faultfs.OnPath(".seg", faultfs.FailNth(faultfs.OpWriteAt, 1, faultfs.Short(nil)))},
		"fsync":       {log.Always, faultfs.OnPath(".seg", faultfs.FailNth(faultfs.OpSync, 1, nil))},
	} {
		t.Run(name, func(t *testing.T) {
			base := crashfs.New()
			fs := faultfs.New(base)
			s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
			s.E.SetPolicy(c.policy)
			s.Do("MSET a 1 b 2 c 3 d 4")
			before := s.Digest()
			fs.Inject(c.inject)
			if _, err := s.Try("MSET a 10 b 20 c 30 d 40"); err == nil {
				t.Fatal("the write was acknowledged")
			}
			fs.Inject(nil)
			if got := s.Do("SET a 11"); !strings.HasPrefix(got, "-MISCONF ") {
				t.Errorf("a later write: %q", got)
			}
			if c.policy != log.Always { // after a failed fsync the outcome is unknown
				if got := s.Digest(); got != before {
					t.Errorf("reads show %q, before the refused write %q", got, before)
				}
			}
			live := s.Digest()
			_ = s.E.Close(true)
			r := gate.Open(t, base.KillClone(), 2, s.Clock)
			whole := value(r.Do("GET a")) == 10 && value(r.Do("GET b")) == 20 && value(r.Do("GET d")) == 40
			if got := r.Digest(); got != live && (c.policy != log.Always || !whole) {
				t.Errorf("restarted: %q, live %q", got, live)
			}
			r.Close()
		})
	}
}

// TestRefusedIsNotRead: under always, the error of a write comes when its key no longer shows it, and a read that has seen it has no reply.
func TestRefusedIsNotRead(t *testing.T) {
	fs := faultfs.New(crashfs.New())
	s := gate.Open(t, fs, 1, &gate.Clock{MS: 1_800_000_000_000})
	s.E.SetPolicy(log.Always)
	s.Do("SET a 1")
	prepare := func(w *resp.Writer, words ...string) *command.Ctx {
		c := s.E.NewCtx()
		c.W = w
		for _, word := range words {
			c.Args = append(c.Args, []byte(word))
		}
		c.Cmd, _ = command.Resolve(c.Args)
		return c
	}
	holds := make(chan struct{})
	fs.Inject(faultfs.OnPath(".seg", func(op faultfs.Op) error {
		if op.Kind != faultfs.OpSync {
			return nil
		}
		<-holds
		return syscall.EIO
	}))
	var written engine.Ticket
	s.E.Run(prepare(new(resp.Writer), "SET", "a", "2"), &written)
	var seen atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		var ticket engine.Ticket
		var w resp.Writer
		c := prepare(&w, "GET", "a")
		err := s.E.Script(c, &ticket, func() error { // holds the locks that the repair waits for
			close(holds)
			for s.E.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			err := c.Nested(c, nil)
			time.Sleep(50 * time.Millisecond) // time for an error that comes too early
			seen.Store(true)
			return err
		})
		if err == nil {
			err = s.E.Await(&ticket)
		}
		if got := string(w.Buf); got != "$1\r\n2\r\n" || err == nil {
			t.Errorf("a read before the repair: %q, %v", got, err)
		}
	})
	<-holds
	failed := make(chan error, 1)
	s.E.OnSafe(&written, func(err error) { failed <- err })
	if err := <-failed; err == nil || !seen.Load() {
		t.Errorf("the write's error came before the repair: %v", err)
	}
	reader.Wait()
	if got := s.Do("GET a"); got != "$1\r\n1\r\n" {
		t.Errorf("after the repair: %q", got)
	}
	_ = s.E.Close(false)
}

// TestReadsGoOn: keys past their deadline do not make a transaction of reads one of writes, which a log that takes nothing more refuses.
func TestReadsGoOn(t *testing.T) {
	for _, line := range []string{"MULTI ; GET due ; HGET h f ; GET a", "EVAL 'return {redis.call(\"GET\", KEYS[1]), redis.call(\"HGET\", KEYS[2], \"f\"), redis.call(\"GET\", KEYS[3])}' 3 due h a"} {
		fs := faultfs.New(crashfs.New())
		s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
		s.E.SetActiveExpire(false)
		for _, l := range []string{"SET due 1 PX 5", "HSET h f 1 g 2", "HPEXPIRE h 5 FIELDS 1 f", "SET a 2"} {
			s.Do(l)
		}
		s.Clock.Advance(10)
		want := "*3\r\n$-1\r\n$-1\r\n$1\r\n2\r\n"
		fs.Inject(faultfs.OnPath(".seg", faultfs.FailNth(faultfs.OpWriteAt, 1, nil)))
		if _, err := s.Try("SET b 1"); err == nil {
			t.Fatal("the write was acknowledged")
		}
		fs.Inject(nil)
		for range 2 {
			if got := s.Do(line); got != want {
				t.Errorf("%s: %q, want %q", line, got, want)
			}
		}
		if got := s.Do("MULTI ; GET due ; SET a 3"); !strings.HasPrefix(got, "-MISCONF ") {
			t.Errorf("a write: %q", got)
		}
		_ = s.E.Close(true)
	}
}

// TestFlushOnFullDisk: a FLUSHALL that finds no space for the new generation is refused although its frame would find some. Nothing
// has changed, and writes go on when there is space again.
func TestFlushOnFullDisk(t *testing.T) {
	for _, line := range []string{"FLUSHALL", "MULTI ; SET a 2 ; FLUSHALL", "MULTI ; FLUSHALL ; SET a 2"} {
		t.Run(line, func(t *testing.T) {
			fs := faultfs.New(crashfs.New())
			s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
			s.Do("MSET a 1 b 2 c 3")
			before, tail := s.Digest(), s.E.Dir().Log(0).Tail()
			fs.SetFull(true)
			if got := s.Do(line); !strings.HasPrefix(got, "-MISCONF The log's disk is full") {
				t.Errorf("on a full disk: %.100q", got)
			}
			if got := s.Digest(); got != before {
				t.Errorf("the state is %q, before %q", got, before)
			}
			if got := s.E.Dir().Log(0).Tail(); got != tail {
				t.Errorf("the log ends at %v, before at %v", got, tail)
			}
			fs.SetFull(false)
			for try := 0; s.Do(line)[0] == '-'; try++ {
				if try == 100 {
					t.Fatal("still refused after the disk has space again")
				}
				time.Sleep(50 * time.Millisecond)
			}
			if got := s.E.Dir().Log(0).Tail().Generation; got == tail.Generation {
				t.Error("no new generation")
			}
			s.Close()
		})
	}
}

// TestDiskFull refuses writes while the disk is full and takes them again by itself afterwards.
func TestDiskFull(t *testing.T) {
	fs := faultfs.New(crashfs.New())
	s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
	s.Do("MSET a 1 b 2")
	fs.SetFull(true)
	big := strings.Repeat("x", 100<<10)
	refused := false
	for range 200 { // what was reserved ahead is still usable
		if strings.HasPrefix(s.Do("SET big "+big), "-MISCONF ") {
			refused = true
			break
		}
	}
	if !refused {
		t.Fatal("a full disk refused nothing")
	}
	before := s.Digest()
	if got := s.Do("MULTI ; SET a 2 ; SET b " + big + " ; DEL a"); !strings.HasPrefix(got, "-MISCONF ") {
		t.Errorf("EXEC on a full disk: %.60q", got)
	}
	if got := s.Digest(); got != before {
		t.Errorf("a refused EXEC changed the state: %q, before %q", got, before)
	}
	fs.SetFull(false)
	for try := 0; ; try++ {
		if s.Do("SET a 3") == "+OK\r\n" {
			break
		}
		if try == 100 {
			t.Fatal("writes are still refused after the disk has space again")
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Close()
}
