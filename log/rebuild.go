package log

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
)

// Lost is what a lost MANIFEST said that no segment says: it is in the files of a snapshot set.
type Lost struct {
	HashSeed uint64
	Set      string   // a set that is whole
	Cursors  []Cursor // its cursors; there are so many shards
}

// Rebuild makes the bytes of the MANIFEST that a directory has lost, for OpenReadOnly and Examine, out of the headers of its segments.
// It changes nothing, and trusts nothing but headers: the caller must have read the rest before it relies on the result.
//
// Headers prove much: each names the one before it, its end and its generation. What they can't tell is that the newest segment of
// a shard is there. The durable mark does, and the other shards: all of them begin generations together, so from the set's
// cursors on they must have begun as many, for the same causes. The error is a *CorruptError, or matches ErrGone, if they have not.
func Rebuild(fsys vfs.FS, dir string, l Lost) ([]byte, error) {
	m := &manifest{Version: manifestVersion, HashSeed: l.HashSeed, Snapshot: &snapshotRef{l.Set, l.Cursors}}
	behind := make([]begun, len(l.Cursors))
	for i, c := range l.Cursors {
		s := &shardScan{fs: fsys, shard: i, dir: shardDir(dir, i), man: &shardManifest{}}
		lastTxn, err := s.rebuild()
		if err != nil {
			return nil, fmt.Errorf("log: shard %d: %w", i, err)
		}
		at := slices.IndexFunc(s.man.Lineage, func(g Lineage) bool { return g.Generation == c.Generation })
		if at < 0 {
			return nil, fmt.Errorf("%w: shard %d has no segment of %s", ErrGone, i, c)
		}
		behind[i] = begun{s.man.Lineage[at+1:], s.size}
		m.LastTxn = max(m.LastTxn, lastTxn)
		m.Shards = append(m.Shards, *s.man)
	}
	if err := together(m, behind); err != nil {
		return nil, err
	}
	return m.encode()
}

// rebuild finds the segments that follow each other up to the newest one, and makes the shard's manifest of their headers.
func (s *shardScan) rebuild() (lastTxn uint64, err error) {
	numbers, err := s.numbers()
	if err != nil {
		return 0, err
	}
	for i, n := range numbers {
		name, err := s.fileOf(n)
		if err != nil {
			return 0, err
		}
		seg, size, err := s.openHeader(name, n)
		if err != nil && i > 0 && i == len(numbers)-1 && size <= headerBytes && errors.Is(err, ErrCorrupt) {
			break // recovery knows what to make of it
		}
		if err != nil {
			return 0, err
		}
		if i == 0 || n != numbers[i-1]+1 {
			s.man.FirstLive, s.man.Lineage = n, nil
		}
		g := seg.lineage()
		if !seg.begins() { // the record of its generation went with an older segment
			g.Parent, g.ParentOffset = 0, 0
		}
		if k := len(s.man.Lineage); k == 0 || s.man.Lineage[k-1].Generation != g.Generation {
			s.man.Lineage = append(s.man.Lineage, g)
		}
		s.size, lastTxn = size, max(lastTxn, seg.lastTxn)
	}
	if len(s.man.Lineage) == 0 {
		return 0, s.missing(1, ": there is none")
	}
	mark, err := readMark(s.fs, s.dir)
	if err == nil && (mark.cursor.Generation > s.generation() || mark.segment > numbers[len(numbers)-1]) {
		err = s.missing(mark.segment, fmt.Sprintf(": frames of it were durable, up to %s", mark.cursor))
	}
	return lastTxn, err
}

// begun are the generations that a shard has begun behind a snapshot set, and the size of its newest segment.
type begun struct {
	lineage []Lineage
	size    int64
}

// together compares what the shards have begun. An empty segment of one more generation was being made when the process ended: recovery
// knows that from a manifest that does not name it.
func together(m *manifest, shards []begun) error {
	least := slices.MinFunc(shards, func(a, b begun) int { return len(a.lineage) - len(b.lineage) }).lineage
	for i, b := range shards {
		for n := range least {
			if b.lineage[n].Cause != least[n].Cause {
				return corruptf("shard %d has begun generation %d for the cause %s, another shard one for %s: segments are missing",
					i, b.lineage[n].Generation, b.lineage[n].Cause, least[n].Cause)
			}
		}
		switch more := len(b.lineage) - len(least); {
		case more > 1 || more == 1 && b.size > headerBytes:
			return corruptf("shard %d has begun %d generations behind snapshot set %s, another shard %d: segments are missing",
				i, len(b.lineage), m.Snapshot.ID, len(least))
		case more == 1:
			s := &m.Shards[i]
			s.Lineage = slices.Clip(s.Lineage[:len(s.Lineage)-1])
		}
	}
	return nil
}
