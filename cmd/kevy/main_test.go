package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

func TestCommandLine(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("prot = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args     []string
		code     int
		out, err string // contained
	}{
		"version":         {[]string{"version"}, exitOK, "kevy dev (commit ", ""},
		"--version":       {[]string{"--version"}, exitOK, "kevy dev (commit ", ""},
		"help":            {[]string{"help"}, exitOK, "Exit codes:", ""},
		"serve help":      {[]string{"serve", "--help"}, exitOK, "--feed-buffer-size", ""},
		"help of default": {[]string{"--help"}, exitOK, "--appendfsync", ""},
		"feed help":       {[]string{"feed", "--help"}, exitOK, "--prefix", ""},
		"unknown command": {[]string{"sreve"}, exitUsage, "", `unknown command "sreve"`},
		"unknown flag":    {[]string{"--prot", "1"}, exitUsage, "", "--prot"},
		"bad value":       {[]string{"serve", "--port", "x"}, exitUsage, "", "flag --port: "},
		"bad file":        {[]string{"--config", bad}, exitUsage, "", "unknown key prot"},
		"feed what":       {[]string{"feed"}, exitUsage, "", "kevy feed tail"},
		"feed shard":      {[]string{"feed", "tail", "--shard", "x"}, exitUsage, "", "--shard"},
		"feed from":       {[]string{"feed", "tail", "--from", "1"}, exitUsage, "", "--from"},
		"feed flag":       {[]string{"feed", "tail", "--nope"}, exitUsage, "", "--nope"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(tc.args, &out, &errs); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(out.String(), tc.out) || !strings.Contains(errs.String(), tc.err) {
				t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
			}
		})
	}
}

// damaged makes a directory with a snapshot and damages it.
func damaged(t *testing.T, damage func(dir string) error) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	s := startServer(t, dir, "--shards", "2")
	_, err := dial(t, s.Addr).Must("SAVE")
	if err := errors.Join(err, s.Stop(), damage(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStartErrors: what stops the start says so and says what to do.
func TestStartErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	locked := filepath.Join(t.TempDir(), "locked")
	s := startServer(t, locked)
	defer s.Kill() //nolint:errcheck // the test is over
	stranger := t.TempDir()
	if err := os.MkdirAll(filepath.Join(stranger, "shard-00"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stranger, "shard-00", "00000000000000000001.seg"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir   string
		flags []string
		want  []string
	}{
		"port in use":      {filepath.Join(t.TempDir(), "d"), []string{"--port", port}, []string{"another process", "--port"}},
		"directory in use": {locked, nil, []string{"in use by another kevy", "--dir"}},
		"no manifest":      {stranger, nil, []string{"no MANIFEST", "--rebuild-manifest"}},
		"bad manifest": {
			damaged(t, func(dir string) error { return os.Truncate(filepath.Join(dir, "MANIFEST"), 9) }), nil,
			[]string{"is damaged", "--rebuild-manifest"},
		},
		"no shard": {
			damaged(t, func(dir string) error { return os.RemoveAll(filepath.Join(dir, "shard-01")) }), nil,
			[]string{"is damaged", "segment is missing: ", "shard-01", "kevy verify"},
		},
		"no snapshots": {
			damaged(t, func(dir string) error { return os.RemoveAll(filepath.Join(dir, "snapshots")) }), nil,
			[]string{"is damaged", "/SET: no such file", "kevy verify", "--before-damage"},
		},
		"no archive":     {filepath.Join(t.TempDir(), "d"), []string{"--archive-url", "ftp://host/x"}, []string{"archive-url", "want file:///dir or s3://"}},
		"archive inside": {filepath.Join(stranger, "d"), []string{"--archive-url", "file://" + stranger + "/d/archive"}, []string{"archive-url", "one in the other"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := proc.LaunchKevy(tc.dir, tc.flags...)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill() //nolint:errcheck // ended already, unless the test failed
			await(t, "the server gives up", p.Exited)
			for _, want := range tc.want {
				if !strings.Contains(p.Log(), want) {
					t.Errorf("no %q in %s", want, p.Log())
				}
			}
		})
	}
}

// TestRedisLeft: a new data directory where Redis has left files says that it does not read them, and how they are imported; not again later.
func TestRedisLeft(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "dump.rdb"), nil, 0o600), os.Mkdir(filepath.Join(dir, "appendonlydir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir)
	for _, want := range []string{"kevy import " + dir + "/dump.rdb --to NEWDIR", "kevy import --aof " + dir + "/appendonlydir --to NEWDIR"} {
		await(t, want, func() bool { return strings.Contains(s.Log(), want) })
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if s = startServer(t, dir); strings.Contains(s.Log(), "kevy import") {
		t.Error(s.Log())
	}
}

// TestStopTwice: SIGTERM again, as supervisors send it, does not make a clean stop an unclean one.
func TestStopTwice(t *testing.T) {
	answer := make(chan struct{})
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the stop waits for it
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer store.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s := startServer(t, filepath.Join(t.TempDir(), "d"), "--archive-url", "s3://bucket/kevy?region=us-east-1&endpoint="+store.URL)
	p, err := os.FindProcess(s.Pid())
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"msg=stopping", "already stopping"} {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		await(t, said, func() bool { return strings.Contains(s.Log(), said) })
	}
	close(answer)
	await(t, "the server ends", s.Exited)
	if !strings.Contains(s.Log(), "stopped cleanly") {
		t.Error(s.Log())
	}
}

// syncBuffer takes output of several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startServer starts a server that ends with the test at the latest.
func startServer(t *testing.T, dir string, flags ...string) *proc.Server {
	t.Helper()
	s, err := proc.StartKevy(dir, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.KillAndCheck(t) })
	return s
}

func dial(t *testing.T, addr string) *wire.Conn {
	t.Helper()
	c, err := wire.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func await(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if check() {
			return
		}
	}
	t.Fatal("did not happen: " + what)
}
