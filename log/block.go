package log

import (
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A block is a piece of a file that is compressed and checked by itself. Sealed segments and snapshots
// are made of them.
//
//	off size (little-endian)
//	  0   4  CRC32C: file as u64, position as u64, then bytes 4..end
//	  4   4  raw length, 1..MaxBlock
//	  8   4  stored length, 1..raw length: less is a zstd frame, as much is the raw bytes
//	 12   n  stored bytes
//
// File and position (BlockPlace) are not stored: a block of another file or place does not pass.
const (
	// BlockHeader is the length of a block's header in bytes.
	BlockHeader = 12
	// MaxBlock is the most raw bytes of a block.
	MaxBlock = 4 << 20
)

// BlockPlace is where a block stands.
type BlockPlace struct {
	File uint64 // any identity of the file that its reader knows beforehand
	Pos  int64  // of the block's first byte in the file
}

func (p BlockPlace) sum(block []byte) uint32 {
	return crc32.Update(crcUint64(crcUint64(0, p.File), uint64(p.Pos)), castagnoli, block[4:])
}

// BlockEncoder makes blocks. It is safe for concurrent use; calls beyond its concurrency wait.
type BlockEncoder struct {
	enc     *zstd.Encoder
	largest int
}

// NewBlockEncoder returns an encoder of blocks of at most largest raw bytes, for up to concurrency calls at a time (0: one per CPU). It
// holds memory for as many; dense makes smaller blocks for about twice the time.
//
// REQUIRES: largest is a power of two, not above MaxBlock.
func NewBlockEncoder(dense bool, concurrency, largest int) *BlockEncoder {
	level := zstd.SpeedFastest
	if dense {
		level = zstd.SpeedDefault
	}
	o := []zstd.EOption{
		zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true),
		zstd.WithWindowSize(largest), zstd.WithLowerEncoderMem(true),
	}
	if concurrency > 0 {
		o = append(o, zstd.WithEncoderConcurrency(concurrency))
	}
	enc, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic("log: block encoder: " + err.Error()) // of the options, which are constants
	}
	return &BlockEncoder{enc, largest}
}

// Append appends raw as one block to dst and returns it. It keeps neither.
//
// REQUIRES: raw is not empty, and not longer than the encoder was made for.
func (e *BlockEncoder) Append(dst, raw []byte, at BlockPlace) []byte {
	if len(raw) < 1 || len(raw) > e.largest {
		panic(fmt.Sprintf("log: block of %d bytes", len(raw)))
	}
	start := len(dst)
	var head [BlockHeader]byte
	dst = e.enc.EncodeAll(raw, append(dst, head[:]...))
	if len(dst)-start-BlockHeader >= len(raw) {
		dst = append(dst[:start+BlockHeader], raw...)
	}
	b := dst[start:]
	le.PutUint32(b[4:], uint32(len(raw)))
	le.PutUint32(b[8:], uint32(len(b)-BlockHeader))
	le.PutUint32(b, at.sum(b))
	return dst
}

// BlockSize tells from the first BlockHeader bytes of a block how long it is in the file, header included, and how
// many raw bytes it holds. It checks that both are possible, not that they are right: DecodeBlock does.
func BlockSize(head []byte) (stored, raw int, err error) {
	if len(head) < BlockHeader {
		return 0, 0, corruptf("block header of %d bytes", len(head))
	}
	r, n := le.Uint32(head[4:]), le.Uint32(head[8:])
	if r < 1 || r > MaxBlock || n < 1 || n > r {
		return 0, 0, corruptf("block of %d raw bytes in %d", r, n)
	}
	return BlockHeader + int(n), int(r), nil
}

var blockDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxBlock),
		zstd.WithDecoderMaxWindow(MaxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("log: block decoder: " + err.Error()) // of the options, which are constants
	}
	return d
})

// DecodeBlock appends the raw bytes of block, the whole of one and nothing else, to dst and returns it. It allocates
// at most the raw length, and that only after the checksum has been right. The error matches ErrCorrupt, and
// dst is what it was. Safe for concurrent use.
func DecodeBlock(dst, block []byte, at BlockPlace) ([]byte, error) {
	stored, raw, err := BlockSize(block)
	if err != nil {
		return dst, err
	}
	if len(block) != stored {
		return dst, corruptf("block of %d bytes, %d are there", stored, len(block))
	}
	if sum := at.sum(block); sum != le.Uint32(block) {
		return dst, corruptf("checksum of the block is %08x, computed %08x", le.Uint32(block), sum)
	}
	n := len(dst)
	if cap(dst)-n < raw {
		dst = append(make([]byte, 0, n+raw), dst...)
	}
	if stored-BlockHeader == raw {
		return append(dst, block[BlockHeader:]...), nil
	}
	// The capacity is the limit of what is decoded.
	out, err := blockDecoder().DecodeAll(block[BlockHeader:], dst[:n:n+raw])
	if err != nil {
		return dst, corruptf("block: %v", err)
	}
	if len(out) != n+raw {
		return dst, corruptf("block of %d raw bytes holds %d", raw, len(out)-n)
	}
	return dst[:n+raw], nil // where out is, with all the room there was
}
