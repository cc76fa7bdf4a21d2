package log

import (
	"sort"
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/internal/vfs"
)

// segment is one file of a shard's log. Its header never changes; its end grows while it is the
// newest one.
type segment struct {
	segmentHeader
	fs      vfs.FS
	path    string
	end     atomic.Int64 // position after the last byte that was written; set before the watermark
	firstMS atomic.Int64 // time of the first frame, 0: not known
	genPos  int64        // where its frames start in the current generation's bytes (see window)

	mu    sync.Mutex // guards the rest
	file  vfs.File   // nil: not open
	refs  int        // readers using file, plus one while it is the newest segment
	index seekIndex
	left  [leftPlaces]place // where readers have stopped, by offset
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
func (s *segment) acquire() (vfs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		f, err := s.fs.Open(s.path)
		if err != nil {
			return nil, err
		}
		s.file = f
	}
	s.refs++
	return s.file, nil
}

func (s *segment) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs--; s.refs == 0 {
		// Nothing was written through a handle that only reads, and the writer syncs before it
		// lets go: an error of Close carries no news.
		_ = s.file.Close()
		s.file = nil
	}
}

// adopt makes f, open for writing, the handle readers share, until release.
func (s *segment) adopt(f vfs.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file = f
	s.refs++
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

// seek opens st on the segment at the given offset, which must be in [base, base + frames]. The
// caller holds an acquired file. end is how far the file may be read.
func (s *segment) seek(st *Stream, f vfs.File, off uint64, end int64) error {
	s.mu.Lock()
	e, left := s.index.find(off), s.left[off%leftPlaces]
	s.mu.Unlock()
	if left.pos != 0 && left.off == off {
		st.open(f, s.path, s.shard, Cursor{s.generation, off}, left.pos, end)
		st.lastCRC = left.crc
		return nil
	}
	if e.pos == 0 {
		e = indexEntry{s.base, headerBytes}
	}
	st.open(f, s.path, s.shard, Cursor{s.generation, e.off}, e.pos, end)
	for st.off < off {
		if !st.inGroup && st.pos >= e.pos+seekGranule {
			s.note(st.off, st.pos)
			e.pos = st.pos
		}
		if err := st.skip(); err != nil {
			return err
		}
	}
	return nil
}
