package state

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// saved is a view with a copy of what it must show for ever.
type saved struct {
	v *View
	m model
}

func (s *saved) verify(t testing.TB) {
	want := slices.Sorted(maps.Keys(s.m))
	i := 0
	s.v.AscendFrom(nil, func(key, value []byte, deadline int64) bool {
		if i >= len(want) || string(key) != want[i] {
			t.Errorf("key %d of the view is %.50q", i, key)
			return false
		}
		if w := s.m[want[i]]; w.value != string(value) || w.deadline != deadline {
			t.Errorf("%.50q: value of %d bytes, deadline %d; want %d, %d", key, len(value), deadline, len(w.value), w.deadline)
			return false
		}
		i++
		return true
	})
	if i != len(want) || s.v.Len() != len(want) {
		t.Errorf("view of %d keys, Len %d, want %d", i, s.v.Len(), len(want))
	}
}

// TestViewsNeverChange opens views at random, folds thousands of effects, and closes them in any order,
// while others read them.
func TestViewsNeverChange(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(string('a'+rune(seed)), func(t *testing.T) {
			t.Parallel()
			g := newGen(100+seed, []int{50, 1000, 3000, 100000}[seed])
			ks, m := New(seed), model{}
			var open []*saved
			var wg sync.WaitGroup
			for range 80 {
				for range 100 {
					e := g.effect()
					m.fold(e)
					mustFold(t, ks, e)
				}
				if len(open) > 0 && g.IntN(3) == 0 {
					i := g.IntN(len(open))
					wg.Wait() // nobody reads
					open[i].verify(t)
					open[i].v.Close()
					open = slices.Delete(open, i, i+1)
				}
				if g.IntN(2) == 0 {
					s := &saved{ks.View(), maps.Clone(m)}
					open = append(open, s)
					wg.Go(func() { s.verify(t) })
				}
				if g.IntN(10) == 0 {
					mustCheck(t, ks)
					same(t, ks, m)
				}
			}
			wg.Wait()
			for _, s := range open {
				s.verify(t)
				s.v.Close()
				s.v.Close()
			}
			for range 20000 { // works off what the views put off
				mustFold(t, ks, eff(effect.Set, "k", "v"))
				mustFold(t, ks, eff(effect.Del, "k"))
			}
			delete(m, "k")
			mustCheck(t, ks)
			same(t, ks, m)
			if s := ks.Memory(); s.Deferred != 0 {
				t.Errorf("%d bytes still put off", s.Deferred)
			}
			ks.Release()
		})
	}
}

func TestViewOutlivesFlushAllAndRelease(t *testing.T) {
	ks, m := New(1), model{}
	g := newGen(1, 500)
	for range 2000 {
		e := g.effect()
		m.fold(e)
		mustFold(t, ks, e)
	}
	s := saved{ks.View(), maps.Clone(m)}
	c := mustFold(t, ks, eff(effect.FlushAll))
	if c.Removed != len(m) || ks.Len() != 0 || ks.LenWithDeadline() != 0 || ks.UsedBytes() != 0 {
		t.Fatalf("%+v, Len %d", c, ks.Len())
	}
	if _, ok := ks.NextDeadline(); ok {
		t.Fatal("a deadline is left")
	}
	mustCheck(t, ks)
	mustFold(t, ks, eff(effect.Set, "new", "v"))
	s.verify(t)
	s2 := saved{ks.View(), model{"new": {value: "v"}}}
	ks.Release()
	s.verify(t)
	s2.verify(t)
	s.v.Close()
	s2.verify(t)
	s2.v.Close()
}

// TestAppendUnderView appends in place to a value the view sees.
func TestAppendUnderView(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	big := strings.Repeat("x", 10000)
	mustFold(t, ks, eff(effect.Set, "k", big))
	mustFold(t, ks, eff(effect.Append, "k", "1"))
	var views []*saved
	want := big + "1"
	for i := range 500 {
		views = append(views, &saved{ks.View(), model{"k": {value: want}}})
		switch {
		case i%7 == 3:
			mustFold(t, ks, eff(effect.SetRange, "k", "5", "yyy"))
			want = want[:5] + "yyy" + want[8:]
		case i%50 == 49:
			mustFold(t, ks, eff(effect.Set, "k", big[1:]))
			want = big[1:]
		default:
			mustFold(t, ks, eff(effect.Append, "k", "abc"))
			want += "abc"
		}
		mustCheck(t, ks)
	}
	for _, v := range views {
		v.verify(t)
		v.v.Close()
	}
}

func TestPrefixes(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	for i := range 5000 {
		g := newGen(uint64(i), 3000)
		mustFold(t, ks, eff(effect.Set, g.key(), "v"))
	}
	v := ks.View()
	defer v.Close()
	var all [][]byte
	ks.AscendFrom(nil, func(e Entry) bool { all = append(all, bytes.Clone(e.Key())); return true })
	for _, p := range []string{"", "user:", "user:0000001", "session:\xff", "session:5\xff", "\x00", "\x00\x00\x00", "zzz", "\xff", "1", "long:x"} {
		want, from := 0, 0
		for _, k := range all {
			if bytes.HasPrefix(k, []byte(p)) {
				want++
			}
			if string(k) >= p {
				from++
			}
		}
		got, gotView, gotFrom := 0, 0, 0
		ks.AscendPrefix([]byte(p), func(Entry) bool { got++; return true })
		ks.AscendFrom([]byte(p), func(Entry) bool { gotFrom++; return true })
		v.AscendPrefix([]byte(p), func(_, _ []byte, _ int64) bool { gotView++; return true })
		if got != want || gotView != want || gotFrom != from || ks.Stats([]byte(p), 0).Keys != want {
			t.Errorf("%q: %d, view %d, want %d; from it %d, want %d", p, got, gotView, want, gotFrom, from)
		}
		got = 0
		ks.AscendPrefix([]byte(p), func(Entry) bool { got++; return got < 3 })
		if got != min(3, want) {
			t.Errorf("%q: %d calls after false", p, got)
		}
	}
}
