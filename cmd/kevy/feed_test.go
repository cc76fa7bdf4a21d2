package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// tail runs kevy feed tail in this process until the test ends or it ends by itself.
type tail struct {
	out, err syncBuffer
	code     chan int
	stop     context.CancelFunc
}

func startTail(t *testing.T, s *proc.Server, args ...string) *tail {
	t.Helper()
	o, err := parseFeed(append([]string{"tail", "--addr", s.Addr}, args...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &tail{code: make(chan int, 1), stop: cancel}
	go func() { f.code <- tailFeed(ctx, o, &f.out, &f.err) }()
	t.Cleanup(cancel)
	return f
}

func (f *tail) lines() []string {
	return strings.Split(strings.TrimSuffix(f.out.String(), "\n"), "\n")
}

func (f *tail) await(t *testing.T, text string) {
	t.Helper()
	await(t, "a line with "+text, func() bool { return strings.Contains(f.out.String(), text) })
}

func TestFeedTail(t *testing.T) {
	s := startServer(t, t.TempDir(), "--shards", "2")
	defer s.Kill() //nolint:errcheck // the test is over
	c := dial(t, s.Addr)
	must := func(args ...string) {
		t.Helper()
		if r, err := c.Do(args...); err != nil || r.IsError() {
			t.Fatalf("%v: %v %v", args, r.String(), err)
		}
	}
	all, users := startTail(t, s, "--json"), startTail(t, s, "--prefix", "user:", "--prefix", "u2:")
	n := 0
	await(t, "both follow", func() bool {
		n++
		must("SET", fmt.Sprintf("user:%d", n), "probe")
		return strings.Contains(all.out.String(), "probe") && strings.Contains(users.out.String(), "probe")
	})
	must("SET", "other", "x")
	must("SET", "u2:a", "two words\xff")
	must("MSET", "user:a", "1", "user:b", "2", "c", "3", "d", "4")
	must("SET", "user:end", "1")
	all.await(t, "user:end")
	users.await(t, "user:end")
	if strings.Contains(users.out.String(), `"other"`) {
		t.Error("a change of another prefix was printed")
	}
	if !strings.Contains(users.out.String(), ` SET "u2:a" "two words\xff"`) {
		t.Errorf("text lines: %q", users.lines())
	}
	for _, line := range all.lines() {
		var ch change
		if err := json.Unmarshal([]byte(line), &ch); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if ch.Generation == 0 || ch.Time == 0 || ch.Cause != "client" || len(ch.Group) != 2 || len(ch.Argv) < 2 {
			t.Errorf("line %q", line)
		}
		if ch.Argv[1] == "u2:a" && string(ch.Raw[2]) != "two words\xff" {
			t.Errorf("bytes that are not UTF-8: %q", line)
		}
	}
	all.stop()
	if code := <-all.code; code != exitOK {
		t.Errorf("exit code %d after a signal", code)
	}
}

// TestFeedTailReconnects: a clean restart costs nothing; after a kill the follower says that the
// history was replaced, and ends, or goes on if it was told to.
func TestFeedTailReconnects(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir, "--shards", "1")
	c := dial(t, s.Addr)
	if _, err := c.Must("SET", "first", "1"); err != nil {
		t.Fatal(err)
	}
	r, err := c.Must("FEED.TAIL", "0")
	if err != nil {
		t.Fatal(err)
	}
	gen, _ := r.Elems[0].Int()
	from := fmt.Sprintf("%d:0", gen)
	ends := startTail(t, s, "--from", from, "--json")
	goesOn := startTail(t, s, "--from", from, "--json", "--continue")
	ends.await(t, `["SET","first","1"]`)
	goesOn.await(t, `["SET","first","1"]`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	s = restart(t, s, dir)
	if _, err := dial(t, s.Addr).Must("SET", "second", "2"); err != nil {
		t.Fatal(err)
	}
	ends.await(t, `["SET","second","2"]`)
	goesOn.await(t, `["SET","second","2"]`)
	if !strings.Contains(ends.err.String(), "trying again") || !strings.Contains(ends.err.String(), "connected to") {
		t.Errorf("stderr: %s", ends.err.String())
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	s = restart(t, s, dir)
	defer s.Kill() //nolint:errcheck // the test is over
	if code := <-ends.code; code != exitResync {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(ends.err.String(), "FEEDRESYNC") || !strings.Contains(ends.err.String(), "resume with --shard 0 --from ") {
		t.Errorf("stderr: %s", ends.err.String())
	}
	goesOn.await(t, `"resync":`)
	if _, err := dial(t, s.Addr).Must("SET", "third", "3"); err != nil {
		t.Fatal(err)
	}
	goesOn.await(t, `["SET","third","3"]`)
}

// restart starts the server again on the port that it had.
func restart(t *testing.T, s *proc.Server, dir string) *proc.Server {
	t.Helper()
	next, err := proc.LaunchKevy(dir, "--port", strconv.Itoa(s.Port))
	if err != nil {
		t.Fatal(err)
	}
	next.Addr, next.Port = s.Addr, s.Port
	await(t, "the server is back", func() bool {
		c, err := wire.Dial(next.Addr)
		if err != nil {
			return false
		}
		defer c.Close()
		r, err := c.Do("PING")
		return err == nil && r.Text() == "PONG"
	})
	return next
}
