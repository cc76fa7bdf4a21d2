package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kevydb/kevy/internal/arena"
)

// item of the model: its identity is its own block, which holds id.
type modelItem struct {
	ref    arena.Ref
	weight uint64
	key    uint64
	id     uint64
}

// treeModel compares a tree with a slice.
type treeModel struct {
	t     *testing.T
	a     *arena.Arena
	tree  tree
	items []modelItem
	next  uint64
	rng   *rand.Rand
}

func newTreeModel(t *testing.T, keyed bool, seed uint64) *treeModel {
	a := arena.New()
	t.Cleanup(func() { a.Retire() })
	return &treeModel{t: t, a: a, tree: tree{a: a, keyed: keyed, bytes: new(int64)}, rng: rand.New(rand.NewPCG(seed, 1))}
}

func (m *treeModel) id(r arena.Ref) uint64 { return m.a.Words(r, 1)[0] }

func (m *treeModel) fresh(key uint64) modelItem {
	m.next++
	r := m.a.Alloc(16)
	id := m.rng.Uint64()<<20 | m.next
	m.a.Words(r, 1)[0] = id
	w := uint64(1)
	if !m.tree.keyed {
		w = 1 + m.rng.Uint64N(5)
	}
	return modelItem{ref: r, weight: w, key: key, id: id}
}

func (m *treeModel) cmp(id uint64) func(arena.Ref) int {
	return func(r arena.Ref) int {
		switch x := m.id(r); {
		case x < id:
			return -1
		case x > id:
			return 1
		}
		return 0
	}
}

func (m *treeModel) rank(i int) (sum uint64) {
	for _, x := range m.items[:i] {
		sum += x.weight
	}
	return sum
}

// insert puts an item at a random place (or by order).
func (m *treeModel) insert() {
	it := m.fresh(m.rng.Uint64N(50))
	var i int
	var c treeCursor
	if m.tree.keyed {
		i, _ = slices.BinarySearchFunc(m.items, it, func(a, b modelItem) int {
			if a.key != b.key {
				return int(a.key) - int(b.key)
			}
			return m.cmp(b.id)(a.ref)
		})
		c = m.tree.seek(it.key, m.cmp(it.id))
	} else {
		i = m.place()
		c, _ = m.tree.seekWeight(m.rank(i))
	}
	c.insert(it.ref, it.weight, it.key)
	m.items = slices.Insert(m.items, i, it)
}

// place is a position: often at an end.
func (m *treeModel) place() int {
	switch m.rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return len(m.items)
	}
	return m.rng.IntN(len(m.items) + 1)
}

func (m *treeModel) at(i int) treeCursor {
	if m.tree.keyed {
		return m.tree.seek(m.items[i].key, m.cmp(m.items[i].id))
	}
	c, rest := m.tree.seekWeight(m.rank(i))
	if rest != 0 {
		m.t.Fatalf("seekWeight of item %d: rest %d", i, rest)
	}
	return c
}

func (m *treeModel) remove() {
	if len(m.items) == 0 {
		return
	}
	i := min(m.place(), len(m.items)-1)
	c := m.at(i)
	c.remove()
	m.a.Free(m.items[i].ref)
	m.items = slices.Delete(m.items, i, i+1)
}

func (m *treeModel) replace() {
	if len(m.items) == 0 {
		return
	}
	i := m.rng.IntN(len(m.items))
	it := m.items[i]
	r := m.a.Alloc(16)
	m.a.Words(r, 1)[0] = it.id
	c := m.at(i)
	if !m.tree.keyed {
		it.weight = 1 + m.rng.Uint64N(9)
	}
	c.replace(r, it.weight, it.key)
	m.a.Free(it.ref)
	it.ref = r
	m.items[i] = it
}

// ids walks a tree forwards and backwards.
func (m *treeModel) ids(tr *tree) (ids []uint64) {
	for c := tr.begin(); ; c.next() {
		r, _, _, ok := c.item()
		if !ok {
			break
		}
		ids = append(ids, m.id(r))
	}
	var back []uint64
	for c := tr.end(); c.prev(); {
		r, _, _, _ := c.item()
		back = append(back, m.id(r))
	}
	slices.Reverse(back)
	if !slices.Equal(ids, back) {
		m.t.Fatal("backwards is another sequence than forwards")
	}
	return ids
}

func (m *treeModel) check() {
	m.t.Helper()
	want := make([]uint64, len(m.items))
	for i, it := range m.items {
		want[i] = it.id
	}
	if got := m.ids(&m.tree); !slices.Equal(got, want) {
		m.t.Fatalf("tree has %d items, model %d; or in another order", len(got), len(want))
	}
	if got := m.tree.weight(); got != m.rank(len(m.items)) {
		m.t.Fatalf("weight %d, want %d", got, m.rank(len(m.items)))
	}
	for range 10 {
		if len(m.items) == 0 {
			break
		}
		i := m.rng.IntN(len(m.items))
		c := m.at(i)
		if got := c.rank(); got != m.rank(i) {
			m.t.Fatalf("rank of %d: %d, want %d", i, got, m.rank(i))
		}
		inside := m.rank(i) + m.items[i].weight - 1
		c, rest := m.tree.seekWeight(inside)
		if r, _, _, ok := c.item(); !ok || r != m.items[i].ref || rest != m.items[i].weight-1 {
			m.t.Fatalf("seekWeight(%d) is not in item %d", inside, i)
		}
	}
}

func TestTree(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("keyed=%v/%d", keyed, seed), func(t *testing.T) {
				m := newTreeModel(t, keyed, seed)
				for step := range 6000 {
					grow := step%3000 < 1800
					switch p := m.rng.IntN(10); {
					case p == 0:
						m.replace()
					case grow == (p < 7):
						m.insert()
					default:
						m.remove()
					}
					if step%200 == 0 {
						m.check()
					}
				}
				m.check()
				m.empty()
			})
		}
	}
}

// empty drains the tree; nothing is left in the arena.
func (m *treeModel) empty() {
	n := 0
	for m.tree.drain(func(r arena.Ref) { m.a.Free(r); n++ }) {
	}
	if n != len(m.items) || m.tree.root != 0 {
		m.t.Errorf("drained %d items of %d", n, len(m.items))
	}
	if s := m.a.Stats(); s.Blocks != 0 || *m.tree.bytes != 0 {
		m.t.Errorf("%d blocks are left", s.Blocks)
	}
}

// TestTreeViews changes a tree while frozen copies of it are open.
func TestTreeViews(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		m := newTreeModel(t, keyed, 7)
		for range 2000 {
			m.insert()
		}
		type frozen struct {
			t     tree
			ids   []uint64
			epoch uint64
		}
		var open []frozen
		for step := range 3000 {
			switch m.rng.IntN(3) {
			case 0:
				m.insert()
			case 1:
				m.remove()
			default:
				m.replace()
			}
			if step%100 == 0 {
				open = append(open, frozen{m.tree, m.ids(&m.tree), m.a.Pin()})
			}
			if len(open) > 5 {
				i := m.rng.IntN(len(open))
				if !slices.Equal(m.ids(&open[i].t), open[i].ids) {
					t.Fatal("a frozen tree has changed")
				}
				m.a.Unpin(open[i].epoch)
				open = slices.Delete(open, i, i+1)
			}
		}
		for _, f := range open {
			if !slices.Equal(m.ids(&f.t), f.ids) {
				t.Fatal("a frozen tree has changed")
			}
			m.a.Unpin(f.epoch)
		}
		m.check()
	}
}

func BenchmarkTree(b *testing.B) {
	a := arena.New()
	defer a.Retire()
	t := tree{a: a, keyed: true, bytes: new(int64)}
	rng := rand.New(rand.NewPCG(1, 1))
	same := func(arena.Ref) int { return 0 }
	for range 1 << 20 {
		key := rng.Uint64()
		c := t.seek(key, same)
		c.insert(1, 1, key)
	}
	b.Run("seek", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := t.seek(rng.Uint64(), same)
			_ = c.rank()
		}
	})
	b.Run("insert+remove", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			key := rng.Uint64()
			c := t.seek(key, same)
			c.insert(1, 1, key)
			c = t.seek(key, same)
			c.remove()
		}
	})
}
