package state

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// collection is what a type needs for the tests that all collection types share.
type collection struct {
	kind Type
	// effect makes a random effect on key.
	effect func(rng *rand.Rand, key string) *effect.Effect
	// model applies it to the model of the key: sorted or ordered lines, nil for no key.
	model func(have []string, e *effect.Effect) []string
	// lines reads the same from a value.
	lines func(v value) []string
}

var collections = []collection{listCollection, setCollection, streamCollection}

var setCollection = collection{
	kind: TypeSet,
	effect: func(rng *rand.Rand, key string) *effect.Effect {
		args := []string{key}
		for range 1 + rng.IntN(20) {
			args = append(args, member(rng))
		}
		if rng.IntN(5) < 2 {
			return eff(effect.SRem, args...)
		}
		return eff(effect.SAdd, args...)
	},
	model: func(have []string, e *effect.Effect) []string {
		m := map[string]bool{}
		for _, x := range have {
			m[x] = true
		}
		for _, x := range e.Args[1:] {
			if e.Op == effect.SAdd {
				m[string(x)] = true
			} else {
				delete(m, string(x))
			}
		}
		var out []string
		for x := range m {
			out = append(out, x)
		}
		sort.Strings(out)
		return out
	},
	lines: func(v value) (out []string) {
		s := setValue(v)
		s.Each(func(m []byte) bool { out = append(out, string(m)); return true })
		sort.Strings(out)
		return out
	},
}

// member is a short string, now and then a long or an empty one.
func member(rng *rand.Rand) string {
	switch rng.IntN(200) {
	case 0:
		return strings.Repeat("x", 100+rng.IntN(5000))
	case 1:
		return ""
	}
	return fmt.Sprint("m", rng.IntN(1000))
}

// snapshotOf reads all collections of a frozen or live order.
func snapshotOf(c *collection, a *arena.Arena, ord *order) map[string]string {
	out := map[string]string{}
	ord.ascend(nil, func(r arena.Ref) bool {
		out[string(keyOf(a, r))] = strings.Join(c.lines(valueAt(a, r)), "\x00")
		return true
	})
	return out
}

func sameMaps(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d keys, want %d", what, len(got), len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Fatalf("%s: key %s:\n got %.200q\nwant %.200q", what, k, got[k], v)
		}
	}
}

// TestCollections folds random effects of each type and compares with a model: live, in views, and
// rebuilt from the effects that Rebuild emits.
func TestCollections(t *testing.T) {
	for _, c := range collections {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%v/%d", c.kind, seed), func(t *testing.T) { testCollection(t, &c, seed) })
		}
	}
}

func testCollection(t *testing.T, c *collection, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	ks := New(seed)
	defer ks.Release()
	model := map[string][]string{}
	type open struct {
		v    *View
		want map[string]string
	}
	var views []open
	for step := range 4000 {
		key := fmt.Sprint("k", rng.IntN(4))
		var e *effect.Effect
		switch rng.IntN(60) {
		case 0:
			e = eff(effect.Del, key)
			delete(model, key)
		case 1:
			e = eff(effect.PExpireAt, key, "5000")
		case 2:
			e = eff(effect.Persist, key)
		default:
			e = c.effect(rng, key)
			if m := c.model(model[key], e); len(m) > 0 {
				model[key] = m
			} else {
				delete(model, key)
			}
		}
		mustFold(t, ks, e)
		if step%80 == 0 {
			want := snapshotOf(c, ks.a, &ks.ord)
			for k, m := range model {
				if want[k] != strings.Join(m, "\x00") {
					t.Fatalf("step %d: key %s:\n got %.200q\nwant %.200q", step, k, want[k], strings.Join(m, "\x00"))
				}
			}
			if len(want) != len(model) {
				t.Fatalf("step %d: %d keys, want %d", step, len(want), len(model))
			}
			views = append(views, open{ks.View(), want})
			if err := ks.Check(); err != nil {
				t.Fatal(err)
			}
			rebuilt(t, ks)
		}
		if len(views) > 3 {
			i := rng.IntN(len(views))
			sameMaps(t, "view", snapshotOf(c, ks.a, &views[i].v.ord), views[i].want)
			views[i].v.Close()
			views = append(views[:i], views[i+1:]...)
		}
	}
	for _, o := range views {
		sameMaps(t, "view", snapshotOf(c, ks.a, &o.v.ord), o.want)
		o.v.Close()
	}
	for ks.Housekeep(1) {
	}
	if err := ks.Check(); err != nil {
		t.Fatal(err)
	}
}

// rebuilt folds what Rebuild emits into another keyspace: the digest is the same, and no effect is large.
func rebuilt(t *testing.T, ks *Keyspace) {
	t.Helper()
	other := New(99)
	defer other.Release()
	v := ks.View()
	defer v.Close()
	v.Rebuild(func(e *effect.Effect, _ bool) bool {
		if len(e.Args) > 3*rebuildElements {
			t.Errorf("%s with %d arguments", e.Op, len(e.Args))
		}
		mustFold(t, other, e)
		return true
	})
	n, d := ks.Digest(nil, 0)
	if on, od := other.Digest(nil, 0); on != n || od != d {
		t.Fatalf("rebuilt: %d keys, digest %x, want %d, %x", on, od, n, d)
	}
}
