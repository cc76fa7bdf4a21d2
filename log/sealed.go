package log

import (
	"encoding/binary"
	"sort"
)

// A sealed segment holds the frames of a raw segment, byte for byte, as compressed blocks (block.go), so that
// reading all of them and reading those of a prefix both touch little. It is called <number>.sealed.
//
//	header      128 bytes, as of a raw segment but for: version 2; 104 size of the raw segment u64;
//	            112 position of the index u64; 120 CRC32C field of the last frame
//	chunks      one after the other
//	index       one block: the chunks. It ends the file.
//
// The raw segment's bytes after its header are cut into chunks at frames. The frames of a chunk are sorted into
// buckets, runs of neighbouring keys, and each bucket is a block: so the frames of any key prefix are in few
// blocks, whatever the keys look like. Frames that name no single key pass every filter: they are in buckets of
// their own. A chunk's blocks are followed by one more, its table, which tells the keys of each bucket.
//
//	bucket      uvarint length of the bitmap; roaring bitmap of the bucket's frames, numbered within the
//	            chunk; the frames, ascending
//	table       for each bucket: uvarint stored length, uvarint frames, byte 1: of frames without a single key,
//	            then uvarint length and bytes of a lower bound of its keys, the same of an upper bound:
//	            a prefix of the largest key
//
// A frame of bigFrame bytes or more is a chunk by itself, and more of these if it is longer than a part: plain
// chunks, whose only block holds raw bytes as they are. Their table has the one bucket, without frames
// in all parts but the first.
//
//	index       uvarint number of chunks; for each: byte 1: plain, uvarint stored length of the buckets,
//	            uvarint stored length of the table, uvarint raw length, uvarint frames that begin in it,
//	            uvarint 0: no group begins in it, else 1 + frames before the first one that begins a group,
//	            uvarint raw bytes before that one, uvarint ms after the chunk before (the first: unix ms)
//
// Offsets and raw positions are those of the raw segment. So the checksums of frames, links between segments and
// positions in errors mean the same in both, and one Stream reads both.
const (
	sealedSuffix   = ".sealed"
	sealedVersion  = 2
	maxChunkRaw    = MaxBlock
	maxChunkFrames = 1 << 16
	maxKeyBound    = 48
)

// sealedInfo is what the header of a sealed segment says beyond that of a raw one.
type sealedInfo struct {
	rawSize  int64
	indexPos int64
	lastCRC  uint32
}

// chunk is one entry of the index.
type chunk struct {
	plain    bool
	pos      int64 // of its first block in the file
	blocks   int   // bytes of its buckets in the file
	table    int   // bytes of its table, which follows
	raw      int64 // position of its first byte in the raw segment
	rawLen   int
	off      uint64 // of its first frame
	frames   int
	group    bool   // a group begins in it: the first one
	groupOff uint64 // at this offset
	groupPos int64  // and raw position
	timeMS   int64  // of its first frame; of a plain chunk without: of its frame
}

func (c *chunk) end() uint64 { return c.off + uint64(c.frames) }

// sealedIndex is the index of a sealed segment.
type sealedIndex struct {
	chunks []chunk
}

// at returns the chunk with the raw position pos.
func (x *sealedIndex) at(pos int64) int {
	return sort.Search(len(x.chunks), func(i int) bool { return x.chunks[i].raw+int64(x.chunks[i].rawLen) > pos })
}

// of returns the chunk in which the frame off begins.
func (x *sealedIndex) of(off uint64) int {
	return sort.Search(len(x.chunks), func(i int) bool { return x.chunks[i].end() > off })
}

// find returns the last group that is known to begin at or before off; the zero entry when there is none.
func (x *sealedIndex) find(off uint64) indexEntry {
	for i := min(x.of(off), len(x.chunks)-1); i >= 0; i-- {
		if c := &x.chunks[i]; c.group && c.groupOff <= off {
			return indexEntry{c.groupOff, c.groupPos}
		}
	}
	return indexEntry{}
}

// append appends the encoded index to b.
func (x *sealedIndex) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(x.chunks)))
	ms := int64(0)
	for i := range x.chunks {
		c := &x.chunks[i]
		b = append(b, boolByte(c.plain))
		for _, n := range [...]int{c.blocks, c.table, c.rawLen, c.frames} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		if c.group {
			b = binary.AppendUvarint(b, 1+c.groupOff-c.off)
			b = binary.AppendUvarint(b, uint64(c.groupPos-c.raw))
		} else {
			b = append(b, 0, 0)
		}
		b = binary.AppendUvarint(b, uint64(c.timeMS-ms))
		ms = c.timeMS
	}
	return b
}

// decodeIndex reads what append wrote, and checks that the chunks make up exactly the segment with the given header.
func decodeIndex(b []byte, h *segmentHeader) (*sealedIndex, error) {
	d := uvarints{b: b}
	n := d.next(uint64(len(b)))
	x := &sealedIndex{chunks: make([]chunk, 0, n)}
	pos, raw, off, ms := int64(headerBytes), int64(headerBytes), h.base, int64(0)
	for range n {
		c := chunk{plain: d.flag(), pos: pos, raw: raw, off: off}
		c.blocks, c.table = int(d.next(maxChunkStored)), int(d.next(BlockHeader+MaxBlock))
		c.rawLen, c.frames = int(d.next(maxChunkRaw)), int(d.next(maxChunkFrames))
		group, before := d.next(maxChunkFrames), d.next(maxChunkRaw)
		ms += int64(d.next(maxTime))
		c.timeMS = ms
		if c.group = group > 0; c.group {
			c.groupOff, c.groupPos = off+group-1, raw+int64(before)
		}
		if d.bad || c.rawLen == 0 || c.blocks == 0 || c.table == 0 || (group > 0 && group > uint64(c.frames)) ||
			before >= uint64(c.rawLen) || (c.plain && c.frames > 1) || (!c.plain && c.frames == 0) || ms > maxTime {
			return nil, corruptf("index of the sealed segment: chunk %d", len(x.chunks))
		}
		pos += int64(c.blocks) + int64(c.table)
		raw += int64(c.rawLen)
		off += uint64(c.frames)
		x.chunks = append(x.chunks, c)
	}
	if d.bad || len(d.b) > 0 || pos != h.seal.indexPos || raw != h.seal.rawSize {
		return nil, corruptf("index of the sealed segment: %d chunks end at byte %d of %d and %d of %d",
			len(x.chunks), pos, h.seal.indexPos, raw, h.seal.rawSize)
	}
	return x, nil
}

// maxChunkStored is more than the buckets of a chunk take in the file: raw bytes, a bitmap entry a frame, and what
// each bucket has beyond these.
const maxChunkStored = 2*maxChunkRaw + 8*maxChunkFrames

// bucket is one entry of a chunk's table.
type bucket struct {
	at     int // where its block begins, from the chunk's first on
	stored int
	frames int
	always bool // frames without a single key
	lo, hi []byte
}

// mayHold reports whether a frame of the bucket may have to be delivered to a reader of the given prefixes.
func (k *bucket) mayHold(prefixes [][]byte) bool {
	if k.always {
		return true
	}
	for _, p := range prefixes {
		// There is a key with the prefix between lo and hi, or one that hi is a prefix of.
		low := string(k.lo[:min(len(k.lo), len(p))]) <= string(p)
		high := string(k.hi) >= string(p[:min(len(p), len(k.hi))])
		if low && high {
			return true
		}
	}
	return false
}

// keyBound returns what is kept of a key as a bound.
func keyBound(key []byte) []byte { return key[:min(len(key), maxKeyBound)] }

func appendTable(b []byte, buckets []bucket) []byte {
	for i := range buckets {
		k := &buckets[i]
		b = binary.AppendUvarint(b, uint64(k.stored))
		b = binary.AppendUvarint(b, uint64(k.frames))
		b = append(b, boolByte(k.always))
		for _, key := range [...][]byte{k.lo, k.hi} {
			b = binary.AppendUvarint(b, uint64(len(key)))
			b = append(b, key...)
		}
	}
	return b
}

// decodeTable reads what appendTable wrote for chunk c. The bounds alias b.
func decodeTable(b []byte, c *chunk) ([]bucket, error) {
	d := uvarints{b: b}
	var buckets []bucket
	at, frames := 0, 0
	for len(d.b) > 0 {
		k := bucket{at: at, stored: int(d.next(maxChunkStored)), frames: int(d.next(maxChunkFrames)), always: d.flag()}
		k.lo, k.hi = d.bytes(maxKeyBound), d.bytes(maxKeyBound)
		at += k.stored
		frames += k.frames
		if d.bad || k.stored <= BlockHeader || (k.frames == 0 && !c.plain) || at > c.blocks || len(buckets) >= maxChunkFrames {
			return nil, corruptf("table of a chunk: bucket %d", len(buckets))
		}
		buckets = append(buckets, k)
	}
	if at != c.blocks || frames != c.frames || (c.plain && len(buckets) != 1) {
		return nil, corruptf("table of a chunk: %d buckets of %d bytes with %d frames, want %d and %d",
			len(buckets), at, frames, c.blocks, c.frames)
	}
	return buckets, nil
}

// uvarints decodes numbers; after the first that is missing or too large it is bad, and all are zero.
type uvarints struct {
	b   []byte
	bad bool
}

func (d *uvarints) next(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 || v > limit {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *uvarints) bytes(limit int) []byte {
	n := int(d.next(uint64(limit)))
	if n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *uvarints) flag() bool { return d.next(1) == 1 }

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}
