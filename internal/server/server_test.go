package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// TestCopyKeepsMarks: what is kept beside a value and is no state goes with COPY and RENAME.
func TestCopyKeepsMarks(t *testing.T) {
	c := start(t, testOptions{set: map[string]string{"zset-max-listpack-entries": "3", "list-max-listpack-size": "3"}}).client()
	for _, x := range [][2]string{
		{"ZADD z 1 a 2 b 3 c 4 d", ":4"},
		{"ZREM z a", ":1"},
		{"OBJECT ENCODING z", "skiplist"},
		{"COPY z z2", ":1"},
		{"OBJECT ENCODING z2", "skiplist"},
		{"RENAME z2 z3", "+OK"},
		{"OBJECT ENCODING z3", "skiplist"},
		{"MULTI", "+OK"},
		{"COPY z z4", "+QUEUED"},
		{"OBJECT ENCODING z4", "+QUEUED"},
		{"EXEC", "*[:1 skiplist]"},
		{"RPUSH l a b c", ":3"},
		{"OBJECT ENCODING l", "listpack"},
		{"LSET l 0 x", "+OK"}, // Redis counts the new element before it takes the old one out
		{"OBJECT ENCODING l", "quicklist"},
		{"LSET l 0 y", "+OK"},
		{"LPOP l 2", "*[y b]"},
		{"LSET l 0 x", "+OK"},
		{"OBJECT ENCODING l", "listpack"},
		{"XADD s 1-1 f v", "1-1"},
		{"XGROUP CREATE s g 0", "+OK"},
		{"XREADGROUP GROUP g alice STREAMS s >", "*[*[s *[*[1-1 *[f v]]]]]"},
		{"XACK s g 1-1", ":1"},
		{"XGROUP CREATECONSUMER s g bob", ":1"},
		{"DEBUG SLEEP 0.01", "+OK"},
		{"XGROUP CREATECONSUMER s g carol", ":1"},
		{"DEBUG SLEEP 0.01", "+OK"},
		{"COPY s s2", ":1"},
	} {
		c.want(x[0], x[1])
	}
	c.want("XINFO STREAM s2 FULL", c.do("XINFO STREAM s FULL"))
}

// TestKeysPastDeadline: without active expiry DEBUG OBJECT still shows a key that is due, commands do not, and
// those that meet it delete it.
func TestKeysPastDeadline(t *testing.T) {
	c := start(t, testOptions{set: map[string]string{"enable-debug-command": "yes"}}).client()
	for _, x := range [][2]string{
		{"DEBUG SET-ACTIVE-EXPIRE 0", "+OK"},
		{"SET due hello PX 1", "+OK"},
		{"DEBUG SLEEP 0.01", "+OK"},
		{"DEBUG OBJECT due", "+Value at:0x0 refcount:1 encoding:embstr serializedlength:*"},
		{"EXISTS due", ":0"},
		{"DEBUG OBJECT due", "-ERR no such key"},
		{"SET due hello PX 1", "+OK"},
		{"SET due2 hello PX 1", "+OK"},
		{"SET due3 hello PX 1", "+OK"},
		{"DEBUG SLEEP 0.01", "+OK"},
		{"DBSIZE", ":3"},
		{"SCAN 0 COUNT 100 MATCH due*", "*[0 *[]]"},
		{"DBSIZE", ":0"},
		{"SET due hello PX 1", "+OK"},
		{"DEBUG SLEEP 0.01", "+OK"},
		{"MULTI", "+OK"},
		{"SCAN 0 COUNT 100 MATCH due*", "+QUEUED"},
		{"DBSIZE", "+QUEUED"},
		{"EXEC", "*[*[0 *[]] :0]"},
		{"DEBUG SET-ACTIVE-EXPIRE 1", "+OK"},
	} {
		c.want(x[0], x[1])
	}
}

func TestDebug(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"enable-debug-command": "yes"}})
	c := s.client()
	for _, x := range [][2]string{
		{"SET k hello", "+OK"},
		{"SET other hello", "+OK"},
		{"DEBUG OBJECT k", "+Value at:0x0 refcount:1 encoding:embstr serializedlength:*"},
		{"DEBUG OBJECT nokey", "-ERR no such key"},
		{"DEBUG RELOAD", "+OK"},
		{"DEBUG RELOAD NOSAVE", "+OK"},
		{"DEBUG RELOAD x", "-ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."},
		{"DEBUG LOADAOF", "+OK"},
		{"GET k", "hello"},
		{"DEBUG DIGEST-VALUE nokey", "*[+0000000000000000000000000000000000000000]"},
		{"DEBUG JMAP", "-ERR DEBUG JMAP is refused*"},
		{"DEBUG NOPE", "-ERR unknown subcommand or wrong number of arguments for 'NOPE'. Try DEBUG HELP."},
		{"DEBUG LOG hi", "+OK"},
		{"DEBUG CHANGE-REPL-ID", "+OK"},
		{"DEBUG QUICKLIST-PACKED-THRESHOLD 200b", "+OK"},
		{"DEBUG QUICKLIST-PACKED-THRESHOLD x", "-ERR argument must be a memory value*"},
		{"DEBUG REPLYBUFFER RESIZING 0", "+OK"},
		{"DEBUG ERROR WRONGTYPE", "-WRONGTYPE"},
		{"DEBUG PROTOCOL double", "3.141"},
		{"DEBUG PROTOCOL push", "-ERR RESP2 is not supported by this command"},
		{"DEBUG HELP", "*[+DEBUG <subcommand>*"},
		{"HELLO 3", "%[*"},
		{"DEBUG PROTOCOL bignum", "(1234567999999999999999999999999999999"},
		{"DEBUG PROTOCOL map", "%[:0 #f :1 #t :2 #f]"},
	} {
		c.want(x[0], x[1])
	}
	digests := c.do("DEBUG DIGEST-VALUE k other nokey")
	parts := strings.Fields(strings.Trim(digests, "*[]"))
	if len(parts) != 3 || parts[0] != parts[1] || parts[0] == parts[2] {
		t.Errorf("DIGEST-VALUE: %s", digests)
	}
	before := c.do("DEBUG DIGEST")
	c.want("SET k2 x", "+OK")
	if after := c.do("DEBUG DIGEST"); after == before || len(after) != 41 {
		t.Errorf("DIGEST: %s, then %s", before, after)
	}
	start(t, testOptions{set: map[string]string{"enable-debug-command": "no"}}).client().want("DEBUG HELP", msgDebug())
}

func msgDebug() string { return "-" + msgDebugDenied }

// TestLongestString: proto-max-bulk-len lets no string grow beyond what a value may have, and no command end the server.
func TestLongestString(t *testing.T) {
	c := start(t, testOptions{}).client()
	c.want("CONFIG SET proto-max-bulk-len 1gb", "+OK")
	const tooLong = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	c.want("SETRANGE k 536870911 xx", tooLong)
	c.want("SETRANGE k 600000000 x", tooLong)
	c.want("SETBIT k 4294967296 1", "-ERR bit offset is not an integer or out of range")
	c.want("EXISTS k", ":0")
	c.want("CONFIG SET proto-max-bulk-len 1mb", "+OK")
	c.want("SETRANGE k 1048576 x", tooLong)
}

// TestSlowCommandsLeaveTheLoop: while one client's command takes long, the only loop serves others.
func TestSlowCommandsLeaveTheLoop(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"loops": "1"}})
	slow, fast := s.client(), s.client()
	slow.send("DEBUG SLEEP 0.3")
	slow.send("PING later")
	began := time.Now()
	for range 20 {
		fast.want("PING", "+PONG")
	}
	if d := time.Since(began); d > 250*time.Millisecond {
		t.Errorf("20 PINGs took %v", d)
	}
	for _, want := range []string{"+OK", "later"} {
		if got := slow.read(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPanicIsContained(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"loops": "1"}, handlers: map[string]handlerFunc{
		"echo":   func(*session, [][]byte) { panic("on the loop") },
		"lolwut": func(s *session, _ [][]byte) { s.parkRun(panicky) },
	}})
	c, d, e := s.client(), s.client(), s.client()
	e.want("PING", "+PONG")
	c.want("ECHO x", "-ERR internal error")
	c.gone()
	d.want("LOLWUT", "-ERR internal error")
	d.gone()
	f := s.client()
	f.want("MULTI", "+OK")
	f.want("SET k v", "+QUEUED")
	f.want("ECHO x", "+QUEUED")
	f.want("EXEC", "*[+OK -ERR internal error]")
	f.gone()
	e.want("GET k", "v")
}

func TestSaveCommands(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("SET k v", "+OK")
	if got := c.field("persistence", "rdb_changes_since_last_save"); got != "1" {
		t.Errorf("rdb_changes_since_last_save:%s", got)
	}
	c.want("SAVE", "+OK")
	if got := c.field("persistence", "rdb_changes_since_last_save"); got != "0" {
		t.Errorf("rdb_changes_since_last_save:%s", got)
	}
	c.want("LASTSAVE", ":1*")
	c.want("BGSAVE", "+Background saving started")
	c.want("BGSAVE x", "-ERR syntax error")
	c.want("BGREWRITEAOF", "+Background append only file rewriting *")
	eventually(t, "saved", func() bool {
		info := c.do("INFO persistence")
		return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "aof_rewrite_in_progress:0") &&
			strings.Contains(info, "aof_rewrite_scheduled:0")
	})
	if rdb, aof := c.field("persistence", "rdb_saves"), c.field("persistence", "aof_rewrites"); rdb != "2" || aof != "1" {
		t.Errorf("rdb_saves:%s aof_rewrites:%s", rdb, aof)
	}
	if got := c.field("persistence", "snapshot_last_keys"); got != "1" {
		t.Errorf("snapshot_last_keys:%s", got)
	}
}

func TestShutdownCommand(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("SHUTDOWN x", "-ERR syntax error")
	c.want("SHUTDOWN SAVE NOSAVE", "-ERR syntax error")
	c.want("SHUTDOWN ABORT", "-ERR No shutdown in progress.")
	c.want("SHUTDOWN ABORT NOW", "-ERR syntax error")
	c.send("SHUTDOWN NOSAVE")
	select {
	case r := <-s.StopRequested():
		if r.Save {
			t.Error("a snapshot was taken")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("no request")
	}
	c.gone()
}

// TestShutdownUnderLoad: everything acknowledged before the end is there afterwards, and the
// generations go on: the stop was clean.
func TestShutdownUnderLoad(t *testing.T) {
	fs := vfs.NewMem()
	s := start(t, testOptions{fs: fs})
	blocked := s.client()
	blocked.send("WAIT 1 0")
	var wg sync.WaitGroup
	acked := make([]int, 4)
	for i := range acked {
		c := s.client()
		wg.Go(func() {
			for n := 1; ; n++ {
				for k := range 8 {
					c.Queue(wire.Bytes("SET", fmt.Sprintf("k%d:%d", i, k), fmt.Sprint(n)))
				}
				if c.Flush() != nil {
					return
				}
				for range 8 {
					if r, err := c.Read(); err != nil || r.IsError() {
						return
					}
				}
				acked[i] = n
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	tails := s.eng.Dir().Log(0).Generation()
	s.shutdown()
	wg.Wait()
	if _, err := wire.Dial(s.addr); err == nil {
		t.Error("still accepting")
	}
	eng, rep, err := engine.Open(engine.Options{Log: log.Options{FS: fs, Dir: "data", Shards: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close(true) //nolint:errcheck // the test is over
	if !rep.Log.Clean || eng.Dir().Log(0).Generation() != tails {
		t.Errorf("clean %v, generation %d, was %d", rep.Log.Clean, eng.Dir().Log(0).Generation(), tails)
	}
	srv := &Server{eng: eng}
	for i, n := range acked {
		for k := range 8 {
			got := bulkText(srv.ask([]byte("get"), fmt.Appendf(nil, "k%d:%d", i, k)))
			var have int
			if _, err := fmt.Sscan(got, &have); err != nil || have < n {
				t.Errorf("k%d:%d is %q, acknowledged %d", i, k, got, n)
			}
		}
	}
}

func TestShutdownWaitsForRunningCommands(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{})
	s := start(t, testOptions{handlers: map[string]handlerFunc{
		"lolwut": func(s *session, _ [][]byte) { s.parkRun(slowly(entered, release)) },
	}})
	c := s.client()
	c.want("SET k v", "+OK")
	c.send("LOLWUT")
	<-entered
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done <- s.Shutdown(ctx)
	}()
	select {
	case err := <-done:
		t.Fatal("did not wait", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if got := c.read(); got != "+done" {
		t.Errorf("reply %s", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.down = true
	if err := s.eng.Close(true); err != nil {
		t.Error(err)
	}
}
