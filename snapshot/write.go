package snapshot

import (
	"errors"
	"hash/crc32"
	"sync"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

const (
	// blockBytes is how many raw bytes a block has.
	blockBytes = 1 << 20
	// syncEvery is how many bytes are written between syncs. One sync at the end would hand the disk all of the
	// file at once, and the logs' writes would wait behind it.
	syncEvery = 8 << 20
	// ahead is how many blocks may wait to be compressed and written.
	ahead = 2
)

// Info tells what a written or loaded snapshot file holds.
type Info struct {
	Frames, Keys uint64
	Bytes        int64 // of the file
	FrameBytes   int64 // of the frames, uncompressed
}

// Source calls emit with the effects that rebuild each key on an empty shard, in key order, and
// done after the last effect of each key; it ends with the first error of either.
type Source func(emit func(*effect.Effect) error, done func() error) error

// WriteShard writes a new snapshot file and syncs it; compressing and writing go on beside src. On an error the
// file is removed.
func WriteShard(fs vfs.FS, path string, h Header, src Source) (info Info, err error) {
	if err := h.Validate(); err != nil {
		return info, err
	}
	f, err := fs.Create(path)
	if err != nil {
		return info, err
	}
	info, err = writeFrames(f, h, src)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return info, errors.Join(err, fs.Remove(path))
	}
	return info, nil
}

func writeFrames(f vfs.File, h Header, src Source) (info Info, err error) {
	st := newStorer(f, h)
	fr := &framer{enc: log.NewEncoder(h.Shard, log.Cursor{Generation: h.Set}, h.TimeMS), st: st, timeMS: h.TimeMS}
	err = src(fr.emit, fr.done)
	if err == nil {
		err = fr.flush(1)
	}
	if serr := st.close(); err == nil || errors.Is(err, errStorer) {
		err = serr
	}
	if err != nil {
		return info, err
	}
	return st.finish(footer{frames: fr.enc.Next(), keys: fr.keys, raw: fr.raw})
}

// framer turns effects into frames, and hands them to a storer block by block.
type framer struct {
	enc    *log.Encoder
	st     *storer
	timeMS int64
	open   bool // a group is
	keys   uint64
	raw    int64 // bytes handed over
}

func (w *framer) emit(e *effect.Effect) error {
	if !w.open {
		w.enc.Begin(w.timeMS, log.ByClient, 0, 0)
		w.open = true
	}
	w.enc.Append(e)
	return w.flush(blockBytes)
}

func (w *framer) done() error {
	w.enc.End()
	w.open = false
	w.keys++
	return w.flush(blockBytes)
}

// flush hands over what is sealed while that is at least least bytes.
func (w *framer) flush(least int) error {
	for {
		n := w.enc.Sealed()
		if n < least {
			return nil
		}
		n = min(n, blockBytes)
		b, err := w.st.buffer()
		if err != nil {
			return err
		}
		b = append(b, w.enc.Buf[:n]...)
		w.enc.Drop(n)
		w.raw += int64(n)
		w.st.blocks <- b
	}
}

// errStorer says that the storer has failed; close tells why.
var errStorer = errors.New("snapshot: not written")

// storer compresses and writes blocks on a goroutine of its own.
type storer struct {
	blocks chan []byte // raw
	free   chan []byte // empty buffers
	failed chan struct{}
	wg     sync.WaitGroup

	// Owned by the goroutine until close.
	f      vfs.File
	h      Header
	enc    *log.BlockEncoder
	buf    []byte
	pos    int64
	synced int64 // bytes synced on the way
	sum    uint32
	err    error
}

func newStorer(f vfs.File, h Header) *storer {
	s := &storer{
		blocks: make(chan []byte, ahead), free: make(chan []byte, ahead+2), failed: make(chan struct{}),
		f: f, h: h, enc: log.NewBlockEncoder(false, 1),
	}
	for range ahead + 2 {
		s.free <- nil
	}
	s.wg.Go(s.run)
	return s
}

// buffer returns an empty buffer for a block, to be sent to blocks.
func (s *storer) buffer() ([]byte, error) {
	select {
	case <-s.failed:
		return nil, errStorer
	case b := <-s.free:
		if b == nil {
			b = make([]byte, 0, blockBytes)
		}
		return b[:0], nil
	}
}

func (s *storer) run() {
	if s.err = s.put(s.h.encode()); s.err != nil {
		close(s.failed)
	}
	for raw := range s.blocks {
		if s.err == nil {
			s.buf = s.enc.Append(s.buf[:0], raw, s.h.place(s.pos))
			if s.err = s.put(s.buf); s.err != nil {
				close(s.failed)
			}
		}
		s.free <- raw
	}
}

func (s *storer) put(b []byte) error {
	if _, err := s.f.WriteAt(b, s.pos); err != nil {
		return err
	}
	s.sum = crc32.Update(s.sum, castagnoli, b)
	s.pos += int64(len(b))
	if s.pos-s.synced < syncEvery {
		return nil
	}
	s.synced = s.pos
	return s.f.Sync()
}

// close waits until all blocks are written, and returns the first error.
func (s *storer) close() error {
	close(s.blocks)
	s.wg.Wait()
	return s.err
}

// finish writes the footer and syncs the file.
func (s *storer) finish(foot footer) (Info, error) {
	foot.sum = s.sum
	if _, err := s.f.WriteAt(foot.encode(), s.pos); err != nil {
		return Info{}, err
	}
	info := Info{Frames: foot.frames, Keys: foot.keys, Bytes: s.pos + footerSize, FrameBytes: foot.raw}
	return info, s.f.Sync()
}
