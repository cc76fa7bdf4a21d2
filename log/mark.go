package log

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
)

// The durable mark, DIR/shard-NN/DURABLE, says how far the log was durable at least. It is written
// after fsyncs, not after each (markEvery, markPause), and not synced itself: it may be old, and it may be torn,
// but it never claims too much. Recovery tells damage from an unclean tail by it.
//
//	off size
//	  0   4  CRC32C of bytes 4..31
//	  4   4  version = 1
//	  8   8  generation
//	 16   8  offset: every frame below it is durable
//	 24   8  number of the segment that was synced
const (
	markName    = "DURABLE"
	markBytes   = 32
	markVersion = 1
	markEvery   = 4 << 20                // bytes of the log after which it is written again at the latest
	markPause   = 900 * time.Millisecond // and time; less than the committer's second
)

type mark struct {
	cursor  Cursor
	segment uint64
}

func (m mark) put(b *[markBytes]byte) {
	le.PutUint32(b[4:], markVersion)
	le.PutUint64(b[8:], m.cursor.Generation)
	le.PutUint64(b[16:], m.cursor.Offset)
	le.PutUint64(b[24:], m.segment)
	le.PutUint32(b[0:], crc32.Checksum(b[4:], castagnoli))
}

// decodeMark returns the zero mark for anything that is not a mark.
func decodeMark(b []byte) mark {
	if len(b) != markBytes || le.Uint32(b[4:]) != markVersion || le.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return mark{}
	}
	return mark{Cursor{le.Uint64(b[8:]), le.Uint64(b[16:])}, le.Uint64(b[24:])}
}

// readMark returns the zero mark when there is no valid one.
func readMark(fsys vfs.FS, dir string) (mark, error) {
	b, err := readFile(fsys, path.Join(dir, markName), markBytes)
	var damage *CorruptError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &damage) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	return decodeMark(b), nil
}

// openMark opens the mark for writing, making it if needed.
func openMark(fsys vfs.FS, dir string) (vfs.File, error) {
	name := path.Join(dir, markName)
	f, err := fsys.OpenReadWrite(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = fsys.Create(name)
	}
	if err != nil {
		return nil, fmt.Errorf("log: opening the durable mark: %w", err)
	}
	return f, nil
}

// lowerMark durably takes back what the mark claims, before bytes below it are cut.
func lowerMark(fsys vfs.FS, dir string) error {
	f, err := openMark(fsys, dir)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, markBytes), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("log: lowering the durable mark: %w", err)
	}
	return nil
}
