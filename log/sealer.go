package log

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// sealSizes are the sizes a sealed segment is made with. They are no part of the format.
//
// A filtered read decodes about one bucket a chunk, a read of one place a whole chunk: large chunks and small
// buckets are good for filters, and small buckets compress less. docs/benchmarks.md has what these measure.
type sealSizes struct {
	chunk    int // raw bytes of a chunk
	bucket   int // raw bytes of a bucket, where keys change; four times as many where they don't
	bigFrame int // a frame of at least so many bytes is a chunk by itself
	part     int // the most raw bytes of a plain chunk
	least    int // a segment of fewer raw bytes stays raw
}

var defaultSealSizes = sealSizes{chunk: 2 << 20, bucket: 16 << 10, bigFrame: 512 << 10, part: 1 << 20, least: 64 << 10}

// sealer encodes the body of a sealed segment: it takes frames and writes finished chunks. It holds a chunk, and what
// a chunk takes in the file. Not safe for concurrent use.
type sealer struct {
	sizes sealSizes
	enc   *BlockEncoder
	dst   io.WriterAt
	err   error  // of dst, sticky
	file  uint64 // BlockPlace.File
	out   []byte
	outAt int64 // position of out in the file
	index sealedIndex

	raw    []byte // frames of the chunk being filled
	frames []sealFrame
	cur    chunk

	order   []int32
	scratch []byte
	table   []bucket
}

// sealFrame is a frame of the chunk being filled.
type sealFrame struct {
	at, size int // in raw
	key      []byte
	single   bool
}

func newSealer(enc *BlockEncoder, sizes sealSizes, h *segmentHeader, dst io.WriterAt) *sealer {
	return &sealer{
		sizes: sizes, enc: enc, dst: dst, file: h.blockFile(), outAt: headerBytes,
		cur: chunk{raw: headerBytes, off: h.base},
	}
}

// blockFile is the identity of a sealed segment in the checksums of its blocks.
func (h *segmentHeader) blockFile() uint64 {
	return uint64(frameSeed(h.shard, h.generation))<<32 | uint64(crcUint64(0, h.number))
}

// add takes the next frame; raw is all of its bytes. It keeps neither.
func (s *sealer) add(f *Frame, raw []byte) error {
	if len(raw) >= s.sizes.bigFrame {
		s.flush()
		s.addBig(f, raw)
		return s.err
	}
	if len(s.frames) > 0 && (len(s.raw)+len(raw) > s.sizes.chunk || len(s.frames) == maxChunkFrames) {
		s.flush()
	}
	s.begin(f)
	at := len(s.raw)
	s.raw = append(s.raw, raw...)
	x := sealFrame{at: at, size: len(raw), single: f.Single}
	if f.Single {
		end := len(raw) - len(f.Payload) + int(raw[posKey]) + len(f.Key)
		x.key = s.raw[at+end-len(f.Key) : at+end] // stays as it is when raw moves
	}
	s.frames = append(s.frames, x)
	return s.err
}

// begin notes what the index says about the frame that is the next of the chunk being filled.
func (s *sealer) begin(f *Frame) {
	if len(s.frames) == 0 {
		s.cur.timeMS = f.TimeMS
	}
	if f.GroupFirst && !s.cur.group {
		s.cur.group, s.cur.groupOff, s.cur.groupPos = true, f.Cursor.Offset, s.cur.raw+int64(len(s.raw))
	}
}

// addBig makes plain chunks of one frame.
func (s *sealer) addBig(f *Frame, raw []byte) {
	s.begin(f)
	for len(raw) > 0 {
		part := raw[:min(len(raw), s.sizes.part)]
		raw = raw[len(part):]
		s.cur.plain, s.cur.timeMS = true, f.TimeMS
		k := bucket{always: !f.Single, lo: keyBound(f.Key), hi: keyBound(f.Key)}
		if s.cur.off == f.Cursor.Offset {
			k.frames = 1
		}
		s.block(&k, part)
		s.finish(len(part), k.frames)
	}
}

// block appends a bucket's block to out.
func (s *sealer) block(k *bucket, raw []byte) {
	start := len(s.out)
	s.out = s.enc.Append(s.out, raw, BlockPlace{s.file, s.outAt + int64(start)})
	k.stored = len(s.out) - start
	s.table = append(s.table, *k)
}

// flush ends the chunk being filled.
func (s *sealer) flush() {
	if len(s.frames) == 0 {
		return
	}
	s.order = s.order[:0]
	for i := range s.frames {
		s.order = append(s.order, int32(i))
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		x, y := &s.frames[a], &s.frames[b]
		if x.single != y.single {
			return int(boolByte(x.single)) - int(boolByte(y.single))
		}
		return cmp.Or(bytes.Compare(x.key, y.key), cmp.Compare(a, b))
	})
	for rest := s.order; len(rest) > 0; {
		n := s.cut(rest)
		s.bucket(rest[:n])
		rest = rest[n:]
	}
	s.finish(len(s.raw), len(s.frames))
	s.raw, s.frames = s.raw[:0], s.frames[:0]
}

// cut returns how many of the frames in order make up the next bucket.
func (s *sealer) cut(order []int32) int {
	size := 0
	for i, at := range order {
		f := &s.frames[at]
		if i > 0 {
			last := &s.frames[order[i-1]]
			switch {
			case f.single != last.single, size >= 4*s.sizes.bucket:
				return i
			case size >= s.sizes.bucket && !bytes.Equal(f.key, last.key):
				return i
			}
		}
		size += f.size
	}
	return len(order)
}

// bucket appends the block of a bucket of the given frames, which it puts into their order in the log.
func (s *sealer) bucket(frames []int32) {
	first, last := &s.frames[frames[0]], &s.frames[frames[len(frames)-1]]
	k := bucket{frames: len(frames), always: !first.single, lo: keyBound(first.key), hi: keyBound(last.key)}
	slices.Sort(frames)
	bm := roaring.New()
	for _, i := range frames {
		bm.Add(uint32(i))
	}
	bm.RunOptimize()
	bits, err := bm.ToBytes()
	if err != nil {
		panic("log: bitmap: " + err.Error()) // of a buffer in memory
	}
	s.scratch = binary.AppendUvarint(s.scratch[:0], uint64(len(bits)))
	s.scratch = append(s.scratch, bits...)
	for _, i := range frames {
		f := &s.frames[i]
		s.scratch = append(s.scratch, s.raw[f.at:f.at+f.size]...)
	}
	s.block(&k, s.scratch)
}

// finish appends the table and takes the chunk into the index.
func (s *sealer) finish(rawLen, frames int) {
	c := s.cur
	c.rawLen, c.frames = rawLen, frames
	for i := range s.table {
		c.blocks += s.table[i].stored
	}
	s.scratch = appendTable(s.scratch[:0], s.table)
	start := len(s.out)
	s.out = s.enc.Append(s.out, s.scratch, BlockPlace{s.file, s.outAt + int64(start)})
	c.table = len(s.out) - start
	s.index.chunks = append(s.index.chunks, c)
	s.table = s.table[:0]
	s.cur = chunk{raw: c.raw + int64(rawLen), off: c.end()}
	s.write()
}

// write writes what is finished.
func (s *sealer) write() {
	if s.err == nil {
		_, s.err = s.dst.WriteAt(s.out, s.outAt)
	}
	s.outAt += int64(len(s.out))
	s.out = s.out[:0]
}

// end writes the last chunk and the index. It returns the index's position and the size of the file.
func (s *sealer) end() (indexPos, size int64, err error) {
	s.flush()
	indexPos = s.outAt
	index := s.index.append(nil)
	if len(index) > MaxBlock {
		return 0, 0, fmt.Errorf("log: a segment of %d chunks is too long to be sealed", len(s.index.chunks))
	}
	s.out = s.enc.Append(s.out, index, BlockPlace{s.file, indexPos})
	s.write()
	return indexPos, s.outAt, s.err
}
