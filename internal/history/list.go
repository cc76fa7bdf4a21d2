package history

import (
	"cmp"
	"slices"

	"github.com/kevydb/kevy/log"
)

// Listing is what a directory holds.
type Listing struct {
	Dir     string         `json:"dir"`
	Clean   bool           `json:"clean"` // closed cleanly; false also while it is in use
	Shards  []ShardListing `json:"shards"`
	Sets    []SetListing   `json:"snapshots"`
	Windows []TimeWindow   `json:"windows"` // times that can be restored, over all shards
	Gaps    []TimeWindow   `json:"gaps"`    // times between and before them that can't
	Held    []HeldLog      `json:"held,omitempty"`
}

// HeldLog is log that stays for who has not taken it yet, like an archive.
type HeldLog struct {
	For   string       `json:"for"`
	From  []log.Cursor `json:"from"`  // of each shard
	Bytes int64        `json:"bytes"` // of the segments
}

// ShardListing is one shard's log.
type ShardListing struct {
	Shard       int                 `json:"shard"`
	Tail        log.Cursor          `json:"tail"`
	TailMS      int64               `json:"tail_ms"` // unix ms of the newest frame
	Bytes       int64               `json:"bytes"`
	Segments    []log.SegmentInfo   `json:"segments"`
	Generations []GenerationListing `json:"generations"` // oldest first
	Windows     []CursorWindow      `json:"windows"`     // cursors that can be restored
	Gaps        []CursorWindow      `json:"gaps"`        // cursors of the history on record that can't
	UncleanTail string              `json:"unclean_tail,omitempty"`
	Damage      []string            `json:"damage,omitempty"`
}

// GenerationListing is a generation and where it hangs in the tree of generations.
type GenerationListing struct {
	log.Lineage
	CauseName string `json:"cause_name"`
	End       uint64 `json:"end"` // frames below it are part of the history
	Depth     int    `json:"depth"`
	Segments  int    `json:"segments"` // on disk
}

// SetListing is a snapshot set.
type SetListing struct {
	ID      string       `json:"id"`
	TimeMS  int64        `json:"time_ms"`
	Keys    uint64       `json:"keys"`
	Bytes   int64        `json:"bytes"`
	Cursors []log.Cursor `json:"cursors"`
	InUse   bool         `json:"in_use"` // the manifest names it: the next start loads it
	Err     string       `json:"error,omitempty"`
}

// CursorWindow is a range of cursors of a shard: From to To, both included in a window, both left out in a gap.
type CursorWindow struct {
	From log.Cursor `json:"from"`
	To   log.Cursor `json:"to"`
	Base string     `json:"base,omitempty"` // what it is restored from
	Why  string     `json:"why,omitempty"`  // there is a gap
}

// TimeWindow is a range of times in unix ms, like CursorWindow.
type TimeWindow struct {
	FromMS int64  `json:"from_ms"`
	ToMS   int64  `json:"to_ms"`
	Latest bool   `json:"latest,omitempty"` // ToMS is that of the newest frame: later times name the same state
	Base   string `json:"base,omitempty"`
}

// List tells what the directory holds and which points can be restored, without reading frames.
func (h *History) List() *Listing {
	l := &Listing{Dir: h.dir.Path(), Clean: h.rec.Clean, Sets: []SetListing{}}
	for i := range h.chains {
		l.Shards = append(l.Shards, h.listShard(i))
	}
	inUse, _ := h.dir.Snapshot()
	for _, b := range h.bases {
		if b.set != nil {
			l.Sets = append(l.Sets, SetListing{
				ID: b.set.ID, TimeMS: b.timeMS, Keys: b.set.Keys(), Bytes: b.set.Bytes(), Cursors: b.cursors, InUse: b.set.ID == inUse,
			})
		}
	}
	for _, b := range h.bad {
		l.Sets = append(l.Sets, SetListing{ID: b.ID, InUse: b.ID == inUse, Err: b.Err.Error()})
	}
	slices.SortFunc(l.Sets, func(a, b SetListing) int { return cmp.Compare(a.ID, b.ID) })
	l.Windows, l.Gaps = h.timeWindows()
	l.Windows, l.Gaps = listed(l.Windows), listed(l.Gaps)
	for name, from := range h.dir.Floors() {
		held := HeldLog{For: name, From: from}
		for i, c := range from {
			held.Bytes += bytesFrom(l.Shards[i].Segments, c)
		}
		l.Held = append(l.Held, held)
	}
	slices.SortFunc(l.Held, func(a, b HeldLog) int { return cmp.Compare(a.For, b.For) })
	return l
}

// listed is a list that is [] in JSON when there is nothing in it.
func listed[T any](list []T) []T {
	if list == nil {
		list = []T{}
	}
	return list
}

// bytesFrom is what the segments from that of a cursor on take; all of them if it is in none.
func bytesFrom(segments []log.SegmentInfo, c log.Cursor) (n int64) {
	at := slices.IndexFunc(segments, func(s log.SegmentInfo) bool {
		return s.Start.Generation == c.Generation && s.Start.Offset <= c.Offset && c.Offset <= s.End
	})
	for _, s := range segments[max(at, 0):] {
		n += s.Bytes
	}
	return n
}

func (h *History) listShard(i int) ShardListing {
	lg, rec := h.dir.Log(i), h.rec.Shards[i]
	s := ShardListing{Shard: i, Tail: h.chains[i].tail(), Segments: lg.SegmentList()}
	for _, seg := range s.Segments {
		s.Bytes += seg.Bytes
		s.TailMS = max(s.TailMS, seg.LastMS)
	}
	s.Generations = h.generations(i, s.Segments)
	s.Windows, s.Gaps = h.cursorWindows(i)
	s.Windows, s.Gaps = listed(s.Windows), listed(s.Gaps)
	if rec.CutBytes > 0 && rec.Reason != "" {
		s.UncleanTail = h.uncleanTail(i)
	}
	for _, err := range rec.Damage {
		s.Damage = append(s.Damage, err.Error())
	}
	return s
}

func (h *History) generations(i int, segments []log.SegmentInfo) (gs []GenerationListing) {
	depth := make(map[uint64]int)
	for _, l := range h.dir.Lineage(i) {
		g := GenerationListing{Lineage: l, CauseName: l.Cause.String()}
		if d, ok := depth[l.Parent]; ok {
			g.Depth = d + 1
		}
		depth[l.Generation] = g.Depth
		if n := h.chains[i].index(l.Generation); n >= 0 {
			g.End = h.chains[i][n].End
		}
		for _, s := range segments {
			if s.Start.Generation == l.Generation {
				g.Segments++
			}
		}
		gs = append(gs, g)
	}
	return gs
}

// reach is how far frames can be read from a base without a hole, as headers tell.
type reach struct {
	from, to log.Cursor
	toMS     int64 // of the newest frame up to there
	tail     bool  // up to the end of the log
	why      error // it ends there
}

func (h *History) reach(i int, b *base) reach {
	c := b.cursors[i]
	r := reach{from: c, to: c, toMS: b.timeMS}
	if c == h.chains[i].tail() {
		r.tail = h.lost(i) == nil
		return r
	}
	list := h.dir.Log(i).SegmentList()
	at := slices.IndexFunc(list, func(s log.SegmentInfo) bool {
		return s.Start.Generation == c.Generation && s.Start.Offset <= c.Offset && c.Offset <= s.End
	})
	if at < 0 {
		r.why = log.ErrGone
		return r
	}
	for n := at; n < len(list); n++ {
		s := &list[n]
		if n > at && s.Broken != nil {
			r.why = s.Broken
			return r
		}
		r.to, r.toMS = log.Cursor{Generation: s.Start.Generation, Offset: s.End}, max(r.toMS, s.LastMS)
	}
	r.why = h.lost(i)
	r.tail = r.why == nil
	return r
}

// cursorWindows returns what can be restored of a shard's history on record, and what can't.
func (h *History) cursorWindows(i int) (windows, gaps []CursorWindow) {
	c := h.chains[i]
	done, at := uint64(0), log.Cursor{Generation: c[0].Generation} // everything before it is told
	first := true
	why := "nothing that is on disk leads there"
	for _, b := range h.bases {
		r := h.reach(i, &b)
		from, err1 := c.pos(r.from)
		to, err2 := c.pos(r.to)
		if err1 != nil || err2 != nil {
			continue
		}
		if n := len(windows); n > 0 && from <= done {
			if to > done {
				windows[n-1].To, done, at = r.to, to, r.to
			}
		} else {
			if from > done || first && from > 0 {
				gaps = append(gaps, CursorWindow{From: at, To: r.from, Why: why})
			}
			windows = append(windows, CursorWindow{From: r.from, To: r.to, Base: b.name()})
			done, at = to, r.to
		}
		first = false
		if r.why != nil {
			why = r.why.Error()
		}
	}
	if end, _ := c.pos(c.tail()); first || end > done {
		gaps = append(gaps, CursorWindow{From: at, To: c.tail(), Why: why})
	}
	return windows, gaps
}

// timeWindows returns the times that can be restored: from that of a base to where the first shard's frames end.
func (h *History) timeWindows() (windows, gaps []TimeWindow) {
	last := h.chains[0][0].TimeMS
	for _, b := range h.bases {
		w := TimeWindow{FromMS: b.timeMS, Latest: true, Base: b.name()}
		newest, least := b.timeMS, int64(0)
		for i := range h.chains {
			r := h.reach(i, &b)
			newest = max(newest, r.toMS)
			if !r.tail && (least == 0 || r.toMS < least) {
				least = r.toMS
			}
			w.Latest = w.Latest && r.tail
		}
		if w.ToMS = newest; !w.Latest {
			w.ToMS = max(least, b.timeMS)
		}
		if n := len(windows); n > 0 && (windows[n-1].Latest || w.FromMS <= windows[n-1].ToMS) {
			windows[n-1].ToMS, windows[n-1].Latest = max(windows[n-1].ToMS, w.ToMS), windows[n-1].Latest || w.Latest
			continue
		}
		if from := last; w.FromMS > from {
			gaps = append(gaps, TimeWindow{FromMS: from, ToMS: w.FromMS})
		}
		windows = append(windows, w)
		last = w.ToMS
	}
	if n := len(windows); n == 0 || !windows[n-1].Latest {
		end := last
		for i := range h.chains {
			list := h.dir.Log(i).SegmentList()
			end = max(end, list[len(list)-1].LastMS)
		}
		gaps = append(gaps, TimeWindow{FromMS: last, ToMS: end})
	}
	return windows, gaps
}
