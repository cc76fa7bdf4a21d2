package replica

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/log"
)

// TestCutsAreOrdered: of two cuts, whoever takes them, one is before the other on every shard.
func TestCutsAreOrdered(t *testing.T) {
	e, s := sourceOf(t, 3)
	stop, writers := make(chan struct{}), new(sync.WaitGroup)
	for i := range 3 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					run(t, e, "SET", fmt.Sprint(i, n%100), "v")
				}
			}
		})
	}
	sum := func(at []log.Cursor) (n uint64) {
		for _, c := range at {
			n += c.Offset
		}
		return n
	}
	var mu sync.Mutex
	var all [][]log.Cursor
	var takers sync.WaitGroup
	first, _ := s.cut()
	for range 3 {
		takers.Go(func() {
			for n, last := 0, first; n < 3000 || sum(last) < sum(first)+300; n++ { // the writers may have had no time to
				last, _ = s.cut()
				mu.Lock()
				all = append(all, last)
				mu.Unlock()
			}
		})
	}
	takers.Wait()
	close(stop)
	writers.Wait()
	slices.SortFunc(all, func(a, b []log.Cursor) int { return cmp.Compare(sum(a), sum(b)) })
	for i := range all[1:] {
		for shard := range 3 {
			if all[i][shard].Offset > all[i+1][shard].Offset {
				t.Fatalf("cuts %v and %v", all[i], all[i+1])
			}
		}
	}
	if sum(all[0]) == sum(all[len(all)-1]) {
		t.Fatal("all cuts are the same: the test has tested nothing")
	}
}

// TestCutsCount: a follower counts for what is within the cut that it acknowledges, whatever else it has applied.
func TestCutsCount(t *testing.T) {
	e, s := sourceOf(t, 2)
	k := s.link(t)
	for i := range 20 {
		run(t, e, "SET", fmt.Sprint("k", i), "v")
	}
	first, _ := s.cut()
	for i := range 20 {
		run(t, e, "SET", fmt.Sprint("k", i), "w")
	}
	second, _ := s.cut()
	ack := func(applied, durable, cut []log.Cursor) error {
		args := [][]byte{nil, []byte(k.id)}
		for i := range applied {
			for _, n := range []uint64{applied[i].Generation, applied[i].Offset, durable[i].Offset, cut[i].Generation, cut[i].Offset} {
				args = append(args, fmt.Append(nil, n))
			}
		}
		return s.Ack(args)
	}
	none := make([]log.Cursor, 2)
	for _, c := range []struct {
		what                  string
		applied, durable, cut []log.Cursor
		reached               [4]int // applied and durable, of the first and the second cut
	}{
		{"no cut", second, second, none, [4]int{0, 0, 0, 0}},
		{"one beyond what is applied", first, first, second, [4]int{0, 0, 0, 0}},
		{"the first one", second, second, first, [4]int{1, 1, 0, 0}},
		{"a shard ahead of it", []log.Cursor{second[0], first[1]}, first, first, [4]int{1, 1, 0, 0}},
		{"the second one, not all of it synced", second, first, second, [4]int{1, 1, 1, 0}},
		{"the second one", second, second, second, [4]int{1, 1, 1, 1}},
	} {
		if err := ack(c.applied, c.durable, c.cut); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := [4]int{s.Reached(first, false), s.Reached(first, true), s.Reached(second, false), s.Reached(second, true)}; got != c.reached {
			t.Errorf("%s: reached %v, want %v", c.what, got, c.reached)
		}
	}
}

// TestCutIsNews: a cut that the follower does not know is a reason to answer, unless it leaves out shards.
func TestCutIsNews(t *testing.T) {
	e, s := sourceOf(t, 2)
	k := s.link(t)
	at, _ := s.cut()
	if !k.news(at, at) {
		t.Error("the first one is no news")
	}
	k.told = at
	if k.news(at, at) {
		t.Error("the same one is news")
	}
	run(t, e, "SET", "k", "v")
	next, _ := s.cut()
	if !k.news(next, next) {
		t.Error("the next one is no news")
	}
	if k.news(next, []log.Cursor{next[0], {}}) {
		t.Error("one that is far is news")
	}
}

// TestLinger: a reply is put off, but not while somebody waits for what would be in it, whoever came first.
func TestLinger(t *testing.T) {
	e, s := source(t)
	s.linger = time.Hour
	k := s.link(t)
	run(t, e, "SET", "x", "1")
	to := s.Tails()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	await := func() (done func()) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Await(ctx, nil, 1, to, false)
		}()
		return func() { cancel(); <-ended }
	}
	for _, first := range []bool{true, false} {
		var done func()
		if first {
			done = await()
		}
		lingered := make(chan struct{})
		go func() {
			defer close(lingered)
			k.linger(ctx)
		}()
		if !first {
			select {
			case <-lingered:
				t.Fatal("nobody waited for it")
			case <-time.After(20 * time.Millisecond):
			}
			done = await()
		}
		<-lingered
		done()
		if ctx.Err() != nil {
			t.Fatalf("waited for first: %v; put off until the end", first)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	k.linger(gone) // returns
}
