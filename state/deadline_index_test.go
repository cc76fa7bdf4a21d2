package state

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kevydb/kevy/internal/arena"
)

// TestDeadlineIndex runs the index alone through many leaves: random, in order, drained from the front.
func TestDeadlineIndex(t *testing.T) {
	d := newDeadlines(arena.New())
	defer d.a.Retire()
	var want []due
	check := func() {
		t.Helper()
		var got []due
		d.ascend(func(p due) bool { got = append(got, p); return true })
		if !slices.Equal(got, want) || d.n != len(want) {
			t.Fatalf("%d pairs, counted %d, want %d", len(got), d.n, len(want))
		}
		if len(want) > 0 && d.next != want[0].ms || len(want) == 0 && d.next != NoDeadline {
			t.Fatalf("next %d", d.next)
		}
	}
	insert := func(p due) {
		if i, found := slices.BinarySearchFunc(want, p, compareDue); !found {
			want = slices.Insert(want, i, p)
			d.insert(p)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		for range 3000 {
			insert(due{1 + r.Int64N(500), arena.Ref(1 + r.Uint64N(1000))})
		}
		check()
		for i := range 2000 {
			insert(due{1000 + int64(i), 1})
		}
		check()
		for range 2500 {
			d.remove(want[0])
			want = want[1:]
		}
		check()
		for len(want) > 200 {
			i := r.IntN(len(want))
			d.remove(want[i])
			want = slices.Delete(want, i, i+1)
		}
		check()
	}
	d.build(slices.Clone(want))
	check()
	for len(want) > 0 {
		d.remove(want[len(want)-1])
		want = want[:len(want)-1]
	}
	check()
	if s := d.a.Stats(); s.Blocks != 1 {
		t.Errorf("%d blocks left", s.Blocks)
	}
}
