package engine_test

import (
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// reply runs a command with c, by run, and returns its reply.
func reply(t *testing.T, c *command.Ctx, run func() error, line string) string {
	t.Helper()
	var w resp.Writer
	for word := range strings.FieldsSeq(line) {
		c.Args = append(c.Args, []byte(word))
	}
	row, bad := command.Resolve(c.Args)
	if row == nil {
		t.Fatal(bad)
	}
	c.Cmd, c.W = row, &w
	if err := run(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	c.Args = nil
	return strings.TrimSpace(string(w.Buf))
}

// role is an engine, and who runs commands on it.
type role struct {
	t *testing.T
	e *engine.Engine
}

func openRole(t *testing.T, fs vfs.FS) *role {
	t.Helper()
	e, _, err := engine.Open(engine.Options{Log: log.Options{FS: fs, Dir: "data", Shards: 3, Follower: true}})
	if err != nil {
		t.Fatal(err)
	}
	return &role{t, e}
}

func (r *role) close() {
	r.t.Helper()
	if err := r.e.Close(true); err != nil {
		r.t.Fatal(err)
	}
}

func (r *role) safe(ticket *engine.Ticket, got string) string {
	r.t.Helper()
	if err := r.e.Await(ticket); err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *role) client(line string) string {
	r.t.Helper()
	var ticket engine.Ticket
	c := r.e.NewCtx()
	return r.safe(&ticket, reply(r.t, c, func() error { r.e.Run(c, &ticket); return nil }, line))
}

func (r *role) replay(line string) string {
	r.t.Helper()
	var ticket engine.Ticket
	c := r.e.NewCtx()
	return r.safe(&ticket, reply(r.t, c, func() error {
		return r.e.Replay(c, &ticket, nil, func(run func() error) error { return run() })
	}, line))
}

// loaded checks that the state is that of TestLoader's Loader.
func (r *role) loaded(when string) {
	r.t.Helper()
	if a, n, ttl := r.client("GET a"), r.client("DBSIZE"), r.client("TTL e"); a != "$3\r\nnew" || n != ":3" || ttl != ":1000" && ttl != ":999" {
		r.t.Errorf("%s: %q %q %q", when, a, n, ttl)
	}
}

// load fills a Loader and makes its state that of the store, after one that is given up.
func (r *role) load() {
	r.t.Helper()
	l, err := r.e.NewLoader()
	if err != nil {
		r.t.Fatal(err)
	}
	l.Abandon()
	if l, err = r.e.NewLoader(); err != nil {
		r.t.Fatal(err)
	}
	c := l.NewCtx()
	for _, line := range []string{"SET a new", "RPUSH l x y", "SET e 1 EX 1000"} {
		reply(r.t, c, func() error { return l.Run(c) }, line)
	}
	if got := r.client("GET a"); got != "$1\r\n1" {
		r.t.Errorf("before the end: %q", got)
	}
	if err := l.Finish(log.Cursor{Generation: 1}); err != nil {
		r.t.Fatal(err)
	}
}

// TestLoader: a state made beside takes the place of the one there is, as a whole; then only Replay changes it, and a restart has both.
func TestLoader(t *testing.T) {
	fs := vfs.NewMem()
	r := openRole(t, fs)
	r.client("MSET a 1 b 2 c 3 d 4")
	before := r.e.Dir().Log(0).Generation()
	if err := r.e.Follow(); err != nil {
		t.Fatal(err)
	}
	r.load()
	r.loaded("after the end")
	for i := range r.e.Shards() {
		lin := r.e.Dir().Log(i).Lineage()
		if len(lin) != 1 || lin[0].Cause != log.CauseRestore || lin[0].Parent != 1 || lin[0].Generation <= before {
			t.Errorf("shard %d: %+v, before %d", i, lin, before)
		}
	}
	if got := r.client("SET a 1"); !strings.HasPrefix(got, "-READONLY") {
		t.Errorf("a client's write: %s", got)
	}
	if got := r.replay("INCR n"); got != ":1" {
		t.Errorf("a replayed write: %s", got)
	}
	r.replay("DEL n")
	_, digest := r.e.Digest()
	r.close()
	r = openRole(t, fs)
	r.loaded("after a restart")
	if _, d := r.e.Digest(); d != digest {
		t.Errorf("digest %s, %s before", d, digest)
	}
	if r.replay("FLUSHALL"); r.client("DBSIZE") != ":0" {
		t.Error("FLUSHALL was not replayed")
	}
	if err := r.e.Promote(); err != nil {
		t.Fatal(err)
	}
	if got := r.client("SET a 1"); got != "+OK" {
		t.Errorf("after the promotion: %s", got)
	}
	r.close()
}
