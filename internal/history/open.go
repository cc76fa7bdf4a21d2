package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

var (
	// ErrNoPoint is the class of points that are not in a history, or can't be restored from what is left of it.
	ErrNoPoint = errors.New("no such point")
	// ErrDamaged is the class of points that damage hides.
	ErrDamaged = errors.New("the directory is damaged")
)

// pointError says why there is no such point; it matches ErrNoPoint.
type pointError string

func (e pointError) Error() string { return string(e) }

// Is makes every pointError match ErrNoPoint.
func (e pointError) Is(target error) bool { return target == ErrNoPoint } //nolint:errorlint // identity is meant

func noPointf(format string, args ...any) error { return pointError(fmt.Sprintf(format, args...)) }

// Source is a data directory to be read. FS nil is the operating system's.
type Source struct {
	FS    vfs.FS
	Dir   string   // slash-separated
	Notes []string // about it, for every plan
}

// History is an open data directory. It shows what was there when it was opened. It is safe for
// concurrent use.
type History struct {
	fs     vfs.FS
	dir    *log.Dir
	rec    *log.Recovery
	chains []chain
	bases  []base // oldest first; all but the empty store are sets whose headers are right
	bad    []BadSet
	notes  []string // Source.Notes
}

// base is a state to start from.
type base struct {
	set     *snapshot.Set // nil: the empty store
	cursors []log.Cursor
	timeMS  int64
}

func (b *base) name() string {
	if b.set == nil {
		return "the first frame"
	}
	return "snapshot set " + b.set.ID
}

// BadSet is a snapshot set that can't be used.
type BadSet struct {
	ID  string
	Err error
}

// Open opens the directory of src for reading. What is damaged is noted, not refused, unless there is
// nothing left to open.
func Open(src Source) (*History, error) {
	if src.FS == nil {
		src.FS = vfs.OS()
	}
	dir, rec, err := log.Examine(src.FS, src.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", src.Dir, err)
	}
	h := &History{fs: src.FS, dir: dir, rec: rec, notes: src.Notes}
	for i := range dir.Shards() {
		h.chains = append(h.chains, newChain(dir.Lineage(i), dir.Log(i).Written()))
	}
	if err := h.findBases(); err != nil {
		return nil, errors.Join(err, dir.Close(false))
	}
	return h, nil
}

// Close ends the use of h.
func (h *History) Close() { _ = h.dir.Close(false) } // only read

// Shards returns the number of shards.
func (h *History) Shards() int { return len(h.chains) }

// FromFirst reports whether the log on disk goes back to the very first frame, so that its frames alone make every state.
func (h *History) FromFirst() bool {
	return slices.ContainsFunc(h.bases, func(b base) bool { return b.set == nil })
}

// findBases lists what can be started from: sets whose headers say what their SET says, each shard at a cursor
// that is part of the history.
func (h *History) findBases() error {
	first := base{timeMS: h.chains[0][0].TimeMS}
	for i, c := range h.chains {
		if !c.complete() || h.dir.Log(i).Oldest() != (log.Cursor{Generation: c[0].Generation}) {
			first.cursors = nil
			break
		}
		first.cursors = append(first.cursors, log.Cursor{Generation: c[0].Generation})
	}
	if first.cursors != nil {
		h.bases = append(h.bases, first)
	}
	ids, err := snapshot.List(h.fs, h.dir.Path())
	if err != nil {
		return err
	}
	for _, id := range ids {
		set, err := h.readSet(id)
		if err != nil {
			h.bad = append(h.bad, BadSet{id, err})
			continue
		}
		h.bases = append(h.bases, base{set, set.Cursors(), set.TimeMS})
	}
	slices.SortStableFunc(h.bases, func(a, b base) int {
		pa, _ := h.chains[0].pos(a.cursors[0])
		pb, _ := h.chains[0].pos(b.cursors[0])
		return cmp.Compare(pa, pb)
	})
	return nil
}

func (h *History) readSet(id string) (*snapshot.Set, error) {
	set, err := snapshot.ReadSet(h.fs, h.dir.Path(), id)
	if err != nil {
		return nil, err
	}
	if len(set.Shards) != h.Shards() {
		return nil, fmt.Errorf("%w: set %s has %d shards, the directory %d", snapshot.ErrCorrupt, id, len(set.Shards), h.Shards())
	}
	for i, c := range set.Cursors() {
		p := h.shardFile(&set, i)
		hd, err := snapshot.ReadHeader(h.fs, p)
		if err != nil {
			return nil, err
		}
		if err := set.Check(&hd, i, h.dir.HashSeed()); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if _, err := h.chains[i].pos(c); err != nil {
			return nil, fmt.Errorf("%s: shard %d: %w", p, i, err)
		}
	}
	return &set, nil
}

func (h *History) shardFile(set *snapshot.Set, shard int) string {
	return snapshot.ShardPath(snapshot.Dir(h.dir.Path(), set.ID), shard)
}

// lost returns why the end of a shard's log is known to be missing, or nil.
func (h *History) lost(shard int) error { return h.rec.Shards[shard].Lost }

// uncleanTail describes the bytes behind the end of a shard's log that are no whole groups.
func (h *History) uncleanTail(shard int) string {
	rec := h.rec.Shards[shard]
	return fmt.Sprintf("%d bytes behind %s are the unclean tail of a log that is in use or was not closed cleanly, and no part of it "+
		"(the next start keeps them aside): %s", rec.CutBytes, rec.Tail, rec.Reason)
}
