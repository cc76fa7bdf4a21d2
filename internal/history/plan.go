package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kevydb/kevy/log"
)

// Plan says how a point is made: from which base, over which frames.
type Plan struct {
	Point     string      `json:"point"`
	Set       string      `json:"set"`         // snapshot set it starts from; empty: from the first frame
	SetTimeMS int64       `json:"set_time_ms"` // unix ms of the set
	SetKeys   uint64      `json:"set_keys"`
	SetBytes  int64       `json:"set_bytes"`
	Shards    []ShardPlan `json:"shards"`
	Frames    uint64      `json:"frames"`   // to be folded, of all shards
	Segments  int         `json:"segments"` // they are in
	Bytes     int64       `json:"bytes"`    // these segments have
	Notes     []string    `json:"notes,omitempty"`

	base *base
}

// ShardPlan is one shard's part.
type ShardPlan struct {
	From     log.Cursor `json:"from"` // where the log is read from
	To       log.Cursor `json:"to"`   // first frame not folded
	Frames   uint64     `json:"frames"`
	Segments int        `json:"segments"`
	Bytes    int64      `json:"bytes"`
}

// Plan finds out how to make a point. It fails with ErrNoPoint if that is not in the history or can't be
// made of what is left, and with ErrDamaged if damage hides whether it can. m may be nil.
func (h *History) Plan(p Point, m *Meter) (*Plan, error) { return h.plan(p, nil, m) }

// plan is Plan without some sets.
func (h *History) plan(p Point, without []string, m *Meter) (*Plan, error) {
	bases := slices.DeleteFunc(slices.Clone(h.bases), func(b base) bool {
		return b.set != nil && slices.Contains(without, b.set.ID)
	})
	var pl *Plan
	var err error
	switch p.kind {
	case latest:
		pl, err = h.planLatest(bases)
	case atCursors:
		pl, err = h.planCursors(bases, p.cursors)
	case atTime:
		pl, err = h.planTime(bases, p.timeMS, m)
	case beforeFrame:
		pl, err = h.planBefore(bases, p, m)
	case beforeDamage:
		pl, err = h.planSalvage(bases, m)
	}
	if err != nil {
		return nil, err
	}
	pl.Point, pl.Notes = p.String(), slices.Concat(h.notes, pl.Notes)
	for i, s := range pl.Shards {
		if rec := h.rec.Shards[i]; rec.CutBytes > 0 && rec.Reason != "" && rec.Lost == nil && s.To == h.chains[i].tail() {
			pl.Notes = append(pl.Notes, fmt.Sprintf("shard %d: %s", i, h.uncleanTail(i)))
		}
	}
	for _, b := range h.bad {
		pl.Notes = append(pl.Notes, fmt.Sprintf("snapshot set %s can't be used: %v", b.ID, b.Err))
	}
	return pl, nil
}

func (h *History) planLatest(bases []base) (*Plan, error) {
	var to []log.Cursor
	for i, c := range h.chains {
		if err := h.lost(i); err != nil {
			return nil, fmt.Errorf("shard %d: frames behind %s are missing, so this is not the latest state (%w): "+
				"--before-damage takes what is whole: %w", i, c.tail(), ErrDamaged, err)
		}
		to = append(to, c.tail())
	}
	return h.planCursors(bases, to)
}

// planCursors takes the newest base from which all cursors can be reached.
func (h *History) planCursors(bases []base, to []log.Cursor) (*Plan, error) {
	if len(to) != h.Shards() {
		return nil, noPointf("%s has %d shards, and %d cursors were given: name one for each, in shard order", h.dir.Path(), h.Shards(), len(to))
	}
	pos := make([]uint64, len(to))
	for i, c := range to {
		var err error
		if pos[i], err = h.chains[i].pos(c); err != nil {
			return nil, fmt.Errorf("shard %d: %w", i, err)
		}
	}
	var why []error
	for _, b := range slices.Backward(bases) {
		pl, err := h.planFrom(&b, to, pos)
		if err == nil {
			return pl, nil
		}
		why = append(why, err)
	}
	return nil, h.unreachable(why)
}

// unreachable says why no base leads to a point.
func (h *History) unreachable(why []error) error {
	if len(why) == 0 {
		return noPointf("%s has no usable snapshot set, and its log does not go back to the first frame%s", h.dir.Path(), h.inTheWay())
	}
	return noPointf("nothing that can be started from leads there: %v", errors.Join(why...))
}

// inTheWay tells of damage that may be why there is nothing to start from; "" if there is none.
func (h *History) inTheWay() (text string) {
	for i := range h.chains {
		for _, err := range h.rec.Shards[i].Damage {
			text += fmt.Sprintf("; shard %d is damaged: %v", i, err)
		}
	}
	for _, b := range h.bad {
		text += fmt.Sprintf("; snapshot set %s can't be used: %v", b.ID, b.Err)
	}
	return text
}

// planFrom plans to fold the frames from a base to cursors of the given positions.
func (h *History) planFrom(b *base, to []log.Cursor, pos []uint64) (*Plan, error) {
	pl := &Plan{base: b, SetTimeMS: b.timeMS}
	if b.set != nil {
		pl.Set = b.set.ID
		for _, s := range b.set.Shards {
			pl.SetKeys += s.Keys
			pl.SetBytes += s.Bytes
		}
	}
	for i := range to {
		s, err := h.planShard(i, b.cursors[i], to[i], pos[i])
		if err != nil {
			return nil, fmt.Errorf("from %s: shard %d: %w", b.name(), i, err)
		}
		pl.Shards = append(pl.Shards, s)
		pl.Frames += s.Frames
		pl.Segments += s.Segments
		pl.Bytes += s.Bytes
	}
	return pl, nil
}

func (h *History) planShard(i int, from, to log.Cursor, end uint64) (ShardPlan, error) {
	s := ShardPlan{From: from, To: to}
	start, err := h.chains[i].pos(from)
	if err != nil {
		return s, err
	}
	if start > end {
		return s, noPointf("%s is behind %s", from, to)
	}
	s.Frames = end - start
	if s.Frames == 0 {
		s.From = to // equal positions are one state
		return s, nil
	}
	r, err := h.reader(i, from, to, nil)
	if err != nil {
		return s, fmt.Errorf("%s can't be reached from %s: %w", to, from, err)
	}
	r.Close()
	for _, seg := range h.dir.Log(i).SegmentList() {
		first, err := h.chains[i].pos(seg.Start)
		last, err2 := h.chains[i].pos(log.Cursor{Generation: seg.Start.Generation, Offset: seg.End})
		if err == nil && err2 == nil && first < end && last > start {
			s.Segments++
			s.Bytes += seg.Bytes
		}
	}
	return s, nil
}

// reader reads the frames between two cursors; with a prefix perhaps without those that it does not want.
func (h *History) reader(shard int, from, to log.Cursor, prefix []byte) (*log.Reader, error) {
	return h.dir.Log(shard).NewReader(from, wanted(log.ReaderOptions{Limit: log.LimitEnd, End: to, Follow: true}, prefix))
}

// wanted restricts a reader to frames that a prefix may want, and their groups.
func wanted(o log.ReaderOptions, prefix []byte) log.ReaderOptions {
	if len(prefix) > 0 {
		o.Prefixes, o.Groups = [][]byte{prefix}, true
	}
	return o
}

// planTime takes the newest base that has no frame after a time, and the frames up to it.
func (h *History) planTime(bases []base, ms int64, m *Meter) (*Plan, error) {
	rules := make([]stopFunc, h.Shards())
	for i := range rules {
		rules[i] = func(f *log.Frame) bool { return f.TimeMS > ms }
	}
	return h.planRules(bases, rules, m, func(b *base) bool {
		if b.timeMS > ms {
			return false
		}
		for i, c := range b.cursors {
			if t, ok := h.timeBefore(i, c); ok && t > ms {
				return false
			}
		}
		return true
	})
}

// planBefore finds the frame and takes what was before its group.
func (h *History) planBefore(bases []base, p Point, m *Meter) (*Plan, error) {
	x, err := h.find(p.before, p.timeMS, m)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, noPointf("no frame matches %s in the log that is on disk%s", p.before, h.inTheWay())
	}
	rules := make([]stopFunc, h.Shards())
	for i := range rules {
		switch {
		case i == x.shard:
			rules[i] = func(f *log.Frame) bool { return f.Cursor == x.at }
		case x.txn != 0 && x.mask&(1<<i) != 0:
			rules[i] = func(f *log.Frame) bool { return f.Txn >= x.txn }
		default:
			rules[i] = func(f *log.Frame) bool { return f.TimeMS >= x.timeMS }
		}
	}
	at, err := h.chains[x.shard].pos(x.at)
	if err != nil {
		return nil, err
	}
	pl, err := h.planRules(bases, rules, m, func(b *base) bool {
		if pos, err := h.chains[x.shard].pos(b.cursors[x.shard]); err != nil || pos > at {
			return false
		}
		for i, c := range b.cursors {
			if i == x.shard || x.mask&(1<<i) != 0 {
				continue // a set has all parts of a group or none
			}
			if t, ok := h.timeBefore(i, c); ok && t >= x.timeMS {
				return false
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	pl.Notes = append(pl.Notes, fmt.Sprintf("the %s is frame %s of shard %d, logged %s", p.before, x.at, x.shard, FormatMS(x.timeMS)))
	return pl, nil
}

// planRules takes the newest base that suits, and the frames that the rules leave inside.
func (h *History) planRules(bases []base, rules []stopFunc, m *Meter, suits func(*base) bool) (*Plan, error) {
	var why []error
	for _, b := range slices.Backward(bases) {
		if !suits(&b) {
			continue
		}
		regions, err := h.cut(&b, rules, false, m)
		if errors.Is(err, log.ErrGone) {
			why = append(why, fmt.Errorf("from %s: %w", b.name(), err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w on the way from %s: %w", ErrDamaged, b.name(), err)
		}
		for i, g := range regions {
			if err := h.lost(i); err != nil && g.open {
				return nil, fmt.Errorf("shard %d: frames behind %s are missing, which may belong there (%w): %w", i, g.cut, ErrDamaged, err)
			}
		}
		return h.planRegions(&b, regions)
	}
	if len(why) == 0 {
		return nil, noPointf("that is before everything that can be restored: kevy log list %s shows what can%s", h.dir.Path(), h.inTheWay())
	}
	return nil, h.unreachable(why)
}

func (h *History) planRegions(b *base, regions []region) (*Plan, error) {
	to, pos := make([]log.Cursor, len(regions)), make([]uint64, len(regions))
	for i, g := range regions {
		var err error
		to[i] = g.cut
		if pos[i], err = h.chains[i].pos(g.cut); err != nil {
			return nil, fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return h.planFrom(b, to, pos)
}

// planSalvage takes the newest base whose frames are there, and the frames up to the first damage in each shard.
func (h *History) planSalvage(bases []base, m *Meter) (*Plan, error) {
	rules := make([]stopFunc, h.Shards())
	for i := range rules {
		rules[i] = func(*log.Frame) bool { return false }
	}
	var why []error
	for _, b := range slices.Backward(bases) {
		regions, err := h.cut(&b, rules, true, m)
		if err != nil {
			why = append(why, fmt.Errorf("from %s: %w", b.name(), err))
			continue
		}
		return h.planRegions(&b, regions)
	}
	return nil, h.unreachable(why)
}
