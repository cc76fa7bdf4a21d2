package kevy_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/log"
)

func lines(frames [][][]byte) (out []string) {
	for _, argv := range frames {
		out = append(out, string(bytes.Join(argv, []byte(" "))))
	}
	return out
}

func TestChangesScan(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(0))
	for _, k := range []string{"", "a:1", "a:2", "b:1"} {
		if err := s.Set(k, []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Do("RPUSH", "a:3", "x", "y"); err != nil {
		t.Fatal(err)
	}
	scan := func(start string, limit int, prefixes ...string) kevy.Scan {
		t.Helper()
		var ps [][]byte
		for _, p := range prefixes {
			ps = append(ps, []byte(p))
		}
		return must[kevy.Scan](t)(s.ChangesScan([]byte(start), limit, ps...))
	}
	got := scan("", 2)
	if string(got.Next) != "a:2" || !slices.Equal(lines(got.Frames), []string{"SET  v", "SET a:1 v"}) {
		t.Errorf("%q from %q on", lines(got.Frames), got.Next)
	}
	if tail := must[log.Cursor](t)(s.ChangesTail()); got.Cursor != tail {
		t.Errorf("at %s, tail %s", got.Cursor, tail)
	}
	got = scan("a:2", 0, "a:", "b")
	if string(got.Next) != "a:3" || len(got.Frames) != 1 {
		t.Errorf("limit 0: %q from %q on", lines(got.Frames), got.Next)
	}
	got = scan("a:2", 1<<40, "b", "a:")
	if len(got.Next) != 0 || !slices.Equal(lines(got.Frames), []string{"SET a:2 v", "RPUSH a:3 x y", "SET b:1 v"}) {
		t.Errorf("%q", lines(got.Frames))
	}
	// A transaction sees what it has done so far.
	if err := s.Update(func(tx *kevy.Tx) error {
		if err := tx.Set("z", nil); err != nil {
			return err
		}
		reply, err := tx.Do("FEED.SCAN", 0, "z")
		list, _ := reply.([]any)
		if err != nil || len(list) != 4 || list[1] != int64(got.Cursor.Offset+1) || len(list[3].([]any)) != 1 { //nolint:gosec // small
			t.Errorf("in a transaction: %v, %v", reply, err)
		}
		return errors.New("undone")
	}); err == nil {
		t.Error("not undone")
	}
	if got := scan("z", 5); len(got.Frames) != 0 {
		t.Errorf("undone: %q", lines(got.Frames))
	}
}

func TestChangesScanRefuses(t *testing.T) {
	if _, err := open(t, kevy.DefaultConfig()).ChangesScan(nil, 1); !errors.Is(err, kevy.ErrFeedDisabled) {
		t.Errorf("without a feed: %v", err)
	}
	closed := must[*kevy.Store](t)(kevy.Open(kevy.DefaultConfig().WithFeed(0)))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.ChangesScan(nil, 1); !errors.Is(err, kevy.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := (&kevy.Mirror{Store: closed, Apply: func(context.Context, *kevy.MirrorBatch) error { return nil }}).Run(t.Context()); !errors.Is(err, kevy.ErrClosed) {
		t.Errorf("a mirror of a closed store: %v", err)
	}
}

// TestMirrorAfterPowerLoss: what the mirror has seen and the disk has not kept is undone in the mirror, too: its history has ended, so it
// copies anew.
func TestMirrorAfterPowerLoss(t *testing.T) {
	fs := crashfs.New()
	cfg := kevy.DefaultConfig().WithDir("data").WithFeed(0).WithFsync(log.No)
	s := must[*kevy.Store](t)(kevy.Open(cfg.OnFSForTesting(fs)))
	rng := rand.New(rand.NewPCG(3, 4))
	tw, stored := newTwin(t), ""
	tw.seen = func(b *kevy.MirrorBatch) error { stored = b.Position; return nil }
	copies := 0
	for round := range 8 {
		m := &kevy.Mirror{Store: s, Apply: tw.apply, Load: func(context.Context, int) (string, error) { return stored, nil }}
		end := begin(t, m)
		storm(t.Context(), t, s, uint64(round), 300)
		tw.await(s)
		_ = end()
		if round > 0 {
			copies += m.Status()[0].Copies
		}
		crashed := fs.CrashClone(rng)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		fs = crashed
		s = must[*kevy.Store](t)(kevy.Open(cfg.OnFSForTesting(fs)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if copies == 0 {
		t.Error("no crash took what the mirror had seen: nothing was tested")
	}
}

// TestMirrorEndsWithStore: Close ends a mirror that waits for changes, and Run says why it ended.
func TestMirrorEndsWithStore(t *testing.T) {
	s := must[*kevy.Store](t)(kevy.Open(kevy.DefaultConfig().WithFeed(0)))
	applied := make(chan struct{}, 100)
	m := &kevy.Mirror{Store: s, Apply: func(context.Context, *kevy.MirrorBatch) error { applied <- struct{}{}; return nil }}
	done := make(chan error, 1)
	go func() { done <- m.Run(t.Context()) }()
	<-applied
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, kevy.ErrClosed) && !strings.Contains(err.Error(), "closing") {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Run goes on after Close")
	}
}
