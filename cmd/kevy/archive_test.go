package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/s3"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// archived waits until a server's archive has all there is.
func archived(t *testing.T, c *wire.Conn) {
	t.Helper()
	await(t, "the archive is up to date", func() bool {
		reply, err := c.Must("INFO", "persistence")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(reply.Text(), "archive_lag_sec:0\r\n") && strings.Contains(reply.Text(), "archive_status:ok\r\n")
	})
}

// TestArchiveS3 archives a server to S3, kills it, loses its disk, and takes everything from there.
func TestArchiveS3(t *testing.T) {
	store := s3.Start(t)
	url := store.URL("prod/kevy")
	dir := filepath.Join(t.TempDir(), "data")
	s := startServer(t, dir, "--shards", "2", "--archive-url", url, "--archive-interval", "50ms", "--log-segment-size", "64kb", "--snapshot-keep", "1")
	c := dial(t, s.Addr)
	must := func(args ...string) *wire.Reply {
		t.Helper()
		reply, err := c.Must(args...)
		if err != nil {
			t.Fatal(err)
		}
		return &reply
	}
	for i := range 300 {
		must("MSET", fmt.Sprint("a", i), strings.Repeat("x", 1000), fmt.Sprint("b", i), "y")
		if i%100 == 50 {
			must("SAVE")
		}
	}
	before := must("PREFIX.DIGEST", "").Elems[1].Text()
	must("FLUSHALL")
	must("MSET", "k", "1", "l", "2", "m", "3")
	after := must("PREFIX.DIGEST", "").Elems[1].Text()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Log())
		}
	})
	archived(t, c)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	expect := func(want int, contains string, args ...string) {
		t.Helper()
		code, out, errs := kevy(args...)
		if code != want || !strings.Contains(out+errs, contains) {
			t.Fatalf("kevy %q: exit code %d, want %d with %q\n%s%s", args, code, want, contains, out, errs)
		}
	}
	expect(exitOK, "flushall of", "log", "list", url)
	expect(exitOK, "sound", "verify", url, "--deep")
	expect(exitOK, after, "restore", "--from", url, "--to", dir)
	expect(exitOK, before, "restore", "--from", url, "--to", dir+"-before", "--before", "FLUSHALL")
	expect(exitOK, "FLUSHALL", "log", "dump", url, "--format", "resp")
	expect(exitFound, "600 added, 3 removed", "diff", url+"@latest", "@before:FLUSHALL")
	restored := startServer(t, dir, "--archive-url", url)
	await(t, "the archive is refused", func() bool {
		return strings.Contains(restored.Log(), "not in the directory's history")
	})
	reply, err := dial(t, restored.Addr).Must("INFO", "persistence")
	if text := reply.Text(); err != nil || !strings.Contains(text, "archive_status:err\r\n") || !strings.Contains(text, "archive_error:") ||
		!strings.Contains(text, "archive_lag_sec:-1\r\n") || !strings.Contains(text, "archive_last_success_time:0\r\n") {
		t.Errorf("INFO of a server whose archive is refused: %v\n%s", err, text)
	}
	damageObject(t, store, expect, url)
}

// damageObject flips a byte of an object.
func damageObject(t *testing.T, store *s3.Server, expect func(int, string, ...string), url string) {
	t.Helper()
	sealed, err := filepath.Glob(store.Path("prod/kevy", "shard-01/*.sealed"))
	if err != nil || len(sealed) == 0 {
		t.Fatalf("no sealed segment in the archive: %v", err)
	}
	b, err := os.ReadFile(sealed[0])
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(b)
	b[len(b)/2] ^= 1
	if err := os.WriteFile(sealed[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(exitOK, url+": 2 shards", "log", "list", url)
	expect(exitOK, "  sealed (", "log", "list", url)
	expect(exitFound, url+": ", "verify", url)
	expect(exitFound, "kevy restore --from '"+url+"' --to NEWDIR --before-damage", "verify", url)
	name := "shard-01/" + filepath.Base(sealed[0])
	expect(exitFound, name+" is damaged", "verify", url)
	if err := os.WriteFile(sealed[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(exitOK, "sound", "verify", url)
	store.Stop()
	expect(exitFailed, "ARCHIVE", "log", "list", url)
}

func TestArchivePlaces(t *testing.T) {
	dir := t.TempDir()
	rotten := t.TempDir()
	if err := os.WriteFile(filepath.Join(rotten, "ARCHIVE"), []byte("{}\ncrc32c 00000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := kevy("verify", "file://"+rotten); code != exitFound || !strings.Contains(out, "DAMAGE") || !strings.Contains(out, "ARCHIVE") {
		t.Errorf("a damaged ARCHIVE: exit code %d, %s%s", code, out, errs)
	}
	for _, place := range []string{"file://" + dir + "/none", "file:///"} {
		if code, _, errs := kevy("restore", "--from", dir, "--to", place); code != exitUsage || !strings.Contains(errs, "--to") {
			t.Errorf("--to %s: exit code %d, %s", place, code, errs)
		}
		if code, out, errs := kevy("verify", place); code != exitFailed || out != "" || !strings.Contains(errs, "archive") {
			t.Errorf("%s: exit code %d, %s%s", place, code, out, errs)
		}
	}
}
