package log

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/internal/vfs"
)

// segment is one file of a shard's log. Its header never changes but for becoming that of a sealed segment; its end grows while it is the
// newest one.
type segment struct {
	segmentHeader // of the raw segment; seal is nil
	fs            vfs.FS
	dir           string // of the shard
	cache         *chunkCache
	end           atomic.Int64 // raw position after the last byte that was written; set before the watermark
	firstMS       atomic.Int64 // time of the first frame, 0: not known
	sealed        atomic.Bool  // the file is a sealed one; set once, under mu
	sealedBytes   atomic.Int64 // its size
	damage        atomic.Pointer[error]
	lastCRC       uint32 // CRC32C field of its last frame, 0: not known
	genPos        int64  // where its frames start in the current generation's bytes (see window)

	mu    sync.Mutex // guards the rest
	open  *handle    // nil: not open
	index seekIndex
	left  [leftPlaces]place // where readers have stopped, by offset
}

// path is the segment's file.
func (s *segment) path() string {
	if s.sealed.Load() {
		return path.Join(s.dir, sealedName(s.number))
	}
	return path.Join(s.dir, segmentName(s.number))
}

// diskBytes is what the segment takes on disk, but for space reserved ahead.
func (s *segment) diskBytes() int64 {
	if s.sealed.Load() {
		return s.sealedBytes.Load()
	}
	return s.end.Load()
}

// handle is an open file of a segment, shared by its readers. A segment that is sealed meanwhile has
// another one for those who come later.
type handle struct {
	seg  *segment
	file vfs.File
	src  io.ReaderAt // raw positions
	name string
	view *sealedView // nil: raw
	refs int         // readers using it, plus one while it is the newest segment's; guarded by seg.mu
}

// leftPlaces is how many places a segment remembers. A consumer that asks again and again goes on where it was
// without looking at what lies between there and the index's entry before it.
const leftPlaces = 64

// place is the end of a group inside a segment.
type place struct {
	indexEntry
	crc uint32 // checksum of the frame before it
}

// leave remembers where a reader has stopped. REQUIRES: not within a group.
func (s *segment) leave(st *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[st.off%leftPlaces] = place{indexEntry{st.off, st.pos}, st.lastCRC}
}

// acquire opens the file for reading, or shares it. Each acquire needs a release.
func (s *segment) acquire() (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		h, err := s.openFile()
		if errors.Is(err, fs.ErrNotExist) && !s.sealed.Load() {
			// Another process has sealed it: this one reads only.
			s.sealed.Store(true)
			if h, err = s.openFile(); errors.Is(err, fs.ErrNotExist) {
				s.sealed.Store(false)
			}
		}
		if err != nil {
			return nil, err
		}
		s.open = h
	}
	s.open.refs++
	return s.open, nil
}

// openFile opens the segment's file for reading.
func (s *segment) openFile() (*handle, error) {
	name := s.path()
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, err
	}
	h := &handle{seg: s, file: f, src: f, name: name}
	if s.sealed.Load() {
		if h.view, err = s.openView(f, name, s.cache); err != nil {
			_ = f.Close() // opened for reading only
			return nil, err
		}
		h.src = h.view
	}
	return h, nil
}

// openView opens the segment's sealed file, which must be that of this segment.
func (s *segment) openView(f vfs.File, name string, cache *chunkCache) (*sealedView, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	head, _, err := readHeader(f, name, size)
	if err != nil {
		return nil, err
	}
	raw := head
	raw.seal = nil
	if head.seal == nil || raw != s.segmentHeader || head.seal.rawSize != s.end.Load() {
		return nil, &CorruptError{File: name, Position: 0, Cursor: s.start(), Err: corruptf("this is not segment %d sealed", s.number)}
	}
	v, err := openSealed(f, name, &head, cache)
	if err != nil {
		return nil, err
	}
	s.sealedBytes.Store(size)
	s.firstMS.Store(v.index.chunks[0].timeMS)
	return v, nil
}

func (h *handle) release() {
	h.seg.mu.Lock()
	defer h.seg.mu.Unlock()
	if h.refs--; h.refs == 0 {
		// Nothing was written through a handle that only reads, and the writer syncs before it
		// lets go: an error of Close carries no news.
		_ = h.file.Close()
		if h.seg.open == h {
			h.seg.open = nil
		}
	}
}

// adopt makes f, open for writing, the handle readers share, until release.
func (s *segment) adopt(f vfs.File) *handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = &handle{seg: s, file: f, src: f, name: s.path(), refs: 1}
	return s.open
}

// becomeSealed makes the sealed file, which must be in place, the segment's. Who has the raw one open goes on
// with that.
func (s *segment) becomeSealed(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealedBytes.Store(size)
	s.sealed.Store(true)
	s.open = nil
}

// seekIndex is a sparse index of a segment: positions of some frames that start a group. It
// covers the file from the start up to its newest entry.
type seekIndex struct {
	entries []indexEntry
}

type indexEntry struct {
	off uint64
	pos int64
}

// seekGranule is how many bytes at most lie between two indexed groups, unless one group is longer.
const seekGranule = 32 << 10

// wants reports whether a group that starts at pos is worth an entry.
func (x *seekIndex) wants(pos int64) bool {
	n := len(x.entries)
	if n == 0 {
		return pos >= headerBytes+seekGranule
	}
	return pos >= x.entries[n-1].pos+seekGranule
}

func (x *seekIndex) add(off uint64, pos int64) {
	if x.wants(pos) {
		x.entries = append(x.entries, indexEntry{off, pos})
	}
}

// end drops the entries of groups that are not there: the segment ends at pos.
func (x *seekIndex) end(pos int64) {
	for n := len(x.entries); n > 0 && x.entries[n-1].pos >= pos; n-- {
		x.entries = x.entries[:n-1]
	}
}

// find returns the newest entry at or before off; the zero entry when there is none.
func (x *seekIndex) find(off uint64) indexEntry {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].off > off })
	if i == 0 {
		return indexEntry{}
	}
	return x.entries[i-1]
}

// note adds the start of a group to the index.
func (s *segment) note(off uint64, pos int64) {
	s.mu.Lock()
	s.index.add(off, pos)
	s.mu.Unlock()
}

// seek opens st on the segment at the given offset, which must be in [base, base + frames]. h is
// an acquired handle. end is how far the file may be read. known is a group at or before off that the caller knows of, zero: none.
func (s *segment) seek(st *Stream, h *handle, off uint64, end int64, known indexEntry) error {
	s.mu.Lock()
	e, left := s.index.find(off), s.left[off%leftPlaces]
	s.mu.Unlock()
	if left.pos != 0 && left.off == off {
		st.open(h.src, h.name, s.shard, Cursor{s.generation, off}, left.pos, end)
		st.lastCRC = left.crc
		return nil
	}
	if h.view != nil {
		if x := h.view.index.find(off); x.pos > e.pos {
			e = x
		}
	}
	if known.pos > e.pos {
		e = known
	}
	if e.pos == 0 {
		e = indexEntry{s.base, headerBytes}
	}
	st.open(h.src, h.name, s.shard, Cursor{s.generation, e.off}, e.pos, end)
	for st.off < off {
		if h.view == nil && !st.inGroup && st.pos >= e.pos+seekGranule {
			s.note(st.off, st.pos)
			e.pos = st.pos
		}
		if err := st.skip(); err != nil {
			return err
		}
	}
	return nil
}
