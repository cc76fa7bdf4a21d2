package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/log"
)

// TestTools runs the tools on a directory in use, and on it when it is damaged.
func TestTools(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startServer(t, dir, "--shards", "2")
	c := dial(t, s.Addr)
	for _, line := range []string{"MSET a 1 b 2 c 3 d 4", "SAVE", "HSET h f \xff", "FLUSHALL", "SET e 5", "SET f 6 EX 5000"} {
		if _, err := c.Must(strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want int, contains string, args ...string) string {
		t.Helper()
		code, out, errs := kevy(args...)
		if code != want || !strings.Contains(out+errs, contains) {
			t.Fatalf("kevy %q: exit code %d, want %d with %q\n%s%s", args, code, want, contains, out, errs)
		}
		return out
	}
	var l history.Listing
	if err := json.Unmarshal([]byte(expect(exitOK, "", "log", "list", dir, "--json")), &l); err != nil {
		t.Fatal(err)
	}
	if len(l.Shards) != 2 || len(l.Sets) != 1 || len(l.Windows) != 1 || l.Shards[0].Generations[1].CauseName != "flushall" {
		t.Errorf("%+v", l)
	}
	expect(exitOK, "flushall of", "log", "list", dir)
	emptyLists(t, expect)
	if out := expect(exitOK, "", "log", "dump", dir, "--format", "json"); strings.Count(out, "\n") != strings.Count(out, `"argv"`) || !strings.Contains(out, "argv_base64") {
		t.Errorf("dump: %s", out)
	}
	if out := expect(exitOK, "", "log", "dump", dir, "--format", "resp"); strings.Count(out, "FLUSHALL") != 1 {
		t.Errorf("dump: %q", out)
	}
	tail := l.Shards[1].Tail
	expect(exitOK, "", "log", "dump", dir, "--shard", "1", "--from", tail.String())
	expect(exitFailed, "no such generation", "log", "dump", dir, "--shard", "1", "--from", "77:0")
	first := log.Cursor{Generation: l.Shards[1].Generations[0].Generation}
	expect(exitFailed, "is behind", "log", "dump", dir, "--shard", "1", "--from", tail.String(), "--to", first.String())
	expect(exitFailed, "say which", "log", "dump", dir, "--from", tail.String())
	expect(exitOK, "sound", "verify", dir, "--deep")
	expect(exitFound, "5 added, 0 removed", "diff", dir+"@latest", "@before:FLUSHALL", "--only", "added")
	expect(exitOK, "0 added", "diff", dir+"@latest", dir+"@latest")
	expect(exitFound, "2 added, 0 removed", "diff", dir+"@empty", "@latest")
	expect(exitOK, "SET", "diff", dir+"@empty", "@latest", "--format", "resp")
	expect(exitOK, "nothing was restored", "restore", "--from", dir, "--dry-run", "--before", "flushall")
	cursors := fmt.Sprintf("%s,%s", l.Shards[0].Tail, tail)
	expect(exitOK, "2 keys", "restore", "--from", dir, "--to", dir+"-restored", "--shard-cursors", cursors)
	expect(exitFailed, "not empty", "restore", "--from", dir, "--to", dir+"-restored")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	damageTools(t, dir, expect)
}

// emptyLists: a list of nothing is [] in JSON, not null.
func emptyLists(t *testing.T, expect func(int, string, ...string) string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "empty")
	if err := startServer(t, dir, "--shards", "1").Stop(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"log", "list", dir}, {"verify", dir}, {"snapshot", "list", dir}, {"snapshot", "prune", dir}, {"diff", dir + "@latest", "@latest"}} {
		if out := expect(exitOK, "[]", append(args, "--json")...); strings.Contains(out, "null") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// damageTools looks at the directory with a byte of its newest segment flipped, and without a manifest.
func damageTools(t *testing.T, dir string, expect func(int, string, ...string) string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "shard-*", "00000000000000000002.seg")) // after the FLUSHALL
	if err != nil || len(segments) != 2 {
		t.Fatal(segments, err)
	}
	name := segments[0]
	if size(t, segments[1]) > size(t, name) {
		name = segments[1] // one has both keys, perhaps
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 4
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var v history.Verified
	if err := json.Unmarshal([]byte(expect(exitFound, "", "verify", dir, "--json")), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Damage) == 0 || v.Damage[0].File != filepath.ToSlash(name) || v.Damage[0].Position <= 0 || v.Damage[0].Cursor == nil {
		t.Errorf("damage %+v", v.Damage)
	}
	expect(exitFailed, "--before-damage", "restore", "--from", dir, "--to", dir+"-2", "--latest")
	expect(exitFound, "kevy restore --from "+dir+" --to NEWDIR --before-damage", "verify", dir)
	expect(exitOK, "verified", "restore", "--from", dir, "--to", dir+"-2", "--before-damage")
	expect(exitOK, "damage: ", "log", "list", dir)
	if err := os.Remove(filepath.Join(dir, "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	tools := func(dir string) [][]string {
		return [][]string{
			{"verify", dir},
			{"log", "list", dir},
			{"log", "dump", dir},
			{"restore", "--from", dir, "--to", dir + "-3"},
			{"diff", dir + "@latest", "@latest"},
			{"snapshot", "list", dir},
			{"snapshot", "create", dir},
			{"snapshot", "prune", dir},
		}
	}
	for _, args := range tools(dir) {
		expect(exitFailed, "kevy restore --from "+filepath.ToSlash(dir)+" --to NEWDIR --rebuild-manifest", args...)
	}
	for _, args := range tools(filepath.Join(dir, "nowhere")) {
		expect(exitFailed, "no such file or directory", args...)
	}
	for _, args := range tools(t.TempDir()) {
		expect(exitFailed, "is no data directory of kevy", args...)
	}
	for _, args := range tools("http://host/x")[:3] {
		expect(exitFailed, "want file:///dir or s3://", args...)
	}
	expect(exitUsage, "name a data directory to make", "restore", "--from", dir, "--to", "redis://127.0.0.1:6379")
}

// TestEmptyFlags: a flag without a value, as of a shell's variable that is not set, does not make another command.
func TestEmptyFlags(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to")
	for _, flag := range []string{"--time", "--before", "--since", "--shard-cursors", "--to"} {
		code, out, errs := kevy("restore", "--from", "nowhere", "--to", to, flag, "")
		if code != exitUsage || errs != "kevy restore: "+flag+" is empty\n" {
			t.Errorf("%s: exit code %d: %s%s", flag, code, out, errs)
		}
	}
}

// TestPlanPrintedOnce: where the new directory can't be made, nothing is tried again.
func TestPlanPrintedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := startServer(t, dir, "--shards", "1").Stop(); err != nil {
		t.Fatal(err)
	}
	code, out, errs := kevy("restore", "--from", dir, "--to", "/proc/none/x")
	if code != exitFailed || strings.Count(out, "starting with") != 1 || !strings.Contains(errs, "/proc/none") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestToolFlags: bad command lines end with code 2 and name what is wrong.
func TestToolFlags(t *testing.T) {
	for line, want := range map[string]string{
		"log":                                "want list or dump",
		"log list":                           "want one argument",
		"log dump d --format x":              "--format",
		"log dump d --from x":                "--from",
		"log list d --nope":                  "--nope",
		"verify":                             "want one argument",
		"verify a b":                         "want one argument",
		"diff a@latest":                      "want two arguments",
		"diff latest a@latest":               "DIR@POINT",
		"diff a@x a@latest":                  `time "x"`,
		"diff a@latest a@latest --only x":    "--only",
		"diff a@latest a@latest --format x":  "--format",
		"restore":                            "--from is missing",
		"restore --from a":                   "--to is missing",
		"restore --from a --to b --time 10h": "--time",
		"restore --from a --to b --at x":     "--at",
		"restore --from a --to b --shard-cursors 1:2,x":        "--shard-cursors",
		"restore --from a --to b --latest --at 1:2":            "exclude each other",
		"restore --from a --to b --since -5m":                  "--since goes with --before",
		"restore --from file:///a --to b --rebuild-manifest":   "restores nothing",
		"restore --from s3://a --latest --rebuild-manifest":    "restores nothing",
		"restore --from redis://a:1 --to b --rebuild-manifest": "--rebuild-manifest goes with",
	} {
		code, out, errs := kevy(strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(errs, want) || out != "" {
			t.Errorf("kevy %s: exit code %d, %q %q, want 2 with %q", line, code, out, errs, want)
		}
	}
	for _, line := range []string{"log --help", "log list --help", "log dump --help", "verify --help", "diff --help", "restore --help"} {
		if code, out, _ := kevy(strings.Fields(line)...); code != exitOK || !strings.Contains(out, "Usage: kevy") || strings.Contains(out, "%!") {
			t.Errorf("kevy %s: exit code %d\n%s", line, code, out)
		}
	}
}

// TestPlaces: which @ of a place divides directory and point.
func TestPlaces(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 50, 0, 0, time.UTC)
	for text, want := range map[string][2]string{
		"d@latest":                            {"d", "latest"},
		"@latest":                             {"other", "latest"},
		"my@dir@latest":                       {"my@dir", "latest"},
		"d@before:DEL user:a@b.c":             {"d", "before the last DEL user:a@b.c"},
		"my@dir@before:SET a@before:b":        {"my@dir", "before the last SET a@before:b"},
		"s3://b/p@since:10:42,before:DEL *@x": {"s3://b/p", "before the first DEL *@x since 2026-03-01T10:42:00.000Z"},
	} {
		p, err := parsePlace(text, "other", now)
		if got := [2]string{p.dir, p.point.String()}; err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	p := progress{}
	at := time.Unix(1000, 0)
	p.line(at, "restoring", 0, 4_000_000)
	if got, want := p.line(at.Add(2*time.Second), "restoring", 1_000_000, 4_000_000), "restoring: 1000000 of 4000000 (25%), 500000/s, 6s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := p.line(at.Add(3*time.Second), "writing", 0, 0), "writing"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDumpNotWhole: where the oldest frames are in a snapshot set only, a dump for another server says so, and what makes all keys.
func TestDumpNotWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startServer(t, dir, "--shards", "1")
	c := dial(t, s.Addr)
	dump := func(flags ...string) string {
		t.Helper()
		code, out, errs := kevy(append([]string{"log", "dump", dir, "--format", "resp"}, flags...)...)
		if code != exitOK || strings.Contains(out, "SET") == (errs != "") {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		return errs
	}
	if _, err := c.Must("SET", "a", "1"); err != nil {
		t.Fatal(err)
	}
	if note := dump(); note != "" {
		t.Errorf("of a whole log: %s", note)
	}
	for _, command := range []string{"SAVE", "FLUSHALL", "SAVE"} { // the segment with the SET is dropped
		if _, err := c.Must(command); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the log is dropped", func() bool {
		_, err := os.Stat(filepath.Join(dir, "shard-00", "00000000000000000001.seg"))
		return err != nil
	})
	if note := dump(); !strings.Contains(note, "kevy diff "+dir+"@empty @latest --format resp") {
		t.Errorf("no note, but %q", note)
	}
}

// TestPasswordHint: who gives no password to a server that wants one is told where it goes.
func TestPasswordHint(t *testing.T) {
	s := startServer(t, filepath.Join(t.TempDir(), "data"))
	if _, err := dial(t, s.Addr).Must("CONFIG", "SET", "requirepass", "secret"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"snapshot", "create", "--addr", s.Addr}, {"feed", "tail", "--addr", s.Addr}} {
		if code, out, errs := kevy(args...); code != exitFailed || !strings.Contains(errs, "NOAUTH") || !strings.Contains(errs, "KEVY_REQUIREPASS") {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}
	t.Setenv("KEVY_REQUIREPASS", "secret")
	if code, out, errs := kevy("snapshot", "create", "--addr", s.Addr); code != exitOK {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestToolsOverTLS: the tools show a certificate to a server that wants one, and trust the authority that they are told; the server tells in its
// log whom it has not accepted, and where it listens.
func TestToolsOverTLS(t *testing.T) {
	cert, key := proc.Certificate(t)
	port, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, filepath.Join(t.TempDir(), "data"), "--tls-port", fmt.Sprint(port),
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	to := filepath.Join(t.TempDir(), "to")
	url := fmt.Sprintf("rediss://127.0.0.1:%d", port)
	tools := [][]string{
		{"snapshot", "create", "--addr", url},
		{"snapshot", "prune", "--addr", url},
		{"restore", "--from", url, "--to", to},
		{"import", "--aof", filepath.Join(t.TempDir(), "empty"), "--addr", url},
	}
	if err := os.WriteFile(tools[3][2], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := func(code int, said string) {
		t.Helper()
		for _, args := range tools {
			if got, out, errs := kevy(args...); got != code || !strings.Contains(out+errs, said) {
				t.Errorf("%v: exit code %d, want %d with %q: %s%s", args, got, code, said, out, errs)
			}
		}
	}
	all(exitFailed, "unknown authority")
	t.Setenv("KEVY_TLS_CA_CERT_FILE", cert)
	all(exitFailed, "certificate required")
	t.Setenv("KEVY_TLS_CERT_FILE", cert)
	t.Setenv("KEVY_TLS_KEY_FILE", key)
	all(exitOK, "")
	for _, said := range []string{fmt.Sprintf("tls://127.0.0.1:%d", port), "a client is not accepted", "didn't provide a certificate"} {
		if !strings.Contains(s.Log(), said) {
			t.Errorf("no %q in the server's log: %s", said, s.Log())
		}
	}
}

// TestDamageInTheWay: of a point that damage has taken away restore tells the damage.
func TestDamageInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startServer(t, dir, "--shards", "1", "--log-keep-time", "1d")
	c := dial(t, s.Addr)
	var before string
	for _, line := range []string{"SET a 1", "FLUSHALL", "SET b 2", "SAVE"} {
		if _, err := c.Must(strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
		if before == "" {
			before = time.Now().Format(time.RFC3339Nano)
		}
	}
	oldest := filepath.Join(dir, "shard-00", "00000000000000000001.seg")
	if err := errors.Join(s.Stop(), os.Remove(oldest)); err != nil {
		t.Fatal(err)
	}
	for _, point := range [][]string{{"--before", "FLUSHALL"}, {"--time", before}} {
		code, out, errs := kevy(append([]string{"restore", "--from", dir, "--to", dir + "-3"}, point...)...)
		if code != exitFailed || !strings.Contains(errs, filepath.ToSlash(oldest)) {
			t.Errorf("%v: exit code %d: %s%s", point, code, out, errs)
		}
	}
}
