package kevy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy"
)

// TestMirrorGoesOnFromPositions ends Run at random batches, sometimes after the batch was applied and its position lost with it, and goes on
// from what was stored: every APPEND and RPUSH counts once.
func TestMirrorGoesOnFromPositions(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(1<<30))
	storm(t.Context(), t, s, 7, 1000)
	tw := newTwin(t)
	stored, left := "", 0
	errStop := errors.New("stopped here")
	tw.seen = func(b *kevy.MirrorBatch) error {
		stored = b.Position // with what was applied, as in one transaction
		if left--; left == 0 {
			return errStop
		}
		return nil
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		storm(t.Context(), t, s, uint64(round), 50)
		left = 1 + r.IntN(6)
		m := &kevy.Mirror{
			Store: s, Apply: tw.apply,
			Load: func(context.Context, int) (string, error) { return stored, nil },
		}
		m.SetCountForTesting(11)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := m.Run(ctx)
		cancel()
		if !errors.Is(err, errStop) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if n := m.Status()[0].Copies; n > 0 && round > 0 {
			t.Fatalf("round %d: a new copy began", round)
		}
	}
	left = 0
	m := &kevy.Mirror{Store: s, Apply: tw.apply, Load: func(context.Context, int) (string, error) { return stored, nil }}
	begin(t, m)
	tw.await(s)
}

func TestMirrorPrefixes(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(0))
	ok := func(args ...any) {
		t.Helper()
		if _, err := s.Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	ok("MSET", "user:1", "a", "order:1", "b", "user:2", "c", "item:1", "d")
	var lines []string
	got := make(chan string, 100)
	run := func(prefixes ...string) (end func() error) {
		return begin(t, &kevy.Mirror{Store: s, Prefixes: prefixes, Apply: func(_ context.Context, b *kevy.MirrorBatch) error {
			if b.Reset != nil {
				got <- fmt.Sprintf("reset %q", b.Reset)
			}
			for _, c := range b.Changes {
				got <- string(bytes.Join(c.Argv, []byte(" ")))
			}
			return nil
		}})
	}
	want := func(w ...string) {
		t.Helper()
		lines = lines[:0]
		for range w {
			select {
			case l := <-got:
				lines = append(lines, l)
			case <-time.After(10 * time.Second):
			}
		}
		if !slices.Equal(lines, w) {
			t.Errorf("got %q, want %q", lines, w)
		}
	}
	end := run("user:", "item:")
	want(`reset &{"" ""}`, "SET item:1 d", "SET user:1 a", "SET user:2 c")
	ok("MSET", "order:2", "x", "user:3", "y", "item:2", "z")
	want("MSET user:3 y item:2 z")
	ok("DEL", "order:1", "user:1", "order:2")
	want("DEL user:1")
	ok("DEL", "user:2")
	ok("RENAME", "user:3", "other")
	ok("SET", "order:9", "x")
	ok("SET", "item:9", "x")
	want("DEL user:2", "DEL user:3", "SET item:9 x")
	ok("FLUSHALL")
	ok("SET", "user:9", "x")
	want(`reset &{"" ""}`, "SET user:9 x")
	_ = end()
}

// TestMirrorFlushAll: a FLUSHALL is followed without a new copy, also one in the middle of a transaction.
func TestMirrorFlushAll(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(0))
	const code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
	storm(t.Context(), t, s, 3, 500)
	tw := newTwin(t)
	m := &kevy.Mirror{Store: s, Apply: tw.apply, Functions: true}
	m.SetCountForTesting(5)
	begin(t, m)
	for i := range 20 {
		storm(t.Context(), t, s, uint64(i), 100)
		if i%2 == 0 {
			if err := s.FlushAll(); err != nil {
				t.Fatal(err)
			}
		} else if err := s.Update(func(tx *kevy.Tx) error {
			for _, line := range [][]any{{"SET", "a", "1"}, {"FUNCTION", "LOAD", "REPLACE", code}, {"FLUSHALL"}, {"SET", "b", "2"}} {
				if _, err := tx.Do(line...); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	tw.await(s)
	if n := m.Status()[0].Copies; n != 1 {
		t.Errorf("%d copies", n)
	}
	if l := tw.ks.Libraries().List(); len(l) != 1 || l[0].Code != code {
		t.Errorf("libraries: %v", l)
	}
}

// TestMirrorSlow: a mirror that falls behind the window makes a new copy; it does not jump over the gap.
func TestMirrorSlow(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(2000))
	storm(t.Context(), t, s, 3, 500)
	tw := newTwin(t)
	var once sync.Once
	copied, overrun := make(chan struct{}), make(chan struct{})
	tw.seen = func(b *kevy.MirrorBatch) error {
		if !b.Rebuilding {
			once.Do(func() { close(copied); <-overrun })
		}
		return nil
	}
	m := &kevy.Mirror{Store: s, Apply: tw.apply}
	begin(t, m)
	<-copied
	storm(t.Context(), t, s, 4, 2000)
	close(overrun)
	tw.await(s)
	if n := m.Status()[0].Copies; n < 2 {
		t.Errorf("%d copies: the window was overrun", n)
	}
}

func TestMirrorRefuses(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(0))
	off := open(t, kevy.DefaultConfig())
	nothing := func(context.Context, *kevy.MirrorBatch) error { return nil }
	load := func(text string) func(context.Context, int) (string, error) {
		return func(context.Context, int) (string, error) { return text, nil }
	}
	errLoad := errors.New("no disk")
	for name, c := range map[string]*struct {
		m    kevy.Mirror
		want string
	}{
		"no Apply":    {kevy.Mirror{Store: s}, "Apply is nil"},
		"no source":   {kevy.Mirror{Apply: nothing}, "either Addr or Store"},
		"two sources": {kevy.Mirror{Apply: nothing, Store: s, Addr: "x:1"}, "either Addr or Store"},
		"no feed":     {kevy.Mirror{Apply: nothing, Store: off}, "feed disabled"},
		"garbage":     {kevy.Mirror{Apply: nothing, Store: s, Load: load("garbage")}, `unreadable position "garbage"`},
		"cut":         {kevy.Mirror{Apply: nothing, Store: s, Load: load("m1 5:5 1 00000000 x0")}, "unreadable position"},
		"no load": {kevy.Mirror{Apply: nothing, Store: s, Load: func(context.Context, int) (string, error) {
			return "", errLoad
		}}, "no disk"},
		"no save": {kevy.Mirror{Apply: nothing, Store: s, Save: func(context.Context, int, string) error { return errLoad }}, "no disk"},
	} {
		if err := c.m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestMirrorOtherScope: a position is of its prefixes and of its number of shards; with others the copy begins anew, and what shards
// have left that are no more is dropped.
func TestMirrorOtherScope(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(0))
	if err := s.Set("a", nil); err != nil {
		t.Fatal(err)
	}
	stored := map[int]string{}
	var mu sync.Mutex
	run := func(done func(shard int) bool, prefixes ...string) (resets []int, copies int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := &kevy.Mirror{
			Store: s, Prefixes: prefixes,
			Load: func(_ context.Context, shard int) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				return stored[shard], nil
			},
			Save: func(_ context.Context, shard int, p string) error {
				mu.Lock()
				defer mu.Unlock()
				if stored[shard] = p; done(shard) {
					cancel()
				}
				return nil
			},
			Apply: func(_ context.Context, b *kevy.MirrorBatch) error {
				if b.Reset != nil {
					resets = append(resets, b.Shard)
				}
				return nil
			},
		}
		_ = m.Run(ctx)
		return resets, m.Status()[0].Copies
	}
	first := func(shard int) bool { return shard == 0 }
	if _, n := run(first, "a"); n != 1 {
		t.Errorf("%d copies", n)
	}
	if _, n := run(first, "b"); n != 1 {
		t.Errorf("other prefixes: %d copies", n)
	}
	stored[0] = strings.Replace(stored[0], " 1 ", " 3 ", 1)
	if resets, n := run(first, "b"); n != 1 || !slices.Equal(resets, []int{1, 2, 0}) {
		t.Errorf("other number of shards: %d copies, resets of %d", n, resets)
	}
}

// TestMirrorWholeGroups: no batch ends in the middle of a transaction, however few frames the mirror asks for.
func TestMirrorWholeGroups(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(1<<30))
	write := func(value string) {
		if err := s.Update(func(tx *kevy.Tx) error {
			for i := range 7 {
				if err := tx.Set(fmt.Sprint("g", i), []byte(value)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	write("first")
	tw, batches := newTwin(t), 0
	enough := errors.New("enough")
	tw.seen = func(b *kevy.MirrorBatch) error {
		values := make(map[string]bool)
		for i := range 7 {
			key := fmt.Appendf(nil, "g%d", i)
			if e, ok := tw.ks.Lookup(key); ok && (!b.Rebuilding || bytes.Compare(key, b.Edge) < 0) {
				values[string(e.Value())] = true
			}
		}
		if len(values) > 1 {
			t.Errorf("at %s: %v", b.Cursor, values)
		}
		for i, c := range b.Changes {
			if b.Reset == nil && c.Offset-c.Group != uint64(i%7) && !b.Rebuilding {
				t.Errorf("change %d: offset %d, group %d", i, c.Offset, c.Group)
			}
		}
		if batches++; batches == 100 {
			return enough
		}
		for i := range 3 {
			write(fmt.Sprint(batches, ".", i))
		}
		return nil
	}
	m := &kevy.Mirror{Store: s, Apply: tw.apply}
	m.SetCountForTesting(3)
	if err := m.Run(t.Context()); !errors.Is(err, enough) {
		t.Error(err)
	}
}
