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

// collectionRun is a keyspace with one type of values, its model, and open views with what they must show.
type collectionRun struct {
	t     *testing.T
	c     *collection
	rng   *rand.Rand
	ks    *Keyspace
	model map[string][]string
	views []openView
}

type openView struct {
	v    *View
	want map[string]string
}

func testCollection(t *testing.T, c *collection, seed uint64) {
	r := &collectionRun{t: t, c: c, rng: rand.New(rand.NewPCG(seed, 3)), ks: New(seed), model: map[string][]string{}}
	defer r.ks.Release()
	for step := range 4000 {
		mustFold(t, r.ks, r.effect())
		if step%80 == 0 {
			r.compare(step)
		}
		if len(r.views) > 3 {
			i := r.rng.IntN(len(r.views))
			r.close(r.views[i])
			r.views = append(r.views[:i], r.views[i+1:]...)
		}
	}
	for _, o := range r.views {
		r.close(o)
	}
	for r.ks.Housekeep(1) {
	}
	if err := r.ks.Check(); err != nil {
		t.Fatal(err)
	}
}

// effect makes a random effect and applies it to the model.
func (r *collectionRun) effect() *effect.Effect {
	key := fmt.Sprint("k", r.rng.IntN(4))
	switch r.rng.IntN(60) {
	case 0:
		delete(r.model, key)
		return eff(effect.Del, key)
	case 1:
		return eff(effect.PExpireAt, key, "5000")
	case 2:
		return eff(effect.Persist, key)
	}
	e := r.c.effect(r.rng, key)
	if m := r.c.model(r.model[key], e); len(m) > 0 {
		r.model[key] = m
	} else {
		delete(r.model, key)
	}
	return e
}

// compare compares keyspace and model, opens a view and rebuilds.
func (r *collectionRun) compare(step int) {
	r.t.Helper()
	got := snapshotOf(r.c, r.ks.a, &r.ks.ord)
	want := map[string]string{}
	for k, m := range r.model {
		want[k] = strings.Join(m, "\x00")
	}
	sameMaps(r.t, fmt.Sprint("step ", step), got, want)
	r.views = append(r.views, openView{r.ks.View(), got})
	if err := r.ks.Check(); err != nil {
		r.t.Fatal(err)
	}
	rebuilt(r.t, r.ks)
}

// close compares a view with what it showed when it was opened.
func (r *collectionRun) close(o openView) {
	r.t.Helper()
	sameMaps(r.t, "view", snapshotOf(r.c, r.ks.a, &o.v.ord), o.want)
	o.v.Close()
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
