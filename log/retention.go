package log

import (
	"errors"
	"fmt"
	"path"

	"github.com/kevydb/kevy/internal/vfs"
)

// keepLineage is how many generations stay on record after their frames are gone.
const keepLineage = 256

// DropUnneeded removes the segments that nobody needs any more: those wholly older than the
// newest snapshot's cursor and than the feed window and than what open readers still have to read.
// The newest segment always stays, and so does everything when there is no snapshot, unless the
// directory is ephemeral: then only the window counts. It may be called again at any time.
//
// The manifest names the first segment to keep before files are removed: a crash between leaves
// files that the next Open removes.
func (d *Dir) DropUnneeded() (segments int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return 0, err
	}
	if d.man.Snapshot == nil && !d.o.Ephemeral {
		return 0, nil
	}
	m := d.man.clone()
	changed := false
	for i, l := range d.logs {
		keep := l.firstNeeded(d.snapshotCursor(i))
		if n, ok := d.heldFrom(i); ok {
			keep = min(keep, n)
		}
		if keep > m.Shards[i].FirstLive {
			m.Shards[i].FirstLive, changed = keep, true
			m.Shards[i].Lineage = l.trimLineage(keep, m.Shards[i].Lineage)
		}
	}
	if !changed {
		return 0, nil
	}
	if _, err := d.publish(m); err != nil {
		return 0, err
	}
	for i, l := range d.logs {
		n, dropErr := l.drop(m.Shards[i].FirstLive, m.Shards[i].Lineage)
		segments += n
		err = errors.Join(err, dropErr)
	}
	return segments, err
}

func (d *Dir) dropAfterRoll() {
	if _, err := d.DropUnneeded(); err != nil && !errors.Is(err, ErrClosed) {
		d.o.Logger.Warn("dropping old segments", "err", err)
	}
}

// snapshotCursor is where the newest snapshot set stands in a shard; nil when there is none.
func (d *Dir) snapshotCursor(shard int) *Cursor {
	if d.man.Snapshot == nil {
		return nil
	}
	return &d.man.Snapshot.Cursors[shard]
}

// firstNeeded returns the number of the oldest segment to keep. snapshot nil: no snapshot needs any.
func (l *Log) firstNeeded(snapshot *Cursor) uint64 {
	l.mu.Lock()
	boundary, gen := l.bytes.Load()-l.win.size, l.gen.Load().id
	l.mu.Unlock()
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	keep := l.segs[len(l.segs)-1].number
	if snapshot != nil {
		if s := l.findLocked(*snapshot); s != nil {
			keep = s.number
		} else {
			keep = l.segs[0].number // a cursor that is not in the log: keep everything
		}
	}
	for _, n := range l.pins {
		keep = min(keep, n)
	}
	for _, s := range l.segs {
		if s.generation == gen && s.genPos+s.end.Load()-headerBytes > boundary {
			return min(keep, s.number)
		}
	}
	return keep
}

// trimLineage leaves out the oldest generations of which nothing is on disk from segment keep on.
func (l *Log) trimLineage(keep uint64, lin []Lineage) []Lineage {
	oldest := uint64(0)
	for _, s := range l.segments() {
		if s.number == keep {
			oldest = s.generation
		}
	}
	for len(lin) > keepLineage && lin[0].Generation < oldest {
		lin = lin[1:]
	}
	return lin
}

// drop removes the segments below number keep.
func (l *Log) drop(keep uint64, lineage []Lineage) (n int, err error) {
	lin := append([]Lineage(nil), lineage...)
	l.segMu.Lock()
	var gone []*segment
	for len(l.segs) > 1 && l.segs[0].number < keep {
		gone = append(gone, l.segs[0])
		l.segs = l.segs[1:]
	}
	l.segs = append([]*segment(nil), l.segs...)
	l.segMu.Unlock()
	l.lineage.Store(&lin)
	for _, s := range gone {
		if e := removeIfThere(l.fs, s.path); e != nil {
			err = errors.Join(err, fmt.Errorf("log: dropping a segment: %w", e))
			continue
		}
		n++
	}
	return n, err
}

// dropBelow removes the files of segments below number keep.
func dropBelow(fsys vfs.FS, dir string, keep uint64) error {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n, ok := segmentNumber(name); ok && n < keep {
			if err := removeIfThere(fsys, path.Join(dir, name)); err != nil {
				return fmt.Errorf("log: dropping a segment: %w", err)
			}
		}
	}
	return nil
}
