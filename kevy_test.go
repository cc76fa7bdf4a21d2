package kevy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/log"
)

func open(t testing.TB, cfg kevy.Config) *kevy.Store {
	t.Helper()
	s, err := kevy.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestTypedOperations(t *testing.T) {
	s := open(t, kevy.DefaultConfig())
	integer, ok := must[int64](t), must[bool](t)
	if err := s.Set("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if n := integer(s.Incr("a", 41)); n != 42 {
		t.Errorf("Incr = %d", n)
	}
	if n := integer(s.Append("a", []byte("x"))); n != 3 {
		t.Errorf("Append = %d", n)
	}
	if v, ok, err := s.Get("a"); string(v) != "42x" || !ok || err != nil {
		t.Errorf("Get = %q, %v, %v", v, ok, err)
	}
	if _, ok, err := s.Get("none"); ok || err != nil {
		t.Errorf("Get of no key = %v, %v", ok, err)
	}
	if _, err := s.Incr("a", 1); !errors.As(err, new(kevy.Error)) {
		t.Errorf("Incr of text: %v", err)
	}
	if ok(s.SetNX("a", nil)) || !ok(s.SetNX("b", nil)) {
		t.Error("SetNX")
	}
	if err := s.MSet(map[string][]byte{"c": []byte("3"), "d": []byte("4")}); err != nil {
		t.Fatal(err)
	}
	if vs := must[[][]byte](t)(s.MGet("c", "none", "d")); string(vs[0]) != "3" || vs[1] != nil || string(vs[2]) != "4" {
		t.Errorf("MGet = %q", vs)
	}
	if !ok(s.Expire("c", time.Hour)) || ok(s.Expire("none", time.Hour)) {
		t.Error("Expire")
	}
	if left, expires, exists, err := s.TTL("c"); left <= 0 || !expires || !exists || err != nil {
		t.Errorf("TTL = %v, %v, %v, %v", left, expires, exists, err)
	}
	if p := must[kevy.PrefixInfo](t)(s.InfoPrefix(nil)); p != (kevy.PrefixInfo{Keys: 4, Expires: 1}) {
		t.Errorf("InfoPrefix = %+v", p)
	}
	if !ok(s.Persist("c")) || integer(s.Del("c", "d", "none")) != 2 || integer(s.Exists("a", "a", "c")) != 2 {
		t.Error("Persist, Del or Exists")
	}
	if v, err := s.Do("SET", "n", 5, "GET"); v != nil || err != nil {
		t.Errorf("Do SET GET = %v, %v", v, err)
	}
	if keys := must[[]string](t)(s.Keys("*")); len(keys) != 3 {
		t.Errorf("Keys = %q", keys)
	}
	if _, err := s.Do("SUBSCRIBE", "x"); err == nil {
		t.Error("a connection's command ran without one")
	}
}

func TestUpdateIsOneGroup(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(0))
	if err := s.Set("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	before := must[log.Cursor](t)(s.ChangesTail())
	boom := errors.New("boom")
	err := s.Update(func(tx *kevy.Tx) error {
		if err := tx.Set("a", []byte("2")); err != nil {
			return err
		}
		if err := tx.Set("b", []byte("2")); err != nil {
			return err
		}
		if v, _, _ := tx.Get("a"); string(v) != "2" {
			t.Errorf("a transaction does not see its own write: %q", v)
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("Update = %v", err)
	}
	if v, _, _ := s.Get("a"); string(v) != "1" {
		t.Errorf("a rolled back transaction left %q", v)
	}
	if n, _ := s.Exists("b"); n != 0 {
		t.Error("a rolled back transaction left a key")
	}
	if after := must[log.Cursor](t)(s.ChangesTail()); after != before {
		t.Errorf("a rolled back transaction logged: tail %v, was %v", after, before)
	}
	var kept *kevy.Tx
	if err := s.Update(func(tx *kevy.Tx) error {
		kept = tx
		_, err := tx.Incr("a", 1)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if v, _, _ := s.Get("a"); string(v) != "2" {
		t.Errorf("a = %q", v)
	}
	if err := kept.Set("a", nil); !errors.Is(err, kevy.ErrTxDone) {
		t.Errorf("a transaction used after its end: %v", err)
	}
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	cfg := kevy.DefaultConfig().WithDir(dir).WithFeed(0)
	s := must[*kevy.Store](t)(kevy.Open(cfg))
	cur := must[log.Cursor](t)(s.ChangesTail())
	for i := range 10 {
		if err := s.Set(fmt.Sprintf("user:%d", i%2), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		if err := s.Set("other", nil); err != nil {
			t.Fatal(err)
		}
	}
	batch := must[kevy.Batch](t)(s.ChangesSince(cur, 3, []byte("user:1")))
	if len(batch.Changes) != 3 || string(batch.Changes[2].Argv[2]) != "5" {
		t.Errorf("batch %+v", batch)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ChangesSince(cur, 1); !errors.Is(err, kevy.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	// A clean restart keeps the cursor.
	s = open(t, cfg)
	rest := must[kevy.Batch](t)(s.ChangesSince(batch.Next, 256, []byte("user:1")))
	if len(rest.Changes) != 2 || string(rest.Changes[1].Argv[2]) != "9" {
		t.Errorf("after a restart: %+v", rest)
	}
	if b := must[kevy.Batch](t)(s.ChangesSince(rest.Next, 256)); len(b.Changes) != 0 || b.Next != rest.Next {
		t.Errorf("caught up: %+v", b)
	}
	ahead := log.Cursor{Generation: cur.Generation, Offset: rest.Next.Offset + 1}
	if _, err := s.ChangesSince(ahead, 1); !errors.Is(err, kevy.ErrCursorAhead) {
		t.Errorf("cursor ahead: %v", err)
	}
	if err := s.FlushAll(); err != nil {
		t.Fatal(err)
	}
	var resync *kevy.ResyncError
	if _, err := s.ChangesSince(cur, 1); !errors.As(err, &resync) || resync.Tail != 0 || resync.Generation <= cur.Generation {
		t.Errorf("after FLUSHALL: %v", err)
	}
}

func TestFeedDisabled(t *testing.T) {
	s := open(t, kevy.DefaultConfig())
	if _, err := s.ChangesTail(); !errors.Is(err, kevy.ErrFeedDisabled) {
		t.Errorf("ChangesTail: %v", err)
	}
	if _, err := s.ChangesSince(log.Cursor{}, 1); !errors.Is(err, kevy.ErrFeedDisabled) {
		t.Errorf("ChangesSince: %v", err)
	}
}

func TestFollow(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(0))
	cur := must[log.Cursor](t)(s.ChangesTail())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const n = 500
	go func() {
		for i := range n {
			_ = s.Set("k", fmt.Append(nil, i))
		}
	}()
	seen := 0
	for c, err := range s.Follow(ctx, cur, []byte("k")) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		if c.Offset != uint64(seen) || string(c.Argv[2]) != fmt.Sprint(seen) {
			t.Fatalf("change %d is %d %q", seen, c.Offset, c.Argv)
		}
		if seen++; seen == n {
			cancel()
		}
	}
	if seen != n {
		t.Errorf("%d changes", seen)
	}
}

func TestCloseEndsFollow(t *testing.T) {
	s := must[*kevy.Store](t)(kevy.Open(kevy.DefaultConfig().WithFeed(0)))
	cur := must[log.Cursor](t)(s.ChangesTail())
	end := make(chan error, 1)
	go func() {
		for _, err := range s.Follow(context.Background(), cur) {
			end <- err
		}
	}()
	time.Sleep(20 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-end:
		if !errors.Is(err, kevy.ErrClosed) {
			t.Errorf("Follow ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Follow goes on after Close")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, kevy.DefaultConfig().WithDir(dir))
	if _, err := kevy.Open(kevy.DefaultConfig().WithDir(dir)); err == nil {
		t.Error("a directory was opened twice")
	}
	_ = s
	if _, err := kevy.Open(kevy.DefaultConfig().WithFeed(kevy.MaxFeedWindow + 1)); err == nil {
		t.Error("a window above the maximum was taken")
	}
	lost := t.TempDir()
	other := must[*kevy.Store](t)(kevy.Open(kevy.DefaultConfig().WithDir(lost)))
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(lost + "/MANIFEST"); err != nil {
		t.Fatal(err)
	}
	if _, err := kevy.Open(kevy.DefaultConfig().WithDir(lost)); err == nil {
		t.Error("a directory without its manifest was taken for an empty one")
	}
}

func TestRestore(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	s := open(t, kevy.DefaultConfig().WithDir(from).WithFeed(0))
	for i := range 100 {
		if err := s.Set(fmt.Sprint("k", i), []byte("1")); err != nil {
			t.Fatal(err)
		}
		if i == 50 {
			if err := s.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := must[log.Cursor](t)(s.ChangesTail())
	_, want, err := s.Digest(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.FlushAll(); err != nil {
		t.Fatal(err)
	}
	if err := kevy.Restore(from, to, at); err != nil {
		t.Fatal(err)
	}
	r := open(t, kevy.DefaultConfig().WithDir(to))
	if keys, got, err := r.Digest(nil); keys != 100 || got != want || err != nil {
		t.Errorf("restored: %d keys, digest %s, %v; want %s", keys, got, err, want)
	}
}

// TestLargeChanges: a batch is bounded in bytes too, and has a change that is larger.
func TestLargeChanges(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(64<<20))
	cur := must[log.Cursor](t)(s.ChangesTail())
	sizes := []int{1 << 20, 1 << 20, 1 << 20, 9 << 20, 1 << 20, 1, 1 << 20}
	for _, n := range sizes {
		if err := s.Set("k", make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	for seen := 0; seen < len(sizes); {
		b := must[kevy.Batch](t)(s.ChangesSince(cur, 4096))
		bytes := 0
		for _, c := range b.Changes {
			if len(c.Argv[2]) != sizes[seen] {
				t.Fatalf("change %d has %d bytes", seen, len(c.Argv[2]))
			}
			bytes += sizes[seen]
			seen++
		}
		if last := sizes[seen-1]; len(b.Changes) == 0 || bytes-last >= 4<<20 {
			t.Fatalf("%d changes of %d bytes, up to change %d", len(b.Changes), bytes, seen)
		}
		cur = b.Next
	}
}

// TestFlushAllUndone: a FLUSHALL in a group that fails is undone with it.
func TestFlushAllUndone(t *testing.T) {
	s := open(t, kevy.DefaultConfig())
	if err := s.Set("k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no")
	err := s.Update(func(tx *kevy.Tx) error {
		if err := tx.FlushAll(); err != nil {
			return err
		}
		if _, ok, err := tx.Get("k"); ok || err != nil {
			t.Errorf("inside: %v, %v", ok, err)
		}
		return failed
	})
	if v, ok, _ := s.Get("k"); !errors.Is(err, failed) || !ok || string(v) != "1" {
		t.Errorf("afterwards: %q, %v, %v", v, ok, err)
	}
}

func ExampleStore_ChangesSince() {
	store, err := kevy.Open(kevy.DefaultConfig().WithFeed(0))
	if err != nil {
		panic(err)
	}
	defer store.Close()
	cur, _ := store.ChangesTail()
	_ = store.Set("user:1", []byte("Ada"))
	_ = store.Set("order:7", []byte("open"))
	_, _ = store.Incr("user:visits", 1)
	batch, _ := store.ChangesSince(cur, 256, []byte("user:"))
	for _, c := range batch.Changes {
		fmt.Printf("%d %s\n", c.Offset, c.Argv)
	}
	fmt.Println(batch.Next.Offset)
	// Output:
	// 0 [SET user:1 Ada]
	// 2 [SET user:visits 1]
	// 3
}

func ExampleStore_Update() {
	store, err := kevy.Open(kevy.DefaultConfig())
	if err != nil {
		panic(err)
	}
	defer store.Close()
	_ = store.Set("from", []byte("10"))
	err = store.Update(func(tx *kevy.Tx) error {
		if n, err := tx.Incr("from", -30); err != nil || n < 0 {
			return errors.Join(err, errors.New("not enough"))
		}
		_, err := tx.Incr("to", 30)
		return err
	})
	left, _, _ := store.Get("from")
	fmt.Println(err, string(left))
	// Output: not enough 10
}
