package log

import "github.com/kevydb/kevy/internal/vfs"

// SnapshotOnRecord returns the id of the newest snapshot set that a directory's manifest names, "" for none. It needs
// no more of the directory than the manifest; without one the error is ErrNoManifest, or
// that the directory is not there.
func SnapshotOnRecord(fsys vfs.FS, dir string) (id string, err error) {
	m, err := readManifest(fsys, dir)
	switch {
	case err != nil:
		return "", err
	case m == nil:
		return "", noManifest(fsys, dir)
	case m.Snapshot == nil:
		return "", nil
	}
	return m.Snapshot.ID, nil
}

// BytesFrom returns at least how many bytes on disk the frames between a cursor and the tail take, over all generations. It
// counts whole segments behind the cursor's. ok is false when the log does not go on from there to the tail.
func (l *Log) BytesFrom(c Cursor) (bytes int64, ok bool) {
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	from := l.findLocked(c)
	if from == nil {
		return 0, false
	}
	if end, _, known := l.endOf(c.Generation); !known || c.Offset > end {
		return 0, false
	}
	for _, s := range l.segs {
		if s.number > from.number {
			bytes += s.diskBytes() - headerBytes
		}
	}
	return bytes, true
}
