package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// Verified is what Verify found.
type Verified struct {
	Dir      string    `json:"dir"`
	Segments int       `json:"segments"`
	Frames   uint64    `json:"frames"` // read
	Sets     []SetSum  `json:"snapshots"`
	Damage   []Finding `json:"damage"` // none: the directory is sound
	Notes    []string  `json:"notes,omitempty"`

	vanished bool // a file was not there: it may have been dropped meanwhile
}

// SetSum is a snapshot set that was loaded.
type SetSum struct {
	ID     string `json:"id"`
	Keys   int    `json:"keys"`
	Digest string `json:"digest"`
	// Folded says that the digest is that of the log folded to the set's cursors from Base.
	Folded bool   `json:"folded"`
	Base   string `json:"base,omitempty"`

	libraries []state.Library
}

// Finding is a place that is not as it was written.
type Finding struct {
	Shard    int         `json:"shard"`            // -1: none in particular
	File     string      `json:"file,omitempty"`   //
	Position int64       `json:"position"`         // byte in File, -1: the file as a whole
	Cursor   *log.Cursor `json:"cursor,omitempty"` // frame that should be there
	Problem  string      `json:"problem"`
}

// VerifyOptions say how much to check.
type VerifyOptions struct {
	Deep  bool   // fold the log up to each set and compare
	Meter *Meter // may be nil
}

// Verify reads a whole directory: every header, link, frame and snapshot. Damage is in the result; the error
// says that the directory could not be read at all. A directory in use may drop what is just being read: then it looks
// again.
func Verify(src Source, o VerifyOptions) (*Verified, error) {
	for try := 0; ; try++ {
		v, err := verify(src, o)
		if err != nil || !v.vanished || try == 2 {
			return v, err
		}
	}
}

func verify(src Source, o VerifyOptions) (*Verified, error) {
	h, err := Open(src)
	if err != nil {
		return Unopened(src.Dir, err)
	}
	defer h.Close()
	v := newVerified(src.Dir)
	h.verifyLogs(v, o.Meter)
	h.verifySets(v, o.Meter)
	if o.Deep {
		h.verifyDeep(v, o.Meter)
	}
	return v, nil
}

// newVerified is of nothing yet, and says so in JSON.
func newVerified(dir string) *Verified {
	return &Verified{Dir: dir, Sets: []SetSum{}, Damage: []Finding{}}
}

// Unopened is what Verify finds of a directory, or an archive, that can't be opened for err: damage, if that is what err is.
func Unopened(dir string, err error) (*Verified, error) {
	if !errors.Is(err, log.ErrCorrupt) && !errors.Is(err, log.ErrVersion) {
		return nil, err
	}
	v := newVerified(dir)
	v.found(-1, err)
	return v, nil
}

// found adds damage, once for each place.
func (v *Verified) found(shard int, err error) {
	v.vanished = v.vanished || errors.Is(err, fs.ErrNotExist)
	f := Finding{Shard: shard, Position: -1, Problem: err.Error()}
	if c, ok := errors.AsType[*log.CorruptError](err); ok {
		f.File, f.Position = c.File, c.Position
		if c.Cursor != (log.Cursor{}) {
			f.Cursor = &c.Cursor
		}
	}
	if !slices.ContainsFunc(v.Damage, func(x Finding) bool {
		return x.Problem == f.Problem || f.File != "" && x.File == f.File && x.Position == f.Position
	}) {
		v.Damage = append(v.Damage, f)
	}
}

// verifyLogs reads every segment of every shard.
func (h *History) verifyLogs(v *Verified, m *Meter) {
	var total uint64
	for i := range h.chains {
		for _, s := range h.dir.Log(i).SegmentList() {
			total += s.End - s.Start.Offset
		}
	}
	m.Begin("reading the log", total)
	type result struct {
		frames uint64
		errs   []error
	}
	results := make([]result, h.Shards())
	_ = h.parallel(func(i int) error { // errors are results
		list := h.dir.Log(i).SegmentList()
		for n := range list {
			frames, err := h.verifySegment(i, &list[n], n+1 < len(list) && list[n+1].Broken != nil, m)
			results[i].frames += frames
			if err != nil {
				results[i].errs = append(results[i].errs, err)
			}
		}
		return nil
	})
	for i, r := range results {
		rec := h.rec.Shards[i]
		for _, err := range slices.Concat(rec.Damage, r.errs) {
			v.found(i, err)
		}
		if rec.CutBytes > 0 && rec.Reason != "" && rec.Lost == nil {
			v.Notes = append(v.Notes, fmt.Sprintf("shard %d: %s", i, h.uncleanTail(i)))
		}
		if rec.Stray != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("shard %d: the newest segment was being made when the log ended, and has no frames (the next start removes it): %v", i, rec.Stray))
		}
		v.Frames += r.frames
		v.Segments += h.dir.Log(i).Segments()
	}
}

// verifySegment reads the frames of a segment. open: its end is not known, since the one behind it does not
// continue it.
func (h *History) verifySegment(shard int, s *log.SegmentInfo, open bool, m *Meter) (frames uint64, err error) {
	o := log.ReaderOptions{Limit: log.LimitEnd, End: log.Cursor{Generation: s.Start.Generation, Offset: s.End}}
	if open {
		o = log.ReaderOptions{Limit: log.LimitWritten}
	}
	r, err := h.dir.Log(shard).NewReader(s.Start, o)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	t := tick{m: m}
	defer t.end()
	for {
		_, err := r.Next()
		c, corrupt := errors.AsType[*log.CorruptError](err)
		switch {
		case err == nil:
			frames++
			t.one()
			continue
		case errors.Is(err, io.EOF):
			return frames, nil
		case open && corrupt && c.File != s.File:
			return frames, nil // the link behind it, which is known
		}
		return frames, err
	}
}

// verifySets loads every set.
func (h *History) verifySets(v *Verified, m *Meter) {
	for _, b := range h.bad {
		v.found(-1, fmt.Errorf("snapshot set %s: %w", b.ID, b.Err))
	}
	if id, _ := h.dir.Snapshot(); id != "" && !slices.ContainsFunc(h.bases, func(b base) bool { return b.set != nil && b.set.ID == id }) &&
		!slices.ContainsFunc(h.bad, func(b BadSet) bool { return b.ID == id }) {
		v.found(-1, fmt.Errorf("snapshot set %s, which the manifest names, is missing", id))
	}
	for i := range h.bases {
		set := h.bases[i].set
		if set == nil {
			continue
		}
		m.Begin("loading snapshot set "+set.ID, set.Keys())
		shards, err := h.loadSet(set, m)
		if err == nil {
			s := SetSum{ID: set.ID, libraries: libraries(shards)}
			s.Keys, s.Digest = digest(shards, nil, 0)
			v.Sets = append(v.Sets, s)
			if set.Digest != "" && set.Digest != s.Digest {
				v.found(-1, fmt.Errorf("snapshot set %s has %d keys with digest %s, when it was taken it was %s", set.ID, s.Keys, s.Digest, set.Digest))
			}
		} else {
			v.found(-1, err)
		}
		release(shards)
	}
}

func release(shards []*state.Keyspace) {
	for _, ks := range shards {
		if ks != nil {
			ks.Release()
		}
	}
}

// loadSet loads a set. The keyspaces are to be released also if it fails.
func (h *History) loadSet(set *snapshot.Set, m *Meter) ([]*state.Keyspace, error) {
	shards := make([]*state.Keyspace, h.Shards())
	return shards, h.parallel(func(i int) error {
		shards[i] = state.New(h.dir.HashSeed())
		shards[i].BeginBulk()
		f := folder{ks: shards[i], t: tick{m: m}}
		defer f.t.end()
		if err := h.foldSet(set, i, &f); err != nil {
			return err
		}
		shards[i].EndBulk()
		return nil
	})
}

// verifyDeep folds the log from the base before each set to it, and compares digests.
func (h *History) verifyDeep(v *Verified, m *Meter) {
	for i := 0; i < len(v.Sets); i++ {
		s := &v.Sets[i]
		before := slices.IndexFunc(h.bases, func(b base) bool { return b.set != nil && b.set.ID == s.ID }) - 1
		if before < 0 {
			v.Notes = append(v.Notes, fmt.Sprintf("snapshot set %s: there is nothing older to fold the log from: not compared", s.ID))
			continue
		}
		from := &h.bases[before]
		pl, err := h.planFromTo(from, &h.bases[before+1])
		if errors.Is(err, log.ErrGone) {
			v.Notes = append(v.Notes, fmt.Sprintf("snapshot set %s: the frames from %s to it are not on disk any more: not compared", s.ID, from.name()))
			continue
		}
		if err != nil {
			v.found(-1, fmt.Errorf("snapshot set %s, from %s: %w", s.ID, from.name(), err))
			continue
		}
		b, err := h.carryOut(pl, nil, m)
		if err != nil {
			v.found(-1, fmt.Errorf("snapshot set %s, from %s: %w", s.ID, from.name(), err))
			continue
		}
		keys, sum := b.Digest(nil, 0)
		s.Base = from.name()
		switch {
		case keys != s.Keys || sum != s.Digest:
			v.found(-1, fmt.Errorf("snapshot set %s has %d keys with digest %s, the log folded from %s to its cursors %d with %s",
				s.ID, s.Keys, s.Digest, from.name(), keys, sum))
		case !slices.Equal(b.Libraries(), s.libraries):
			v.found(-1, fmt.Errorf("snapshot set %s has other libraries of functions than the log folded from %s to its cursors", s.ID, from.name()))
		default:
			s.Folded = true
		}
		b.Release()
	}
}

func (h *History) planFromTo(from, to *base) (*Plan, error) {
	pos := make([]uint64, h.Shards())
	for i, c := range to.cursors {
		var err error
		if pos[i], err = h.chains[i].pos(c); err != nil {
			return nil, err
		}
	}
	return h.planFrom(from, to.cursors, pos)
}
