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

func init() { collections = append(collections, zsetCollection) }

// zsetCollection: a line of the model is the score's bits and the member.
var zsetCollection = collection{
	kind: TypeZSet,
	effect: func(rng *rand.Rand, key string) *effect.Effect {
		args := []string{key}
		if rng.IntN(5) < 2 {
			for range 1 + rng.IntN(20) {
				args = append(args, member(rng))
			}
			return eff(effect.ZRem, args...)
		}
		for range 1 + rng.IntN(20) {
			args = append(args, randomScore(rng), member(rng))
		}
		return eff(effect.ZAdd, args...)
	},
	model: func(have []string, e *effect.Effect) []string {
		m := map[string]float64{}
		for _, x := range have {
			bits, name, _ := strings.Cut(x, " ")
			b, _ := strconv.ParseUint(bits, 16, 64)
			m[name] = math.Float64frombits(b)
		}
		if e.Op == effect.ZRem {
			for _, x := range e.Args[1:] {
				delete(m, string(x))
			}
		} else {
			for i := 1; i < len(e.Args); i += 2 {
				f, _ := strconv.ParseFloat(string(e.Args[i]), 64)
				name := string(e.Args[i+1])
				if old, ok := m[name]; !ok || old != f {
					m[name] = f
				}
			}
		}
		names := make([]string, 0, len(m))
		for x := range m {
			names = append(names, x)
		}
		sort.Slice(names, func(i, j int) bool {
			a, b := names[i], names[j]
			return m[a] < m[b] || m[a] == m[b] && a < b
		})
		var out []string
		for _, x := range names {
			out = append(out, zsetLine(m[x], x))
		}
		return out
	},
	lines: func(v value) (out []string) {
		z := zsetValue(v)
		c := z.At(0)
		for score, m, ok := c.Next(); ok; score, m, ok = c.Next() {
			out = append(out, zsetLine(score, string(m)))
		}
		return out
	},
}

func zsetLine(f float64, m string) string { return fmt.Sprintf("%x %s", math.Float64bits(f), m) }

func randomScore(rng *rand.Rand) string {
	switch rng.IntN(12) {
	case 0:
		return []string{"inf", "-inf", "0", "-0", "1e300", "-4.9e-324", "281474976710656", "-281474976710655"}[rng.IntN(8)]
	case 1, 2:
		return strconv.FormatFloat(rng.NormFloat64(), 'g', -1, 64)
	}
	return strconv.Itoa(rng.IntN(40) - 20)
}

// zsetOf is a sorted set with n elements, scores in steps of 1/2 and members in some other order.
func zsetOf(t testing.TB, n int) (*Keyspace, []string, []float64) {
	ks := New(5)
	t.Cleanup(ks.Release)
	type pair struct {
		s float64
		m string
	}
	var all []pair
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range n {
		all = append(all, pair{float64(rng.IntN(n/3+1)) / 2, fmt.Sprint("m", i)})
	}
	for _, p := range all {
		if _, err := ks.Fold(eff(effect.ZAdd, "z", string(AppendScore(nil, p.s)), p.m)); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b pair) int {
		if a.s != b.s {
			return int(2 * (a.s - b.s))
		}
		return strings.Compare(a.m, b.m)
	})
	var members []string
	var scores []float64
	for _, p := range all {
		members, scores = append(members, p.m), append(scores, p.s)
	}
	return ks, members, scores
}

func TestZSetReads(t *testing.T) {
	for _, n := range []int{1, 2, 100, 128, 129, 5000} {
		ks, members, scores := zsetOf(t, n)
		e, _ := ks.Lookup([]byte("z"))
		z := ks.ZSet(e)
		if z.Len() != n {
			t.Fatal(n, z.Len())
		}
		for i := range members {
			rank, score, ok := z.Rank([]byte(members[i]))
			if !ok || rank != i || score != scores[i] {
				t.Fatalf("%d: rank of %s is %d %v %v", n, members[i], rank, score, ok)
			}
			c := z.At(i)
			if s, m, ok := c.Next(); !ok || s != scores[i] || string(m) != members[i] {
				t.Fatalf("%d: at %d: %v %s", n, i, s, m)
			}
			if s, m, ok := c.Prev(); !ok || s != scores[i] || string(m) != members[i] {
				t.Fatalf("%d: back at %d: %v %s", n, i, s, m)
			}
			for _, above := range []bool{false, true} {
				want := sort.Search(n, func(k int) bool { return scores[k] > scores[i] || scores[k] == scores[i] && !above })
				if got := z.RankOfScore(scores[i], above); got != want {
					t.Fatalf("%d: rank of score %v is %d, want %d", n, scores[i], got, want)
				}
			}
		}
		if z.RankOfScore(math.Inf(1), true) != n || z.RankOfScore(math.Inf(-1), false) != 0 {
			t.Error("ranks of infinity")
		}
		if _, _, ok := z.Rank([]byte("nope")); ok {
			t.Error("a member that is not there")
		}
		testZSetScan(t, z, n)
	}
}

func testZSetScan(t *testing.T, z ZSet, n int) {
	seen := map[string]int{}
	for cursor := uint64(0); ; {
		cursor = z.Scan(cursor, 7, func(_ float64, m []byte) { seen[string(m)]++ })
		if cursor == 0 {
			break
		}
	}
	if len(seen) != n {
		t.Errorf("a scan saw %d of %d", len(seen), n)
	}
	for m, k := range seen {
		if k != 1 {
			t.Errorf("%s seen %d times", m, k)
		}
	}
}

// TestZSetBytes: the head counts what the blocks hold, whatever changes.
func TestZSetBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	ks := New(1)
	defer ks.Release()
	var views []*View
	for step := range 3000 {
		mustFold(t, ks, zsetCollection.effect(rng, "z"))
		if step%300 == 0 {
			views = append(views, ks.View())
		}
		if step%100 != 0 {
			continue
		}
		e, ok := ks.Lookup([]byte("z"))
		if v := valueAt(ks.a, e.ref); ok && v.head != 0 {
			n := 0
			zsetBlocks(v, func(r arena.Ref) { n += ks.a.Capacity(r) })
			if got := zsetOps.bytes(v); got != n {
				t.Fatalf("step %d: %d bytes, counted %d", step, got, n)
			}
		}
	}
	for _, v := range views {
		v.Close()
	}
}

func TestZSetMembersInOrder(t *testing.T) {
	for _, n := range []int{50, 1000} {
		ks := New(1)
		defer ks.Release()
		for i := range n {
			mustFold(t, ks, eff(effect.ZAdd, "z", "3", fmt.Sprintf("%04d", i)))
		}
		e, _ := ks.Lookup([]byte("z"))
		z := ks.ZSet(e)
		for i := range n {
			m := []byte(fmt.Sprintf("%04d", i))
			if z.RankOfMember(m, false) != i || z.RankOfMember(m, true) != i+1 {
				t.Fatalf("rank of %s: %d %d", m, z.RankOfMember(m, false), z.RankOfMember(m, true))
			}
		}
	}
}

func TestScoreKeys(t *testing.T) {
	scores := []float64{
		math.Inf(-1), -math.MaxFloat64, -1.5, -1, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 0.5, 1, 1e15, math.MaxFloat64, math.Inf(1),
	}
	for i, f := range scores {
		if scoreOf(scoreKey(f)) != f {
			t.Errorf("%v becomes %v", f, scoreOf(scoreKey(f)))
		}
		if i > 0 && scoreKey(f) <= scoreKey(scores[i-1]) {
			t.Errorf("%v is not above %v", f, scores[i-1])
		}
		text := AppendScore(nil, f)
		if back, ok := parseScore(text); !ok || back != f {
			t.Errorf("%v becomes %s, %v", f, text, back)
		}
	}
	minus := math.Copysign(0, -1)
	if scoreKey(minus) != scoreKey(0) || string(AppendScore(nil, minus)) != "-0" {
		t.Error("negative zero")
	}
	for _, f := range append(scores, minus, 1<<48, 1<<48-1, -(1 << 48), 127, 128, -64) {
		packed := appendPackedScore(nil, f)
		back, rest := cutScore(append(packed, 7))
		if math.Float64bits(back) != math.Float64bits(f) || len(rest) != 1 {
			t.Errorf("%v packed becomes %v", f, back)
		}
	}
	for _, bad := range []string{"nan", "", "x", "1e999", " 1"} {
		if _, ok := parseScore([]byte(bad)); ok {
			t.Errorf("%q is a score", bad)
		}
	}
}

func TestZSetFoldErrors(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	mustFold(t, ks, eff(effect.Set, "s", "x"))
	for _, e := range []*effect.Effect{
		eff(effect.ZAdd, "z", "x", "m"), eff(effect.ZAdd, "z", "1", "m", "2"),
		eff(effect.ZAdd, "z", "1", "a", "nan", "m"), eff(effect.ZAdd, "s", "1", "m"), eff(effect.ZRem, "s", "m"),
	} {
		if _, err := ks.Fold(e); err == nil {
			t.Errorf("%v folds", e)
		}
	}
	if ks.Len() != 1 {
		t.Error("a refused effect changed the state")
	}
}

func BenchmarkZSet(b *testing.B) {
	const n = 1 << 17
	ks := New(5)
	defer ks.Release()
	rng := rand.New(rand.NewPCG(1, 1))
	add := func(i int) *effect.Effect {
		return eff(effect.ZAdd, "z", strconv.Itoa(rng.IntN(n)), fmt.Sprint("member:", i))
	}
	before := ks.UsedBytes()
	for i := range n {
		mustFold(b, ks, add(i))
	}
	perElement := float64(ks.UsedBytes()-before) / n
	var updates []*effect.Effect
	for range 4096 {
		updates = append(updates, add(rng.IntN(n)))
	}
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, _ = ks.Fold(updates[i%len(updates)])
		}
		b.ReportMetric(perElement, "B/element")
	})
	e, _ := ks.Lookup([]byte("z"))
	z := ks.ZSet(e)
	b.Run("rank", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			z.Rank(updates[i%len(updates)].Args[2])
		}
	})
	b.Run("range100", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c := z.At(i * 7919 % (n - 100))
			for range 100 {
				c.Next()
			}
		}
	})
}
