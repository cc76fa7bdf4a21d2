package snapshot

import (
	"errors"
	"hash/crc32"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// chunk is how many bytes are collected before they are written.
const chunk = 1 << 20

// syncEvery is how many bytes are written between syncs. One sync at the end would hand the disk all of the file
// at once, and the logs' writes would wait behind it.
const syncEvery = 8 << 20

// Info tells what a written or loaded snapshot file holds.
type Info struct {
	Frames, Keys uint64
	Bytes        int64
}

// Source calls emit with the effects that rebuild each key on an empty shard, in key order, and
// done after the last effect of each key; it ends with the first error of either.
type Source func(emit func(*effect.Effect) error, done func() error) error

// WriteShard writes a new snapshot file and syncs it. On an error the file is removed.
func WriteShard(fs vfs.FS, path string, h Header, src Source) (info Info, err error) {
	if err := h.Validate(); err != nil {
		return info, err
	}
	f, err := fs.Create(path)
	if err != nil {
		return info, err
	}
	w := &writer{f: f, enc: log.NewEncoder(h.Shard, log.Cursor{Generation: h.Set}, h.TimeMS)}
	w.enc.Buf = append(make([]byte, 0, chunk+chunk/4), h.encode()...)
	err = w.run(h.TimeMS, src)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return info, errors.Join(err, fs.Remove(path))
	}
	return Info{Frames: w.enc.Next(), Keys: w.keys, Bytes: w.pos}, nil
}

type writer struct {
	f      vfs.File
	enc    *log.Encoder
	pos    int64
	synced int64 // bytes synced on the way
	sum    uint32
	keys   uint64
}

func (w *writer) run(timeMS int64, src Source) error {
	open := false
	emit := func(e *effect.Effect) error {
		if !open {
			w.enc.Begin(timeMS, log.ByClient, 0, 0)
			open = true
		}
		w.enc.Append(e)
		return nil
	}
	done := func() error {
		w.enc.End()
		open = false
		w.keys++
		if len(w.enc.Buf) < chunk {
			return nil
		}
		return w.flush()
	}
	if err := src(emit, done); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	foot := footer{frames: w.enc.Next(), keys: w.keys, sum: w.sum}.encode()
	if _, err := w.f.WriteAt(foot, w.pos); err != nil {
		return err
	}
	w.pos += footerSize
	return w.f.Sync()
}

func (w *writer) flush() error {
	b := w.enc.Buf
	if _, err := w.f.WriteAt(b, w.pos); err != nil {
		return err
	}
	w.sum = crc32.Update(w.sum, castagnoli, b)
	w.pos += int64(len(b))
	w.enc.Buf = b[:0]
	if w.pos-w.synced < syncEvery {
		return nil
	}
	w.synced = w.pos
	return w.f.Sync()
}
