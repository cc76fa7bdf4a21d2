package migrate

import (
	"path"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// recordFile, in a data directory that was closed cleanly, says where its log is in the stream of a server that is no kevy. It is removed before
// the directory gets anything else: so what it says is true as long as the logs end where it says.
const (
	recordFile = "SOURCE"
	maxRecord  = 64 << 10
)

// position is a place in a server's stream, and in the logs when all before it was applied.
type position struct {
	Replid string       `json:"replid"` // "": none
	Offset int64        `json:"offset"` // behind the last byte applied
	Taken  int          `json:"taken"`  // database that is taken
	DB     int          `json:"db"`     // that is selected there
	Tails  []log.Cursor `json:"tails"`
}

// at reports whether the position is that of logs that end at tails.
func (p *position) at(tails []log.Cursor) bool {
	return p.Replid != "" && slices.Equal(p.Tails, tails)
}

// write makes the record of a position. REQUIRES: nothing is appended to the directory before it is closed.
func (p *position) write(fsys vfs.FS, dir string) error {
	return vfs.WriteRecord(fsys, path.Join(dir, recordFile), p)
}

// takeRecord reads the record of a directory and removes it. Without one, and with one that is damaged, the position is none.
func takeRecord(fsys vfs.FS, dir string) (position, error) {
	return vfs.TakeRecord[position](fsys, path.Join(dir, recordFile), maxRecord)
}

// hasRecord reports whether there is a record in a directory.
func hasRecord(fsys vfs.FS, dir string) bool { return vfs.HasRecord(fsys, path.Join(dir, recordFile)) }
