package kevy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// twin is a copy that a Mirror keeps: the effects of one shard folded into a keyspace.
type twin struct {
	t    testing.TB
	mu   sync.Mutex
	ks   *state.Keyspace
	last kevy.MirrorBatch
	// seen, if set, is called after each batch.
	seen func(b *kevy.MirrorBatch) error
}

func newTwin(t testing.TB) *twin {
	tw := &twin{t: t, ks: state.New(1)}
	t.Cleanup(tw.ks.Release)
	return tw
}

func fold(t testing.TB, ks *state.Keyspace, argv [][]byte) {
	t.Helper()
	e, err := effect.FromArgv(argv)
	if err == nil {
		_, err = ks.Fold(&e)
	}
	if err != nil {
		t.Errorf("%q: %v", argv, err)
	}
}

// reset removes the keys of a range.
func reset(t testing.TB, ks *state.Keyspace, r *kevy.KeyRange) {
	t.Helper()
	var gone [][]byte
	ks.AscendFrom(r.From, func(e state.Entry) bool {
		in := r.Contains(e.Key())
		if in {
			gone = append(gone, bytes.Clone(e.Key()))
		}
		return in
	})
	for _, k := range gone {
		fold(t, ks, [][]byte{[]byte("DEL"), k})
	}
}

// apply is the Mirror's Apply. It checks what batches promise of themselves.
func (w *twin) apply(_ context.Context, b *kevy.MirrorBatch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.Reset != nil {
		reset(w.t, w.ks, b.Reset)
	}
	for i, c := range b.Changes {
		if b.Reset == nil && (c.Offset >= b.Cursor.Offset || i > 0 && c.Offset <= b.Changes[i-1].Offset || c.Group > c.Offset) {
			w.t.Errorf("change %d of %d: offset %d, group %d, at %s", i, len(b.Changes), c.Offset, c.Group, b.Cursor)
		}
		if b.Reset != nil && c.Cause == "rebuild" && !b.Reset.Contains(c.Argv[1]) && string(c.Argv[0]) != "FUNCTION" && string(c.Argv[0]) != "XGROUP" {
			w.t.Errorf("%q is not in the range %q", c.Argv, b.Reset)
		}
		fold(w.t, w.ks, c.Argv)
	}
	if w.seen != nil {
		if err := w.seen(b); err != nil {
			return err
		}
	}
	w.last = *b
	return nil
}

func (w *twin) digest() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, sum := w.ks.Digest(nil, time.Now().UnixMilli())
	return fmt.Sprintf("%d %016x", n, sum)
}

// await waits until the twin stands at the store's tail and has the same keys; keys may expire meanwhile.
func (w *twin) await(s *kevy.Store) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		tail, err := s.ChangesTail()
		if err != nil {
			w.t.Fatal(err)
		}
		w.mu.Lock()
		at, rebuilding := w.last.Cursor, w.last.Rebuilding
		w.mu.Unlock()
		n, sum, err := s.Digest(nil)
		if err != nil {
			w.t.Fatal(err)
		}
		got, want := w.digest(), fmt.Sprintf("%d %s", n, sum)
		if at == tail && !rebuilding && got == want {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the mirror stands at %s (rebuilding: %v) with %s, the store at %s with %s", at, rebuilding, got, tail, want)
		}
	}
}

// begin runs m until the test ends, and returns how to end it earlier.
func begin(t testing.TB, m *kevy.Mirror) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	var once sync.Once
	var err error
	end = func() error {
		once.Do(func() { cancel(); err = <-done })
		return err
	}
	t.Cleanup(func() {
		if err := end(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	return end
}

// storm writes effects that must not be applied twice, until the context ends or n commands are done.
func storm(ctx context.Context, t testing.TB, s *kevy.Store, seed uint64, n int) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := 0; i < n && ctx.Err() == nil; i++ {
		k := func(kind string) string { return fmt.Sprintf("%s:%d", kind, r.IntN(40)) }
		var err error
		do := func(args ...any) {
			if _, e := s.Do(args...); e != nil && err == nil {
				err = e
			}
		}
		switch r.IntN(12) {
		case 0:
			do("INCR", k("n"))
		case 1:
			do("APPEND", k("s"), "xy")
		case 2:
			do("RPUSH", k("l"), i)
		case 3:
			do("ZINCRBY", k("z"), "1.5", "m")
		case 4:
			do("XADD", k("x"), "*", "f", i)
		case 5:
			do("DEL", k("n"), k("s"), k("l"), k("z"), k("x"))
		case 6:
			do("MSET", k("n"), i, k("n"), i, k("n"), i)
		case 7:
			do("PEXPIRE", k("s"), r.IntN(20))
		case 8:
			do("RENAME", "n:0", k("n"))
			err = nil // there may be no such key
		case 9:
			do("HSET", k("h"), "f", i, "g", i)
			do("HINCRBY", k("h"), "f", 1)
		case 10:
			err = s.Update(func(tx *kevy.Tx) error {
				for range 5 {
					if _, err := tx.Do("LPUSH", k("l"), i); err != nil {
						return err
					}
				}
				return nil
			})
		default:
			do("SETRANGE", k("s"), r.IntN(9), "abc")
		}
		if err != nil {
			t.Errorf("write: %v", err)
			return
		}
	}
}

// reference folds the feed from the very beginning.
type reference struct {
	s  *kevy.Store
	ks *state.Keyspace
	at log.Cursor
}

// to folds up to a cursor.
func (r *reference) to(t testing.TB, c log.Cursor) {
	t.Helper()
	for r.at != c {
		b, err := r.s.ChangesSince(r.at, int(min(c.Offset-r.at.Offset, 4096))) //nolint:gosec // bounded
		if err != nil || len(b.Changes) == 0 {
			t.Fatalf("at %s, on the way to %s: %v", r.at, c, err)
		}
		for _, ch := range b.Changes {
			fold(t, r.ks, ch.Argv)
		}
		r.at = b.Next
	}
}

// below returns the digest of the keys below an edge.
func below(t testing.TB, ks *state.Keyspace, b *kevy.MirrorBatch) string {
	part := state.New(1)
	defer part.Release()
	v := ks.View()
	defer v.Close()
	v.RebuildFrom(nil, func(e *effect.Effect, _ bool) bool {
		if b.Rebuilding && bytes.Compare(e.Args[e.Op.KeyAt()], b.Edge) >= 0 {
			return false
		}
		if _, err := part.Fold(e); err != nil {
			t.Error(err)
		}
		return true
	})
	n, sum := part.Digest(nil, 0)
	return fmt.Sprintf("%d %016x", n, sum)
}

// TestMirrorIsExactAtEveryPoint compares the keys below the edge after every batch with the feed folded from its very first frame, while
// writes go on.
func TestMirrorIsExactAtEveryPoint(t *testing.T) {
	s := open(t, kevy.DefaultConfig().WithFeed(1<<30))
	ref := &reference{s: s, ks: state.New(1)} // cursors of later rounds are behind those of earlier ones
	defer ref.ks.Release()
	ref.at = must[log.Cursor](t)(s.ChangesTail())
	storm(t.Context(), t, s, 1, 2000)
	credit := make(chan uint64, 4096) // writers go on while batches come, a little slower than these
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for seed := range credit {
				storm(t.Context(), t, s, seed, 6)
			}
		})
	}
	errEnough := errors.New("enough batches")
	for round := range 8 {
		tw, chunks, followed := newTwin(t), 0, 0
		tw.seen = func(b *kevy.MirrorBatch) error {
			credit <- uint64(round*1000 + chunks + followed) //nolint:gosec // positive
			ref.to(t, b.Cursor)
			if got, want := below(t, tw.ks, b), below(t, ref.ks, b); got != want {
				return fmt.Errorf("at %s, edge %q: %s, want %s", b.Cursor, b.Edge, got, want)
			}
			if b.Reset != nil {
				chunks++
			}
			if !b.Rebuilding {
				followed++
			}
			if followed == 10 {
				return errEnough
			}
			return nil
		}
		m := &kevy.Mirror{Store: s, Apply: tw.apply}
		m.SetCountForTesting(13)
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		if err := m.Run(ctx); !errors.Is(err, errEnough) {
			t.Fatalf("round %d: %v", round, err)
		}
		cancel()
		if chunks < 10 {
			t.Errorf("%d chunks", chunks)
		}
	}
	close(credit)
	writers.Wait()
	tw := newTwin(t)
	begin(t, &kevy.Mirror{Store: s, Apply: tw.apply})
	tw.await(s)
}
