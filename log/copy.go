package log

import (
	"errors"
	"fmt"
	"io"

	"github.com/kevydb/kevy/internal/vfs"
)

// Copy is a segment held open to be copied elsewhere. Its bytes are those of the raw segment, whether it is sealed by now
// or not. A floor (SetFloor) keeps the segment from being dropped before it is opened. Only ReadAt is safe for concurrent use.
type Copy struct {
	s *segment
	h *handle
}

// OpenCopy opens a segment for copying. ErrGone: it is not on disk (any more).
func (l *Log) OpenCopy(number uint64) (*Copy, error) {
	for _, s := range l.segments() {
		if s.number == number {
			h, err := s.acquire()
			if err != nil {
				return nil, fmt.Errorf("log: opening segment %d of shard %d: %w", number, l.shard, s.noteDamage(err))
			}
			return &Copy{s, h}, nil
		}
	}
	return nil, fmt.Errorf("%w: segment %d of shard %d", ErrGone, number, l.shard)
}

// OpenSegment opens a segment by its file alone, raw or sealed, below a directory that need not be whole. Only the header
// is checked: it must be that of the shard and number.
func OpenSegment(fsys vfs.FS, dir string, shard int, number uint64) (*Copy, error) {
	s := &shardScan{fs: fsys, shard: shard, dir: shardDir(dir, shard), man: &shardManifest{}}
	if _, err := s.numbers(); err != nil {
		return nil, err
	}
	name, err := s.fileOf(number)
	if err != nil {
		return nil, err
	}
	seg, _, err := s.openHeader(name, number)
	if err != nil {
		return nil, err
	}
	seg.cache = &chunkCache{}
	h, err := seg.acquire()
	if err != nil {
		return nil, err
	}
	return &Copy{seg, h}, nil
}

// Size returns the length of the segment in raw bytes.
func (c *Copy) Size() int64 { return c.s.end.Load() }

// Close ends the use of c.
func (c *Copy) Close() { c.h.release() }

// Start returns the cursor of the segment's first frame, which lies behind the HeaderBytes of the header.
func (c *Copy) Start() Cursor { return c.s.start() }

// HeaderBytes is the length of a raw segment's header: its first frame begins there.
const HeaderBytes = headerBytes

// ReadAt reads raw bytes, the header included.
func (c *Copy) ReadAt(p []byte, off int64) (n int, err error) {
	if off < headerBytes {
		if n = copy(p, c.s.encode()[off:]); n == len(p) {
			return n, nil
		}
	}
	m, err := c.h.src.ReadAt(p[n:], off+int64(n))
	return n + m, err
}

// End checks the frames from c at raw position pos up to, and without, the frame with offset to, and returns where that
// begins. It fails with a *CorruptError at anything that is not what was written.
func (c *Copy) End(from Cursor, pos int64, to uint64) (end int64, err error) {
	st := NewStream(c.h.src, c.h.name, c.s.shard, from, pos, c.s.end.Load())
	defer st.Close()
	for st.off < to {
		if _, err := st.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = st.located(corruptf("the segment ends before frame %d", to))
			}
			return 0, c.s.noteDamage(err)
		}
	}
	return st.pos, nil
}

// Sealed returns the sealed file's bytes and their number; nil: the segment was not sealed when it was opened.
func (c *Copy) Sealed() (io.ReaderAt, int64) {
	if c.h.view == nil {
		return nil, 0
	}
	return c.h.file, c.s.sealedBytes.Load()
}

// SealSegment seals one segment that has ended, whatever SealAfter says, if it is worth it.
func (d *Dir) SealSegment(shard int, number uint64) error {
	d.sealing.Lock()
	defer d.sealing.Unlock()
	l := d.logs[shard]
	segs := l.segments()
	for _, s := range segs[:len(segs)-1] {
		if s.number == number && !s.sealed.Load() && s.damage.Load() == nil && s.end.Load() >= int64(d.o.sealSizes.least) {
			return d.sealSegment(l, s)
		}
	}
	return nil
}

// Outline is what the manifest of a copy of a log says: one that was not in use, and that ends at Ends.
type Outline struct {
	HashSeed  uint64
	LastTxn   uint64   // at least the highest transaction id in the frames
	Set       string   // newest snapshot set, "": none
	SetCursor []Cursor // its cursors
	Shards    []ShardOutline
}

// ShardOutline is one shard of an Outline.
type ShardOutline struct {
	FirstLive uint64    // oldest segment
	Newest    uint64    // segment the log ends in
	Size      int64     // raw bytes of it
	Tail      Cursor    // the end
	Lineage   []Lineage // oldest first, up to the generation of Tail
}

// Manifest returns the bytes of the MANIFEST file of a directory with the copied segments.
func (o *Outline) Manifest() ([]byte, error) {
	m := &manifest{Version: manifestVersion, HashSeed: o.HashSeed, Clean: true, LastTxn: o.LastTxn}
	if o.Set != "" {
		m.Snapshot = &snapshotRef{o.Set, o.SetCursor}
	}
	for _, s := range o.Shards {
		m.Shards = append(m.Shards, shardManifest{
			FirstLive: s.FirstLive, End: &shardEnd{s.Newest, s.Size, s.Tail}, Lineage: s.Lineage,
		})
	}
	return m.encode()
}
