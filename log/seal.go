package log

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path"
	"slices"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
)

// Sealing an ended segment, off every request path:
//
//  1. write <number>.sealed.tmp, sync it
//  2. read it back through the one reader: the frames must be the raw segment's
//  3. rename it to <number>.sealed, sync the directory
//  4. from now on readers open the sealed file; those in the raw one finish there
//  5. remove the raw file
//
// While both files are there the raw one is the segment, after a crash at any step, and Open removes what is left
// of the others. So nobody ever relies on a sealed file that was not read back after it was written.
const (
	tempSuffix  = ".tmp"
	keeperPause = time.Minute
)

var errSealAborted = errors.New("log: sealing was given up: the log is closing")

// keeper seals segments and drops what nobody needs, in the background.
type keeper struct {
	kicked chan struct{}
	quit   chan struct{}
	done   chan struct{} // nil: there is none
}

// Maintain begins the work in the background: segments that have ended are sealed, and what nobody needs is
// dropped. An ephemeral directory does without. To be called once, after Hold if older snapshots are to be held.
func (d *Dir) Maintain() {
	if d.o.Ephemeral || d.readOnly {
		return
	}
	d.keeper.done = make(chan struct{})
	d.kickKeeper()
	go d.keep()
}

// kickKeeper wakes the keeper. Kicks while it works are one kick.
func (d *Dir) kickKeeper() {
	select {
	case d.keeper.kicked <- struct{}{}:
	default:
	}
}

func (d *Dir) keep() {
	defer close(d.keeper.done)
	tick := time.NewTicker(keeperPause)
	defer tick.Stop()
	for {
		select {
		case <-d.keeper.quit:
			return
		case <-d.keeper.kicked:
		case <-tick.C:
		}
		d.dropAfterRoll()
		if _, err := d.seal(d.o.Now() - d.o.SealAfter.Milliseconds()); err != nil && !errors.Is(err, errSealAborted) {
			d.o.Logger.Warn("sealing segments", "err", err)
		}
	}
}

func (d *Dir) stopKeeper() {
	close(d.keeper.quit)
	if d.keeper.done != nil {
		<-d.keeper.done
	}
}

// Seal seals all segments that have ended and are worth it, and returns how many it has sealed. A segment that can't be
// sealed stays as it is, for another try later; damage in it shows in Stats.
func (d *Dir) Seal() (sealed int, err error) { return d.seal(math.MaxInt64) }

// seal seals the segments that ended before a time (unix ms).
func (d *Dir) seal(before int64) (sealed int, err error) {
	if d.readOnly {
		return 0, ErrReadOnly
	}
	d.sealing.Lock()
	defer d.sealing.Unlock()
	for _, l := range d.logs {
		segs := l.segments()
		for i, s := range segs[:len(segs)-1] {
			if segs[i+1].createdMS >= before {
				break
			}
			if s.sealed.Load() || s.damage.Load() != nil || s.end.Load() < int64(d.o.sealSizes.least) {
				continue
			}
			e := d.sealSegment(l, s)
			if e == nil {
				sealed++
				continue
			}
			if errors.Is(e, errSealAborted) {
				return sealed, e
			}
			if !isFull(e) {
				l.sealFailures.Add(1)
			}
			err = errors.Join(err, fmt.Errorf("log: sealing segment %d of shard %d: %w", s.number, l.shard, e))
		}
	}
	return sealed, err
}

// written is what has to be the same in a raw segment and its sealed file.
type written struct {
	frames  uint64
	pos     int64
	lastCRC uint32
	sum     uint32 // checksum of the frames' checksums
}

// sealSegment seals one segment. REQUIRES: d.sealing.
func (d *Dir) sealSegment(l *Log, s *segment) error {
	temp := path.Join(s.dir, sealedName(s.number)+tempSuffix)
	var raw, got written
	var size int64
	var err error
	d.o.Background(func(giveWay func()) {
		if raw, size, err = d.writeSealed(s, temp, giveWay); err == nil {
			got, err = d.readBack(s, temp, giveWay)
		}
	})
	if err == nil && got != raw {
		err = corruptf("%s reads as %+v, written as %+v", temp, got, raw)
	}
	if err == nil {
		err = l.checkSealed(s, raw)
	}
	if err != nil {
		return errors.Join(err, vfs.RemoveIfThere(s.fs, temp))
	}
	return l.publishSealed(s, temp, size)
}

// writeSealed writes and syncs the sealed file under a temporary name.
func (d *Dir) writeSealed(s *segment, temp string, giveWay func()) (raw written, size int64, err error) {
	if err := vfs.RemoveIfThere(s.fs, temp); err != nil {
		return raw, 0, err
	}
	h, err := s.acquire()
	if err != nil {
		return raw, 0, err
	}
	defer h.release()
	f, err := s.fs.Create(temp)
	if err != nil {
		return raw, 0, err
	}
	raw, size, err = d.writeBody(s, h, f, giveWay)
	if err == nil {
		err = f.Sync()
	}
	return raw, size, errors.Join(err, f.Close())
}

func (d *Dir) writeBody(s *segment, h *handle, f vfs.File, giveWay func()) (raw written, size int64, err error) {
	st := NewStream(h.src, h.name, s.shard, s.start(), headerBytes, s.end.Load())
	defer st.Close()
	z := newSealer(d.blocks(), d.o.sealSizes, &s.segmentHeader, f)
	raw, err = d.walk(st, giveWay, func(f *Frame) error { return z.add(f, st.whole) })
	if err != nil {
		return raw, 0, s.noteDamage(err)
	}
	indexPos, size, err := z.end()
	if err != nil {
		return raw, 0, err
	}
	head := s.segmentHeader
	head.seal = &sealedInfo{rawSize: s.end.Load(), indexPos: indexPos, lastCRC: raw.lastCRC}
	if err := head.validate(); err != nil {
		return raw, 0, err
	}
	_, err = f.WriteAt(head.encode(), 0)
	return raw, size, err
}

// giveWayEvery is after how many frames sealing gives way.
const giveWayEvery = 16

// walk reads a stream to its end and calls f, if there is one, with each frame.
func (d *Dir) walk(st *Stream, giveWay func(), f func(*Frame) error) (w written, err error) {
	for {
		fr, err := st.Next()
		if err == io.EOF { //nolint:errorlint // the stream's own, never wrapped
			w.pos, w.lastCRC = st.pos, st.lastCRC
			if st.inGroup {
				return w, st.located(corruptf("the last group is not whole"))
			}
			return w, nil
		}
		if err != nil {
			return w, err
		}
		w.frames++
		w.sum = crc32.Update(w.sum, castagnoli, st.whole[:4])
		if f != nil {
			if err := f(fr); err != nil {
				return w, err
			}
		}
		if w.frames%giveWayEvery == 0 {
			giveWay()
		}
		if w.frames&0x3ff == 0 {
			select {
			case <-d.keeper.quit:
				return w, errSealAborted
			default:
			}
		}
	}
}

// readBack reads the file just written as readers will.
func (d *Dir) readBack(s *segment, temp string, giveWay func()) (written, error) {
	f, err := s.fs.Open(temp)
	if err != nil {
		return written{}, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	v, err := s.openView(f, temp, &chunkCache{})
	if err != nil {
		return written{}, err
	}
	st := NewStream(v, temp, s.shard, s.start(), headerBytes, s.end.Load())
	defer st.Close()
	return d.walk(st, giveWay, nil)
}

// checkSealed checks that the segment ends as the one after it says.
func (l *Log) checkSealed(s *segment, raw written) error {
	next := l.after(s)
	if next == nil || next.prevSize != raw.pos || next.prevCRC != raw.lastCRC || next.parentOff != s.base+raw.frames {
		return s.noteDamage(&CorruptError{
			File: s.path(), Position: raw.pos, Cursor: Cursor{s.generation, s.base + raw.frames},
			Err: corruptf("the segment after this one does not continue it"),
		})
	}
	return nil
}

// publishSealed puts the sealed file in the raw one's place.
func (l *Log) publishSealed(s *segment, temp string, size int64) error {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	if !slices.Contains(l.segments(), s) {
		return vfs.RemoveIfThere(l.fs, temp) // dropped meanwhile
	}
	name := path.Join(s.dir, sealedName(s.number))
	err := l.fs.Rename(temp, name)
	if err == nil {
		err = l.fs.SyncDir(s.dir)
	}
	if err != nil {
		return errors.Join(err, vfs.RemoveIfThere(l.fs, name), vfs.RemoveIfThere(l.fs, temp))
	}
	raw := s.path()
	s.becomeSealed(size)
	return vfs.RemoveIfThere(l.fs, raw)
}
