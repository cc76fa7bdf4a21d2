package state

import (
	"fmt"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// TestBulkManyInOrder loads more keys than a piece of arrivals has.
func TestBulkManyInOrder(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	ks.BeginBulk()
	const n = 3*arrivalsPiece + 7
	for i := range n {
		mustFold(t, ks, eff(effect.Set, fmt.Sprintf("key:%08d", i), "v"))
	}
	if ks.arrived.n != n {
		t.Errorf("%d keys are taken to be in order", ks.arrived.n)
	}
	ks.EndBulk()
	mustCheck(t, ks)
	i := 0
	ks.AscendPrefix(nil, func(e Entry) bool {
		if want := fmt.Sprintf("key:%08d", i); string(e.Key()) != want {
			t.Fatalf("key %d is %q", i, e.Key())
		}
		i++
		return true
	})
}

// TestBulkInOrder loads what a view rebuilds, in key order: nothing is sorted, and all is as in a keyspace that was made otherwise.
func TestBulkInOrder(t *testing.T) {
	for seed := range uint64(6) {
		g := newGen(300+seed, 400)
		from := New(seed)
		for range 3000 {
			_, _ = from.Fold(g.effect()) // some are of another type than the key
		}
		for i := range 40 { // large values, which are made by several effects
			for j := range 300 {
				mustFold(t, from, eff(effect.HSet, fmt.Sprint("large-hash", i%7), fmt.Sprint("f", j, "-", i), "v"))
				mustFold(t, from, eff(effect.RPush, fmt.Sprint("list", i%5), fmt.Sprint(j)))
			}
		}
		mustFold(t, from, eff(effect.HPExpireAt, "large-hash1", "1900000000000", "FIELDS", "1", "f1-1"))
		mustFold(t, from, eff(effect.PExpireAt, "list2", "1900000000001"))
		for name, also := range map[string][]*effect.Effect{
			"in order":     nil,
			"behind":       {eff(effect.Set, "\xff\xff\xff", "v"), eff(effect.Append, "\xff\xff\xff", "some more of it")},
			"before":       {eff(effect.Set, "", "v")},
			"moved":        {eff(effect.Append, "list-a", "x"), eff(effect.PExpireAt, "large-hash1", "1900000000009")},
			"deleted":      {eff(effect.Del, "list2", "large-hash3")},
			"everything":   {eff(effect.FlushAll), eff(effect.Set, "b", "v"), eff(effect.Set, "c", "v")},
			"and disorder": {eff(effect.FlushAll), eff(effect.Set, "c", "v"), eff(effect.Set, "b", "v")},
		} {
			want, got := New(seed), New(seed)
			got.BeginBulk()
			rebuildInto(t, from, want)
			rebuildInto(t, from, got)
			if !got.arrived.sorted || got.arrived.n != got.Len() {
				t.Fatalf("%s: %d of %d keys are taken to be in order", name, got.arrived.n, got.Len())
			}
			for _, e := range also {
				_, errWant := want.Fold(e)
				_, errGot := got.Fold(e)
				if (errWant == nil) != (errGot == nil) {
					t.Fatalf("%s: %v, %v", name, errWant, errGot)
				}
			}
			sorted := got.arrived.sorted
			if inOrder := name == "in order" || name == "behind" || name == "everything"; sorted != inOrder {
				t.Errorf("%s: taken to be in order: %v", name, sorted)
			}
			got.EndBulk()
			mustCheck(t, got)
			equal(t, name, want, got)
			got.BeginBulk() // on what is there
			mustFold(t, got, eff(effect.Set, "in between", "v"))
			mustFold(t, want, eff(effect.Set, "in between", "v"))
			got.EndBulk()
			mustCheck(t, got)
			equal(t, name+", again", want, got)
			want.Release()
			got.Release()
		}
		from.Release()
	}
}

func rebuildInto(t *testing.T, from, to *Keyspace) {
	t.Helper()
	v := from.View()
	defer v.Close()
	v.Rebuild(func(e *effect.Effect, _ bool) bool {
		_, err := to.Fold(e)
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
}

// equal compares keys in order, and all values.
func equal(t *testing.T, name string, want, got *Keyspace) {
	t.Helper()
	var a, b []string
	for ks, list := range map[*Keyspace]*[]string{want: &a, got: &b} {
		ks.AscendPrefix(nil, func(e Entry) bool {
			*list = append(*list, string(e.Key()))
			return true
		})
	}
	if fmt.Sprintf("%q", a) != fmt.Sprintf("%q", b) {
		t.Errorf("%s: %d keys, want %d", name, len(b), len(a))
	}
	n, sum := want.Digest(nil, 0)
	if m, s := got.Digest(nil, 0); m != n || s != sum {
		t.Errorf("%s: %d keys with digest %x, want %d with %x", name, m, s, n, sum)
	}
}
