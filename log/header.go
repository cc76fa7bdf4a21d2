package log

import (
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/vfs"
)

// A segment file is a header, then frames without gaps, then possibly zeros.
//
//	off size header (128 bytes), little-endian
//	  0   8  magic "kevyseg\n"
//	  8   4  format version = 1
//	 12   4  shard
//	 16   8  segment number
//	 24   8  generation
//	 32   8  base offset: offset of the first frame in this file
//	 40   8  parent generation (0: none; equal to generation when the generation goes on)
//	 48   8  parent offset: where this generation forks off the parent, or the base offset
//	 56   8  previous segment number (0: none)
//	 64   8  previous segment's final size
//	 72   4  CRC32C field of the previous segment's last frame (0: none)
//	 76   4  cause of the generation
//	 80   8  unix ms of creation
//	 88   8  last transaction id in the shard before this segment (0: none)
//	 96   8  unix ms of the last frame in the shard before this segment (0: none)
//	104  20  zero; of a sealed segment (version 2): see sealed.go
//	124   4  CRC32C of bytes 0..123
const (
	headerBytes   = 128
	magic         = "kevyseg\n"
	formatVersion = 1
)

// segmentHeader is the decoded header of a segment.
type segmentHeader struct {
	shard      int
	number     uint64
	generation uint64
	base       uint64
	parent     uint64 // generation
	parentOff  uint64
	prev       uint64 // segment number
	prevSize   int64
	prevCRC    uint32
	cause      Cause
	createdMS  int64
	lastTxn    uint64
	lastTimeMS int64
	seal       *sealedInfo // nil: a raw segment
}

func (h *segmentHeader) start() Cursor { return Cursor{h.generation, h.base} }

// startsBehind reports whether all frames that the segment has or will have are behind the one at c.
func (h *segmentHeader) startsBehind(c Cursor) bool {
	return h.generation > c.Generation || h.generation == c.Generation && h.base > c.Offset
}

// begins reports whether the segment is the first of its generation.
func (h *segmentHeader) begins() bool { return h.parent != h.generation }

// validate checks what no header may violate; encode and decode both call it.
func (h *segmentHeader) validate() error {
	switch {
	case h.shard < 0 || h.shard >= MaxShards:
		return corruptf("segment header: shard %d", h.shard)
	case h.number == 0 || h.generation == 0 || h.generation > maxGeneration:
		return corruptf("segment header: segment %d of generation %d", h.number, h.generation)
	case h.begins() && h.base != 0:
		return corruptf("segment header: generation %d begins at offset %d", h.generation, h.base)
	case !h.begins() && (h.parentOff != h.base || h.prev == 0):
		return corruptf("segment header: generation %d goes on at %d after %d, segment %d",
			h.generation, h.base, h.parentOff, h.prev)
	case h.begins() && h.parent > h.generation:
		return corruptf("segment header: generation %d has the younger parent %d", h.generation, h.parent)
	case h.prev >= h.number || (h.prev == 0) != (h.prevSize == 0) || (h.prev != 0 && h.prevSize < headerBytes):
		return corruptf("segment header: segment %d follows %d of %d bytes", h.number, h.prev, h.prevSize)
	case h.seal != nil && (h.seal.rawSize <= headerBytes || h.seal.indexPos <= headerBytes):
		return corruptf("segment header: sealed, of %d raw bytes, index at %d", h.seal.rawSize, h.seal.indexPos)
	}
	return nil
}

func (h *segmentHeader) encode() []byte {
	b := make([]byte, headerBytes)
	copy(b, magic)
	le.PutUint32(b[8:], formatVersion)
	le.PutUint32(b[12:], uint32(h.shard))
	le.PutUint64(b[16:], h.number)
	le.PutUint64(b[24:], h.generation)
	le.PutUint64(b[32:], h.base)
	le.PutUint64(b[40:], h.parent)
	le.PutUint64(b[48:], h.parentOff)
	le.PutUint64(b[56:], h.prev)
	le.PutUint64(b[64:], uint64(h.prevSize))
	le.PutUint32(b[72:], h.prevCRC)
	le.PutUint32(b[76:], uint32(h.cause))
	le.PutUint64(b[80:], uint64(h.createdMS))
	le.PutUint64(b[88:], h.lastTxn)
	le.PutUint64(b[96:], uint64(h.lastTimeMS))
	if s := h.seal; s != nil {
		le.PutUint32(b[8:], sealedVersion)
		le.PutUint64(b[104:], uint64(s.rawSize))
		le.PutUint64(b[112:], uint64(s.indexPos))
		le.PutUint32(b[120:], s.lastCRC)
	}
	le.PutUint32(b[124:], crc32.Checksum(b[:124], castagnoli))
	return b
}

// decodeHeader decodes the first headerBytes of a segment. The error matches ErrVersion for a
// version this program does not know, ErrCorrupt for anything else that is wrong.
func decodeHeader(b []byte) (h segmentHeader, err error) {
	if len(b) < headerBytes {
		return h, corruptf("segment header of %d bytes", len(b))
	}
	if string(b[:8]) != magic {
		return h, corruptf("segment header: no magic")
	}
	version := le.Uint32(b[8:])
	if version > sealedVersion {
		return h, fmt.Errorf("%w: segment version %d, newest known is %d", ErrVersion, version, sealedVersion)
	}
	if sum := crc32.Checksum(b[:124], castagnoli); sum != le.Uint32(b[124:]) {
		return h, corruptf("segment header: checksum")
	}
	h = segmentHeader{
		shard:      int(le.Uint32(b[12:])),
		number:     le.Uint64(b[16:]),
		generation: le.Uint64(b[24:]),
		base:       le.Uint64(b[32:]),
		parent:     le.Uint64(b[40:]),
		parentOff:  le.Uint64(b[48:]),
		prev:       le.Uint64(b[56:]),
		prevSize:   int64(le.Uint64(b[64:])),
		prevCRC:    le.Uint32(b[72:]),
		cause:      Cause(le.Uint32(b[76:])),
		createdMS:  int64(le.Uint64(b[80:])),
		lastTxn:    le.Uint64(b[88:]),
		lastTimeMS: int64(le.Uint64(b[96:])),
	}
	if version == sealedVersion {
		h.seal = &sealedInfo{int64(le.Uint64(b[104:])), int64(le.Uint64(b[112:])), le.Uint32(b[120:])}
	}
	return h, h.validate()
}

const segmentSuffix = ".seg"

func segmentName(number uint64) string { return fmt.Sprintf("%020d%s", number, segmentSuffix) }

func sealedName(number uint64) string { return fmt.Sprintf("%020d%s", number, sealedSuffix) }

// segmentNumber parses a name made by segmentName or sealedName.
func segmentNumber(name string) (n uint64, sealed, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		digits, sealed = strings.CutSuffix(name, sealedSuffix)
	}
	if len(digits) != 20 || !(ok || sealed) {
		return 0, false, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, sealed, err == nil && n > 0
}

func shardDir(dir string, shard int) string { return path.Join(dir, fmt.Sprintf("shard-%02d", shard)) }

// readHeader reads and decodes the header of a segment file of the given size, and the time of
// its first frame (0: none, or sealed), which is unchecked and for information only.
func readHeader(f vfs.File, name string, size int64) (h segmentHeader, firstMS int64, err error) {
	b := make([]byte, min(size, headerBytes+frameHeader))
	if n, err := f.ReadAt(b, 0); err != nil && (err != io.EOF || n < len(b)) { //nolint:errorlint // io.ReaderAt says io.EOF
		return h, 0, fmt.Errorf("log: reading the header of %s: %w", name, err)
	}
	h, err = decodeHeader(b)
	if err != nil {
		return h, 0, &CorruptError{File: name, Position: 0, Err: err}
	}
	if h.seal == nil && len(b) == headerBytes+frameHeader {
		firstMS = timeOf(b[headerBytes:])
	}
	return h, firstMS, nil
}
