package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/migrate"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// TestMigrationDoc runs the blocks of docs/migration.md next to a redis-server with data.
func TestMigrationDoc(t *testing.T) {
	bin, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	s := proc.RedisForTest(t, "--appendonly", "yes")
	c := dial(t, s.Addr)
	for _, line := range []string{"MSET a 1 b 2", "HSET h f v", "XADD x 1-1 f v", "SET e 1 EX 5000", "SAVE"} {
		if _, err := c.Must(strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
	}
	blocks := docBlocks(t, "../../docs/migration.md")
	ran := 0
	start := func(line string) *exec.Cmd {
		words := strings.Fields(strings.ReplaceAll(line, "6379", fmt.Sprint(s.Port)))
		cmd := exec.Command(bin, words[1:]...)
		cmd.Dir = s.Dir
		ran++
		return cmd
	}
	serves := func(dir string, keys int) {
		t.Helper()
		r, err := dial(t, startServer(t, filepath.Join(s.Dir, dir)).Addr).Must("DBSIZE")
		if err != nil || r.Text() != fmt.Sprint(keys) {
			t.Fatalf("%s: %s, %v", dir, r.String(), err)
		}
	}
	first := strings.Split(strings.TrimSpace(blocks["# From Redis or Valkey to kevy"][0]), "\n")
	if out, err := start(first[0]).CombinedOutput(); err != nil || !strings.Contains(string(out), "5 keys") {
		t.Fatalf("%v\n%s", err, out)
	}
	serves(strings.TrimPrefix(first[1], "kevy --dir "), 5)
	ran++

	followLive(t, start(blocks["Without stopping the writers"][0]), c)
	serves("kevy-live", 6)

	if out, err := start(blocks["Append-only files"][0]).CombinedOutput(); err != nil || !strings.Contains(string(out), "6 keys") {
		t.Fatalf("%v\n%s", err, out)
	}
	if total := len(first) + len(blocks["Without stopping the writers"]) + len(blocks["Append-only files"]); ran != total {
		t.Errorf("%d of %d commands were run", ran, total)
	}
}

// followLive runs an import that follows, writes to its source, and interrupts it.
func followLive(t *testing.T, live *exec.Cmd, c *wire.Conn) {
	t.Helper()
	var out syncBuffer
	live.Stdout, live.Stderr = &out, &out
	if err := live.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "behind: 0 bytes", func() bool { return strings.Contains(out.String(), "behind: 0 bytes") })
	if _, err := c.Must("SET", "later", "1"); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Must("WAIT", "1", "20000"); err != nil || r.Text() != "1" {
		t.Fatalf("%s %v", r.String(), err)
	}
	_ = live.Process.Signal(syscall.SIGINT)
	if err := live.Wait(); err != nil || !strings.Contains(out.String(), "6 keys") {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

func TestImportFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty.rdb")
	if err := os.WriteFile(file, append([]byte("REDIS0004\xff"), ""...), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"":                                 "name one source",
		"FILE":                             "name one target",
		"FILE --aof x --to d":              "name one source",
		"FILE --to d --addr x":             "name one target",
		"FILE --to d --follow":             "--follow goes with",
		"FILE --to d --truncated":          "--truncated goes with --aof",
		"FILE --to d --replace":            "--replace goes with --addr",
		"FILE --to d --db -1":              "--db -1",
		"FILE --to d --shards 33":          "--shards 33",
		"--from redis://h --addr x":        "--from goes with --to",
		"--from http://h --to d":           "--from: want redis://",
		"--from redis://h/1 --to d":        "--from: redis://h/1: want",
		"--from redis://h --to d --nought": "unknown flag",
	} {
		code, _, errs := kevy(append([]string{"import"}, strings.Fields(strings.ReplaceAll(line, "FILE", file))...)...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("kevy import %s: %d %s", line, code, errs)
		}
	}
	code, out, errs := kevy("import", file, "--dry-run", "--json")
	var r migrate.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || !r.DryRun || r.Version != 4 {
		t.Errorf("%d %s %s %v", code, out, errs, err)
	}
	if code, _, errs := kevy("import", file+"x", "--to", filepath.Join(t.TempDir(), "new")); code != exitFailed || !strings.Contains(errs, "no such file") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestImportKilled: what a killed import leaves can't be served.
func TestImportKilled(t *testing.T) {
	bin, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // over
	go func() {     // a primary that stops in the middle of its copy
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewScanner(nc)
			for in.Scan() {
				switch in.Text() {
				case "PING", "eof", "listening-port":
					_, _ = nc.Write([]byte("+OK\r\n"))
				case "PSYNC":
					_, _ = fmt.Fprintf(nc, "+FULLRESYNC %040d 0\r\n$9999999\r\nREDIS0010", 1)
					for i := range 500 {
						_, _ = fmt.Fprintf(nc, "\x00\x04k%03d\x01v", i)
					}
				}
			}
		}
	}()
	dir := filepath.Join(t.TempDir(), "new")
	cmd := exec.Command(bin, "import", "--from", "redis://"+l.Addr().String(), "--to", dir, "--shards", "1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "frames of values", func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "shard-00", "00000000000000000001.seg")) // not there yet
		return bytes.Contains(b, []byte("k127"))
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	srv, err := proc.StartKevy(dir)
	if err == nil {
		_ = srv.Kill()
	}
	if err == nil || !strings.Contains(err.Error(), "the frames before are missing") {
		t.Error(err)
	}
}
