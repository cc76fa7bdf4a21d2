package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/snapshot"
)

// kevy runs one command line in this process.
func kevy(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

// sets lists a directory's sets.
func sets(t *testing.T, dir string, code int) (out []listedSet) {
	t.Helper()
	got, text, errs := kevy("snapshot", "list", dir, "--json")
	if got != code {
		t.Fatalf("list: exit code %d, want %d: %s", got, code, errs)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return out
}

func TestSnapshotCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	s := startServer(t, dir, "--shards", "2", "--snapshot-keep", "10")
	defer s.Kill() //nolint:errcheck // the test is over
	c := dial(t, s.Addr)
	for _, v := range []string{"1", "2", "3"} {
		if r, err := c.Do("SET", "k", v); err != nil || r.IsError() {
			t.Fatal(r.String(), err)
		}
		if code, _, errs := kevy("snapshot", "create", "--addr", s.Addr); code != exitOK {
			t.Fatalf("create: %d %s", code, errs)
		}
	}
	if l := sets(t, dir, exitOK); len(l) != 3 || !l[2].InUse || l[0].InUse || l[2].Keys != 1 || len(l[2].Cursors) != 2 {
		t.Errorf("listed: %+v", l)
	}
	if code, _, errs := kevy("snapshot", "create", dir); code != exitFailed || !strings.Contains(errs, "--addr") {
		t.Errorf("create in a directory in use: %d %s", code, errs)
	}
	if code, _, errs := kevy("snapshot", "prune", dir); code != exitFailed || !strings.Contains(errs, "--addr") {
		t.Errorf("prune of a directory in use: %d %s", code, errs)
	}
	var plan []snapshot.Decision
	_, text, errs := kevy("snapshot", "prune", "--addr", s.Addr, "--keep", "2", "--dry-run", "--json")
	if err := json.Unmarshal([]byte(text), &plan); err != nil || len(plan) != 3 || plan[0].Keep || !plan[1].Keep || !plan[2].Keep {
		t.Errorf("dry run: %+v %s %v", plan, errs, err)
	}
	if l := sets(t, dir, exitOK); len(l) != 3 {
		t.Errorf("a dry run left %d sets", len(l))
	}
	if code, out, errs := kevy("snapshot", "prune", "--addr", s.Addr, "--keep", "2"); code != exitOK || strings.Count(out, " kept: ") != 2 {
		t.Errorf("prune: %d %q %q", code, out, errs)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := kevy("snapshot", "create", dir); code != exitOK {
		t.Errorf("create in a directory: %d %s", code, errs)
	}
	if l := sets(t, dir, exitOK); len(l) != 3 || !l[2].InUse {
		t.Errorf("listed: %+v", l)
	}
	for range 2 {
		if code, _, errs := kevy("snapshot", "prune", dir, "--keep", "1"); code != exitOK {
			t.Errorf("prune of a directory: %d %s", code, errs)
		}
	}
	l := sets(t, dir, exitOK)
	if len(l) != 1 || !l[0].InUse {
		t.Fatalf("listed: %+v", l)
	}
	listDamaged(t, dir, l[0].ID)
}

// listDamaged: list says of a set that it cannot be read, and of the one on record that it is missing.
func listDamaged(t *testing.T, dir, id string) {
	t.Helper()
	file := snapshot.ShardPath(snapshot.Dir(dir, id), 1)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if l := sets(t, dir, exitFailed); len(l) != 1 || !strings.Contains(l[0].Error, "shard-01") {
		t.Errorf("of a file that is cut: %+v", l)
	}
	if err := os.RemoveAll(snapshot.Dir(dir, id)); err != nil {
		t.Fatal(err)
	}
	if l := sets(t, dir, exitFailed); len(l) != 1 || l[0].ID != id || !strings.Contains(l[0].Error, "missing") {
		t.Errorf("of a set that is missing: %+v", l)
	}
}

func TestSnapshotUsage(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for _, tc := range []struct {
		args string
		code int
		err  string
	}{
		{"snapshot", exitUsage, "list|create|prune"},
		{"snapshot what d", exitUsage, "list|create|prune"},
		{"snapshot list", exitUsage, "name a data directory"},
		{"snapshot list d e", exitUsage, `unexpected argument "e"`},
		{"snapshot list --addr x", exitUsage, "--addr"},
		{"snapshot prune d --keep 0", exitUsage, "--keep 0"},
		{"snapshot create d --dry-run", exitUsage, "--dry-run goes with prune"},
		{"snapshot list d --keep 3", exitUsage, "--keep goes with prune"},
		{"snapshot prune d --nope", exitUsage, "--nope"},
		{"snapshot prune --addr a:1 --keep-time 1h", exitUsage, "--keep-time"},
		{"snapshot create --addr 127.0.0.1:1", exitFailed, "127.0.0.1:1"},
		{"snapshot list " + nowhere, exitFailed, nowhere},
		{"snapshot create file:///x", exitUsage, "an archive"},
		{"snapshot list file://" + nowhere, exitFailed, "no archive"},
		{"snapshot create " + nowhere, exitFailed, nowhere},
		{"snapshot prune " + nowhere, exitFailed, nowhere},
	} {
		code, _, errs := kevy(strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(errs, tc.err) {
			t.Errorf("kevy %s: exit code %d, want %d; %q", tc.args, code, tc.code, errs)
		}
	}
	if _, err := os.Stat(nowhere); err == nil {
		t.Error("a directory was made")
	}
	if code, out, _ := kevy("snapshot", "--help"); code != exitOK || !strings.Contains(out, "Exit codes:") {
		t.Errorf("help: %d %q", code, out)
	}
}

// TestSnapshotOfReplica: a snapshot of a replica's directory leaves its history as it is.
func TestSnapshotOfReplica(t *testing.T) {
	source := startServer(t, filepath.Join(t.TempDir(), "source"), "--shards", "1")
	host, port, _ := strings.Cut(source.Addr, ":")
	dir := filepath.Join(t.TempDir(), "replica")
	s := startServer(t, dir, "--shards", "1", "--replicaof", host+" "+port)
	c := dial(t, source.Addr)
	if _, err := c.Must("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	r := dial(t, s.Addr)
	await(t, "the replica has the key", func() bool {
		reply, err := r.Do("GET", "k")
		return err == nil && reply.Text() == "v"
	})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	list := func() history.ShardListing {
		t.Helper()
		code, out, errs := kevy("log", "list", dir, "--json")
		var l history.Listing
		if err := json.Unmarshal([]byte(out), &l); err != nil || code != exitOK {
			t.Fatal(code, err, errs)
		}
		return l.Shards[0]
	}
	before := list()
	if code, _, errs := kevy("snapshot", "create", dir); code != exitOK {
		t.Fatal(code, errs)
	}
	if after := list(); after.Tail != before.Tail || len(after.Generations) != len(before.Generations) {
		t.Errorf("the log ends at %s in generation %d, before at %s in %d", after.Tail, len(after.Generations), before.Tail, len(before.Generations))
	}
}
