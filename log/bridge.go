package log

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
)

// Bridge is a group that the beginning of a generation cuts in two: the first part is the last group of the old
// generation, the second, if there is one, the first group of the new one. After a crash both are there, or neither.
//
// Before anything is appended, the space for the new generation is taken: on a full disk nothing has changed.
//
// The second part is written first, into the segments of the new generation, while nothing refers to them; then
// the first part, into those of the old; then the manifest. Recovery finds the manifest of the old generation with the
// first part whole, and then the segments ahead of it are there and whole as well, and become the log (rollForward); or
// the first part is not whole and is cut, and the segments ahead are put aside.
type Bridge struct {
	// Before appends the first part to the logs of all shards, at least one frame to each.
	Before func()
	// After encodes the second part of a shard, if it has one: one group, the same that the caller appends to the
	// log once the new generation has begun, before anything else. nil: no shard has one.
	After func(shard int, enc *Encoder)
}

// before readies the logs for the headers of the next segments: the first part is in the buffers but not written.
func (d *Dir) before(b *Bridge) {
	b.Before()
	for _, l := range d.logs {
		l.take()
	}
}

// settleAll makes everything durable on all shards. REQUIRES: all smu and wmu.
func (d *Dir) settleAll() error {
	return parallel(len(d.logs), func(i int) error {
		if err := d.logs[i].settle(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		return nil
	})
}

// writeSecond writes the second part of a bridge into the segment after the newest, durably.
func (l *Log) writeSecond(next *nextSegment, after func(int, *Encoder)) error {
	enc := NewEncoder(l.shard, next.seg.start(), l.w.tail.timeMS)
	after(l.shard, enc)
	if len(enc.Buf) == 0 {
		return nil
	}
	_, err := next.file.WriteAt(enc.Buf, headerBytes)
	if err == nil {
		err = next.file.Sync()
	}
	next.second = headerBytes + int64(len(enc.Buf))
	next.alloc = max(next.alloc, next.second)
	return err
}

// rollForward finishes what a bridge has begun, or says that it has not come far enough. It returns the manifest
// with the generations that the segments ahead begin, nil when there is nothing to finish. REQUIRES: cutGroups is
// done.
func rollForward(m *manifest, shards []*shardScan) (*manifest, error) {
	if !slices.ContainsFunc(shards, func(s *shardScan) bool { return s.aheadSize > headerBytes }) {
		return nil, nil // nothing but what a FLUSHALL alone may leave
	}
	cut := false
	for _, s := range shards {
		if a := s.ahead; a == nil || s.end.off < a.parentOff {
			cut = true
		} else if err := checkAhead(s); err != nil {
			return nil, err
		}
	}
	if cut {
		for _, s := range shards {
			// The mark moves when the generation has begun.
			if s.ahead != nil && s.mark.cursor.Generation == s.ahead.generation {
				return nil, checkAhead(s)
			}
		}
		return nil, nil
	}
	m = m.clone()
	m.dirty()
	for i, s := range shards {
		m.Shards[i].Lineage = append(m.Shards[i].Lineage, s.ahead.lineage())
	}
	return m, nil
}

// checkAhead checks that the segment ahead goes on where the shard's log ends.
func checkAhead(s *shardScan) error {
	a, n := s.ahead, s.newest()
	if a.prev == n.number && a.prevSize == s.end.pos && a.prevCRC == s.end.crc &&
		a.parent == s.generation() && a.parentOff == s.end.off {
		return nil
	}
	return &CorruptError{File: a.path(), Position: 0, Err: corruptf(
		"segment of %v, which the manifest does not know, does not continue %d:%d", a.start(), s.generation(), s.end.off)}
}

// removeStray removes the segment that did not become part of the log; frames in it are kept aside.
func (s *shardScan) removeStray(r *ShardRecovery) error {
	if s.ahead != nil && s.aheadSize > headerBytes {
		f, err := s.fs.Open(s.stray)
		if err != nil {
			return err
		}
		dir := path.Join(s.dir, "cut")
		name := path.Join(dir, fmt.Sprintf("%020d-%d", s.ahead.number, headerBytes))
		kept, err := keepAside(s.fs, f, headerBytes, s.aheadSize, s.dir, dir, name)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("log: keeping the frames of %s: %w", s.stray, err)
		}
		if kept && r.CutFile == "" {
			r.CutFile = name
		}
	}
	return vfs.RemoveIfThere(s.fs, s.stray)
}
