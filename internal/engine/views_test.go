package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// cut is a place at which a store was, and its digest there.
type cut struct {
	at     []log.Cursor
	digest string
}

// cutsOf writes groups of one shard and of several, and returns the cuts between them.
func cutsOf(t *testing.T, s *gate.Store) (cuts []cut) {
	t.Helper()
	for i := range 40 {
		v, err := s.E.FreezeAll()
		if err != nil {
			t.Fatal(err)
		}
		at := v.Cursors()
		_, digest := v.Digest(nil)
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		cuts = append(cuts, cut{at, digest})
		for j := range i % 5 {
			s.Do(fmt.Sprintf("SET k%d%d %d", i, j, i))
		}
		if i%3 > 0 {
			s.Do(fmt.Sprintf("MSET a %d b %d c %d d %d", i, i, i, i))
		}
	}
	return cuts
}

// TestFreezeAt: an Applier shows the state at every cut that tears no group, however the frames come, and neither shard runs ahead of it.
func TestFreezeAt(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, vfs.NewMem(), 2, clock)
	defer s.Close()
	cuts := cutsOf(t, s)
	parts := [2][]engine.Foreign{partsOf(t, s, 0, 3), partsOf(t, s, 1, 7)}
	r := followOf(t, s, clock)
	defer r.Close()
	a := r.E.NewApplier()
	seen := 0
	for i := range cuts {
		a.FreezeAt(cuts[i].at, func(v *engine.Views, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			if _, digest := v.Digest(nil); i != seen || digest != cuts[i].digest || !slices.Equal(v.Cursors(), cuts[i].at) {
				t.Errorf("stop %d after %d others: %s at %v, want %s at %v", i, seen, digest, v.Cursors(), cuts[i].digest, cuts[i].at)
			}
			seen++
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for len(parts[0])+len(parts[1]) > 0 { // one shard is far ahead of the other
		shard := 0
		if len(parts[0]) == 0 || len(parts[1]) > 0 && len(parts[0])%4 == 0 {
			shard = 1
		}
		if err := a.Apply(parts[shard][:1]); err != nil {
			t.Fatal(err)
		}
		parts[shard] = parts[shard][1:]
	}
	if seen != len(cuts) || r.Digest() != s.Digest() {
		t.Errorf("%d of %d stops; digest %s, want %s", seen, len(cuts), r.Digest(), s.Digest())
	}
	over := errors.New("over")
	var got error
	a.FreezeAt([]log.Cursor{{Generation: 1}, {Generation: 1}}, func(_ *engine.Views, err error) { got = err })
	if a.Close(over); !errors.Is(got, over) {
		t.Errorf("a stop that is not reached ends with %v", got)
	}
}
