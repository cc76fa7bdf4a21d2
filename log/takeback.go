package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/kevydb/kevy/internal/vfs"
)

// Back says to where a directory is taken back.
type Back struct {
	// To has a cursor of each shard's lineage. Together they tear no group. What is behind is kept aside, in the shard's cut directory, in
	// copies of its segments.
	To []Cursor
	// Set is a snapshot set on the way there, and where it stands; "": the log leads there by itself.
	Set     string
	Cursors []Cursor
}

// TakeBack closes d and opens the directory again, as a follower whose logs end at earlier cursors. What leads there stays as it is: it can be taken back
// further another time. A crash at any time leaves the one or the other. Readers of d end with ErrClosed. It returns the file names of
// what was kept aside.
//
// After an error d is closed all the same, unless it is ErrGone: frames before the cursors are not there any more.
//
// REQUIRES: no appends are running.
func (d *Dir) TakeBack(b *Back) (next *Dir, aside []string, err error) {
	if len(b.To) != len(d.logs) || b.Set != "" && len(b.Cursors) != len(d.logs) {
		return nil, nil, fmt.Errorf("log: %w: %d cursors for %d shards", ErrGone, len(b.To), len(d.logs))
	}
	for i, l := range d.logs {
		if l.find(b.To[i]) == nil {
			return nil, nil, fmt.Errorf("log: shard %d: %w: %v", i, ErrGone, b.To[i])
		}
	}
	return d.reopen(func() ([]string, error) { return d.takeBack(b) })
}

// takeBack publishes, in a closed directory, where the logs are to end; Open makes that true (shardManifest.Cut).
func (d *Dir) takeBack(b *Back) (aside []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.man.clone()
	m.Follower, m.Floors, m.Snapshot = true, nil, nil
	if b.Set != "" {
		m.Snapshot = &snapshotRef{b.Set, append([]Cursor(nil), b.Cursors...)}
	}
	for i, l := range d.logs {
		if b.To[i] == l.Tail() {
			continue
		}
		names, err := l.copyAside(b.To[i])
		aside = append(aside, names...)
		if err != nil {
			return aside, err
		}
		s := &m.Shards[i]
		if s.End, err = l.endAt(b.To[i]); err != nil {
			return aside, err
		}
		s.Cut = true
		for s.current() != b.To[i].Generation {
			s.Lineage = s.Lineage[:len(s.Lineage)-1] // there is a segment of it, so it is on record
		}
	}
	_, err = d.publish(m)
	return aside, err
}

// endAt returns what the end of the log would be if it ended at c, behind a group.
func (l *Log) endAt(c Cursor) (*shardEnd, error) {
	s := l.find(c)
	h, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer h.release()
	st := NewStream(h.src, h.name, l.shard, s.start(), headerBytes, s.end.Load())
	defer st.Close()
	for st.off < c.Offset {
		if _, err := st.Next(); err != nil {
			return nil, err
		}
	}
	return &shardEnd{s.number, st.pos, c}, nil
}

// finishCut makes the files of a shard those of a log that ends where the manifest says. It is the same again after a crash.
func finishCut(fsys vfs.FS, dir string, shard int, man *shardManifest) error {
	end := man.End
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n, _, ok := segmentNumber(name); ok && n > end.Segment {
			if err := vfs.RemoveIfThere(fsys, path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	name := path.Join(dir, segmentName(end.Segment))
	if _, err := fsys.Stat(name); errors.Is(err, fs.ErrNotExist) {
		s := &shardScan{fs: fsys, shard: shard, dir: dir, man: man}
		if err := s.unseal(end.Segment, end.Size); err != nil {
			return err
		}
	}
	f, err := fsys.OpenReadWrite(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size > end.Size {
		err = f.Truncate(end.Size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := errors.Join(vfs.RemoveIfThere(fsys, path.Join(dir, sealedName(end.Segment))), lowerMark(fsys, dir)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// unseal makes the first size bytes of a raw segment of a sealed one, durably.
func (s *shardScan) unseal(number uint64, size int64) error {
	seg, _, err := s.openHeader(path.Join(s.dir, sealedName(number)), number)
	if err != nil {
		return err
	}
	seg.cache = new(chunkCache)
	h, err := seg.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	temp := path.Join(s.dir, segmentName(number)+tempSuffix)
	if err := vfs.RemoveIfThere(s.fs, temp); err != nil {
		return err
	}
	f, err := s.fs.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(seg.encode(), 0)
	buf := *buffers.Get().(*[]byte)
	defer buffers.Put(&buf)
	if err == nil {
		err = copyBytes(f, headerBytes, h.src, headerBytes, size, buf)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return errors.Join(s.fs.Rename(temp, path.Join(s.dir, segmentName(number))), s.fs.SyncDir(s.dir))
}
