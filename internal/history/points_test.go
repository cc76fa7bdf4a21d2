package history_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/log"
)

// TestPoints: every instant of a past can be had again, by its cursors and, if it is the last of its millisecond, by
// its time, while the directory is in use.
func TestPoints(t *testing.T) {
	for seed := range uint64(3) {
		p := live(t, seed, 700)
		p.seal()
		h := p.open()
		for i := range p.instants {
			at := &p.instants[i]
			if i%7 == 0 {
				p.must(h, history.At(at.cursors...), at)
			}
			if at.last && i%5 == 0 {
				p.must(h, history.AtTime(at.ms), at)
			}
		}
		p.must(h, history.Latest(), &p.instants[len(p.instants)-1])
		p.must(h, history.BeforeDamage(), &p.instants[len(p.instants)-1])
		if l := h.List(); len(l.Gaps) != 0 || len(l.Windows) != 1 || !l.Windows[0].Latest {
			t.Errorf("windows %v, gaps %v", l.Windows, l.Gaps)
		}
		if v, err := history.Verify(history.Source{FS: p.fs, Dir: "data"}, history.VerifyOptions{Deep: true}); err != nil || len(v.Damage) != 0 || len(v.Notes) != 0 {
			t.Errorf("verify: %+v, %v", v, err)
		}
		p.s.Close()
	}
}

// TestBefore: a state before a named frame, the newest one or the first since a time; whole in groups.
func TestBefore(t *testing.T) {
	p := live(t, 11, 60)
	do := func(line string) *instant {
		t.Helper()
		at := &instant{p.s.Cursors(), p.s.Clock.Now(), p.s.Digest(), true}
		p.s.Clock.Advance(10)
		p.s.Do(line)
		return at
	}
	do("SET bad:1 x")
	do("SET bad:2 x")
	firstDel := do("DEL bad:1")
	secondDel := do("DEL other bad:2")
	flush := do("FLUSHALL")
	do("SET after 1")
	moved := do("MULTI ; SET q1 1 ; SET q2 2 ; SET q3 3 ; DEL after ; SET q4 4")
	since := p.s.Clock.Now()
	do("SET q5 5")
	pattern := func(text string) history.Pattern {
		t.Helper()
		pt, err := history.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return pt
	}
	h := p.open()
	p.must(h, history.Before(pattern("flushall")), flush)
	p.must(h, history.Before(pattern("DEL bad:*")), secondDel)
	p.must(h, history.BeforeSince(pattern("DEL bad:*"), firstDel.ms+1), firstDel)
	p.must(h, history.BeforeSince(pattern("DEL bad:*"), firstDel.ms+11), secondDel)
	p.must(h, history.Before(pattern("DEL after")), moved)
	p.must(h, history.Before(pattern("SET q3 3")), moved)
	for _, none := range []history.Point{
		history.Before(pattern("SET nosuch")), history.BeforeSince(pattern("FLUSHALL"), since), history.Before(pattern("HSET a b c d e f g")),
	} {
		if _, err := h.Plan(none, nil); !errors.Is(err, history.ErrNoPoint) {
			t.Errorf("%s: %v", none, err)
		}
	}
	p.s.Close()
}

// part is what one shard has of a group over several shards.
type part struct {
	at log.Cursor
	ms int64
}

// jumpy writes groups while the clock jumps, so that frames of one group have different times in different shards. It
// returns the parts of groups by shard and id.
func jumpy(p *past) (h *history.History, parts []map[uint64]part) {
	p.t.Helper()
	for i := range 400 {
		p.s.Clock.Advance(int64(p.rng.IntN(41)) - 20)
		switch i % 4 {
		case 0:
			p.s.Do(fmt.Sprintf("MSET a%d 1 b%d 1 c%d 1 d%d 1", i, i, i, i))
		case 1:
			p.s.Do(fmt.Sprintf("MULTI ; SET e%d 1 ; SET f%d 1", i, i))
		default:
			p.s.Do(fmt.Sprintf("SET g%d 1", i))
		}
		if i == 200 {
			if err := p.s.E.Save(); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	h = p.open()
	for range shards {
		parts = append(parts, map[uint64]part{})
	}
	err := h.Dump(history.DumpOptions{Shard: -1}, func(d *history.Dumped) error {
		if d.GroupFirst && d.Txn != 0 {
			parts[d.Shard][d.Txn] = part{d.Cursor, d.TimeMS}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return h, parts
}

// TestGroupsWhole: whatever the time, its point has every group on all shards or on none, and no frame after it.
func TestGroupsWhole(t *testing.T) {
	p := live(t, 21, 1)
	start := p.s.Clock.Now()
	h, parts := jumpy(p)
	apart := 0
	for ms := start - 5; ms < p.s.Clock.Now()+200; ms++ {
		pl, err := h.Plan(history.AtTime(ms), nil)
		if ms < start && errors.Is(err, history.ErrNoPoint) {
			continue
		}
		if err != nil {
			t.Fatalf("%d: %v", ms, err)
		}
		in := func(shard int, x part) bool {
			to := pl.Shards[shard].To
			return x.at.Generation < to.Generation || x.at.Generation == to.Generation && x.at.Offset < to.Offset
		}
		for shard := range parts {
			for txn, x := range parts[shard] {
				if in(shard, x) && x.ms > ms {
					t.Fatalf("%d: shard %d: group %d of %d is in", ms, shard, txn, x.ms)
				}
				for other := range parts {
					y, ok := parts[other][txn]
					if ok && in(shard, x) != in(other, y) {
						t.Fatalf("%d: group %d is in on shard %d or %d, and out on the other", ms, txn, shard, other)
					}
					if ok && (x.ms <= ms) != (y.ms <= ms) {
						apart++
					}
				}
			}
		}
	}
	if apart == 0 {
		t.Error("no group had times apart: nothing was tested")
	}
	p.s.Close()
}

// TestBoundaries asks for cursors around every fork, and of generations that are not there.
func TestBoundaries(t *testing.T) {
	p := live(t, 31, 400)
	h := p.open()
	tails := p.s.Cursors()
	known := 0
	for shard := range shards {
		lineage := p.s.E.Dir().Lineage(shard)
		ends := map[uint64]uint64{tails[shard].Generation: tails[shard].Offset}
		for _, l := range lineage {
			if l.Parent != 0 {
				ends[l.Parent] = l.ParentOffset
			}
		}
		ask := func(c log.Cursor, there bool) {
			t.Helper()
			at := append([]log.Cursor(nil), tails...)
			at[shard] = c
			pl, err := h.Plan(history.At(at...), nil)
			if (err == nil) != there {
				t.Errorf("shard %d: cursor %s of %v: %v", shard, c, ends, err)
			}
			if err != nil && !errors.Is(err, history.ErrNoPoint) {
				t.Errorf("shard %d: cursor %s: %v", shard, c, err)
			}
			if err == nil && pl.Shards[shard].To != c {
				t.Errorf("shard %d: cursor %s: the plan goes to %s", shard, c, pl.Shards[shard].To)
			}
		}
		for gen, end := range ends {
			known++
			for _, off := range []uint64{0, 1, end - 1, end, end + 1, end + 2, 1<<53 - 1, 1 << 63, 1<<64 - 1} {
				ask(log.Cursor{Generation: gen, Offset: off}, off <= end)
			}
			ask(log.Cursor{Generation: gen + 1, Offset: 0}, false)
			ask(log.Cursor{Generation: gen - 1, Offset: end}, false)
		}
		ask(log.Cursor{}, false)
		ask(log.Cursor{Generation: 1<<64 - 1, Offset: 1<<64 - 1}, false)
	}
	if known < 3*shards {
		t.Errorf("only %d generations", known)
	}
	if _, err := h.Plan(history.At(tails[:2]...), nil); !errors.Is(err, history.ErrNoPoint) {
		t.Errorf("two cursors for three shards: %v", err)
	}
	p.s.Close()
}

// TestForkIsOneState: the end of a generation and the start of the next are the same state, also where a snapshot
// lies exactly there.
func TestForkIsOneState(t *testing.T) {
	p := live(t, 41, 50)
	p.s.Do("FLUSHALL")
	if err := p.s.E.Save(); err != nil {
		t.Fatal(err)
	}
	starts := p.s.Cursors()
	var ends []log.Cursor
	for i := range shards {
		l := p.s.E.Dir().Lineage(i)
		ends = append(ends, log.Cursor{Generation: l[len(l)-1].Parent, Offset: l[len(l)-1].ParentOffset})
	}
	empty := &instant{starts, p.s.Clock.Now(), p.s.Digest(), true}
	p.s.Do("SET later 1")
	h := p.open()
	for _, at := range [][]log.Cursor{starts, ends, {starts[0], ends[1], starts[2]}} {
		plan := p.must(h, history.At(at...), empty)
		if plan.Frames != 0 || plan.Set == "" {
			t.Errorf("%v: %d frames from set %q, want none from the set that lies there", at, plan.Frames, plan.Set)
		}
	}
	p.s.Close()
}
