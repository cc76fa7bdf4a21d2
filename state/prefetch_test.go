package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// TestPrefetch asks for keys that are there, that are not, and for hashes of no key, while the index grows: a hint
// changes nothing.
func TestPrefetch(t *testing.T) {
	ks := New(42)
	e, key := benchSet(64)
	for i := range uint64(5000) {
		benchKey(key, i)
		mustFold(t, ks, e)
		for _, h := range []uint64{0, 1<<64 - 1, Hash(42, key), Hash(42, fmt.Append(nil, i))} {
			ks.PrefetchIndex(h)
			ks.PrefetchRecord(h)
			ks.PrefetchElement(ks.PrefetchLeaf(h, key))
		}
	}
	mustCheck(t, ks)
}

// TestPrefetchElements asks for elements, those that are there and others, of values that grow from small to large: a place
// is told for exactly the elements that lie in a tree of their own, and it is where a search finds them.
func TestPrefetchElements(t *testing.T) {
	for _, x := range []struct {
		op   effect.Op
		args []string
		root int // of the tree in the head
	}{
		{effect.HSet, []string{"member", "v"}, hashRoot},
		{effect.SAdd, []string{"member"}, setRoot},
		{effect.ZAdd, []string{"1", "member"}, zsetNames},
		{effect.RPush, []string{"member"}, 0},
		{effect.Set, []string{"member"}, 0},
	} {
		ks := New(42)
		key := []byte("k")
		h := Hash(42, key)
		for i := range 3000 {
			name := fmt.Append(nil, "member:", i)
			args := [][]byte{key}
			for _, a := range x.args {
				if a == "member" {
					a = string(name)
				}
				args = append(args, []byte(a))
			}
			if _, err := ks.Fold(&effect.Effect{Op: x.op, Args: args}); err != nil {
				t.Fatal(err)
			}
			e, _ := ks.Lookup(key)
			for _, name := range [][]byte{name, []byte("member:0"), []byte("none"), {}} {
				p := ks.PrefetchLeaf(h, name)
				ks.PrefetchElement(p)
				if want := x.root != 0 && e.Large(); (p != Place{}) != want {
					t.Fatalf("%s of %d elements: place %v, want one: %t", x.op, i+1, p, want)
				}
				if p == (Place{}) {
					continue
				}
				v := valueAt(ks.a, e.ref)
				tr := tree{a: ks.a, keyed: true, root: arena.Ref(v.words(v.kind.ops().headWords)[x.root])}
				c, found := seekNamed(&tr, Hash(42, name), name, map[bool]nameAt{false: blockString, true: memberAt}[x.op == effect.ZAdd])
				atStart := c.depth > 0 && c.pos[c.depth-1] == 0 // then a search looks for it in the leaf before
				if found && !atStart && c.node[c.depth-1] != p.leaf || p.hash != Hash(42, name) {
					t.Fatalf("%s of %d elements: %s is not at its place", x.op, i+1, name)
				}
			}
		}
		mustCheck(t, ks)
		ks.Release()
	}
}

// TestFirstAtLeast compares with a plain search.
func TestFirstAtLeast(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	w := make([]uint64, nodeWords)
	for n := range 64 {
		w[0] = uint64(n)
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = 1 + 2*rnd.Uint64N(uint64(n))
		}
		slices.Sort(keys)
		for i, k := range keys {
			w[leafKey+2*i] = k
		}
		for key := range uint64(2*n + 3) {
			want, _ := slices.BinarySearch(keys, key)
			if got := firstAtLeast(w, 2, leafKey, key); got != want {
				t.Fatalf("%d in %v: %d, want %d", key, keys, got, want)
			}
		}
		if got := firstAtLeast(w, 2, leafKey, 1<<64-1); got != n {
			t.Fatalf("the greatest key in %d: %d", n, got)
		}
	}
}

// BenchmarkElements folds HSET on 16 fields of 100,000, with and without asking for all of them first.
func BenchmarkElements(b *testing.B) {
	const n, batch = 100_000, 16
	ks := New(42)
	field := func(buf []byte, i uint64) []byte { return strconv.AppendUint(append(buf[:0], "field:"...), i, 10) }
	set := func(name []byte) {
		e := effect.Effect{Op: effect.HSet, Args: [][]byte{[]byte("h"), name, []byte("0123456789abcdef")}}
		if _, err := ks.Fold(&e); err != nil {
			b.Fatal(err)
		}
	}
	for i := range uint64(n) {
		set(field(nil, i))
	}
	for _, ahead := range []bool{false, true} {
		b.Run(fmt.Sprintf("ahead=%t", ahead), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			var names [batch][]byte
			var places [batch]Place
			h := Hash(42, []byte("h"))
			for b.Loop() {
				for i := range names {
					names[i] = field(names[i], rnd.Uint64N(n))
				}
				if ahead {
					for i := range names {
						places[i] = ks.PrefetchLeaf(h, names[i])
					}
					for _, p := range places {
						ks.PrefetchElement(p)
					}
				}
				for _, name := range names {
					set(name)
				}
			}
		})
	}
}

// BenchmarkLookups looks up 16 keys of 1M, with and without asking for all of them first.
func BenchmarkLookups(b *testing.B) {
	const n, batch = 1_000_000, 16
	ks := loaded(b, n)
	for _, ahead := range []bool{false, true} {
		b.Run(fmt.Sprintf("ahead=%t", ahead), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			var keys [batch][16]byte
			var hashes [batch]uint64
			for b.Loop() {
				for i := range keys {
					hashes[i] = Hash(42, benchKey(keys[i][:], rnd.Uint64N(n)))
				}
				if ahead {
					for _, h := range hashes {
						ks.PrefetchIndex(h)
					}
					for _, h := range hashes {
						ks.PrefetchRecord(h)
					}
				}
				for i, h := range hashes {
					e, ok := ks.LookupHash(h, keys[i][:])
					if !ok || len(e.Value()) != 64 {
						b.Fatal("lost")
					}
				}
			}
		})
	}
}
