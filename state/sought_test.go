package state

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// TestSought looks for elements and folds, the element looked for last or others, several at once, on the same key
// or another, with views opened in between: folding from the place that was found leads where a search would.
func TestSought(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	ks := New(42)
	keys := []string{"h1", "h2", "s1", "z1", "z2"}
	model := make(map[string]map[string]string)
	for _, k := range keys {
		model[k] = make(map[string]string)
	}
	fold := func(op effect.Op, args ...string) {
		t.Helper()
		e := effect.Effect{Op: op}
		for _, a := range args {
			e.Args = append(e.Args, []byte(a))
		}
		mustFold(t, ks, &e)
	}
	get := func(key, name string) (value string, ok bool) {
		e, there := ks.Lookup([]byte(key))
		if !there {
			return "", false
		}
		switch key[0] {
		case 'h':
			h := ks.Fields(e)
			f, ok := h.Get([]byte(name))
			return string(f.Value), ok
		case 's':
			s := ks.Set(e)
			return "", s.Has([]byte(name))
		}
		z := ks.ZSet(e)
		score, ok := z.Score([]byte(name))
		return strconv.FormatFloat(score, 'f', -1, 64), ok
	}
	ops := map[byte][2]effect.Op{'h': {effect.HSet, effect.HDel}, 's': {effect.SAdd, effect.SRem}, 'z': {effect.ZAdd, effect.ZRem}}
	var view *View
	used := 0
	for step := range 60_000 {
		key := keys[rnd.IntN(len(keys))]
		names := make([]string, 1+rnd.IntN(3))
		for i := range names {
			names[i] = fmt.Sprint("member:", rnd.IntN(1500))
		}
		looked := key
		if rnd.IntN(8) == 0 {
			looked = keys[rnd.IntN(len(keys))]
		}
		for _, name := range names[:rnd.IntN(len(names)+1)] {
			value, ok := get(looked, name)
			if want, there := model[looked][name]; ok != there || there && looked[0] != 's' && value != want {
				t.Fatalf("step %d: %s of %s: %q, %t, want %q, %t", step, name, looked, value, ok, want, there)
			}
		}
		switch rnd.IntN(20) {
		case 0:
			if view != nil {
				view.Close()
			}
			view = ks.View()
		case 1:
			if key != "h1" && rnd.IntN(20) == 0 {
				fold(effect.Del, key)
				clear(model[key])
				continue
			}
		}
		if ks.sought.root != 0 {
			used++
		}
		remove := rnd.IntN(3) == 0
		args := []string{key}
		for _, name := range names {
			value := strconv.Itoa(rnd.IntN(1000))
			switch {
			case remove:
				args = append(args, name)
				delete(model[key], name)
				continue
			case key[0] == 'h':
				args = append(args, name, value)
			case key[0] == 's':
				args = append(args, name)
			case key[0] == 'z':
				args = append(args, value, name)
			}
			model[key][name] = value
		}
		op := ops[key[0]][0]
		if remove {
			op = ops[key[0]][1]
		}
		fold(op, args...)
		if ks.sought.root != 0 {
			t.Fatalf("step %d: a place outlives the fold", step)
		}
		if step%5000 == 0 {
			mustCheck(t, ks)
		}
	}
	if view != nil {
		view.Close()
	}
	mustCheck(t, ks)
	for _, key := range keys {
		for i := range 1500 {
			name := fmt.Sprint("member:", i)
			if _, ok := get(key, name); ok != (len(model[key]) > 0 && has(model[key], name)) {
				t.Fatalf("at the end: %s of %s: %t", name, key, ok)
			}
		}
	}
	if used < 10_000 {
		t.Errorf("only %d folds had a place to begin at", used)
	}
}

func has(m map[string]string, name string) bool { _, ok := m[name]; return ok }
