package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/testkit/proc"
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

// TestFollow shows what a server has and does, over a FLUSHALL.
func TestFollow(t *testing.T) {
	src := proc.ForTest(t, "--shards", "1")
	c, err := src.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	do := func(args ...string) {
		t.Helper()
		if _, err := c.Must(args...); err != nil {
			t.Fatal(err)
		}
	}
	do("MSET", "user:1", "Ada", "user:2", "Bob")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		cfg := kevy.DefaultConfig().WithDir(filepath.Join(t.TempDir(), "replica")).WithFeed(0).WithReplicaOf(src.Addr)
		done <- follow(ctx, cfg, "user:", w)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	for _, x := range []struct {
		run  []string
		want string
	}{
		{nil, "2 keys with user:"},
		{[]string{"SET", "order:1", "tea"}, ""},
		{[]string{"SET", "user:3", "Eve"}, "[SET user:3 Eve]"},
		{[]string{"FLUSHALL"}, "[FLUSHALL]"},
		{nil, "all is new"},
		{[]string{"SET", "user:1", "Ida"}, "[SET user:1 Ida]"},
	} {
		if x.run != nil {
			do(x.run...)
		}
		if x.want == "" {
			continue
		}
		if !lines.Scan() || lines.Text() != x.want {
			t.Fatalf("%v: %q, want %q", x.run, lines.Text(), x.want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
