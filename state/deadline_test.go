package state

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

func TestDue(t *testing.T) {
	g := newGen(1, 3000)
	ks, m := New(1), model{}
	defer ks.Release()
	for i := range 20000 {
		e := g.effect()
		m.fold(e)
		mustFold(t, ks, e)
		if i%1000 != 0 {
			continue
		}
		var all []int64
		for _, v := range m {
			if v.deadline != 0 {
				all = append(all, v.deadline)
			}
		}
		slices.Sort(all)
		if next, ok := ks.NextDeadline(); ok != (len(all) > 0) || ok && next != all[0] {
			t.Fatalf("next %d %v, want %v", next, ok, all[:min(1, len(all))])
		}
		now := int64(g.IntN(1100))
		var got []int64
		ks.Due(now, 50, func(key []byte) { got = append(got, m[string(key)].deadline) })
		want, _ := slices.BinarySearch(all, now+1)
		if want = min(want, 50); !slices.Equal(got, all[:want]) {
			t.Fatalf("due at %d: %v, want %v", now, got, all[:want])
		}
		alive := 0
		for _, v := range m {
			if v.deadline == 0 || v.deadline > now {
				alive++
			}
		}
		if s := ks.Stats(nil, now); s.Keys != alive {
			t.Fatalf("stats at %d: %+v, want %d", now, s, alive)
		}
	}
}

func TestBulkEqualsIncremental(t *testing.T) {
	for _, n := range []int{0, 1, 200, 20000} {
		g := newGen(uint64(n), 5000)
		one, bulk := New(1), New(1)
		for range n / 2 { // a bulk load on top of what is there
			e := g.effect()
			mustFold(t, one, e)
			mustFold(t, bulk, e)
		}
		bulk.BeginBulk()
		for range n {
			e := g.effect()
			mustFold(t, one, e)
			mustFold(t, bulk, e)
			k := []byte(g.key())
			a, ok := one.Lookup(k)
			b, bok := bulk.Lookup(k)
			if ok != bok || ok && string(a.Value()) != string(b.Value()) {
				t.Fatalf("lookup of %.50q differs", k)
			}
		}
		bulk.EndBulk()
		bulk.EndBulk()
		mustCheck(t, bulk)
		_, want := one.Digest(nil, 0)
		if _, d := bulk.Digest(nil, 0); d != want || one.Len() != bulk.Len() || one.UsedBytes() != bulk.UsedBytes() {
			t.Errorf("%d: digest %x, want %x", n, d, want)
		}
		for i := range 3000 {
			e := g.effect()
			mustFold(t, one, e)
			mustFold(t, bulk, e)
			if i%1000 == 0 {
				mustCheck(t, bulk)
			}
		}
		one.Release()
		bulk.Release()
	}
}

func TestBulkSortsAwkwardKeys(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	ks.BeginBulk()
	for i := range 40 {
		for j := range 40 {
			k := make([]byte, i)
			mustFold(t, ks, eff(effect.Set, "same prefix "+string(k)+strconv.Itoa(j), "v"))
			mustFold(t, ks, eff(effect.Set, "same prefix "+string(k), "v"))
			mustFold(t, ks, eff(effect.Set, "same prefix "+string(k)+string(make([]byte, j))+"\x01", "v"))
		}
	}
	ks.EndBulk()
	mustCheck(t, ks)
}

func TestAccess(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	mustFold(t, ks, eff(effect.Set, "k", "v"))
	e, _ := ks.Lookup([]byte("k"))
	ks.SetAccess(e, 7, 8)
	ks.Touch(e, 9)
	v := ks.View()
	defer v.Close()
	ks.SetAccessClock(11)
	mustFold(t, ks, eff(effect.PExpireAt, "k", "5"))
	if e, _ = ks.Lookup([]byte("k")); e.Access() != 9 || e.Freq() != 8 {
		t.Errorf("after a new deadline: access %d, freq %d", e.Access(), e.Freq())
	}
	mustFold(t, ks, eff(effect.Set, "k", "another value, which does not fit the block", "PXAT", "5"))
	if e, _ = ks.Lookup([]byte("k")); e.Access() != 11 || e.Freq() != 8 || e.Type().String() != "string" {
		t.Errorf("access %d, freq %d, type %s", e.Access(), e.Freq(), e.Type())
	}
}

// TestFrequency: counters grow by chance with accesses and fall with time.
func TestFrequency(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	ks.SetAccessClock(600)
	mustFold(t, ks, eff(effect.Set, "k", "v"))
	ks.SetLFU(true, 10, 2)
	e, _ := ks.Lookup([]byte("k"))
	if got := ks.Freq(e, 600); got != freqNew {
		t.Errorf("a new key's counter: %d", got)
	}
	for range 1000 {
		ks.Touch(e, 600)
	}
	n := ks.Freq(e, 600)
	if n < 12 || n > 30 {
		t.Errorf("after 1000 accesses: %d", n) // Redis: about 18
	}
	if got := ks.Freq(e, 600+4*60); got != n-2 {
		t.Errorf("after four minutes: %d, was %d", got, n)
	}
	if got := ks.Freq(e, 1<<30); got != 0 {
		t.Errorf("much later: %d", got)
	}
}

// TestRandomVolatile: keys with a deadline are found whether they are rare or not.
func TestRandomVolatile(t *testing.T) {
	for _, others := range []int{0, 10, 5000} {
		ks := New(1)
		if _, ok := ks.RandomVolatile(1); ok {
			t.Error("found one where there is none")
		}
		if _, ok := ks.Soonest(); ok {
			t.Error("found the first of none")
		}
		for i := range others {
			mustFold(t, ks, eff(effect.Set, "other"+strconv.Itoa(i), "v"))
		}
		for i := range 10 {
			mustFold(t, ks, eff(effect.Set, "k"+strconv.Itoa(i), "v", "PXAT", strconv.Itoa(1000+100*i)))
		}
		seen := make(map[string]bool)
		rnd := uint64(7)
		for range 1000 {
			rnd = rnd*6364136223846793005 + 1442695040888963407
			e, ok := ks.RandomVolatile(rnd)
			if _, has := e.Deadline(); !ok || !has {
				t.Fatal("not a key with a deadline")
			}
			seen[string(e.Key())] = true
		}
		if len(seen) != 10 {
			t.Errorf("%d others: %d of 10 keys were chosen", others, len(seen))
		}
		if e, ok := ks.Soonest(); !ok || string(e.Key()) != "k0" {
			t.Errorf("the first one due is not k0")
		}
		ks.Release()
	}
}

func TestEncoding(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	long := "123456789012345678901234567890123456789012345"
	for _, c := range []struct {
		want string
		e    *effect.Effect
	}{
		{"int", eff(effect.Set, "k", "0")},
		{"int", eff(effect.Set, "k", "-9223372036854775808")},
		{"int", eff(effect.Set, "k", "9223372036854775807")},
		{"embstr", eff(effect.Set, "k", "9223372036854775808")},
		{"embstr", eff(effect.Set, "k", "-0")},
		{"embstr", eff(effect.Set, "k", "")},
		{"embstr", eff(effect.Set, "k", "01")},
		{"embstr", eff(effect.Set, "k", long[:44])},
		{"raw", eff(effect.Set, "k", long)},
		{"int", eff(effect.Set, "k", "5")},
		{"raw", eff(effect.Append, "k", "5")},
		{"int", eff(effect.Set, "k", "5")},
		{"raw", eff(effect.SetRange, "k", "0", "6")},
		{"raw", eff(effect.PExpireAt, "k", "6")},
		{"int", eff(effect.MSet, "k", "6")},
		{"int", eff(effect.Append, "new", "6")},
		{"raw", eff(effect.SetRange, "newer", "0", "6")},
	} {
		mustFold(t, ks, c.e)
		e, _ := ks.Lookup(c.e.Args[0])
		if got := ks.Encoding(e); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.e.Op, c.e.Args, got, c.want)
		}
	}
}

// TestBulkPrefixGuess: all keys but one share what a sample shows.
func TestBulkPrefixGuess(t *testing.T) {
	for _, odd := range []string{"", "k", "key:00", "key:1", "zzz", "key:0000000000000000000000001"} {
		ks := New(1)
		ks.BeginBulk()
		for i := range 5000 {
			mustFold(t, ks, eff(effect.Set, fmt.Sprintf("key:%08d", i), "v"))
		}
		mustFold(t, ks, eff(effect.Set, odd, "v"))
		ks.EndBulk()
		mustCheck(t, ks)
		ks.Release()
	}
}
