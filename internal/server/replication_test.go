package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/internal/vfs"
)

// digest is that of all keys.
func (c *client) digest() string {
	c.t.Helper()
	r, err := c.Do("PREFIX.DIGEST", "")
	if err != nil {
		c.t.Fatal(err)
	}
	return show(&r)
}

// follows waits until s is a replica of a as it is now.
func (s *testServer) follows(a *testServer) {
	s.t.Helper()
	c, of := s.client(), a.client()
	eventually(s.t, "the replica is as its source", func() bool {
		return c.field("replication", "master_link_status") == "up" && c.digest() == of.digest() &&
			c.field("replication", "master_repl_offset") == of.field("replication", "master_repl_offset")
	})
}

// TestPromoteOnFullDisk: a promotion that can't begin its generation changes nothing, and the replica follows on.
func TestPromoteOnFullDisk(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	a, b := start(t, testOptions{}), start(t, testOptions{fs: fs})
	ca, cb := a.client(), b.client()
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	ca.want("MSET x 1 y 2 z 3", "+OK")
	b.follows(a)
	fs.SetFull(true)
	cb.want("REPLICAOF NO ONE", "-*")
	if role := cb.field("replication", "role"); role != "slave" {
		t.Errorf("after a promotion that failed the role is %s", role)
	}
	cb.want("SET x 2", "-READONLY *")
	fs.SetFull(false)
	ca.want("MSET x 4 y 5", "+OK")
	b.follows(a)
	cb.want("REPLICAOF NO ONE", "+OK")
	cb.want("SET x 2", "+OK")
}

// TestGenerationOnFullDisk: a replica without space for a new generation waits for some, and goes on.
func TestGenerationOnFullDisk(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	a, b := start(t, testOptions{}), start(t, testOptions{fs: fs})
	ca, cb := a.client(), b.client()
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	ca.want("MSET x 1 y 2 z 3", "+OK")
	b.follows(a)
	fs.SetFull(true)
	ca.want("FLUSHALL", "+OK")
	eventually(t, "the replica says that its disk is full", func() bool {
		return strings.Contains(cb.field("replication", "repl_error"), "no space left")
	})
	fs.SetFull(false)
	ca.want("SET x 4", "+OK")
	b.follows(a)
	if n := cb.field("replication", "repl_full_copies"); n != "1" {
		t.Errorf("%s full copies, want that of the beginning", n)
	}
}

// TestNoWayBack: a log that has parted from the source's and is damaged before that is replaced by a full copy.
func TestNoWayBack(t *testing.T) {
	fs := vfs.NewMem()
	a, b := start(t, testOptions{fs: fs}), start(t, testOptions{})
	ca, cb := a.client(), b.client()
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	b.follows(a)
	ca.want("MSET x 1 y 2 z 3", "+OK") // behind the snapshot that b has taken
	b.follows(a)
	cb.want("REPLICAOF NO ONE", "+OK")
	ca.want("MSET x 3 y 4 z 5", "+OK")
	for i := range 2 {
		f, err := fs.OpenReadWrite(path.Join("data", "shard-0"+strconv.Itoa(i), "00000000000000000001.seg"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("damage"), 128+30); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	ca.want("REPLICAOF 127.0.0.1 "+b.port(), "+OK")
	a.follows(b)
	if n := ca.field("replication", "repl_full_copies"); n != "1" {
		t.Errorf("%s full copies, want 1", n)
	}
}

// TestHelloAddress: an address that would not be one field of INFO is refused.
func TestHelloAddress(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	id := strings.Repeat("a", 40)
	for _, ip := range []string{"1.2.3.4\r\nrole:slave", "1.2.3.4,state=online", "a b"} {
		r, err := c.Do("REPL.HELLO", strconv.Itoa(replica.Format), "2", id, "7000", ip)
		if err != nil || !r.IsError() {
			t.Errorf("%q: %s, %v", ip, show(&r), err)
		}
	}
	if n := c.field("replication", "connected_slaves"); n != "0" {
		t.Errorf("%s replicas", n)
	}
}

// writeOn writes until stop is called, a group over all shards at a time, and now and then a FLUSHALL.
func (s *testServer) writeOn() (stop func()) {
	s.t.Helper()
	w, quit, done := s.client(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			n := strconv.Itoa(i % 500)
			args := []string{"MSET", "x" + n, strconv.Itoa(i), "y" + n, strconv.Itoa(i), "z", n}
			if i%997 == 500 {
				args = []string{"FLUSHALL"}
			}
			if r, err := w.Do(args...); err != nil || r.IsError() {
				s.t.Errorf("%v: %s, %v", args, show(&r), err)
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// at asks for the digest at the cursors of another reply.
func (c *client) at(prefix string, of *wire.Reply) string {
	c.t.Helper()
	args := []string{"PREFIX.DIGEST", prefix, "AT"}
	for _, c := range of.Elems[2].Elems {
		args = append(args, c.Elems[0].Text(), c.Elems[1].Text())
	}
	r, err := c.Do(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return show(&r)
}

// TestDigestAtCursors: while writes go on, a replica and its source tell the same digest for the same cursors.
func TestDigestAtCursors(t *testing.T) {
	a, b := start(t, testOptions{}), start(t, testOptions{})
	ca, cb := a.client(), b.client()
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	b.follows(a)
	stop := a.writeOn()
	moved := make(map[string]bool)
	for i := range 30 {
		prefix := []string{"", "x", "z"}[i%3]
		r, err := cb.Do("PREFIX.DIGEST", prefix, "SOURCE")
		if err != nil || r.IsError() {
			t.Fatalf("%s, %v", show(&r), err)
		}
		if same := ca.at(prefix, &r); same != show(&r) {
			t.Fatalf("the source at these cursors: %s; the replica: %s", same, show(&r))
		}
		moved[show(&r.Elems[2])] = true
	}
	stop()
	if len(moved) < 10 {
		t.Errorf("30 digests at %d places: writes did not go on", len(moved))
	}
	b.follows(a)
	now, err := ca.Do("PREFIX.DIGEST", "", "CURSORS")
	if err != nil || len(now.Elems) != 3 {
		t.Fatalf("%s, %v", show(&now), err)
	}
	if r := cb.at("", &now); r != show(&now) {
		t.Errorf("a replica that stands there: %s, want %s", r, show(&now))
	}
	ca.do("SET one more")
	if r := ca.at("", &now); !strings.Contains(r, "not at hand") {
		t.Errorf("cursors that were nobody's question: %s", r)
	}
}

// TestDigestWords: what is no question gets an error.
func TestDigestWords(t *testing.T) {
	c := start(t, testOptions{}).client()
	c.want("PREFIX.DIGEST p SOURCE", "-ERR this server follows no other")
	for line, want := range map[string]string{
		"AT 1 2": "-ERR 2 numbers for 2 shards*", "AT 1 2 3": "-ERR 3 numbers*", "AT a 2 3 4": "-ERR invalid generation",
		"AT 1 b 3 4": "-ERR invalid offset", "CURSORS 1": "-ERR syntax error", "SOURCE 1": "-ERR syntax error", "NOWHERE": "-ERR syntax error",
		"AT 1 2 3 4": "-ERR the state at these cursors is not at hand*",
	} {
		c.want("PREFIX.DIGEST p "+line, want)
	}
	c.do("MULTI")
	c.do("PREFIX.DIGEST p CURSORS")
	c.want("EXEC", "*[-ERR PREFIX.DIGEST at cursors *")
}

// TestReplicaNotifies: a replica publishes the events of the frames that it applies, as those of commands with these names: what a replica of
// Redis does with the commands that it is sent. Its events are those of 7.0.15 for the same commands, but for those in the comments.
func TestReplicaNotifies(t *testing.T) {
	a, b := start(t, testOptions{}), start(t, testOptions{set: map[string]string{"notify-keyspace-events": "EKA"}})
	ca, cb, sub := a.client(), b.client(), b.client()
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	b.follows(a)
	sub.do("PSUBSCRIBE __keyevent@0__:*")
	want := make(map[string]string)
	events := 0
	for _, x := range []struct{ run, want string }{
		{"SET a 1", "set:a"},
		{"INCR a", "set:a"}, // Redis: incrby
		{"SET b x EX 100", "set:b expire:b"},
		{"EXPIRE a 200", "expire:a"},
		{"PERSIST a", "persist:a"},
		{"APPEND a zz", "append:a"},
		{"MSET c 1 d 2", "set:c set:d"},
		{"DEL c d", "del:c del:d"},
		{"HSET h f 1", "hset:h"},
		{"HDEL h f", "hdel:h del:h"},
		{"RPUSH l 1 2 3", "rpush:l"},
		{"LPOP l", "lpop:l"},
		{"SADD s 1 2 3", "sadd:s"},
		{"SPOP s", "srem:s"},
		{"SINTERSTORE s2 s s", "sadd:s2"}, // Redis: sinterstore
		{"ZADD z 1 m", "zadd:z"},
		{"XADD x * f v", "xadd:x"},
		{"XGROUP CREATE x g 0", "xgroup-create:x"},
		{"SET t 1 PX 1", "set:t expire:t del:t"}, // the source's expiry
		{"EVAL redis.call('APPEND','q','1');redis.call('APPEND','q','2') 1 q", "append:q append:q"},
		{"FLUSHALL", ""},
	} {
		if got := ca.do(x.run); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", x.run, got)
		}
		for w := range strings.FieldsSeq(x.want) {
			_, key, _ := strings.Cut(w, ":")
			want[key] += " " + w
			events++
		}
		if strings.Contains(x.run, " PX ") {
			eventually(t, "the key is gone", func() bool { return ca.do("EXISTS t") == ":0" })
		}
	}
	got := make(map[string]string)
	for range events {
		r, err := sub.Read()
		if err != nil {
			t.Fatalf("%v, after %v", err, got)
		}
		key := r.Elems[3].Text()
		got[key] += " " + strings.TrimPrefix(r.Elems[2].Text(), "__keyevent@0__:") + ":" + key
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	sub.silent()
}

// TestReplicaInvalidates: clients of a replica that keep copies of keys hear of the frames that change them, and of a full copy.
func TestReplicaInvalidates(t *testing.T) {
	a, b := start(t, testOptions{}), start(t, testOptions{})
	ca, cb := a.client(), b.client()
	told := func(c *client, what, want string) {
		t.Helper()
		if got := c.next(); !strings.Contains(got, "invalidate") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", what, got)
		}
	}
	for _, line := range []string{"HELLO 3", "CLIENT TRACKING ON", "GET a"} {
		cb.do(line)
	}
	b.client().want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	told(cb, "a full copy", "invalidate")
	b.follows(a)
	cb.do("GET a")
	ca.do("SET a 1")
	told(cb, "a frame", "a")
	cb.do("MGET a b c")
	ca.do("MSET b 1 c 1 d 1")
	told(cb, "a group over all shards", "")
	told(cb, "a group over all shards", "")
	cb.do("GET a")
	ca.do("FLUSHALL")
	told(cb, "FLUSHALL", "invalidate")
	b.follows(a)
}

// TestSilentReplica: a link whose replica has gone without a word is closed after repl-timeout; one that is there is not.
func TestSilentReplica(t *testing.T) {
	a, b := start(t, testOptions{set: map[string]string{"repl-timeout": "1"}}), start(t, testOptions{})
	ca, cb, dead := a.client(), b.client(), a.client()
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	b.follows(a)
	if r, err := dead.Do("REPL.HELLO", strconv.Itoa(replica.Format), "2", strings.Repeat("d", 40), "7000", ""); err != nil || r.IsError() {
		t.Fatalf("%s, %v", show(&r), err)
	}
	pull := []string{"REPL.PULL", "1000", "0"}
	for i := range 2 {
		r := ca.do("FEED.TAIL " + strconv.Itoa(i))
		gen, off, _ := strings.Cut(strings.Trim(r, "*[]"), " ")
		pull = append(pull, strings.TrimPrefix(gen, ":"), strings.TrimPrefix(off, ":"))
	}
	if r, err := dead.Do(pull...); err != nil || r.IsError() {
		t.Fatalf("%s, %v", show(&r), err)
	}
	dead.gone()
	if n := ca.field("replication", "connected_slaves"); n != "1" {
		t.Errorf("%s replicas, want the one that is there", n)
	}
	ca.want("SET x 1", "+OK")
	b.follows(a)
	if n := cb.field("replication", "repl_connects"); n != "1" {
		t.Errorf("the replica that is there has connected %s times", n)
	}
}

// TestCopyResumes: a full copy goes on where it was after a restart of the replica, though the source has a newer snapshot by then.
func TestCopyResumes(t *testing.T) {
	mem := vfs.NewMem()
	fs := faultfs.New(mem)
	a, b := start(t, testOptions{}), start(t, testOptions{fs: fs})
	ca, cb := a.client(), b.client()
	rng := rand.NewChaCha8([32]byte{1})
	big := make([]byte, 256<<10)
	for i := range 60 {
		_, _ = rng.Read(big) // does not compress
		if r, err := ca.Do("SET", "big"+strconv.Itoa(i), string(big)); err != nil || r.IsError() {
			t.Fatalf("%s, %v", show(&r), err)
		}
	}
	fs.Inject(faultfs.OnPath("/tmp-", faultfs.FailFrom(faultfs.OpWriteAt, 3, nil)))
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	eventually(t, "the copy stops in the middle", func() bool { return strings.Contains(cb.field("replication", "repl_error"), "injected") })
	b.shutdown()
	ca.want("SET more 1", "+OK")
	ca.want("SAVE", "+OK")
	b = start(t, testOptions{fs: mem})
	cb = b.client()
	cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	b.follows(a)
	if n, _ := strconv.Atoi(cb.field("replication", "repl_bytes_resumed")); n < 1<<20 {
		t.Errorf("%d bytes were there from before", n)
	}
	if n := cb.field("replication", "repl_full_copies"); n != "1" {
		t.Errorf("%s full copies", n)
	}
}

// TestSameCursorsOtherFrames: a directory put back from a copy of its files goes on in its old generation. A replica that has other frames under
// the same cursors takes a full copy, and keeps its own frames aside.
func TestSameCursorsOtherFrames(t *testing.T) {
	fs := crashfs.New()
	a, b := start(t, testOptions{fs: fs}), start(t, testOptions{})
	a.client().want("MSET x 1 y 2 z 3", "+OK")
	a.shutdown()
	old := fs.KillClone()
	c := b.client()
	for i, on := range []*crashfs.FS{fs, old} {
		s := start(t, testOptions{fs: on})
		write := func(n int) {
			for j := range n {
				s.client().want(fmt.Sprintf("SET %d-%d x", i, j), "+OK")
			}
		}
		write(i * 40) // the second source is not behind the replica
		c.want("REPLICAOF 127.0.0.1 "+s.port(), "+OK")
		b.follows(s)
		write(20)
		b.follows(s)
		s.shutdown()
	}
	if n, kept := c.field("replication", "repl_full_copies"), c.field("replication", "repl_kept_aside"); n != "1" || kept == "0" {
		t.Errorf("%s full copies from the second source, %s files kept aside", n, kept)
	}
}

// TestFlushInTransactionOnReplica: what follows a FLUSHALL in a transaction is seen on a replica with it, whether the log is synced or not, and
// whatever comes in the same millisecond.
func TestFlushInTransactionOnReplica(t *testing.T) {
	for _, policy := range []string{"everysec", "always"} {
		t.Run(policy, func(t *testing.T) {
			a, b := start(t, testOptions{set: map[string]string{"appendfsync": policy}}), start(t, testOptions{})
			ca, cb := a.client(), b.client()
			cb.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
			ca.want("MSET k0 0 k1 0 k2 0 k3 0 k4 0", "+OK")
			b.follows(a)
			quit, done := make(chan struct{}), make(chan int)
			go func() {
				w := a.client()
				n := 0
				for ; ; n++ {
					select {
					case <-quit:
						done <- n
						return
					default:
					}
					one := fmt.Sprintf("SET k1 %d", n) // on one shard, or on both
					all := fmt.Sprintf("MSET k0 %d k1 %d k2 %d k3 %d k4 %d", n, n, n, n, n)
					for _, line := range []string{"MULTI", "FLUSHALL", []string{all, one}[n%2], "EXEC", "SET other 1", "MSET p 1 q 2 r 3"} {
						if _, err := w.Do(strings.Fields(line)...); err != nil {
							t.Error(err)
						}
					}
				}
			}()
			seen := make(map[string]bool)
			for range 2000 {
				k := cb.do("GET k1")
				if k == "nil" {
					t.Error("the FLUSHALL is seen, and what follows it is not")
					break
				}
				seen[k] = true
			}
			close(quit)
			if n := <-done; len(seen) < 3 {
				t.Errorf("%d of %d transactions seen", len(seen), n)
			}
			b.follows(a)
			if n := cb.field("replication", "repl_connects"); n != "1" {
				t.Errorf("the replica has connected %s times", n)
			}
		})
	}
}
