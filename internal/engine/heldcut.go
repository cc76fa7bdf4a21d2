package engine

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// A store that follows another one remembers the newest cut of it that its logs hold: a cursor for each shard, of those that the source takes one after the
// other, so that of two cuts one is before the other on every shard (replica.Source). How far the logs are does not tell that: of two followers each may be ahead
// on a shard. What a follower acknowledges, and the offset by which it is compared with others, go by cuts. So a cut is in the file DIR/CUT before
// it is told, for after a restart:
//
//	off size
//	  0   4  CRC32C of what follows
//	  4   4  version = 1
//	  8  16  for each shard: generation, offset
//
// It is written in place and not synced: after a power loss it may be an older one, or none. A store with one shard needs none: it is at a cut wherever its log ends.
const (
	cutName    = "CUT"
	cutVersion = 1
	cutHeader  = 8
	cutEach    = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type heldCut struct {
	mu    sync.Mutex
	at    []log.Cursor  // nil: none; never changed in place
	file  vfs.File      // nil: not open
	moved chan struct{} // closed, and forgotten, when at changes; nil: nobody waits for that
}

// HeldCut returns the newest cut of the store that is followed that the logs hold, nil if there is none, and what is closed when there is another one. Read-only.
func (e *Engine) HeldCut() (at []log.Cursor, moved <-chan struct{}) {
	if len(e.shards) == 1 {
		return e.written(), nil
	}
	h := &e.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.moved == nil {
		h.moved = make(chan struct{})
	}
	return h.at, h.moved
}

// HoldCut takes note of a cut of the store that is followed if the logs hold it, and reports whether they do. It takes the slice over. REQUIRES: the store follows.
func (e *Engine) HoldCut(at []log.Cursor) (held bool, err error) {
	if !e.allBefore(at, e.written()) {
		return false, nil
	}
	h := &e.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(e.shards) == 1 || h.at != nil && (slices.Equal(h.at, at) || !e.allBefore(h.at, at)) {
		return true, nil
	}
	if err := e.writeCut(at); err != nil {
		return true, err
	}
	h.setLocked(at)
	return true, nil
}

// written returns the cursors behind what has reached the files.
func (e *Engine) written() []log.Cursor {
	at := make([]log.Cursor, len(e.shards))
	for i, sh := range e.shards {
		at[i] = sh.log().WrittenTail()
	}
	return at
}

// set makes at, which may be nil, the cut that is held.
func (h *heldCut) set(at []log.Cursor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setLocked(at)
}

func (h *heldCut) setLocked(at []log.Cursor) {
	h.at = at
	if h.moved != nil {
		close(h.moved)
		h.moved = nil
	}
}

// fitCut makes the cut that is held one of a log that ends at the cursors to: what is behind them is left out. If it is no part of the log's history there is none.
func (e *Engine) fitCut(to []log.Cursor) error {
	h := &e.held
	h.mu.Lock()
	defer h.mu.Unlock()
	fit := slices.Clone(h.at)
	for i, c := range fit {
		switch l := e.Dir().Log(i); {
		case l.Before(c, to[i]):
		case l.Before(to[i], c):
			fit[i] = to[i]
		default:
			h.setLocked(nil)
			return e.removeCut()
		}
	}
	if slices.Equal(fit, h.at) {
		return nil
	}
	h.setLocked(fit)
	return e.writeCut(fit)
}

func (e *Engine) cutPath() string { return path.Join(e.Dir().Path(), cutName) }

// removeCut removes the file. REQUIRES: nobody calls HoldCut.
func (e *Engine) removeCut() error {
	return errors.Join(e.held.close(), vfs.RemoveIfThere(e.fs, e.cutPath()))
}

// writeCut writes the file. REQUIRES: held.mu.
func (e *Engine) writeCut(at []log.Cursor) (err error) {
	h := &e.held
	if h.file == nil {
		if h.file, err = e.openCut(); err != nil {
			h.file = nil
			return err
		}
	}
	_, err = h.file.WriteAt(encodeCut(at), 0)
	return err
}

func (e *Engine) openCut() (vfs.File, error) {
	f, err := e.fs.OpenReadWrite(e.cutPath())
	if errors.Is(err, fs.ErrNotExist) {
		f, err = e.fs.Create(e.cutPath())
	}
	return f, err
}

func encodeCut(at []log.Cursor) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 4, cutHeader+cutEach*len(at)), cutVersion)
	for _, c := range at {
		b = le.AppendUint64(le.AppendUint64(b, c.Generation), c.Offset)
	}
	le.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// decodeCut returns nil for what is no cut of so many shards.
func decodeCut(b []byte, shards int) []log.Cursor {
	le := binary.LittleEndian
	if len(b) != cutHeader+cutEach*shards || le.Uint32(b[4:]) != cutVersion || le.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return nil
	}
	at := make([]log.Cursor, shards)
	for i := range at {
		c := b[cutHeader+cutEach*i:]
		at[i] = log.Cursor{Generation: le.Uint64(c), Offset: le.Uint64(c[8:])}
	}
	return at
}

// loadCut takes up the cut of before a restart.
func (e *Engine) loadCut() error {
	b, err := vfs.ReadFile(e.fs, e.cutPath(), cutHeader+cutEach*MaxShards)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrTooLarge):
		return nil
	case err != nil:
		return err
	}
	e.held.at = decodeCut(b, len(e.shards))
	return e.fitCut(e.written())
}

func (h *heldCut) close() error {
	f := h.file
	h.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
}
