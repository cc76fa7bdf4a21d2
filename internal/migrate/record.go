package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// recordFile, in a data directory that was closed cleanly, says where its log is in the stream of a server that is no kevy. It is removed before
// the directory gets anything else: so what it says is true as long as the logs end where it says.
const (
	recordFile  = "SOURCE"
	maxRecord   = 64 << 10
	recordTrail = "crc32c %08x\n"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	b = fmt.Appendf(b, recordTrail, crc32.Checksum(b, castagnoli))
	if err := removeRecord(fsys, dir); err != nil {
		return err
	}
	if err := vfs.WriteFile(fsys, path.Join(dir, recordFile), b); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// takeRecord reads the record of a directory and removes it. Without one, and with one that is damaged, the position is none.
func takeRecord(fsys vfs.FS, dir string) (p position, err error) {
	b, err := vfs.ReadFile(fsys, path.Join(dir, recordFile), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		const n = len("crc32c 12345678\n")
		at := len(b) - n
		if at < 0 || string(b[at:]) != fmt.Sprintf(recordTrail, crc32.Checksum(b[:at], castagnoli)) || json.Unmarshal(b[:at], &p) != nil {
			p = position{}
		}
	}
	return p, errors.Join(err, removeRecord(fsys, dir), fsys.SyncDir(dir))
}

// hasRecord reports whether there is a record in a directory.
func hasRecord(fsys vfs.FS, dir string) bool {
	_, err := fsys.Stat(path.Join(dir, recordFile))
	return err == nil
}

func removeRecord(fsys vfs.FS, dir string) error {
	err := fsys.Remove(path.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
