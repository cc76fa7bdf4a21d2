package snapshot

import (
	"errors"
	"hash/crc32"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

const (
	// blockBytes is how many raw bytes a block has. Compressing one takes a CPU for tenths of a millisecond, in which nothing else runs
	// there if the system is not asked in between.
	blockBytes = 64 << 10
	// syncEvery is how many bytes are written between syncs. One sync at the end would hand the disk all of the
	// file at once, and the logs' writes would wait behind it.
	syncEvery = 8 << 20
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

// WriteShard writes a new snapshot file and syncs it. On an error the file is removed.
//
// Everything is done on the caller's goroutine. With compression on a goroutine of its own a set is written in two
// thirds of the time, but on two CPUs writers wait for both of them: their p99 was three times as long (docs/benchmarks.md).
func WriteShard(fs vfs.FS, path string, h Header, src Source) (info Info, err error) {
	if err := h.Validate(); err != nil {
		return info, err
	}
	f, err := fs.Create(path)
	if err != nil {
		return info, err
	}
	w := &writer{
		f: f, h: h, frames: log.NewEncoder(h.Shard, log.Cursor{Generation: h.Set}, h.TimeMS), blocks: log.NewBlockEncoder(false, 1, blockBytes),
	}
	info, err = w.run(src)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return info, errors.Join(err, fs.Remove(path))
	}
	return info, nil
}

// writer turns effects into frames, frames into blocks, and writes these.
type writer struct {
	f      vfs.File
	h      Header
	frames *log.Encoder
	open   bool // a group is
	keys   uint64
	raw    int64 // bytes of frames written

	blocks *log.BlockEncoder
	buf    []byte // of one block
	pos    int64
	synced int64 // bytes synced on the way
	sum    uint32
}

func (w *writer) run(src Source) (info Info, err error) {
	if err := w.put(w.h.encode()); err != nil {
		return info, err
	}
	if err := src(w.emit, w.done); err != nil {
		return info, err
	}
	if err := w.flush(1); err != nil {
		return info, err
	}
	info = Info{Frames: w.frames.Next(), Keys: w.keys, Bytes: w.pos + footerSize, FrameBytes: w.raw}
	foot := footer{frames: info.Frames, keys: info.Keys, raw: info.FrameBytes, sum: w.sum}
	if _, err := w.f.WriteAt(foot.encode(), w.pos); err != nil {
		return info, err
	}
	return info, w.f.Sync()
}

func (w *writer) emit(e *effect.Effect) error {
	if !w.open {
		w.frames.Begin(w.h.TimeMS, log.ByClient, 0, 0)
		w.open = true
	}
	w.frames.Append(e)
	return w.flush(blockBytes)
}

func (w *writer) done() error {
	w.frames.End()
	w.open = false
	w.keys++
	return w.flush(blockBytes)
}

// flush writes blocks while at least so many bytes of frames are final.
func (w *writer) flush(least int) error {
	ready := w.frames.Buf[:w.frames.Sealed()]
	if len(ready) < least {
		return nil
	}
	done := 0
	for len(ready)-done >= least {
		n := min(len(ready)-done, blockBytes)
		w.buf = w.blocks.Append(w.buf[:0], ready[done:done+n], w.h.place(w.pos))
		if err := w.put(w.buf); err != nil {
			return err
		}
		done += n
	}
	w.frames.Drop(done)
	w.raw += int64(done)
	return nil
}

func (w *writer) put(b []byte) error {
	if _, err := w.f.WriteAt(b, w.pos); err != nil {
		return err
	}
	w.sum = crc32.Update(w.sum, castagnoli, b)
	w.pos += int64(len(b))
	if w.pos-w.synced < syncEvery {
		return nil
	}
	w.synced = w.pos
	return w.f.Sync()
}
