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

func (s *source) tail() log.Cursor { return s.tailOf(0) }

func (s *source) tailOf(shard int) log.Cursor {
	s.t.Helper()
	r := s.do("FEED.TAIL", strconv.Itoa(shard))
	gen, _ := r.Elems[0].Int()
	off, _ := r.Elems[1].Int()
	return log.Cursor{Generation: uint64(gen), Offset: uint64(off)}
}

// inStep waits until the replica is where the source is.
func (s *source) inStep(r *kevy.Store) {
	s.t.Helper()
	s.atTail(r, 1)
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

// TestReplicaOverTLS: a replica reaches its source over TLS, with a certificate and a password.
func TestReplicaOverTLS(t *testing.T) {
	cert, key := proc.Certificate(t)
	port, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	src := startSource(t, "--shards", "2", "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	src.do("CONFIG", "SET", "requirepass", "secret")
	src.do("AUTH", "secret")
	src.do("MSET", "user:1", "Ada", "user:2", "Bob")
	files := kevy.ReplicaTLS{CACertFile: cert, CertFile: cert, KeyFile: key}
	cfg := kevy.DefaultConfig().WithReplicaOf("127.0.0.1:"+strconv.Itoa(port)).WithReplicaLogin("", "secret").WithFeed(0)
	r := open(t, cfg.WithReplicaTLS(files))
	src.atTail(r, 2)
	if v := must[any](t)(r.Do("MGET", "user:1", "user:2")); fmt.Sprint(v) != "[Ada Bob]" {
		t.Errorf("%v", v)
	}
	other, _ := proc.Certificate(t)
	files.CACertFile = other
	if _, err := kevy.Open(cfg.WithReplicaTLS(files)); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a source whose certificate another authority has signed: %v", err)
	}
}

// TestReplicaOfShards: a replica of a server with several shards has as many, with the server's cursors on each, also as a store of its own afterwards.
func TestReplicaOfShards(t *testing.T) {
	src := startSource(t, "--shards", "3")
	write := func(value string) {
		args := []string{"MSET"}
		for i := range 90 { // some on each shard
			args = append(args, "user:"+strconv.Itoa(i), value)
		}
		src.do(args...)
	}
	write("old")
	cfg := kevy.DefaultConfig().WithDir(filepath.Join(t.TempDir(), "replica")).WithFeed(0).WithReplicaOf(src.Addr)
	r := open(t, cfg)
	src.atTail(r, 3)
	from := must[log.Cursor](t)(r.Shard(1).ChangesTail())
	keys := 0
	for i := range 3 {
		keys += len(must[kevy.Scan](t)(r.Shard(i).ChangesScan(nil, 100)).Frames)
	}
	if v := must[any](t)(r.Do("MGET", "user:1", "user:89", "none")); keys != 90 || fmt.Sprint(v) != "[old old <nil>]" {
		t.Errorf("%d keys; %v", keys, v)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	write("new")
	r = open(t, cfg)
	src.atTail(r, 3)
	if st := r.Replica(); st.FullCopies != 0 {
		t.Errorf("after a restart: %+v", st)
	}
	for c, err := range r.Shard(1).Follow(t.Context(), from) {
		if err != nil || c.Offset != from.Offset || string(c.Argv[len(c.Argv)-1]) != "new" {
			t.Errorf("%q at %d, %v", c.Argv, c.Offset, err)
		}
		break
	}
	if b := must[kevy.Batch](t)(r.Shard(1).ChangesSince(from, 10)); len(b.Changes) == 0 || b.Next != src.tailOf(1) {
		t.Errorf("%+v", b)
	}
	if _, err := r.ChangesTail(); !errors.Is(err, kevy.ErrSeveralShards) {
		t.Errorf("the tail of three shards: %v", err)
	}
	if _, err := r.Shard(3).ChangesTail(); err == nil {
		t.Error("there is no shard 3")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.ReplicaOf = ""
	r = open(t, cfg)
	err := r.Update(func(tx *kevy.Tx) error { return errors.Join(tx.Set("user:1", nil), tx.Set("user:2", nil)) })
	if v := must[any](t)(r.Do("MGET", "user:1", "user:2", "user:4")); err != nil || fmt.Sprint(v) != "[  new]" {
		t.Errorf("a store of its own: %v, %v", v, err)
	}
}

// atTail waits until the replica is where the source is, on all shards.
func (s *source) atTail(r *kevy.Store, shards int) {
	s.t.Helper()
	for i, end := 0, time.Now().Add(20*time.Second); i < shards; {
		got, err := r.Shard(i).ChangesTail()
		switch {
		case err != nil:
			s.t.Fatal(err)
		case got == s.tailOf(i):
			i++
		case time.Now().After(end):
			s.t.Fatalf("shard %d of the replica is at %v, the source at %v: %+v", i, got, s.tailOf(i), r.Replica())
		default:
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// TestReplicaRefused: what keeps a replica from following is told.
func TestReplicaRefused(t *testing.T) {
	for field, cfg := range map[string]kevy.Config{
		"ReplicaOf":  kevy.DefaultConfig().WithReplicaOf("nowhere"),
		"Shards":     kevy.DefaultConfig().WithShards(65),
		"ReplicaTLS": kevy.DefaultConfig().WithReplicaOf("127.0.0.1:1").WithReplicaTLS(kevy.ReplicaTLS{CACertFile: "none"}),
		"asking 127.0.0.1:1 how many shards it has": kevy.DefaultConfig().WithReplicaOf("127.0.0.1:1"),
	} {
		if _, err := kevy.Open(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	src := startSource(t, "--shards", "2")
	r := open(t, kevy.DefaultConfig().WithShards(3).WithReplicaOf(src.Addr))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := r.WaitReplica(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "must be equal") {
		t.Errorf("a source with two shards: %v", err)
	}
	if st := open(t, kevy.DefaultConfig()).Replica(); st != (kevy.ReplicaStatus{}) {
		t.Errorf("a store that is no replica: %+v", st)
	}
}
