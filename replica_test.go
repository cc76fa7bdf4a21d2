package kevy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/log"
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

// source is a server that embedded replicas follow.
type source struct {
	t *testing.T
	*proc.Server
	conn *wire.Conn
}

func startSource(t *testing.T, flags ...string) *source {
	t.Helper()
	s := &source{t: t}
	port, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s.Server, err = proc.StartKevyOn(proc.Loopback, port, filepath.Join(t.TempDir(), "source"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.KillAndCheck(t) })
	s.dial()
	return s
}

func (s *source) dial() {
	s.t.Helper()
	var err error
	if s.conn, err = s.Dial(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.conn.Close)
}

func (s *source) do(args ...string) wire.Reply {
	s.t.Helper()
	r, err := s.conn.Must(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *source) tail() log.Cursor {
	s.t.Helper()
	r := s.do("FEED.TAIL", "0")
	gen, _ := r.Elems[0].Int()
	off, _ := r.Elems[1].Int()
	return log.Cursor{Generation: uint64(gen), Offset: uint64(off)}
}

// inStep waits until the replica is where the source is.
func (s *source) inStep(r *kevy.Store) {
	s.t.Helper()
	want := s.tail()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if got, err := r.ChangesTail(); err != nil {
			s.t.Fatal(err)
		} else if got == want {
			return
		}
	}
	got, _ := r.ChangesTail()
	s.t.Fatalf("the replica is at %v, the source at %v: %+v", got, want, r.Replica())
}

// changes returns all changes from a cursor on as text, from the replica and from the source.
func (s *source) changes(r *kevy.Store, from log.Cursor) (own, theirs []string) {
	s.t.Helper()
	b, err := r.ChangesSince(from, 4096)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range b.Changes {
		own = append(own, fmt.Sprintf("%d %s", c.Offset, c.Argv))
	}
	reply := s.do("FEED.READ", "0", strconv.FormatUint(from.Generation, 10), strconv.FormatUint(from.Offset, 10), "COUNT", "4096")
	for _, f := range reply.Elems[2].Elems {
		var argv [][]byte
		for _, a := range f.Elems[1].Elems {
			argv = append(argv, a.Str)
		}
		off, _ := f.Elems[0].Int()
		theirs = append(theirs, fmt.Sprintf("%d %s", off, argv))
	}
	return own, theirs
}

// TestReplicaOf: a store in this process has a server's keys and changes, with its cursors, and refuses writes.
func TestReplicaOf(t *testing.T) {
	src := startSource(t, "--shards", "1")
	src.do("MSET", "user:1", "Ada", "user:2", "Bob")
	start := log.Cursor{Generation: src.tail().Generation}
	r := open(t, kevy.DefaultConfig().WithDir(filepath.Join(t.TempDir(), "replica")).WithFeed(0).WithReplicaOf(src.Addr))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.WaitReplica(ctx); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := r.Get("user:1"); string(v) != "Ada" || !ok || err != nil {
		t.Errorf("Get: %q, %v, %v", v, ok, err)
	}
	from := src.tail()
	for i := range 500 {
		src.do("SET", "user:"+strconv.Itoa(i), strconv.Itoa(i))
	}
	src.inStep(r)
	own, theirs := src.changes(r, from)
	if len(own) != 500 || !slices.Equal(own, theirs) {
		t.Errorf("%d changes from %v on, the source's are %d", len(own), from, len(theirs))
	}
	refusesWrites(t, r)
	src.do("FLUSHALL")
	src.do("SET", "after", "1")
	src.inStep(r)
	var resync *kevy.ResyncError
	if _, err := r.ChangesSince(start, 1); !errors.As(err, &resync) || resync.Generation != src.tail().Generation {
		t.Errorf("a cursor from before FLUSHALL: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitReplica(ctx); !errors.Is(err, kevy.ErrClosed) {
		t.Errorf("WaitReplica after Close: %v", err)
	}
}

// TestReplicaRestarts: a replica goes on from its own log after a restart of either side, and is a store of its own when it is opened as one.
func TestReplicaRestarts(t *testing.T) {
	src := startSource(t, "--shards", "1")
	cfg := kevy.DefaultConfig().WithDir(filepath.Join(t.TempDir(), "replica")).WithFeed(0).WithReplicaOf(src.Addr)
	r := open(t, cfg)
	src.do("SET", "x", "1")
	src.inStep(r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	src.do("SET", "meanwhile", "1")
	r = open(t, cfg)
	src.inStep(r)
	if err := src.Stop(); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := r.Get("meanwhile"); string(v) != "1" || !ok || err != nil {
		t.Errorf("a read without the source: %q, %v, %v", v, ok, err)
	}
	var err error
	if src.Server, err = proc.StartKevyOn(proc.Loopback, src.Port, src.Dir, "--shards", "1"); err != nil {
		t.Fatal(err)
	}
	src.dial()
	src.do("SET", "again", "1")
	src.inStep(r)
	if st := r.Replica(); st.FullCopies != 0 || !st.Up || st.Source != src.Addr {
		t.Errorf("after restarts of both sides: %+v", st)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.ReplicaOf = ""
	r = open(t, cfg)
	if err := r.Set("mine", nil); err != nil {
		t.Error(err)
	}
	if tail, err := r.ChangesTail(); err != nil || tail.Generation <= src.tail().Generation {
		t.Errorf("a store of its own goes on at %v, %v", tail, err)
	}
}

func refusesWrites(t *testing.T, r *kevy.Store) {
	t.Helper()
	before, err := r.ChangesTail()
	if err != nil {
		t.Fatal(err)
	}
	_, none := r.Del("none")
	_, script := r.Do("EVAL", "return redis.call('SET', KEYS[1], 1)", 1, "x")
	_, flush := r.Do("FLUSHALL")
	for what, err := range map[string]error{
		"Set": r.Set("x", nil), "Del of nothing": none, "EVAL": script, "FLUSHALL": flush,
		"Update": r.Update(func(tx *kevy.Tx) error { return tx.Set("x", nil) }),
	} {
		if !errors.Is(err, kevy.ErrReadOnly) && (what != "EVAL" || !strings.Contains(fmt.Sprint(err), "READONLY")) {
			t.Errorf("%s on a replica: %v", what, err)
		}
	}
	if after, err := r.ChangesTail(); err != nil || after != before {
		t.Errorf("refused writes moved the tail from %v to %v, %v", before, after, err)
	}
}

// TestReplicaInMemory: a replica needs no directory, and its files of a full copy do not stay.
func TestReplicaInMemory(t *testing.T) {
	src := startSource(t, "--shards", "1")
	src.do("CONFIG", "SET", "requirepass", "secret")
	src.do("AUTH", "secret")
	for i := range 100 {
		src.do("HSET", "h", strconv.Itoa(i), "v")
	}
	r := open(t, kevy.DefaultConfig().WithFeed(0).WithReplicaOf(src.Addr).WithReplicaLogin("", "secret"))
	src.inStep(r)
	src.do("HSET", "h", "last", "v")
	src.inStep(r)
	if v, err := r.Do("HLEN", "h"); v != int64(101) || err != nil {
		t.Errorf("HLEN: %v, %v", v, err)
	}
	if files := r.SetsForTesting(); len(files) != 0 {
		t.Errorf("left in memory: %v", files)
	}
}

// TestReplicaRefused: what keeps a replica from following is told.
func TestReplicaRefused(t *testing.T) {
	if _, err := kevy.Open(kevy.DefaultConfig().WithReplicaOf("nowhere")); err == nil || !strings.Contains(err.Error(), "ReplicaOf") {
		t.Errorf("an address without a port: %v", err)
	}
	src := startSource(t, "--shards", "2")
	r := open(t, kevy.DefaultConfig().WithReplicaOf(src.Addr))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := r.WaitReplica(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "must be equal") {
		t.Errorf("a source with two shards: %v", err)
	}
	if st := open(t, kevy.DefaultConfig()).Replica(); st != (kevy.ReplicaStatus{}) {
		t.Errorf("a store that is no replica: %+v", st)
	}
}
