package state

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// soughtMembers is the number of names that soughtModel chooses from: enough for large values.
const soughtMembers = 1500

// soughtModel is a keyspace with hashes, sets and sorted sets, and what must be in it.
type soughtModel struct {
	t     *testing.T
	rnd   *rand.Rand
	ks    *Keyspace
	keys  []string
	value map[string]map[string]string
	used  int // folds that had a place to begin at
}

// TestSought looks for elements and folds, the element looked for last or others, several at once, on the same key
// or another, with views opened in between: folding from the place that was found leads where a search would.
func TestSought(t *testing.T) {
	m := &soughtModel{
		t: t, rnd: rand.New(rand.NewPCG(7, 8)), ks: New(42), keys: []string{"h1", "h2", "s1", "z1", "z2"},
		value: make(map[string]map[string]string),
	}
	for _, k := range m.keys {
		m.value[k] = make(map[string]string)
	}
	var view *View
	for step := range 60_000 {
		key := m.keys[m.rnd.IntN(len(m.keys))]
		names := make([]string, 1+m.rnd.IntN(3))
		for i := range names {
			names[i] = fmt.Sprint("member:", m.rnd.IntN(soughtMembers))
		}
		looked := key
		if m.rnd.IntN(8) == 0 {
			looked = m.keys[m.rnd.IntN(len(m.keys))]
		}
		for _, name := range names[:m.rnd.IntN(len(names)+1)] {
			m.compare(looked, name)
		}
		switch m.rnd.IntN(400) {
		case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9:
			if view != nil {
				view.Close()
			}
			view = m.ks.View()
		case 10:
			m.fold(effect.Del, key)
			clear(m.value[key])
		}
		m.change(key, names)
		if step%5000 == 0 {
			mustCheck(t, m.ks)
		}
	}
	if view != nil {
		view.Close()
	}
	mustCheck(t, m.ks)
	for _, key := range m.keys {
		for i := range soughtMembers {
			m.compare(key, fmt.Sprint("member:", i))
		}
	}
	if m.used < 10_000 {
		t.Errorf("only %d folds had a place to begin at", m.used)
	}
}

// compare looks for an element as planners do.
func (m *soughtModel) compare(key, name string) {
	m.t.Helper()
	value, ok := "", false
	if e, there := m.ks.Lookup([]byte(key)); there {
		switch key[0] {
		case 'h':
			h := m.ks.Fields(e)
			var f Field
			f, ok = h.Get([]byte(name))
			value = string(f.Value)
		case 's':
			s := m.ks.Set(e)
			ok = s.Has([]byte(name))
		case 'z':
			z := m.ks.ZSet(e)
			var score float64
			if score, ok = z.Score([]byte(name)); ok {
				value = strconv.FormatFloat(score, 'f', -1, 64)
			}
		}
	}
	if want, there := m.value[key][name]; ok != there || value != want {
		m.t.Fatalf("%s of %s: %q, %t, want %q, %t", name, key, value, ok, want, there)
	}
}

// change sets elements or, at times, removes them.
func (m *soughtModel) change(key string, names []string) {
	ops := map[byte][2]effect.Op{'h': {effect.HSet, effect.HDel}, 's': {effect.SAdd, effect.SRem}, 'z': {effect.ZAdd, effect.ZRem}}
	set, remove := ops[key[0]][0], m.rnd.IntN(3) == 0
	args := []string{key}
	for _, name := range names {
		value := strconv.Itoa(m.rnd.IntN(1000))
		switch {
		case remove:
			args = append(args, name)
			delete(m.value[key], name)
			continue
		case key[0] == 'h':
			args = append(args, name, value)
		case key[0] == 's':
			args, value = append(args, name), ""
		case key[0] == 'z':
			args = append(args, value, name)
		}
		m.value[key][name] = value
	}
	if m.ks.sought.root != 0 {
		m.used++
	}
	if remove {
		set = ops[key[0]][1]
	}
	m.fold(set, args...)
}

// fold folds, and sees that no place outlives it.
func (m *soughtModel) fold(op effect.Op, args ...string) {
	m.t.Helper()
	e := effect.Effect{Op: op}
	for _, a := range args {
		e.Args = append(e.Args, []byte(a))
	}
	mustFold(m.t, m.ks, &e)
	if m.ks.sought.root != 0 {
		m.t.Fatalf("a place outlives %s", op)
	}
}
