package log

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/kevydb/kevy/internal/vfs"
)

// sealedView shows an open sealed segment as the raw one it was made from: ReadAt takes raw positions.
// Safe for concurrent use.
type sealedView struct {
	head  *segmentHeader
	name  string
	file  vfs.File
	index *sealedIndex
	cache *chunkCache
}

// openSealed reads the index of an open sealed segment whose header is h.
func openSealed(f vfs.File, name string, h *segmentHeader, cache *chunkCache) (*sealedView, error) {
	v := &sealedView{head: h, name: name, file: f, cache: cache}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	pos := h.seal.indexPos
	if n := size - pos; n <= BlockHeader || n > BlockHeader+MaxBlock {
		return nil, v.damaged(pos, h.start(), corruptf("sealed segment of %d bytes with the index at %d", size, pos))
	}
	raw, err := v.block(nil, pos, int(size-pos), h.start())
	if err != nil {
		return nil, err
	}
	if v.index, err = decodeIndex(raw, h); err != nil {
		return nil, v.damaged(pos, h.start(), err)
	}
	return v, nil
}

// end is the offset after the last frame.
func (v *sealedView) end() uint64 { return v.index.chunks[len(v.index.chunks)-1].end() }

func (v *sealedView) damaged(pos int64, c Cursor, err error) error {
	return &CorruptError{File: v.name, Position: pos, Cursor: c, Err: err}
}

// block reads and decodes the block of n bytes at pos; c is the cursor for errors.
func (v *sealedView) block(dst []byte, pos int64, n int, c Cursor) ([]byte, error) {
	b := make([]byte, n)
	if err := v.read(b, pos, c); err != nil {
		return nil, err
	}
	out, err := DecodeBlock(dst, b, BlockPlace{v.head.blockFile(), pos})
	if err != nil {
		return nil, v.damaged(pos, c, err)
	}
	return out, nil
}

// read fills b from the file at pos.
func (v *sealedView) read(b []byte, pos int64, c Cursor) error {
	err := readFull(v.file, b, pos)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = v.damaged(pos, c, corruptf("the file ends before it should"))
	}
	return err
}

func (v *sealedView) cursor(c *chunk) Cursor { return Cursor{v.head.generation, c.off} }

// table reads the table of a chunk.
func (v *sealedView) table(c *chunk) ([]bucket, error) {
	pos := c.pos + int64(c.blocks)
	raw, err := v.block(nil, pos, c.table, v.cursor(c))
	if err != nil {
		return nil, err
	}
	buckets, err := decodeTable(raw, c)
	if err != nil {
		return nil, v.damaged(pos, v.cursor(c), err)
	}
	return buckets, nil
}

// ReadAt implements io.ReaderAt for the bytes of the raw segment behind its header.
func (v *sealedView) ReadAt(p []byte, pos int64) (n int, err error) {
	for n < len(p) {
		i := v.index.at(pos)
		if i == len(v.index.chunks) {
			return n, io.EOF
		}
		raw, err := v.chunk(i)
		if err != nil {
			return n, err
		}
		m := copy(p[n:], raw[pos-v.index.chunks[i].raw:])
		n += m
		pos += int64(m)
	}
	return n, nil
}

// chunk returns the raw bytes of a chunk, which nobody may change.
func (v *sealedView) chunk(i int) ([]byte, error) {
	key := chunkKey{v.head.shard, v.head.number, i}
	if raw := v.cache.get(key); raw != nil {
		return raw, nil
	}
	raw, err := v.decodeChunk(&v.index.chunks[i])
	if err == nil {
		v.cache.put(key, raw)
	}
	return raw, err
}

// bitmapRoom is more than a bitmap takes beyond four bytes a frame.
const bitmapRoom = 64

// chunkScratch is what decoding a chunk needs for the time being.
type chunkScratch struct {
	stored, raw []byte
	frames      [][]byte
}

var chunkScratches = sync.Pool{New: func() any { return &chunkScratch{} }}

func (v *sealedView) decodeChunk(c *chunk) ([]byte, error) {
	buckets, err := v.table(c)
	if err != nil {
		return nil, err
	}
	x := chunkScratches.Get().(*chunkScratch)
	defer chunkScratches.Put(x)
	x.stored = slices.Grow(x.stored[:0], c.blocks)
	stored := x.stored[:c.blocks]
	if err := v.read(stored, c.pos, v.cursor(c)); err != nil {
		return nil, err
	}
	if c.plain {
		raw, err := DecodeBlock(nil, stored, BlockPlace{v.head.blockFile(), c.pos})
		if err == nil && len(raw) != c.rawLen {
			err = corruptf("plain chunk of %d bytes, %d expected", len(raw), c.rawLen)
		}
		if err != nil {
			return nil, v.damaged(c.pos, v.cursor(c), err)
		}
		return raw, nil
	}
	x.frames = slices.Grow(x.frames[:0], c.frames)
	all := x.frames[:c.frames]
	clear(all)
	dst := slices.Grow(x.raw[:0], c.rawLen+4*c.frames+bitmapRoom*len(buckets)) // all of the buckets
	for i := range buckets {
		k := &buckets[i]
		pos := c.pos + int64(k.at)
		dst, err = v.bucket(dst, c, k, stored[k.at:k.at+k.stored], func(n uint32, frame []byte) error {
			if all[n] != nil {
				return corruptf("frame %d of a chunk is there twice", n)
			}
			all[n] = frame
			return nil
		})
		if err != nil {
			return nil, v.damaged(pos, v.cursor(c), err)
		}
	}
	x.raw = dst
	raw := make([]byte, 0, c.rawLen)
	for _, frame := range all { // all are there: the table has counted them
		if len(raw)+len(frame) > c.rawLen {
			break
		}
		raw = append(raw, frame...)
	}
	if len(raw) != c.rawLen {
		return nil, v.damaged(c.pos, v.cursor(c), corruptf("the frames of a chunk are not its %d bytes", c.rawLen))
	}
	return raw, nil
}

// bucket decodes a bucket of chunk c from its stored bytes behind dst, which it returns, and calls f with its frames and
// their numbers in the chunk, ascending. The frames lie in what it returns.
func (v *sealedView) bucket(dst []byte, c *chunk, k *bucket, stored []byte, f func(n uint32, frame []byte) error) ([]byte, error) {
	start := len(dst)
	dst, err := DecodeBlock(dst, stored, BlockPlace{v.head.blockFile(), c.pos + int64(k.at)})
	if err != nil {
		return dst, err
	}
	d := uvarints{b: dst[start:]}
	bits := d.bytes(len(dst))
	if d.bad {
		return dst, corruptf("bucket without a bitmap")
	}
	numbers, err := bucketFrames(bits, k.frames, c.frames)
	if err != nil {
		return dst, err
	}
	return dst, eachFrame(d.b, numbers, f)
}

// eachFrame calls f with the frames that b is made of, which have the given numbers.
func eachFrame(b []byte, numbers []uint32, f func(n uint32, frame []byte) error) error {
	rest := b
	for _, n := range numbers {
		if len(rest) < frameHeader {
			return corruptf("%d bytes in a bucket where a frame should be", len(rest))
		}
		size, err := frameSize(rest)
		if err == nil && size > len(rest) {
			err = corruptf("frame of %d bytes, its bucket has %d more", size, len(rest))
		}
		if err != nil {
			return err
		}
		if err := f(n, rest[:size:size]); err != nil {
			return err
		}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return corruptf("%d bytes after the frames of a bucket", len(rest))
	}
	return nil
}

// bucketFrames decodes a bitmap that must have want members, all below limit.
func bucketFrames(bits []byte, want, limit int) ([]uint32, error) {
	bm := roaring.New()
	n, err := bm.FromUnsafeBytes(bits)
	if err == nil {
		err = bm.Validate()
	}
	if err != nil {
		return nil, corruptf("bitmap of a bucket: %v", err)
	}
	if int(n) != len(bits) || bm.IsEmpty() || bm.GetCardinality() != uint64(want) || int(bm.Maximum()) >= limit {
		return nil, corruptf("bitmap of a bucket: %d of %d frames in %d bytes", bm.GetCardinality(), want, len(bits))
	}
	return bm.ToArray(), nil
}

// chunkCache keeps the chunks decoded last, so that many short reads of one place decode it once. Safe
// for concurrent use.
type chunkCache struct {
	mu   sync.Mutex
	list [cachedChunks]cachedChunk // the newest first
}

// cachedChunks bounds a directory's cache: at most that many times sealSizes.chunk bytes.
const cachedChunks = 16

type chunkKey struct {
	shard  int
	number uint64
	chunk  int
}

type cachedChunk struct {
	key chunkKey
	raw []byte // nil: nothing here
}

func (x *chunkCache) get(key chunkKey) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, e := range x.list {
		if e.raw != nil && e.key == key {
			copy(x.list[1:i+1], x.list[:i])
			x.list[0] = e
			return e.raw
		}
	}
	return nil
}

func (x *chunkCache) put(key chunkKey, raw []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	copy(x.list[1:], x.list[:])
	x.list[0] = cachedChunk{key, raw}
}
