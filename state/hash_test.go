package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

func init() { collections = append(collections, hashCollection) }

var hashCollection = collection{
	kind:   TypeHash,
	effect: randomHashEffect,
	model: func(have []string, e *effect.Effect) []string {
		m := map[string]string{} // name to "value=deadline"
		for _, line := range have {
			name, rest, _ := strings.Cut(line, "=")
			m[name] = rest
		}
		modelHash(m, e)
		var out []string
		for name, rest := range m {
			out = append(out, name+"="+rest)
		}
		sort.Strings(out)
		return out
	},
	lines: func(v value) (out []string) {
		h := hashValue(v)
		h.Each(func(f *Field) bool {
			out = append(out, fmt.Sprintf("%s=%s=%d", f.Name, f.Value, f.Deadline))
			return true
		})
		sort.Strings(out)
		return out
	},
}

func randomHashEffect(rng *rand.Rand, key string) *effect.Effect {
	var names []string
	for range 1 + rng.IntN(12) {
		names = append(names, member(rng))
	}
	count := strconv.Itoa(len(names))
	switch rng.IntN(10) {
	case 0, 1:
		return eff(effect.HDel, append([]string{key}, names...)...)
	case 2, 3:
		return eff(effect.HPExpireAt, append([]string{key, strconv.Itoa(1 + rng.IntN(1000)), "FIELDS", count}, names...)...)
	case 4:
		return eff(effect.HPersist, append([]string{key, "FIELDS", count}, names...)...)
	}
	args := []string{key}
	for _, name := range names {
		args = append(args, name, strings.Repeat("v", rng.IntN(1+rng.IntN(90))))
	}
	return eff(effect.HSet, args...)
}

func modelHash(m map[string]string, e *effect.Effect) {
	deadline := func(names [][]byte, ms string) {
		for _, name := range names {
			if rest, ok := m[string(name)]; ok {
				value, _, _ := strings.Cut(rest, "=")
				m[string(name)] = value + "=" + ms
			}
		}
	}
	switch e.Op {
	case effect.HSet:
		for i := 1; i < len(e.Args); i += 2 {
			m[string(e.Args[i])] = string(e.Args[i+1]) + "=0"
		}
	case effect.HDel:
		for _, name := range e.Args[1:] {
			delete(m, string(name))
		}
	case effect.HPExpireAt:
		deadline(e.Args[4:], string(e.Args[1]))
	case effect.HPersist:
		deadline(e.Args[3:], "0")
	}
}

// fieldNames returns what DueFields gives.
func fieldNames(ks *Keyspace, now int64, limit int) (out []string) {
	ks.DueFields(now, limit, func(key []byte, names [][]byte) {
		for _, name := range names {
			out = append(out, string(key)+"."+string(name))
		}
	})
	return out
}

func TestFieldDeadlines(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	mustFold(t, ks, eff(effect.HSet, "a", "x", "1", "y", "2", "z", "3"))
	mustFold(t, ks, eff(effect.HPExpireAt, "a", "300", "FIELDS", "2", "x", "nope"))
	mustFold(t, ks, eff(effect.HPExpireAt, "a", "200", "FIELDS", "1", "y"))
	large := []string{"b"}
	for i := range 500 {
		large = append(large, fmt.Sprint("f", i), "v")
	}
	mustFold(t, ks, eff(effect.HSet, large...))
	mustFold(t, ks, eff(effect.HPExpireAt, "b", "250", "FIELDS", "3", "f1", "f2", "f3"))
	if ms, ok := ks.NextDeadline(); !ok || ms != 200 {
		t.Errorf("next %d", ms)
	}
	if got := fieldNames(ks, 250, 100); len(got) != 4 || got[0] != "a.y" {
		t.Errorf("due: %v", got)
	}
	if got := fieldNames(ks, 300, 3); len(got) != 3 {
		t.Errorf("due: %v", got)
	}
	mustFold(t, ks, eff(effect.PExpireAt, "a", "150")) // moves the record
	mustFold(t, ks, eff(effect.HSet, "a", "y", "new")) // ends the deadline
	mustFold(t, ks, eff(effect.HDel, "b", "f1", "f2", "f3"))
	if got := fieldNames(ks, 1000, 100); !slices.Equal(got, []string{"a.x"}) {
		t.Errorf("due: %v", got)
	}
	check(t, ks)
	mustFold(t, ks, eff(effect.Set, "a", "string"))
	if got := fieldNames(ks, 1000, 100); len(got) != 0 {
		t.Errorf("due: %v", got)
	}
	mustFold(t, ks, eff(effect.HPExpireAt, "b", "250", "FIELDS", "1", "f9"))
	mustFold(t, ks, eff(effect.Del, "b"))
	if _, ok := ks.NextDeadline(); ok {
		t.Error("a deadline is left")
	}
	check(t, ks)
}

func check(t *testing.T, ks *Keyspace) {
	t.Helper()
	if err := ks.Check(); err != nil {
		t.Error(err)
	}
}

// TestHashReads compares Get, At, Scan, Size and the bulk load with what Each says, in both forms.
func TestHashReads(t *testing.T) {
	for _, n := range []int{1, 100, 5000} {
		ks := New(7)
		ks.BeginBulk()
		for i := range n {
			mustFold(t, ks, eff(effect.HSet, "h", fmt.Sprint("f", i), fmt.Sprint("v", i)))
			if i%3 == 0 {
				mustFold(t, ks, eff(effect.HPExpireAt, "h", fmt.Sprint(1000+i), "FIELDS", "1", fmt.Sprint("f", i)))
			}
		}
		ks.EndBulk()
		check(t, ks)
		if ms, ok := ks.NextDeadline(); !ok || ms != 1000 {
			t.Errorf("next deadline %d", ms)
		}
		e, _ := ks.Lookup([]byte("h"))
		h := ks.Fields(e)
		var all []string
		h.Each(func(f *Field) bool {
			if g, ok := h.Get(f.Name); !ok || string(g.Value) != string(f.Value) || g.Deadline != f.Deadline {
				t.Errorf("Get(%s) = %v, want %v", f.Name, g, *f)
			}
			if at := h.At(len(all)); string(at.Name) != string(f.Name) {
				t.Errorf("At(%d) = %s, want %s", len(all), at.Name, f.Name)
			}
			all = append(all, string(f.Name))
			return true
		})
		if len(all) != n || h.Len() != n {
			t.Errorf("%d fields, Len %d, want %d", len(all), h.Len(), n)
		}
		if _, ok := h.Get([]byte("nope")); ok {
			t.Error("found what is not there")
		}
		scanned := []string{}
		for cursor, calls := uint64(0), 0; calls == 0 || cursor != 0; calls++ {
			cursor = h.Scan(cursor, 7, func(f *Field) { scanned = append(scanned, string(f.Name)) })
		}
		if !slices.Equal(scanned, all) {
			t.Errorf("scan of %d fields: %d", n, len(scanned))
		}
		if size, used := ks.Size(e), ks.ks(); size > used || size < used-100 {
			t.Errorf("size %d, the keyspace uses %d", size, used)
		}
		ks.Release()
	}
}

// ks returns the bytes of all blocks.
func (ks *Keyspace) ks() int { return int(ks.bytes) }

func TestHashEffectsThatDoNotFit(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	mustFold(t, ks, eff(effect.Set, "s", "v"))
	mustFold(t, ks, eff(effect.HSet, "h", "f", "v"))
	for _, e := range []*effect.Effect{
		eff(effect.HSet, "h", "f", "v", "g"), eff(effect.HSet, "s", "f", "v"), eff(effect.HDel, "s", "f"),
		eff(effect.HPExpireAt, "s", "5", "FIELDS", "1", "f"), eff(effect.HPExpireAt, "h", "0", "FIELDS", "1", "f"),
		eff(effect.HPExpireAt, "h", "5", "FIELDS", "2", "f"), eff(effect.HPExpireAt, "h", "5", "FIELD", "1", "f"),
		eff(effect.HPersist, "h", "FIELDS", "0", "f"), eff(effect.HPersist, "s", "FIELDS", "1", "f"),
	} {
		if _, err := ks.Fold(e); err == nil {
			t.Errorf("%s %q folds", e.Op, e.Args)
		}
	}
	for _, e := range []*effect.Effect{
		eff(effect.HDel, "nope", "f"), eff(effect.HPersist, "nope", "FIELDS", "1", "f"),
		eff(effect.HPExpireAt, "nope", "5", "fields", "1", "f"),
	} {
		if c, err := ks.Fold(e); err != nil || c != (Change{}) {
			t.Errorf("%s on no key: %v, %v", e.Op, c, err)
		}
	}
	check(t, ks)
}

func BenchmarkFields(b *testing.B) {
	for _, n := range []int{10, 100, 10000} {
		names := make([][]byte, n)
		ks := New(3)
		for i := range names {
			names[i] = []byte(fmt.Sprint("field:", i))
			e := effect.Effect{Op: effect.HSet, Args: [][]byte{[]byte("h"), names[i], []byte("value")}}
			if _, err := ks.Fold(&e); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprint("set/", n), func(b *testing.B) {
			b.ReportAllocs()
			e := effect.Effect{Op: effect.HSet, Args: [][]byte{[]byte("h"), nil, []byte("other")}}
			for i := 0; b.Loop(); i++ {
				e.Args[1] = names[i*7%n]
				_, _ = ks.Fold(&e)
			}
		})
		b.Run(fmt.Sprint("get/", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e, _ := ks.Lookup([]byte("h"))
				h := ks.Fields(e)
				h.Get(names[i*7%n])
			}
		})
		ks.Release()
	}
}
