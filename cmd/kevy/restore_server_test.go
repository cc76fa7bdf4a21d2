package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	api "github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/warm"
	"github.com/kevydb/kevy/log"
)

// TestRestoreFromServer copies a running server with a password, whole and by prefix.
func TestRestoreFromServer(t *testing.T) {
	s := startServer(t, filepath.Join(t.TempDir(), "d"), "--shards", "3")
	c := dial(t, s.Addr)
	must := func(args ...string) string {
		t.Helper()
		r, err := c.Must(args...)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Elems) == 2 {
			return string(r.Elems[0].Str) + " " + string(r.Elems[1].Str)
		}
		return string(r.Str)
	}
	must("CONFIG", "SET", "requirepass", "se:cret")
	for i := range 100 {
		must("RPUSH", fmt.Sprint("user:", i), "a", "b")
		must("SET", fmt.Sprint("order:", i), "x", "EX", "1000")
	}
	for prefix, from := range map[string]string{"": "redis://:se%3Acret@" + s.Addr, "user:": "redis://default:se%3Acret@" + s.Addr + "/0"} {
		to := filepath.Join(t.TempDir(), "copy")
		code, out, errs := kevy("restore", "--from", from, "--to", to, "--prefix", prefix, "--json")
		var res warm.Result
		if err := json.Unmarshal([]byte(out), &res); code != exitOK || err != nil {
			t.Fatalf("prefix %q: %d %s %v", prefix, code, errs, err)
		}
		if want := must("PREFIX.DIGEST", prefix); fmt.Sprint(res.Keys, " ", res.Digest) != want || len(res.New) != 3 {
			t.Errorf("prefix %q: %+v, want %s", prefix, res, want)
		}
		if code, _, errs := kevy("verify", to); code != exitOK {
			t.Errorf("verify: %d %s", code, errs)
		}
		if code, _, _ := kevy("restore", "--from", from, "--to", to); code != exitFailed {
			t.Errorf("restored over a directory that is not empty: %d", code)
		}
	}
	if code, _, errs := kevy("restore", "--from", "redis://:wrong@"+s.Addr, "--to", filepath.Join(t.TempDir(), "c")); code != exitFailed || !strings.Contains(errs, "WRONGPASS") {
		t.Errorf("a wrong password: %d %s", code, errs)
	}
}

func TestRestoreFromServerFlags(t *testing.T) {
	for line, want := range map[string]string{
		"--from redis://h:1 --to x --time now":          "--time goes with a data directory",
		"--from redis://h:1 --to x --before FLUSHALL":   "--before goes with a data directory",
		"--from redis://h:1 --to x --dry-run":           "--dry-run goes with a data directory",
		"--from /tmp/none --to x --follow":              "--follow goes with",
		"--from redis:// --to x":                        "want redis://",
		"--from redis://h:1/5 --to x":                   "want redis://",
		"--from redis://u:secret@h:1?db=1 --to x":       "want redis://",
		"--from redis://:secret@h:port --to x":          "--from: invalid port",
		"--from redis://h:1":                            "--to is missing",
		"--from redis://h:1 --to x --keep-expired":      "--keep-expired goes with",
		"--from redis://h:1 --to x --at 1:1":            "--at goes with",
		"--from redis://h:1 --to x --shard-cursors 1:1": "--shard-cursors goes with",
	} {
		code, _, errs := kevy(append([]string{"restore"}, strings.Fields(line)...)...)
		if code != exitUsage || !strings.Contains(errs, want) || strings.Contains(errs, "secret") {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}

func TestLagLine(t *testing.T) {
	at := func(gen, off uint64) log.Cursor { return log.Cursor{Generation: gen, Offset: off} }
	even := api.MirrorStatus{Cursor: at(5, 10), Tail: at(5, 10), Changes: 3}
	for want, s := range map[string]api.MirrorStatus{
		"behind: 0 frames; 6 changes applied":                          even,
		"behind: 7 frames; 5 changes applied":                          {Cursor: at(5, 3), Tail: at(5, 10), Changes: 2},
		"behind: 0 frames; 3 changes applied":                          {Cursor: at(5, 11), Tail: at(5, 10)},
		"behind: unknown, shard 1 goes on in another generation":       {Cursor: at(4, 11), Tail: at(5, 10)},
		"behind: shard 1 is being copied anew":                         {Cursor: at(5, 3), Tail: at(5, 10), Rebuilding: true},
		"behind: unknown, shard 1 is out of reach: connection refused": {Cursor: at(5, 3), Tail: at(5, 10), Err: errors.New("connection refused")},
	} {
		if got := lagLine([]api.MirrorStatus{even, s}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
