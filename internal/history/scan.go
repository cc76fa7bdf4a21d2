package history

import (
	"errors"
	"io"
	"math/bits"
	"sync"
	"syscall"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// region is the part of a shard's history that belongs to a point.
type region struct {
	cut    log.Cursor // first frame outside
	open   bool       // the log ended before a frame outside was found
	timeMS int64      // of the newest frame inside that was read, 0: none was
	groups groups
}

// groups is what is known of the groups over several shards in a run of frames.
type groups struct {
	last  uint64                // id of the newest one
	needs [log.MaxShards]uint64 // for each shard: the newest one with a part there
}

func (g *groups) add(f *log.Frame) {
	g.last = f.Txn
	for m := f.Mask; m != 0; m &= m - 1 {
		g.needs[bits.TrailingZeros64(m)] = f.Txn
	}
}

// outside returns whether one of a group's parts is outside of what has the groups of regions.
func outside(f *log.Frame, regions []region) bool {
	for m := f.Mask; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros64(m); i < len(regions) && f.Txn > regions[i].groups.last {
			return true
		}
	}
	return false
}

// torn reports whether a region has a group of which another lacks a part.
func torn(regions []region, shard int) bool {
	for i := range regions {
		if regions[shard].groups.needs[i] > regions[i].groups.last {
			return true
		}
	}
	return false
}

// stopFunc says whether a group is the first one outside, told its first frame.
type stopFunc func(f *log.Frame) bool

// scan reads a shard from a cursor to the first group that is outside. With salvage, damage is outside too.
func (h *History) scan(shard int, from log.Cursor, stop stopFunc, salvage bool, m *Meter) (region, error) {
	g := region{cut: from}
	r, err := h.dir.Log(shard).NewReader(from, log.ReaderOptions{Limit: log.LimitWritten, Follow: true})
	if salvage && errors.Is(err, log.ErrGone) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	defer r.Close()
	t := tick{m: m}
	defer t.end()
	for {
		f, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			g.cut, g.open = r.Cursor(), true
			return g, nil
		case err != nil && salvage && (errors.Is(err, log.ErrCorrupt) || errors.Is(err, syscall.EIO)): // or a bad sector
			return g, nil
		case err != nil:
			return g, err
		}
		if f.GroupFirst {
			if stop(f) {
				g.cut = f.Cursor
				return g, nil
			}
			if f.Txn != 0 {
				g.groups.add(f)
			}
		}
		g.timeMS = f.TimeMS
		if f.GroupLast {
			g.cut = log.Cursor{Generation: f.Cursor.Generation, Offset: f.Cursor.Offset + 1}
		}
		t.one()
	}
}

// cut finds the regions of all shards, from the cursors of a base to the first group that its shard's rule or a
// part elsewhere puts outside.
//
// Ids of groups over several shards grow in every shard, and a part is in another shard's region exactly if that
// has a part of an id at least as great. So a region with a group that needs a greater id than another one has is cut
// before the first such group; that takes ids away from it, so it goes on until nothing changes.
func (h *History) cut(b *base, rules []stopFunc, salvage bool, m *Meter) ([]region, error) {
	m.Begin("finding the point", 0)
	regions := make([]region, h.Shards())
	err := h.parallel(func(i int) (err error) {
		regions[i], err = h.scan(i, b.cursors[i], rules[i], salvage, m)
		return err
	})
	for changed := true; changed && err == nil; {
		changed = false
		for i := range regions {
			if !torn(regions, i) {
				continue
			}
			changed = true
			regions[i], err = h.scan(i, b.cursors[i], func(f *log.Frame) bool {
				return rules[i](f) || f.Txn != 0 && outside(f, regions)
			}, salvage, m)
			if err != nil {
				break
			}
		}
	}
	return regions, err
}

// parallel runs f for every shard at once and returns the first error in their order.
func (h *History) parallel(f func(shard int) error) error {
	errs := make([]error, h.Shards())
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// timeBefore returns the time of the frame before a cursor; ok is false if it is not on disk.
func (h *History) timeBefore(shard int, c log.Cursor) (ms int64, ok bool) {
	at := c
	for spans := h.chains[shard]; at.Offset == 0; {
		i := spans.index(at.Generation)
		if i < 1 {
			return 0, false
		}
		at = log.Cursor{Generation: spans[i-1].Generation, Offset: spans[i-1].End}
	}
	at.Offset--
	r, err := h.dir.Log(shard).NewReader(at, log.ReaderOptions{Limit: log.LimitWritten})
	if err != nil {
		return 0, false
	}
	defer r.Close()
	f, err := r.Next()
	if err != nil {
		return 0, false
	}
	return f.TimeMS, true
}

// match is a group with a frame that was looked for.
type match struct {
	shard  int
	at     log.Cursor // of the group's first frame
	timeMS int64
	txn    uint64
	mask   uint64
}

// earlier reports whether a was logged before b, as far as their times and ids tell.
func (a *match) earlier(b *match) bool {
	if a.timeMS != b.timeMS {
		return a.timeMS < b.timeMS
	}
	return a.txn < b.txn
}

// find returns the newest group with a frame that p matches or, with sinceMS > 0, the first one not before that; nil
// when there is none.
func (h *History) find(p Pattern, sinceMS int64, m *Meter) (*match, error) {
	m.Begin("looking for "+p.String(), 0)
	found := make([]*match, h.Shards())
	err := h.parallel(func(i int) (err error) {
		found[i], err = h.findIn(i, p, sinceMS, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	var best *match
	for _, x := range found {
		if x != nil && (best == nil || best.earlier(x) == (sinceMS == 0)) {
			best = x
		}
	}
	return best, nil
}

// findIn is find in one shard: over the segments from the newest back, or from the time on.
func (h *History) findIn(shard int, p Pattern, sinceMS int64, m *Meter) (*match, error) {
	list := h.dir.Log(shard).SegmentList()
	for n := range list {
		s := &list[n]
		if sinceMS == 0 {
			s = &list[len(list)-1-n]
		}
		if s.LastMS < sinceMS {
			continue
		}
		found, err := h.findInSegment(shard, s, p, sinceMS, m)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (h *History) findInSegment(shard int, s *log.SegmentInfo, p Pattern, sinceMS int64, m *Meter) (found *match, err error) {
	r, err := h.dir.Log(shard).NewReader(s.Start, log.ReaderOptions{
		Limit: log.LimitEnd, End: log.Cursor{Generation: s.Start.Generation, Offset: s.End},
	})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t := tick{m: m}
	defer t.end()
	var e effect.Effect
	var group match
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		t.one()
		if f.GroupFirst {
			group = match{shard, f.Cursor, f.TimeMS, f.Txn, f.Mask}
		}
		if f.TimeMS < sinceMS {
			continue
		}
		if err := effect.Decode(f.Payload, &e); err != nil {
			return nil, err
		}
		if p.matches(&e) {
			x := group
			if found = &x; sinceMS > 0 {
				return found, nil
			}
		}
	}
}
