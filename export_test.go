package kevy

import (
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/snapshot"
)

// SetCountForTesting sets how many keys or frames the mirror asks for at a time.
func (m *Mirror) SetCountForTesting(n int) { m.count = n }

// OnFSForTesting keeps the store's directory in fs.
func (c Config) OnFSForTesting(fs vfs.FS) Config { c.fs = fs; return c }

// SetSnapshotMinForTesting sets from how many bytes on snapshots are taken by themselves, until undo is called.
func SetSnapshotMinForTesting(n int64) (undo func()) {
	old := snapshotMin
	snapshotMin = n
	return func() { snapshotMin = old }
}

// SnapshotsForTesting counts the snapshots taken.
func (s *Store) SnapshotsForTesting() int { return s.e.SaveStatus().Count }

// SetsForTesting returns the snapshot sets among the store's files.
func (s *Store) SetsForTesting() []string {
	ids, err := snapshot.List(s.e.FS(), s.e.Dir().Path())
	if err != nil {
		panic(err)
	}
	return ids
}
