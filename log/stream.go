package log

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	bufferBytes   = 256 << 10 // one read of a stream that reads on
	firstReadSize = 16 << 10  // the first one, doubled by every further one
	keepBytes     = 8 << 20   // a larger buffer goes as soon as its frame has passed
)

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferBytes); return &b }}

// Stream decodes the frames that lie in a region of one file. It is the only code that decodes
// frames: log readers, recovery and snapshots use it. It holds bufferBytes of memory, more only
// while a larger frame passes, and allocates that only when the region is as long as the frame
// claims to be.
//
// Not safe for concurrent use.
type Stream struct {
	src     io.ReaderAt
	name    string // path of the file, for errors
	seed    uint32
	gen     uint64
	off     uint64 // offset of the next frame
	pos     int64  // its position in the file
	end     int64  // nothing at or after this position may be read
	ahead   int    // how much to read next
	r, w    int    // buf[r:w] are the bytes from pos on
	buf     []byte
	pooled  *[]byte
	frame   Frame
	lastCRC uint32 // of the newest frame decoded or skipped, 0: none in this file
	whole   []byte // all bytes of the newest frame decoded
	inGroup bool   // the newest frame was not the last of its group
}

// NewStream returns a stream over the frames of (shard, c.Generation) that lie in the bytes
// [pos, end) of src, the first having offset c.Offset. name is the path used in errors.
// Close returns its buffer.
func NewStream(src io.ReaderAt, name string, shard int, c Cursor, pos, end int64) *Stream {
	s := &Stream{}
	s.open(src, name, shard, c, pos, end)
	return s
}

// NewRawStream returns a stream over frames that lie in memory, the first having the cursor c: frames as another store
// has sent them. It copies nothing: what it returns points into raw, and stays valid. name says in errors where raw is from.
func NewRawStream(raw []byte, name string, shard int, c Cursor) *Stream {
	return &Stream{
		name: name, seed: frameSeed(shard, c.Generation), gen: c.Generation, off: c.Offset,
		buf: raw, w: len(raw), end: int64(len(raw)),
	}
}

// Raw returns all bytes of the newest frame that Next has returned, valid as long as that is.
func (s *Stream) Raw() []byte { return s.whole }

// Position returns where the next frame begins.
func (s *Stream) Position() int64 { return s.pos }

// open points the stream at another region, keeping its buffer.
func (s *Stream) open(src io.ReaderAt, name string, shard int, c Cursor, pos, end int64) {
	if s.pooled == nil {
		s.pooled = buffers.Get().(*[]byte)
		s.buf = *s.pooled
	}
	if c.Generation != s.gen || s.seed == 0 {
		s.gen, s.seed = c.Generation, frameSeed(shard, c.Generation)
	}
	s.src, s.name = src, name
	s.off, s.pos, s.end = c.Offset, pos, end
	s.r, s.w, s.lastCRC, s.inGroup = 0, 0, 0, false
	s.ahead = max(s.ahead, firstReadSize)
}

// Close gives the buffer back. The stream and its frames can't be used afterwards.
func (s *Stream) Close() {
	if s.pooled != nil {
		buffers.Put(s.pooled)
		s.pooled, s.buf, s.src, s.whole = nil, nil, nil, nil
		s.r, s.w = 0, 0
	}
}

// Cursor returns the cursor of the next frame.
func (s *Stream) Cursor() Cursor { return Cursor{s.gen, s.off} }

// Next decodes the next frame, valid until the next call. At the end of the region it returns
// io.EOF. Anything that is not a whole valid frame is a *CorruptError, and stays where it is: the
// same call gives the same error again.
func (s *Stream) Next() (*Frame, error) {
	b, err := s.peek()
	if err != nil {
		return nil, err
	}
	if err := s.frame.decode(s.seed, s.gen, s.off, b); err != nil {
		return nil, s.located(err)
	}
	if s.misplaced(b) {
		return nil, s.located(corruptf("group %d: broken order of first and last frames", s.frame.Group))
	}
	s.advance(b)
	return &s.frame, nil
}

// skip passes over the next frame without looking at its payload or checksum, keeping track of its
// group.
func (s *Stream) skip() error {
	h, err := s.header()
	if err != nil {
		return err
	}
	size, err := frameSize(h)
	if err != nil {
		return s.located(err)
	}
	if int64(size) > s.end-s.pos {
		return s.located(corruptf("frame of %d bytes reaches beyond the %d written", size, s.end-s.pos))
	}
	flags := h[posFlags]
	if flags&flagFirst != 0 {
		s.frame.Group, s.frame.Txn, s.frame.Mask = s.off, 0, 0
		if flags&flagTxn != 0 {
			if err := s.fill(frameHeader + txnExtension); err != nil {
				return err
			}
			h = s.buf[s.r:]
			s.frame.Txn, s.frame.Mask = le.Uint64(h[posTxn:]), le.Uint64(h[posTxnMask:])
		}
	}
	if s.pass(h, size); s.r >= s.w {
		s.r, s.w = 0, 0
	}
	return nil
}

// run passes over the next frame and those behind it that are at hand, below limit, until there are most bytes and a group ends. It returns their bytes,
// valid until the next call. An error is what Next says of the first one.
func (s *Stream) run(limit uint64, most int) ([]byte, error) {
	b, err := s.peek()
	if err != nil {
		return nil, err
	}
	for begin := s.r; ; {
		if _, err := checkFrame(s.seed, s.off, b); err != nil || s.misplaced(b) {
			if s.r > begin {
				return s.buf[begin:s.r], nil
			}
			_, err := s.Next()
			return nil, err
		}
		s.pass(b, len(b))
		rest := s.buf[s.r:s.w]
		if s.off >= limit || s.r-begin >= most && !s.inGroup || len(rest) < frameHeader {
			return s.buf[begin:s.r], nil
		}
		size, err := frameSize(rest)
		if err != nil || size > len(rest) {
			return s.buf[begin:s.r], nil
		}
		b = rest[:size]
	}
}

// misplaced reports whether a frame begins a group amid another one, or goes on with one that has not begun.
func (s *Stream) misplaced(frame []byte) bool { return (frame[posFlags]&flagFirst != 0) == s.inGroup }

func (s *Stream) advance(b []byte) {
	s.whole = b
	s.pass(b, len(b))
}

// pass puts the stream behind the frame of size bytes that begins with h.
func (s *Stream) pass(h []byte, size int) {
	s.lastCRC = le.Uint32(h)
	s.inGroup = h[posFlags]&flagLast == 0
	s.off++
	s.pos += int64(size)
	s.r += size
}

// header returns at least the frameHeader bytes of the next frame.
func (s *Stream) header() ([]byte, error) {
	if s.w-s.r < frameHeader {
		if s.pos >= s.end {
			return nil, io.EOF
		}
		if s.end-s.pos < frameHeader {
			return nil, s.located(corruptf("%d bytes where a frame header should be", s.end-s.pos))
		}
		if err := s.fill(frameHeader); err != nil {
			return nil, err
		}
	}
	return s.buf[s.r:s.w], nil
}

// peek returns the whole bytes of the next frame.
func (s *Stream) peek() ([]byte, error) {
	h, err := s.header()
	if err != nil {
		return nil, err
	}
	size, err := frameSize(h)
	if err != nil {
		return nil, s.located(err)
	}
	if len(h) < size {
		if int64(size) > s.end-s.pos {
			return nil, s.located(corruptf("frame of %d bytes reaches beyond the %d written", size, s.end-s.pos))
		}
		if err := s.fill(size); err != nil {
			return nil, err
		}
		h = s.buf[s.r:s.w]
	}
	return h[:size:size], nil
}

// fill makes at least n bytes from pos on available. REQUIRES: pos+n <= end.
func (s *Stream) fill(n int) error {
	have := s.w - s.r
	if have >= n {
		return nil
	}
	buf := s.buf
	if n > len(buf) || len(buf) > keepBytes {
		buf = s.sized(n)
	}
	copy(buf, s.buf[s.r:s.w])
	s.buf, s.r, s.w = buf, 0, have
	want := int(min(int64(max(n, s.ahead, have)), int64(len(s.buf)), s.end-s.pos))
	s.ahead = min(2*s.ahead, bufferBytes)
	m, err := s.src.ReadAt(s.buf[have:want], s.pos+int64(have))
	s.w += m
	if s.w >= n {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return s.located(corruptf("the file ends %d bytes before it should", want-s.w))
	}
	return fmt.Errorf("log: reading %s at byte %d (frame %v): %w", s.name, s.pos+int64(s.w), s.Cursor(), err)
}

// sized returns a buffer for at least n bytes: the ordinary one, or one of its own for large frames.
func (s *Stream) sized(n int) []byte {
	switch {
	case n <= bufferBytes:
		return *s.pooled
	case n <= keepBytes/2:
		return make([]byte, keepBytes/2)
	default:
		return make([]byte, n)
	}
}

func (s *Stream) located(err error) error {
	return &CorruptError{File: s.name, Position: s.pos, Cursor: s.Cursor(), Err: err}
}
