package vfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
)

const recordTrail = "crc32c %08x\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// WriteRecord makes or replaces the file of a record, durably: v as JSON, and a line "crc32c <8 hex>". A crash may leave none. A record is what a clean
// stop leaves in a data directory for the next start, which takes it before anything else.
func WriteRecord(fsys FS, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	b = fmt.Appendf(b, recordTrail, crc32.Checksum(b, castagnoli))
	if err := RemoveIfThere(fsys, name); err != nil {
		return err
	}
	if err := WriteFile(fsys, name, b); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

// TakeRecord reads a record of at most limit bytes and removes its file, durably. Without one, and of one that is damaged, it is the zero T.
func TakeRecord[T any](fsys FS, name string, limit int64) (v T, err error) {
	b, err := ReadFile(fsys, name, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err == nil {
		at := len(b) - len("crc32c 12345678\n")
		if at < 0 || string(b[at:]) != fmt.Sprintf(recordTrail, crc32.Checksum(b[:at], castagnoli)) || json.Unmarshal(b[:at], &v) != nil {
			v = *new(T)
		}
	}
	return v, errors.Join(err, RemoveIfThere(fsys, name), fsys.SyncDir(path.Dir(name)))
}

// HasRecord reports whether there is the file of a record.
func HasRecord(fsys FS, name string) bool {
	_, err := fsys.Stat(name)
	return err == nil
}

// RemoveIfThere removes a file. It is no error if there is none.
func RemoveIfThere(fsys FS, name string) error {
	err := fsys.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
