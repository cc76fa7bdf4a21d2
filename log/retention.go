package log

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
)

// keepLineage is how many generations stay on record after their frames are gone.
const keepLineage = 256

// SetKeep changes Options.KeepBytes and KeepTime.
func (d *Dir) SetKeep(bytes int64, age time.Duration) {
	d.keepBytes.Store(bytes)
	d.keepTime.Store(int64(age))
	d.kickKeeper()
}

func (d *Dir) keepTimeNow() time.Duration { return time.Duration(d.keepTime.Load()) }

// SetFloor keeps, durably, the log of each shard from the given cursor on: it is not dropped until ClearFloor, also
// not after a restart. A floor of the same name is replaced. A cursor that is not in the log, like the zero one, keeps all
// there is. It is for who needs frames and is not always there, like an archive that has not taken them yet.
func (d *Dir) SetFloor(name string, from []Cursor) error {
	if name == "" || len(from) != len(d.logs) {
		return fmt.Errorf("log: floor %q with %d cursors for %d shards", name, len(from), len(d.logs))
	}
	return d.setFloor(name, append([]Cursor(nil), from...))
}

// ClearFloor ends a floor. It is no error if there is none.
func (d *Dir) ClearFloor(name string) error { return d.setFloor(name, nil) }

func (d *Dir) setFloor(name string, from []Cursor) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return err
	}
	if slices.Equal(d.man.Floors[name], from) {
		return nil
	}
	m := d.man.clone()
	if from == nil {
		delete(m.Floors, name)
	} else {
		if m.Floors == nil {
			m.Floors = make(map[string][]Cursor)
		}
		m.Floors[name] = from
	}
	_, err := d.publish(m)
	return err
}

// Floors returns the floors in force, by name.
func (d *Dir) Floors() map[string][]Cursor {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.man.clone().Floors
}

// DropUnneeded removes the segments that nobody needs any more: those wholly older than the
// newest snapshot's cursor and all floors, the feed window, what KeepBytes and KeepTime ask for and what open readers still
// have to read. The newest segment always stays, and so does everything when there is no snapshot, unless the
// directory is ephemeral: then only the window counts. It may be called again at any time.
//
// The manifest names the first segment to keep before files are removed: a crash between leaves
// files that the next Open removes.
func (d *Dir) DropUnneeded() (segments int, err error) {
	gone, err := d.leaveOut()
	for i := range gone {
		n, dropErr := d.logs[i].remove(gone[i])
		segments += n
		err = errors.Join(err, dropErr)
	}
	return segments, err
}

// leaveOut takes the segments that nobody needs any more out of the logs, and returns them, by shard. Their files are still there: they may be many, and
// a new generation, which is begun with all shard locks held, must not wait until they are removed.
func (d *Dir) leaveOut() (gone [][]*segment, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return nil, err
	}
	m := d.man.clone()
	changed := false
	for i, l := range d.logs {
		p := d.retention(l).plan()
		if p.keep > m.Shards[i].FirstLive {
			m.Shards[i].FirstLive, changed = p.keep, true
			m.Shards[i].Lineage = l.trimLineage(p.keep, m.Shards[i].Lineage)
			d.o.Logger.Debug("dropping segments", "shard", i, "drop", p.drop, "keep", p.keep, "because", p.why)
		}
	}
	if changed {
		if _, err := d.publish(m); err != nil {
			return nil, err
		}
	}
	for i, l := range d.logs {
		gone = append(gone, l.leaveOut(m.Shards[i].FirstLive, m.Shards[i].Lineage))
	}
	return gone, nil
}

func (d *Dir) dropAfterRoll() {
	if _, err := d.DropUnneeded(); err != nil && !errors.Is(err, ErrClosed) {
		d.o.Logger.Warn("dropping old segments", "err", err)
	}
}

// retention gathers the facts of a shard. REQUIRES: d.mu.
func (d *Dir) retention(l *Log) *retention {
	r := &retention{rebuilt: d.o.Ephemeral, bytes: d.keepBytes.Load(), floors: make(map[string]Cursor)}
	if age := d.keepTime.Load(); age > 0 {
		r.since = max(1, d.o.Now()-time.Duration(age).Milliseconds())
	}
	if d.man.Snapshot != nil {
		r.snapshot = &d.man.Snapshot.Cursors[l.shard]
	}
	for name, from := range d.man.Floors {
		r.floors[name] = from[l.shard]
	}
	l.mu.Lock()
	r.window, r.current = l.bytes.Load()-l.win.size, l.gen.Load().id
	l.mu.Unlock()
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	for _, n := range l.pins {
		r.pins = append(r.pins, n)
	}
	for i, s := range l.segs {
		f := segmentFacts{number: s.number, start: s.start(), disk: s.diskBytes(), genEnd: s.genPos + s.end.Load() - headerBytes}
		if i+1 < len(l.segs) {
			f.lastMS = l.segs[i+1].lastTimeMS
		}
		r.segments = append(r.segments, f)
	}
	return r
}

// trimLineage leaves out the oldest generations of which nothing is on disk from segment keep on. It takes lin over.
func (l *Log) trimLineage(keep uint64, lin []Lineage) []Lineage {
	oldest := uint64(0)
	for _, s := range l.segments() {
		if s.number == keep {
			oldest = s.generation
		}
	}
	for len(lin) > keepLineage && lin[0].Generation < oldest {
		lin[1].Earlier = lin[0].Earlier + lin[0].ParentOffset
		lin = lin[1:]
	}
	return lin
}

// leaveOut takes the segments below number keep out of the log, but for those that a reader has begun with meanwhile: they go the next time.
func (l *Log) leaveOut(keep uint64, lineage []Lineage) (gone []*segment) {
	lin := append([]Lineage(nil), lineage...)
	l.segMu.Lock()
	defer l.segMu.Unlock()
	for _, n := range l.pins {
		keep = min(keep, n)
	}
	for len(l.segs) > 1 && l.segs[0].number < keep {
		gone = append(gone, l.segs[0])
		l.segs = l.segs[1:]
	}
	l.segs = append([]*segment(nil), l.segs...)
	l.lineage.Store(&lin)
	return gone
}

// remove removes the files of segments that are no part of the log any more, and returns how many it has removed.
func (l *Log) remove(gone []*segment) (n int, err error) {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	for _, s := range gone {
		if e := s.remove(); e != nil {
			err = errors.Join(err, fmt.Errorf("log: dropping a segment: %w", e))
			continue
		}
		n++
	}
	return n, err
}

// remove removes the segment's file, and the raw one that may be left beside a sealed one.
func (s *segment) remove() error {
	err := vfs.RemoveIfThere(s.fs, s.path())
	if s.sealed.Load() {
		err = errors.Join(err, vfs.RemoveIfThere(s.fs, path.Join(s.dir, segmentName(s.number))))
	}
	return err
}

// sweep removes the files that are no part of the log: segments below number keep, half-made ones, and sealed ones
// whose raw segment is still there. (It may be that a crash has brought that back; it will be sealed again.)
// REQUIRES: recovery has accepted the log.
func sweep(fsys vfs.FS, dir string, keep uint64) error {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	raw := make(map[uint64]bool)
	for _, name := range names {
		if n, sealed, ok := segmentNumber(name); ok && !sealed {
			raw[n] = true
		}
	}
	for _, name := range names {
		n, sealed, ok := segmentNumber(name)
		if (ok && (n < keep || (sealed && raw[n]))) || strings.HasSuffix(name, tempSuffix) {
			if err := vfs.RemoveIfThere(fsys, path.Join(dir, name)); err != nil {
				return fmt.Errorf("log: removing what is no part of the log: %w", err)
			}
		}
	}
	return nil
}
