package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

const (
	magic      = "kevysnap"
	footMagic  = "kevyend\n"
	version    = 2
	headerSize = 128
	footerSize = 40
)

var (
	// ErrCorrupt is the class of damaged snapshot files and sets.
	ErrCorrupt = errors.New("snapshot: corrupt")
	// ErrVersion means that the file was written by another version of kevy.
	ErrVersion = errors.New("snapshot: unknown format version")
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Header describes the snapshot of one shard.
type Header struct {
	Shard, Shards int
	Set           uint64     // set id
	Cursor        log.Cursor // of the first frame that is not in the snapshot
	TimeMS        int64      // unix ms at which the view was frozen
	HashSeed      uint64
}

// Validate reports what no header can say.
func (h *Header) Validate() error {
	if h.Shards < 1 || h.Shard < 0 || h.Shard >= h.Shards {
		return fmt.Errorf("%w: shard %d of %d", ErrCorrupt, h.Shard, h.Shards)
	}
	if h.Cursor.Generation == 0 || h.Set == 0 {
		return fmt.Errorf("%w: no generation or set id", ErrCorrupt)
	}
	return nil
}

func (h *Header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint32(b[12:], uint32(h.Shard))
	le.PutUint32(b[16:], uint32(h.Shards))
	le.PutUint64(b[24:], h.Set)
	le.PutUint64(b[32:], h.Cursor.Generation)
	le.PutUint64(b[40:], h.Cursor.Offset)
	le.PutUint64(b[48:], uint64(h.TimeMS))
	le.PutUint64(b[56:], h.HashSeed)
	return fixHeader(b)
}

// fixHeader sets the header's checksum.
func fixHeader(b []byte) []byte {
	le.PutUint32(b[124:], crc32.Checksum(b[:124], castagnoli))
	return b
}

func decodeHeader(b []byte) (h Header, err error) {
	if len(b) < headerSize || string(b[:8]) != magic {
		return h, fmt.Errorf("%w: not a snapshot file", ErrCorrupt)
	}
	if sum := crc32.Checksum(b[:124], castagnoli); sum != le.Uint32(b[124:]) {
		return h, fmt.Errorf("%w: checksum of the header", ErrCorrupt)
	}
	if v := le.Uint32(b[8:]); v != version {
		return h, fmt.Errorf("%w %d: this kevy reads version %d", ErrVersion, v, version)
	}
	h = Header{
		Shard:    int(le.Uint32(b[12:])),
		Shards:   int(le.Uint32(b[16:])),
		Set:      le.Uint64(b[24:]),
		Cursor:   log.Cursor{Generation: le.Uint64(b[32:]), Offset: le.Uint64(b[40:])},
		TimeMS:   int64(le.Uint64(b[48:])),
		HashSeed: le.Uint64(b[56:]),
	}
	return h, h.Validate()
}

// ReadCursor returns the cursor of the snapshot file at path from its header alone: the first
// frame that is not in it.
func ReadCursor(path string) (log.Cursor, error) {
	h, err := ReadHeader(vfs.OS(), path)
	return h.Cursor, err
}

// ReadHeader reads the header of the snapshot file at path.
func ReadHeader(fs vfs.FS, path string) (Header, error) {
	f, err := fs.Open(path)
	if err != nil {
		return Header{}, fmt.Errorf("snapshot: %w", err)
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

func readHeader(f io.ReaderAt) (Header, error) {
	b := make([]byte, headerSize)
	n, err := f.ReadAt(b, 0)
	if n < headerSize {
		if err == nil || errors.Is(err, io.EOF) {
			return Header{}, fmt.Errorf("%w: %d bytes where a header of %d should be", ErrCorrupt, n, headerSize)
		}
		return Header{}, err
	}
	return decodeHeader(b)
}

// place tells where the block at pos of a shard's file stands, for its checksum.
func (h *Header) place(pos int64) log.BlockPlace {
	return log.BlockPlace{File: h.Set<<8 ^ uint64(h.Shard), Pos: pos}
}

type footer struct {
	frames, keys uint64
	raw          int64 // bytes of the frames
	sum          uint32
}

func (f footer) encode() []byte {
	b := make([]byte, footerSize)
	copy(b, footMagic)
	le.PutUint64(b[8:], f.frames)
	le.PutUint64(b[16:], f.keys)
	le.PutUint64(b[24:], uint64(f.raw))
	le.PutUint32(b[32:], f.sum)
	le.PutUint32(b[36:], crc32.Checksum(b[:36], castagnoli))
	return b
}

func decodeFooter(b []byte) (footer, error) {
	if string(b[:8]) != footMagic || crc32.Checksum(b[:36], castagnoli) != le.Uint32(b[36:]) {
		return footer{}, fmt.Errorf("%w: no footer: the file is not whole", ErrCorrupt)
	}
	f := footer{frames: le.Uint64(b[8:]), keys: le.Uint64(b[16:]), raw: int64(le.Uint64(b[24:])), sum: le.Uint32(b[32:])}
	if f.raw < 0 {
		return footer{}, fmt.Errorf("%w: footer: %d bytes of frames", ErrCorrupt, f.raw)
	}
	return f, nil
}
