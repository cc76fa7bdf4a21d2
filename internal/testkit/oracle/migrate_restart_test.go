package oracle

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/migrate"
	"github.com/kevydb/kevy/internal/testkit/proc"
)

// TestMigrateRestart: a kevy that was stopped goes on in the stream of its source, one that was killed takes a copy.
func TestMigrateRestart(t *testing.T) {
	s, redis := stock(t, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb")
	c := redis.conns[1]
	play(t, redis, 950)
	dir := filepath.Join(t.TempDir(), "data")
	start := func() *moving {
		t.Helper()
		srv, err := proc.StartKevy(dir, "--shards", "2", "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = srv.Kill() })
		m := &moving{t: t, redis: s, kevy: srv}
		m.dial()
		m.up()
		return m
	}
	for n, copies := range []string{"1", "0", "0", "1"} {
		m := start()
		m.caughtUp(c)
		equal(t, "DUMP of all keys", func() (want, got []string) { return dumps(t, c), dumps(t, m.c) })
		if got := m.field("repl_full_copies"); got != copies {
			t.Errorf("start %d: %s full copies, want %s", n, got, copies)
		}
		end := m.kevy.Stop
		if n == 2 {
			end = m.kevy.Kill
		}
		if err := end(); err != nil && n != 2 {
			t.Fatal(err)
		}
		for i := range 50 {
			if _, err := c.Must("INCR", fmt.Sprint("counted", i%7)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// follow imports until it has what the server had when the base was complete, and returns how often the stream was taken up.
func follow(t *testing.T, addr, dir string) (resumed int64, err error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	src := &migrate.Source{Addr: addr}
	based, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := migrate.Run(ctx, migrate.Options{From: src, To: dir, Shards: 2, Follow: true, Based: func(*migrate.Result) { close(based) }})
		ended <- err
	}()
	select {
	case err := <-ended:
		return 0, err
	case <-based:
	}
	await(t, src, ended)
	_, _, resumed = src.Status()
	stop()
	return resumed, <-ended
}

// TestImportAgain: an import that follows goes on in the directory that it has left, unless that has been written to.
func TestImportAgain(t *testing.T) {
	s, redis := stock(t, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb")
	c := redis.conns[1]
	play(t, redis, 950)
	dir := filepath.Join(t.TempDir(), "new")
	for n := range 3 {
		for i := range 50 {
			if _, err := c.Must("INCR", fmt.Sprint("counted", i%7)); err != nil {
				t.Fatal(err)
			}
		}
		if resumed, err := follow(t, s.Addr, dir); err != nil || (resumed > 0) != (n > 0) {
			t.Fatalf("run %d: %v, taken up %d times", n, err, resumed)
		}
	}
	srv, err := proc.StartKevy(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Kill() //nolint:errcheck // over
	m := &moving{t: t, redis: s, kevy: srv}
	m.dial()
	equal(t, "DUMP of all keys", func() (want, got []string) { return dumps(t, c), dumps(t, m.c) })
	m.do("SET own 1")
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := follow(t, s.Addr, dir); err == nil || !strings.Contains(err.Error(), "has been written to") {
		t.Errorf("into a directory that has been written to: %v", err)
	}
}
