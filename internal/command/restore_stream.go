package command

import (
	"maps"
	"slices"

	"github.com/kevydb/kevy/internal/rdb"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

func sortedKeys(m map[int64][][]byte) []int64 { return slices.Sorted(maps.Keys(m)) }

func (r *restore) id(id rdb.ID) []byte { return r.c.idText(state.StreamID(id)) }

// stream emits the effects that make a stream, as rebuilding one does.
func (r *restore) stream(s *rdb.StreamValue) {
	c := r.c
	for i := range s.Entries {
		e := &s.Entries[i]
		c.beginEffect()
		c.args = append(append(c.args, r.key, r.id(e.ID)), e.Fields...)
		c.emitOpen(c.ShardOf(r.key), effect.XAdd)
	}
	if len(s.Entries) == 0 {
		r.emptyStream(s)
	}
	c.Emit(effect.XSetID, r.key, r.id(s.Last), []byte("ENTRIESADDED"), c.Int(s.Added),
		[]byte("MAXDELETEDID"), r.id(s.Gone))
	var times consumerTimes
	for i := range s.Groups {
		g := &s.Groups[i]
		r.group(g)
		for k := range g.Consumers {
			x := &g.Consumers[k]
			times = append(times, consumerTime{g.Name, x.Name, max(x.Seen, 0), max(x.Active, 0)})
		}
	}
	if times != nil {
		c.mark(times)
	}
}

// emptyStream emits an entry that is trimmed away at once.
func (r *restore) emptyStream(s *rdb.StreamValue) {
	id := state.StreamID(s.Last)
	if id.IsZero() {
		id.Seq = 1
	}
	how, arg := "MAXLEN", []byte("0")
	if next, ok := id.Next(); ok {
		how, arg = "MINID", r.c.idText(next)
	}
	r.c.Emit(effect.XAdd, r.key, r.c.idText(id), []byte("x"), []byte("y"))
	r.c.Emit(effect.XTrim, r.key, []byte(how), []byte("="), arg)
}

func (r *restore) group(g *rdb.Group) {
	c, last := r.c, r.id(g.Last)
	c.Emit(effect.XGroup, []byte("CREATE"), r.key, g.Name, last, []byte("ENTRIESREAD"), c.Int(g.Read))
	for i := range g.Consumers {
		k := &g.Consumers[i]
		c.Emit(effect.XGroup, []byte("CREATECONSUMER"), r.key, g.Name, k.Name)
		for all := k.Pending; len(all) > 0; {
			n := 1
			for n < len(all) && n < restoreElements && all[n].Time == all[0].Time && all[n].Count == all[0].Count {
				n++
			}
			args := [][]byte{r.key, g.Name, k.Name, []byte("0")}
			for _, p := range all[:n] {
				args = append(args, r.id(p.ID))
			}
			c.Emit(effect.XClaim, append(args, []byte("TIME"), c.Int(all[0].Time), []byte("RETRYCOUNT"), c.Int(all[0].Count),
				[]byte("FORCE"), []byte("JUSTID"), []byte("LASTID"), last)...)
			all = all[n:]
		}
	}
}
