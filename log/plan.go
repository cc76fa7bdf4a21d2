package log

import (
	"maps"
	"slices"
)

// retention is all that decides which segments of a shard are kept.
type retention struct {
	segments []segmentFacts // ascending; the last one is being written
	snapshot *Cursor        // of the newest set, nil: there is none
	rebuilt  bool           // the state needs no log: only the window counts, as in memory
	floors   map[string]Cursor
	pins     []uint64 // segments that running readers are in
	current  uint64   // generation
	window   int64    // the feed serves the current generation from this byte of it on
	bytes    int64    // keep_bytes, 0: not asked for
	since    int64    // keep_time: unix ms from which on everything is kept, 0: not asked for
}

// segmentFacts is what retention has to know of a segment.
type segmentFacts struct {
	number uint64
	start  Cursor
	genEnd int64 // where it ends in its generation's bytes
	disk   int64 // bytes
	lastMS int64 // time of its last frame, unix ms; of the newest one, not used
}

// retentionPlan says which segments of a shard go.
type retentionPlan struct {
	keep uint64   // the first segment to keep
	why  string   // what keeps that one: the rule that reaches back farthest
	drop []uint64 // those before
}

// plan decides. It is a pure function, so the same facts give the same plan again after a crash. Segments are dropped
// from the oldest on without a gap: what is kept is one unbroken history, so nothing older can come back beneath it.
func (r *retention) plan() retentionPlan {
	newest := r.segments[len(r.segments)-1].number
	p := retentionPlan{keep: newest, why: "newest"}
	need := func(number uint64, why string) {
		if number < p.keep {
			p.keep, p.why = number, why
		}
	}
	switch {
	case r.snapshot != nil:
		need(r.holding(*r.snapshot), "snapshot")
	case !r.rebuilt:
		need(r.segments[0].number, "no snapshot")
	}
	for _, name := range slices.Sorted(maps.Keys(r.floors)) {
		need(r.holding(r.floors[name]), "floor "+name)
	}
	for _, n := range r.pins {
		need(n, "reader")
	}
	after := int64(0) // bytes on disk behind the segment
	for i := len(r.segments) - 1; i >= 0; i-- {
		s := &r.segments[i]
		if s.start.Generation == r.current && s.genEnd > r.window {
			need(s.number, "feed window")
		}
		if r.bytes > 0 && after < r.bytes {
			need(s.number, "keep_bytes")
		}
		if r.since > 0 && s.lastMS >= r.since {
			need(s.number, "keep_time")
		}
		after += s.disk
	}
	for _, s := range r.segments {
		if s.number < p.keep {
			p.drop = append(p.drop, s.number)
		}
	}
	return p
}

// holding returns the segment with the frame at c; the oldest one when c is nowhere in the log, as then nobody knows what
// it needs.
func (r *retention) holding(c Cursor) uint64 {
	found := r.segments[0].number
	for _, s := range r.segments {
		if s.start.Generation == c.Generation && s.start.Offset <= c.Offset {
			found = s.number
		}
	}
	return found
}
