package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// Lists compare with a slice of strings.
var listCollection = collection{
	kind:   TypeList,
	effect: listEffect,
	model:  listModel,
	lines: func(v value) (out []string) {
		l := listValue(v)
		l.Range(0, l.Len(), false, func(e []byte) bool { out = append(out, string(e)); return true })
		return out
	},
}

// listElement is mostly one of few short strings, so that LREM and LINSERT find something.
func listElement(rng *rand.Rand) string {
	switch rng.IntN(300) {
	case 0:
		return strings.Repeat("y", rng.IntN(300))
	case 1:
		return strings.Repeat("x", 100+rng.IntN(9000))
	case 2:
		return ""
	}
	return fmt.Sprint("e", rng.IntN(60))
}

func listEffect(rng *rand.Rand, key string) *effect.Effect {
	args := []string{key}
	switch n := rng.IntN(100); {
	case n < 50:
		for range 1 + rng.IntN(60) {
			args = append(args, listElement(rng))
		}
		if n < 25 {
			return eff(effect.LPush, args...)
		}
		return eff(effect.RPush, args...)
	case n < 56:
		return eff(effect.LPop, key, strconv.Itoa(rng.IntN(200)))
	case n < 60:
		return eff(effect.RPop, key, strconv.Itoa(rng.IntN(200)))
	case n < 62:
		return eff(effect.RPop, key)
	case n < 75:
		return eff(effect.LSet, key, strconv.Itoa(rng.IntN(1500)-200), listElement(rng))
	case n < 88:
		return eff(effect.LInsert, key, []string{"BEFORE", "AFTER"}[n%2], listElement(rng), listElement(rng))
	case n < 95:
		return eff(effect.LRem, key, strconv.Itoa(rng.IntN(61)-30), listElement(rng))
	case n < 97:
		return eff(effect.LTrim, key, strconv.Itoa(rng.IntN(100)), strconv.Itoa(-rng.IntN(100)))
	case n < 98:
		return eff(effect.LTrim, key, strconv.Itoa(rng.IntN(500)), strconv.Itoa(rng.IntN(500)))
	}
	return eff(effect.LTrim, key, "0", "-2")
}

func listModel(have []string, e *effect.Effect) []string {
	arg := func(i int) string { return string(e.Args[i]) }
	num := func(i int) int { n, _ := strconv.Atoi(arg(i)); return n }
	switch e.Op {
	case effect.LPush, effect.RPush:
		for i := range e.Args[1:] {
			if e.Op == effect.LPush {
				have = slices.Insert(have, 0, arg(1+i))
			} else {
				have = append(have, arg(1+i))
			}
		}
	case effect.LPop, effect.RPop:
		n := 1
		if len(e.Args) > 1 {
			n = num(1)
		}
		n = min(n, len(have))
		if e.Op == effect.LPop {
			return have[n:]
		}
		return have[:len(have)-n]
	case effect.LSet:
		i := num(1)
		if i < 0 {
			i += len(have)
		}
		if i >= 0 && i < len(have) {
			have = slices.Clone(have)
			have[i] = arg(2)
		}
	case effect.LInsert:
		if i := slices.Index(have, arg(2)); i >= 0 {
			if arg(1) == "AFTER" {
				i++
			}
			have = slices.Insert(slices.Clone(have), i, arg(3))
		}
	case effect.LRem:
		return modelRem(have, num(1), arg(2))
	case effect.LTrim:
		return modelTrim(have, num(1), num(2))
	}
	return have
}

func modelRem(have []string, n int, x string) []string {
	out := slices.Clone(have)
	if n < 0 {
		slices.Reverse(out)
		out = modelRem(out, -n, x)
		slices.Reverse(out)
		return out
	}
	if n == 0 {
		n = len(out)
	}
	return slices.DeleteFunc(out, func(e string) bool {
		if e == x && n > 0 {
			n--
			return true
		}
		return false
	})
}

func modelTrim(have []string, start, stop int) []string {
	if start < 0 {
		start = max(0, start+len(have))
	}
	if stop < 0 {
		stop += len(have)
	}
	stop = min(stop, len(have)-1)
	if start > stop {
		return nil
	}
	return have[start : stop+1]
}

// TestListReads compares Index, Range and Find with a slice, on lists of all shapes.
func TestListReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{1, 5, 300, 5000} {
		ks := New(1)
		var model []string
		for len(model) < n {
			e := listEffect(rng, "k")
			for e.Op != effect.LPush && e.Op != effect.RPush {
				e = listEffect(rng, "k")
			}
			e.Args = e.Args[:min(len(e.Args), 1+n)]
			mustFold(t, ks, e)
			model = listModel(model, e)
		}
		entry, _ := ks.Lookup([]byte("k"))
		l := ks.List(entry)
		if l.Len() != len(model) {
			t.Fatalf("length %d, want %d", l.Len(), len(model))
		}
		for i := range model {
			if got := string(l.Index(i)); got != model[i] {
				t.Fatalf("%d elements: element %d is %.40q, want %.40q", n, i, got, model[i])
			}
		}
		for range 200 {
			from := rng.IntN(len(model))
			count := rng.IntN(len(model) - from + 1)
			checkRange(t, &l, model, from, count)
		}
		ks.Release()
	}
}

func checkRange(t *testing.T, l *List, model []string, from, count int) {
	t.Helper()
	var got []string
	add := func(e []byte) bool { got = append(got, string(e)); return true }
	l.Range(from, count, false, add)
	want := model[from : from+count]
	if !slices.Equal(got, want) {
		t.Fatalf("Range(%d, %d): %.100q, want %.100q", from, count, got, want)
	}
	got = nil
	l.Range(from+count-1, count, true, add)
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Fatalf("Range(%d, %d) backwards: %.100q, want %.100q", from+count-1, count, got, want)
	}
	if count > 0 {
		if i := l.Find([]byte(model[from])); i < 0 || i > from || model[i] != model[from] {
			t.Fatalf("Find(%q) = %d", model[from], i)
		}
	}
}

// TestListMemory bounds what elements cost beyond their bytes, for queues that move and for lists that were trimmed.
func TestListMemory(t *testing.T) {
	const n = 100_000
	build := map[string]func(ks *Keyspace){
		"rpush": func(ks *Keyspace) {
			for i := range n {
				mustFold(t, ks, eff(effect.RPush, "k", fmt.Sprintf("element:%06d", i)))
			}
		},
		"lpush": func(ks *Keyspace) {
			for i := range n {
				mustFold(t, ks, eff(effect.LPush, "k", fmt.Sprintf("element:%06d", i)))
			}
		},
		"queue": func(ks *Keyspace) {
			for i := range 3 * n {
				mustFold(t, ks, eff(effect.RPush, "k", fmt.Sprintf("element:%06d", i)))
				if i >= n {
					mustFold(t, ks, eff(effect.LPop, "k"))
				}
			}
		},
	}
	for name, f := range build {
		ks := New(1)
		f(ks)
		if per := float64(ks.UsedBytes()) / n; per > 16+2 {
			t.Errorf("%s: %.1f bytes for an element of 14", name, per)
		}
		mustFold(t, ks, eff(effect.LTrim, "k", "0", "2"))
		if used := ks.UsedBytes(); used > 300 {
			t.Errorf("%s: %d bytes after all but 3 elements went", name, used)
		}
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
		ks.Release()
	}
}

func BenchmarkListPush(b *testing.B) {
	for _, op := range []effect.Op{effect.LPush, effect.RPush} {
		b.Run(op.String(), func(b *testing.B) {
			ks := New(1)
			e := eff(op, "k", "element:0001")
			b.ReportAllocs()
			for b.Loop() {
				_, _ = ks.Fold(e)
			}
		})
	}
}

// BenchmarkListPop takes from and puts back to the same end of a list of n elements.
func BenchmarkListPop(b *testing.B) {
	for _, n := range []int{10, 250, 1_000_000} {
		for _, op := range []effect.Op{effect.LPop, effect.RPop} {
			b.Run(fmt.Sprint(op, n), func(b *testing.B) {
				ks := New(1)
				push := eff(effect.LPush, "k", "element:0001")
				if op == effect.RPop {
					push.Op = effect.RPush
				}
				for range n {
					_, _ = ks.Fold(push)
				}
				pop := eff(op, "k")
				b.ReportAllocs()
				for b.Loop() {
					_, _ = ks.Fold(pop)
					_, _ = ks.Fold(push)
				}
			})
		}
	}
}
