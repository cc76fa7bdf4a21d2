package state

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

func init() { collections = append(collections, mixedSetCollection) }

// mixedSetCollection are sets of integers, dense and sparse, and of integers and other members.
var mixedSetCollection = collection{
	kind: TypeSet,
	effect: func(rng *rand.Rand, key string) *effect.Effect {
		args := []string{key}
		for range 1 + rng.IntN(100) {
			args = append(args, mixedMember(rng, key))
		}
		if rng.IntN(5) < 2 {
			return eff(effect.SRem, args...)
		}
		return eff(effect.SAdd, args...)
	},
	model: setCollection.model,
	lines: setCollection.lines,
}

// mixedMember draws from another range for each of the keys k0 to k3.
func mixedMember(rng *rand.Rand, key string) string {
	switch key {
	case "k0":
		return strconv.Itoa(rng.IntN(70_000))
	case "k1":
		return strconv.FormatInt(int64(rng.Uint64()>>(rng.IntN(2)*40)), 10)
	case "k2":
		return strconv.Itoa(rng.IntN(200) - 100)
	}
	if rng.IntN(300) == 0 {
		return []string{"", "-0", "01", "9223372036854775808", "-9223372036854775808", "9223372036854775807"}[rng.IntN(6)]
	}
	return strconv.Itoa(rng.IntN(600) - 300)
}

// setOf makes a set from members.
func setOf(t *testing.T, ks *Keyspace, key string, members ...string) *Set {
	t.Helper()
	for part := range slices.Chunk(members, 500) {
		mustFold(t, ks, eff(effect.SAdd, append([]string{key}, part...)...))
	}
	return openSet(ks, key)
}

func openSet(ks *Keyspace, key string) *Set {
	e, ok := ks.Lookup([]byte(key))
	if !ok {
		return &Set{}
	}
	s := ks.Set(e)
	return &s
}

func TestContainersGrowAndShrink(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	var all []string
	for i := range 70_000 {
		all = append(all, strconv.Itoa(i*2-1000))
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s := setOf(t, ks, "k", all...)
	if s.Len() != len(all) || s.ints.weight() != uint64(len(all)) || s.tree.root != 0 {
		t.Fatal(s.Len(), s.ints.weight())
	}
	for i := 0; i < len(all); i += 1000 {
		part := min(1000, len(all)-i)
		view := ks.View()
		mustFold(t, ks, eff(effect.SRem, append([]string{"k"}, all[i:i+part]...)...))
		if err := ks.Check(); err != nil {
			t.Fatal(err)
		}
		checkSetBytes(t, ks)
		n := len(all) - i - part
		if s = openSet(ks, "k"); n > 0 && (s.Len() != n || s.Has([]byte(all[i])) || !s.Has([]byte(all[i+part]))) {
			t.Fatal(i, s.Len(), n)
		}
		view.Close()
	}
	if ks.Len() != 0 {
		t.Fatal("the key is still there")
	}
}

// checkSetBytes compares the bytes that large sets count with their blocks.
func checkSetBytes(t *testing.T, ks *Keyspace) {
	t.Helper()
	ks.AscendPrefix(nil, func(e Entry) bool {
		if v := valueAt(e.a, e.ref); v.head != 0 {
			n := 0
			setBlocks(v, func(r arena.Ref) { n += e.a.Capacity(r) })
			if counted := setOps.bytes(v); counted != n {
				t.Fatalf("%s: %d bytes, counted %d", e.Key(), n, counted)
			}
		}
		return true
	})
}

func TestSetAt(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 5, 100, 500, 3000, 50_000} {
		for _, key := range []string{"k0", "k1", "k3"} {
			var args []string
			for range n {
				args = append(args, mixedMember(rng, key), "m"+mixedMember(rng, key))
			}
			s := setOf(t, ks, fmt.Sprint(key, n), args...)
			seen := map[string]bool{}
			for i := range s.Len() {
				m := string(s.At(i, nil))
				if seen[m] || !s.Has([]byte(m)) {
					t.Fatalf("%s: %d: %q", key, i, m)
				}
				seen[m] = true
			}
		}
	}
}

// TestSetScanWhole scans while the set grows, shrinks and gets members of another kind: what is there all the time
// is found.
func TestSetScanWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	for _, draw := range []func() string{
		func() string { return strconv.Itoa(rng.IntN(5000)) },
		func() string { return strconv.FormatInt(int64(rng.Uint64()), 10) },
		func() string { return strconv.FormatInt(math.MaxInt64-rng.Int64N(9000), 10) },
		func() string { return strconv.FormatInt(1<<exactBits+rng.Int64N(9000)-4500, 10) },
		func() string { return strconv.FormatInt(-1<<exactBits+rng.Int64N(9000)-4500, 10) },
		func() string { return "m" + strconv.Itoa(rng.IntN(5000)) },
		func() string { return []string{"", "m"}[rng.IntN(2)] + strconv.Itoa(rng.IntN(5000)) },
	} {
		ks := New(1)
		keep := map[string]bool{"-9223372036854775808": true}
		for range 1500 {
			keep[draw()] = true
		}
		for m := range keep {
			setOf(t, ks, "k", m)
		}
		found := map[string]bool{}
		for cursor, turns := uint64(0), 0; ; turns++ {
			s := openSet(ks, "k")
			n := 0
			cursor = s.Scan(cursor, 10, func(m []byte) { found[string(m)] = true; n++ })
			if cursor >= 1<<53 || turns > 2000 || n > 10+4096 {
				t.Fatal(cursor, turns, n)
			}
			if cursor == 0 {
				break
			}
			if m := draw(); !keep[m] {
				mustFold(t, ks, eff([]effect.Op{effect.SAdd, effect.SRem}[rng.IntN(2)], "k", m))
			}
		}
		for m := range keep {
			if !found[m] {
				t.Errorf("%q was not found", m)
			}
		}
		ks.Release()
	}
}

func TestScanPositions(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	s := setOf(t, ks, "k", "x", strings.Repeat("y", 5000))
	for _, cursor := range []uint64{textEnd, 1 << 53, math.MaxUint64} {
		if next := s.Scan(cursor, 10, func([]byte) { t.Error("a member") }); next != 0 {
			t.Error(cursor, next)
		}
	}
	last := uint64(0)
	for _, n := range []int64{
		math.MinInt64, math.MinInt64 + 4096, -1<<exactBits - 1, -1 << exactBits, -1, 0, 1, 1<<exactBits - 1,
		1 << exactBits, 1<<exactBits + 4096, math.MaxInt64,
	} {
		p := scanPosition(n)
		if p < last || p >= textScan || firstAt(p) > n || scanPosition(firstAt(p)) != p {
			t.Errorf("%d: position %d, after %d; first %d", n, p, last, firstAt(p))
		}
		last = p
	}
}

func TestSetAlgebra(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 2))
	ks := New(1)
	defer ks.Release()
	for round := range 300 {
		var sets []*Set
		var models []map[string]bool
		for i := range 1 + rng.IntN(5) {
			key := fmt.Sprint("s", round, i)
			var members []string
			model := map[string]bool{}
			spread := []int{100, 1000, 30_000, 300_000}[rng.IntN(4)]
			for range 1 + rng.IntN([]int{5, 200, 1000, 9000}[rng.IntN(4)]) {
				m := strconv.Itoa(rng.IntN(spread) - 20)
				if round%3 == 1 || round%3 == 2 && rng.IntN(10) == 0 {
					m = "m" + m
				}
				members = append(members, m)
				model[m] = true
			}
			setOf(t, ks, key, members...)
			models = append(models, model)
		}
		for i := range models {
			sets = append(sets, openSet(ks, fmt.Sprint("s", round, i)))
		}
		if round%10 == 0 {
			sets, models = append(sets, sets[0]), append(models, models[0])
		}
		checkAlgebra(t, round, sets, models)
	}
}

func checkAlgebra(t *testing.T, round int, sets []*Set, models []map[string]bool) {
	t.Helper()
	union, inter, diff := map[string]bool{}, []string{}, []string{}
	for _, m := range models {
		for x := range m {
			union[x] = true
		}
	}
	for x := range models[0] {
		in, out := true, true
		for _, m := range models[1:] {
			in, out = in && m[x], out && !m[x]
		}
		if in {
			inter = append(inter, x)
		}
		if out {
			diff = append(diff, x)
		}
	}
	collect := func(run func(f func([]byte) bool) bool) []string {
		out := []string{}
		run(func(m []byte) bool { out = append(out, string(m)); return true })
		return out
	}
	var all []string
	for x := range union {
		all = append(all, x)
	}
	for _, c := range []struct {
		name      string
		got, want []string
	}{
		{"union", collect(func(f func([]byte) bool) bool { return Union(sets, f) }), all},
		{"inter", collect(func(f func([]byte) bool) bool { return Inter(sets, f) }), inter},
		{"diff", collect(func(f func([]byte) bool) bool { return Diff(sets[0], sets[1:], f) }), diff},
	} {
		sort.Strings(c.got)
		sort.Strings(c.want)
		if !slices.Equal(c.got, c.want) {
			t.Fatalf("round %d, %s: %d members, want %d", round, c.name, len(c.got), len(c.want))
		}
	}
	if n := InterCard(sets, 0); n != len(inter) {
		t.Fatalf("round %d: InterCard %d, want %d", round, n, len(inter))
	}
	if n := InterCard(sets, 3); n != min(3, len(inter)) {
		t.Fatalf("round %d: InterCard limited %d, want %d", round, n, min(3, len(inter)))
	}
}

func TestSetEncoding(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	var ints, texts []string
	for i := range 513 {
		ints = append(ints, strconv.Itoa(i))
		texts = append(texts, "m"+strconv.Itoa(i))
	}
	for i, c := range []struct {
		members []string
		want    string
	}{
		{ints[:512], "intset"},
		{ints, "hashtable"},
		{texts[:128], "listpack"},
		{texts[:129], "hashtable"},
		{append(ints[:20:20], "x"), "listpack"},
		{append(ints[:200:200], "x"), "hashtable"},
		{[]string{fmt.Sprintf("%065d", 1)}, "hashtable"},
		{[]string{fmt.Sprintf("%064d", 1)}, "listpack"},
	} {
		key := fmt.Sprint("k", i)
		setOf(t, ks, key, c.members...)
		e, _ := ks.Lookup([]byte(key))
		if got := ks.Encoding(e); got != c.want {
			t.Errorf("%d: %d members: %s, want %s", i, len(c.members), got, c.want)
		}
	}
}
