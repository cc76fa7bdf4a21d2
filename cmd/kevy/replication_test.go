package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// linked waits until the server has the link to the one it follows.
func linked(t *testing.T, c *wire.Conn) {
	t.Helper()
	await(t, "the replica has the link", func() bool {
		r, err := c.Must("INFO", "replication")
		return err == nil && strings.Contains(r.Text(), "master_link_status:up")
	})
}

// TestReplicaArchive: a replica that archives goes on with the directory that a full copy puts in the place of the one it was started with.
func TestReplicaArchive(t *testing.T) {
	a := startServer(t, filepath.Join(t.TempDir(), "a"), "--shards", "2")
	place := filepath.Join(t.TempDir(), "archive")
	b := startServer(t, filepath.Join(t.TempDir(), "b"), "--shards", "2", "--archive-url", "file://"+place, "--archive-interval", "50ms")
	ca, cb := dial(t, a.Addr), dial(t, b.Addr)
	archived(t, cb) // an empty store, with a hash seed of its own
	must := func(c *wire.Conn, args ...string) string {
		t.Helper()
		r, err := c.Must(args...)
		if err != nil {
			t.Fatal(err)
		}
		return r.String()
	}
	for i := range 200 {
		must(ca, "MSET", fmt.Sprint("x", i), "1", fmt.Sprint("y", i), "2")
	}
	must(cb, "REPLICAOF", "127.0.0.1", fmt.Sprint(a.Port))
	linked(t, cb)
	must(ca, "SET", "last", "1")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(b.Log())
		}
	})
	want := must(ca, "PREFIX.DIGEST", "")
	await(t, "the replica is as its source", func() bool { return must(cb, "PREFIX.DIGEST", "") == want })
	await(t, "the snapshot is in the archive, which is the log's way in", func() bool {
		r, err := cb.Must("INFO", "persistence")
		return err == nil && !strings.Contains(r.Text(), "archive_last_set:\r\n")
	})
	archived(t, cb)
	if code, out, errs := verifyRun("file://"+place, "--deep"); code != exitOK {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	to := filepath.Join(t.TempDir(), "restored")
	var out, errs bytes.Buffer
	if code := restore([]string{"--from", "file://" + place, "--to", to, "--latest"}, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s%s", code, out.Bytes(), errs.Bytes())
	}
	if got := must(dial(t, startServer(t, to).Addr), "PREFIX.DIGEST", ""); got != want {
		t.Errorf("restored: %s, want %s", got, want)
	}
}

// writeOn writes until stop is called, which returns how much.
func writeOn(t *testing.T, c *wire.Conn) (stop func() int) {
	t.Helper()
	quit, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { done <- n }()
		for ; ; n++ {
			select {
			case <-quit:
				return
			default:
			}
			if _, err := c.Must("MSET", fmt.Sprint("user:", n%300), fmt.Sprint(n), fmt.Sprint("cart:", n%300), fmt.Sprint(n)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return func() int { close(quit); return <-done }
}

// TestReplicationDoc runs the blocks of docs/replication.md next to a server and a replica, while writes go on.
func TestReplicationDoc(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-cli is not installed (apt-get install redis-tools)")
	}
	bin, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(tools, "kevy")); err != nil {
		t.Fatal(err)
	}
	a := startServer(t, filepath.Join(t.TempDir(), "a"), "--shards", "2")
	b := startServer(t, filepath.Join(t.TempDir(), "b"), "--shards", "2", "--replicaof", fmt.Sprintf("127.0.0.1 %d", a.Port))
	linked(t, dial(t, b.Addr))
	stop := writeOn(t, dial(t, a.Addr))
	var out bytes.Buffer
	ran := 0
	for section, blocks := range docBlocks(t, "../../docs/replication.md") {
		for _, block := range blocks {
			for line := range strings.Lines(block) {
				line = strings.ReplaceAll(strings.TrimSpace(line), "6379", fmt.Sprint(a.Port))
				line = strings.ReplaceAll(line, "6380", fmt.Sprint(b.Port))
				cmd := exec.Command("bash", "-c", line)
				cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
				text, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %s: %v\n%s", section, line, err, text)
				}
				fmt.Fprintf(&out, "$ %s\n%s", line, text)
				ran++
			}
		}
	}
	if n := stop(); n == 0 {
		t.Error("no writes went on")
	}
	if n := strings.Count(out.String(), "equal: ") + strings.Count(out.String(), `"equal":true`); ran < 3 || n != 2 {
		t.Errorf("%d lines ran:\n%s", ran, out.Bytes())
	}
}

// verifyRun runs kevy verify.
func verifyRun(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = verify(args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestVerifyReplica: a difference, and what can't be asked, have exit codes of their own.
func TestVerifyReplica(t *testing.T) {
	a := startServer(t, filepath.Join(t.TempDir(), "a"), "--shards", "2")
	b := startServer(t, filepath.Join(t.TempDir(), "b"), "--shards", "2", "--replicaof", fmt.Sprintf("127.0.0.1 %d", a.Port))
	if _, err := dial(t, a.Addr).Must("MSET", "user:1", "1", "x", "2"); err != nil {
		t.Fatal(err)
	}
	linked(t, dial(t, b.Addr))
	code, out, errs := verifyRun("--replica", "redis://"+b.Addr, "--prefix", "user:", "--json")
	var c comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != exitOK || !c.Equal || c.Keys != 1 || c.SourceKeys != 1 || len(c.Cursors) != 2 ||
		c.Source != a.Addr || c.Replica != b.Addr {
		t.Errorf("exit %d: %s%s (%v)", code, out, errs, err)
	}
	liar := replying(t, "*3\r\n:2\r\n$16\r\n0000000000000001\r\n*0\r\n")
	if code, out, errs = verifyRun("--replica", b.Addr, "--of", liar); code != exitFound || !strings.Contains(out, "DIFFERENT: ") {
		t.Errorf("a difference: exit %d: %s%s", code, out, errs)
	}
	for _, bad := range []string{"*3\r\n:2\r\n:1\r\n*0\r\n", "*1\r\n:2\r\n", "$1\r\nx\r\n", "-ERR no\r\n"} {
		if code, out, errs = verifyRun("--replica", b.Addr, "--of", replying(t, bad)); code != exitFailed || errs == "" {
			t.Errorf("the source replies %q: exit %d: %s%s", bad, code, out, errs)
		}
	}
	for _, args := range [][]string{{"--replica", a.Addr}, {"--replica", b.Addr, "--of", b.Addr}, {"--replica", "127.0.0.1:1"}} {
		if code, out, errs := verifyRun(args...); code != exitFailed || out != "" || errs == "" {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	for _, args := range [][]string{
		{"--replica", "nowhere"},
		{"--replica", b.Addr, "dir"},
		{"--replica", b.Addr, "--deep"},
		{"--of", a.Addr, "dir"},
		{"--prefix", "x", "dir"},
		{"--replica", b.Addr, "--of", "redis://"},
		{},
	} {
		if code, out, errs := verifyRun(args...); code != exitUsage || out != "" || errs == "" {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
}

// replying is the address of a server that has one reply to everything.
func replying(t *testing.T, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(nc, reply)
			defer nc.Close()
		}
	}()
	return l.Addr().String()
}
