package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// ahead is how many blocks may be decompressed before they are needed.
const ahead = 2

// Load folds a snapshot file: fold is called with every effect, in order, while the next blocks are read and
// decompressed on another goroutine. It checks the header, every block and frame, and the footer's counts and
// whole-file checksum; the caller must throw away what it has folded when Load fails.
func Load(fs vfs.FS, path string, fold func(*effect.Effect) error) (h Header, info Info, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return h, info, fmt.Errorf("snapshot: %w", err)
	}
	defer f.Close()
	h, info, err = load(f, path, fold)
	if err != nil {
		return h, info, fmt.Errorf("%s: %w", path, err)
	}
	return h, info, nil
}

func load(f vfs.File, path string, fold func(*effect.Effect) error) (h Header, info Info, err error) {
	if h, err = readHeader(f); err != nil {
		return h, info, err
	}
	foot, end, err := readFooter(f)
	if err != nil {
		return h, info, err
	}
	u := startUnpacker(f, h, end)
	defer u.close()
	s := log.NewStream(u, path, h.Shard, log.Cursor{Generation: h.Set}, 0, foot.raw)
	defer s.Close()
	var e effect.Effect
	for {
		fr, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return h, info, classed(err)
		}
		if err := effect.Decode(fr.Payload, &e); err != nil {
			return h, info, fmt.Errorf("%w: frame %d: %w", ErrCorrupt, fr.Cursor.Offset, err)
		}
		if err := fold(&e); err != nil {
			return h, info, fmt.Errorf("frame %d: %w", fr.Cursor.Offset, err)
		}
		info.Frames++
		if fr.GroupLast {
			info.Keys++
		}
	}
	sum, err := u.end()
	if err != nil {
		return h, info, classed(err)
	}
	info.Bytes, info.FrameBytes = end+footerSize, foot.raw
	if info.Frames != foot.frames || info.Keys != foot.keys || sum != foot.sum {
		return h, info, fmt.Errorf("%w: the footer says %d frames of %d keys with checksum %08x, the file has %d of %d with %08x",
			ErrCorrupt, foot.frames, foot.keys, foot.sum, info.Frames, info.Keys, sum)
	}
	return h, info, nil
}

// classed makes damage found by package log ErrCorrupt here as well.
func classed(err error) error {
	if errors.Is(err, log.ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

func readFooter(f vfs.File) (foot footer, end int64, err error) {
	size, err := f.Size()
	if err != nil {
		return foot, 0, err
	}
	end = size - footerSize
	if end < headerSize {
		return foot, 0, fmt.Errorf("%w: %d bytes are too few", ErrCorrupt, size)
	}
	b := make([]byte, footerSize)
	if _, err := f.ReadAt(b, end); err != nil {
		return foot, 0, err
	}
	foot, err = decodeFooter(b)
	return foot, end, err
}

// unpacker reads and decompresses blocks on a goroutine of its own. For the goroutine that reads frames it is an
// io.ReaderAt over the joined raw bytes, to be read in order.
type unpacker struct {
	blocks chan block
	free   chan []byte // buffers given back
	quit   chan struct{}

	cur block // what is left of the block being read
	pos int64 // raw position of cur
}

type block struct {
	raw []byte // not read yet
	buf []byte // all of it
	sum uint32 // of the file's bytes up to here, when err is io.EOF
	err error
}

func startUnpacker(f vfs.File, h Header, end int64) *unpacker {
	u := &unpacker{blocks: make(chan block, ahead), free: make(chan []byte, ahead+2), quit: make(chan struct{})}
	go u.run(f, h, end)
	return u
}

func (u *unpacker) close() {
	close(u.quit)
	for range u.blocks { // until run has ended: it must not read the file any more
	}
}

// run sends every block, then one with an error: io.EOF at the end of the file.
func (u *unpacker) run(f vfs.File, h Header, end int64) {
	defer close(u.blocks)
	r := blockReader{f: f, h: h, end: end}
	for {
		var buf []byte
		select {
		case buf = <-u.free:
		default:
		}
		b := r.next(buf)
		select {
		case u.blocks <- b:
		case <-u.quit:
			return
		}
		if b.err != nil {
			return
		}
	}
}

// ReadAt implements io.ReaderAt for reading in order.
func (u *unpacker) ReadAt(p []byte, off int64) (n int, err error) {
	if off != u.pos {
		return 0, fmt.Errorf("snapshot: read at %d, which is not in order: %d", off, u.pos)
	}
	for n < len(p) {
		if err := u.need(); err != nil {
			return n, err
		}
		m := copy(p[n:], u.cur.raw)
		u.cur.raw = u.cur.raw[m:]
		u.pos += int64(m)
		n += m
	}
	return n, nil
}

// need makes cur have bytes, or returns why there are none.
func (u *unpacker) need() error {
	for len(u.cur.raw) == 0 {
		if u.cur.err != nil {
			return u.cur.err
		}
		if u.cur.buf != nil {
			select {
			case u.free <- u.cur.buf[:0]:
			default:
			}
		}
		u.cur = <-u.blocks
	}
	return nil
}

// end checks that there are no more bytes and returns the checksum of the file's.
func (u *unpacker) end() (uint32, error) {
	err := u.need()
	if errors.Is(err, io.EOF) {
		return u.cur.sum, nil
	}
	if err == nil {
		err = fmt.Errorf("%w: there are more frames than the footer says", ErrCorrupt)
	}
	return 0, err
}

// blockReader reads the blocks of a file in order, summing up its bytes.
type blockReader struct {
	f        vfs.File
	h        Header
	pos, end int64
	sum      uint32
	stored   []byte
}

// next returns the next block, decompressed into buf if that is large enough.
func (r *blockReader) next(buf []byte) block {
	if r.pos == 0 {
		if _, err := r.read(headerSize); err != nil {
			return block{err: err}
		}
	}
	if r.pos == r.end {
		return block{sum: r.sum, err: io.EOF}
	}
	at := r.pos
	head, err := r.peek(log.BlockHeader)
	if err != nil {
		return block{err: err}
	}
	n, _, err := log.BlockSize(head)
	if err == nil {
		var b []byte
		if b, err = r.read(n); err == nil {
			buf, err = log.DecodeBlock(buf[:0], b, r.h.place(at))
		}
	}
	if err != nil {
		return block{err: fmt.Errorf("block at byte %d: %w", at, err)}
	}
	return block{raw: buf, buf: buf}
}

// read returns the next n bytes, valid until the next call.
func (r *blockReader) read(n int) ([]byte, error) {
	b, err := r.peek(n)
	if err == nil {
		r.sum = crc32.Update(r.sum, castagnoli, b)
		r.pos += int64(n)
	}
	return b, err
}

func (r *blockReader) peek(n int) ([]byte, error) {
	if int64(n) > r.end-r.pos {
		return nil, fmt.Errorf("%w: %d bytes at byte %d reach into the footer", ErrCorrupt, n, r.pos)
	}
	if cap(r.stored) < n {
		r.stored = make([]byte, max(n, 64<<10))
	}
	b := r.stored[:n]
	if m, err := r.f.ReadAt(b, r.pos); m < n {
		return nil, fmt.Errorf("reading at byte %d: %w", r.pos, err)
	}
	return b, nil
}
