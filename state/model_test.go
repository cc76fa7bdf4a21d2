package state

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// model is the keyspace as a map: what Fold should do, told a second time as simply as possible.
type model map[string]modelValue

type modelValue struct {
	value    string
	deadline int64
	raw      bool
}

func (m model) fold(e *effect.Effect) {
	a := make([]string, len(e.Args))
	for i := range e.Args {
		a[i] = string(e.Args[i])
	}
	switch e.Op {
	case effect.Set:
		v := modelValue{value: a[1]}
		if len(a) == 4 {
			v.deadline, _ = strconv.ParseInt(a[3], 10, 64)
		}
		m[a[0]] = v
	case effect.MSet:
		for i := 0; i < len(a); i += 2 {
			m[a[i]] = modelValue{value: a[i+1]}
		}
	case effect.Del:
		for _, k := range a {
			delete(m, k)
		}
	case effect.PExpireAt, effect.Persist:
		if v, ok := m[a[0]]; ok {
			v.deadline = 0
			if len(a) == 2 {
				v.deadline, _ = strconv.ParseInt(a[1], 10, 64)
			}
			m[a[0]] = v
		}
	case effect.Append:
		v, ok := m[a[0]]
		m[a[0]] = modelValue{v.value + a[1], v.deadline, ok}
	case effect.SetRange:
		off, _ := strconv.Atoi(a[1])
		v := m[a[0]]
		b := []byte(v.value)
		for len(b) < off+len(a[2]) {
			b = append(b, 0)
		}
		copy(b[off:], a[2])
		m[a[0]] = modelValue{string(b), v.deadline, true}
	case effect.FlushAll:
		clear(m)
	}
}

// eff makes an effect of strings.
func eff(op effect.Op, args ...string) *effect.Effect {
	e := &effect.Effect{Op: op}
	for _, a := range args {
		e.Args = append(e.Args, []byte(a))
	}
	return e
}

func mustFold(t testing.TB, ks *Keyspace, e *effect.Effect) Change {
	t.Helper()
	c, err := ks.Fold(e)
	if err != nil {
		t.Fatalf("%s: %v", e.Op, err)
	}
	return c
}

func mustCheck(t testing.TB, ks *Keyspace) {
	t.Helper()
	if err := ks.Check(); err != nil {
		t.Fatal(err)
	}
}

// gen makes random effects over a small set of keys of odd shapes.
type gen struct {
	*rand.Rand
	keys int
}

func newGen(seed uint64, keys int) gen { return gen{rand.New(rand.NewPCG(seed, 1)), keys} }

func (g gen) key() string {
	n := g.IntN(g.keys)
	switch n % 7 {
	case 0:
		return fmt.Sprintf("user:%08d", n)
	case 1:
		return fmt.Sprintf("user:%08d:profile:%d", n/10, n)
	case 2:
		return string(bytes.Repeat([]byte{0}, n%40)) + "\x00"
	case 3:
		return strconv.Itoa(n)
	case 4:
		return fmt.Sprintf("%x", uint64(n)*0x9e3779b97f4a7c15)
	case 5:
		return "long:" + string(bytes.Repeat([]byte{'x'}, n%300)) + strconv.Itoa(n)
	}
	if n%500 == 6 {
		return string(bytes.Repeat([]byte{'K'}, 65530+n%12))
	}
	return "session:" + strconv.Itoa(n%100) + "\xff" + strconv.Itoa(n)
}

func (g gen) value() string {
	n := g.IntN(100)
	switch g.IntN(20) {
	case 0:
		n = g.IntN(5000)
	case 1:
		if g.IntN(20) == 0 {
			n = g.IntN(3 << 20)
		}
	case 2, 3:
		return strconv.Itoa(g.IntN(100000))
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return string(b)
}

func (g gen) effect() *effect.Effect {
	switch g.IntN(32) {
	case 0, 1, 2, 3, 4, 5:
		n := 1 + g.IntN(3)
		e := eff(effect.Del)
		for range n {
			e.Args = append(e.Args, []byte(g.key()))
		}
		return e
	case 6, 7:
		return eff(effect.PExpireAt, g.key(), strconv.Itoa(1+g.IntN(1000)))
	case 8:
		return eff(effect.Persist, g.key())
	case 9, 10, 11:
		return eff(effect.Append, g.key(), g.value())
	case 12, 13:
		return eff(effect.SetRange, g.key(), strconv.Itoa(g.IntN(6000)), g.value()+"x")
	case 14:
		return eff(effect.MSet, g.key(), g.value(), g.key(), g.value())
	case 15, 16, 17, 18:
		return eff(effect.Set, g.key(), g.value(), "PXAT", strconv.Itoa(1+g.IntN(1000)))
	case 19:
		if g.IntN(200) == 0 {
			return eff(effect.FlushAll)
		}
	}
	return eff(effect.Set, g.key(), g.value())
}

// same compares a keyspace with the model.
func same(t testing.TB, ks *Keyspace, m model) {
	t.Helper()
	if ks.Len() != len(m) {
		t.Fatalf("Len %d, want %d", ks.Len(), len(m))
	}
	dues := 0
	for k, v := range m {
		e, ok := ks.Lookup([]byte(k))
		if !ok {
			t.Fatalf("%.50q is missing", k)
		}
		if d, _ := e.Deadline(); string(e.Value()) != v.value || d != v.deadline || string(e.Key()) != k {
			t.Fatalf("%.50q: value of %d bytes, deadline %d; want %d, %d", k, len(e.Value()), d, len(v.value), v.deadline)
		}
		if (ks.Encoding(e) == "raw") != (v.raw || !canonical(v.value) && len(v.value) > 44) {
			t.Fatalf("%.50q: encoding %s", k, ks.Encoding(e))
		}
		if v.deadline != 0 {
			dues++
		}
	}
	if ks.LenWithDeadline() != dues {
		t.Fatalf("LenWithDeadline %d, want %d", ks.LenWithDeadline(), dues)
	}
	want := slices.Sorted(maps.Keys(m))
	i := 0
	ks.AscendFrom(nil, func(e Entry) bool {
		if i >= len(want) || string(e.Key()) != want[i] {
			t.Fatalf("key %d in order is %.50q", i, e.Key())
		}
		i++
		return true
	})
	if i != len(want) {
		t.Fatalf("%d keys in order, want %d", i, len(want))
	}
}

func canonical(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == s
}

func TestFoldAgainstModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(strconv.Itoa(int(seed)), func(t *testing.T) {
			t.Parallel()
			g := newGen(seed, []int{20, 300, 3000, 30000, 300000, 5000}[seed])
			ks, m := New(seed), model{}
			defer ks.Release()
			for range 24 {
				for range 500 {
					e := g.effect()
					before := len(m)
					m.fold(e)
					if c := mustFold(t, ks, e); before+c.Created-c.Removed != len(m) || c.Flushed != (e.Op == effect.FlushAll) {
						t.Fatalf("%s: change %+v from %d to %d keys", e.Op, c, before, len(m))
					}
				}
				mustCheck(t, ks)
				same(t, ks, m)
			}
			for _, k := range slices.Sorted(maps.Keys(m)) {
				mustFold(t, ks, eff(effect.Del, k))
			}
			mustCheck(t, ks)
			if ks.UsedBytes() != 0 || ks.Memory().Blocks != 4 {
				t.Fatalf("empty: %d bytes used, %+v", ks.UsedBytes(), ks.Memory())
			}
		})
	}
}

func TestFoldRefusals(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	mustFold(t, ks, eff(effect.Set, "k", "v", "pxat", "77"))
	_, before := ks.Digest(nil, 0)
	for _, e := range []*effect.Effect{
		{},
		{Op: 200},
		eff(effect.Set, "k"), eff(effect.Set, "k", "w", "PXAT"), eff(effect.Set, "k", "w", "EX", "1"),
		eff(effect.Set, "k", "w", "PXAT", "0"), eff(effect.Set, "k", "w", "PXAT", "-5"), eff(effect.Set, "k", "w", "PXAT", "01"),
		eff(effect.Set, "k", "w", "PXAT", "9223372036854775808"), eff(effect.Set, "k", "w", "PXAT", ""),
		eff(effect.PExpireAt, "k", "x"), eff(effect.PExpireAt, "k", "-0"), eff(effect.PExpireAt, "k", "+1"),
		eff(effect.SetRange, "k", "-1", "x"), eff(effect.SetRange, "k", "536870912", "x"),
		eff(effect.SetRange, "k", "9223372036854775807", "x"), eff(effect.SetRange, "new", "536870912", "x"),
		eff(effect.MSet, "a", "b", "c"), eff(effect.Del), eff(effect.FlushAll, "x"),
	} {
		if _, err := ks.Fold(e); !errors.Is(err, ErrFold) {
			t.Errorf("%s %q: %v", e.Op, e.Args, err)
		}
	}
	if n, d := ks.Digest(nil, 0); n != 1 || d != before {
		t.Errorf("a refused effect changed the state")
	}
	mustCheck(t, ks)
}

func TestFoldOfMissingKeysConverges(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	for _, e := range []*effect.Effect{
		eff(effect.Del, "a", "b"), eff(effect.PExpireAt, "a", "5"), eff(effect.Persist, "a"), eff(effect.SetRange, "a", "10", ""),
	} {
		if c := mustFold(t, ks, e); c != (Change{}) || ks.Len() != 0 {
			t.Errorf("%s: %+v", e.Op, c)
		}
	}
}

func TestArgumentsMayAliasTheValue(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	for _, n := range []int{3, 100, 4096, 5000, 2 << 20} {
		want := bytes.Repeat([]byte("abc"), n/3)
		mustFold(t, ks, &effect.Effect{Op: effect.Set, Args: [][]byte{[]byte("k"), want}})
		alias := func() []byte { e, _ := ks.Lookup([]byte("k")); return e.Value() }
		mustFold(t, ks, &effect.Effect{Op: effect.Set, Args: [][]byte{[]byte("k"), alias(), []byte("PXAT"), []byte("9")}})
		mustFold(t, ks, &effect.Effect{Op: effect.Set, Args: [][]byte{[]byte("k"), alias()}})
		mustFold(t, ks, &effect.Effect{Op: effect.Append, Args: [][]byte{[]byte("k"), alias()}})
		want = append(want, want...)
		if !bytes.Equal(alias(), want) {
			t.Fatalf("%d: value differs", n)
		}
		mustFold(t, ks, &effect.Effect{Op: effect.Set, Args: [][]byte{[]byte("k"), alias()[1:]}})
		if !bytes.Equal(alias(), want[1:]) {
			t.Fatalf("%d: value differs after cutting", n)
		}
		mustCheck(t, ks)
	}
}
