package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"

	"github.com/kevydb/kevy/internal/vfs"
)

// A record is a file that a clean stop leaves in a data directory for the next start, which removes it, durably, before anything else: JSON, one line
// "crc32c <8 hex>".

const recordTrail = "crc32c %08x\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// WriteRecord makes a record of v.
func WriteRecord(fsys vfs.FS, dir, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	b = fmt.Appendf(b, recordTrail, crc32.Checksum(b, castagnoli))
	if err := removeRecord(fsys, dir, name); err != nil {
		return err
	}
	if err := vfs.WriteFile(fsys, path.Join(dir, name), b); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// TakeRecord reads a record of at most so many bytes and removes it. Without one, and with one that is damaged, ok is false and v may hold anything.
func TakeRecord(fsys vfs.FS, dir, name string, most int64, v any) (ok bool, err error) {
	b, err := vfs.ReadFile(fsys, path.Join(dir, name), most)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		const n = len("crc32c 12345678\n")
		at := len(b) - n
		ok = at >= 0 && string(b[at:]) == fmt.Sprintf(recordTrail, crc32.Checksum(b[:at], castagnoli)) && json.Unmarshal(b[:at], v) == nil
	}
	return ok, errors.Join(err, removeRecord(fsys, dir, name), fsys.SyncDir(dir))
}

func removeRecord(fsys vfs.FS, dir, name string) error {
	err := fsys.Remove(path.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
