package log

import (
	"errors"
	"path"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
)

// Sync makes everything that was appended when it was called durable. It returns the sticky error
// after a failure, ErrDiskFull when frames are waiting for space. A failed fsync is never repeated.
func (l *Log) Sync() error {
	g := l.gen.Load()
	target := g.appended.Load()
	full := l.Flush()
	if full != nil && !errors.Is(full, ErrDiskFull) {
		return full
	}
	if g.durable.Load() >= target {
		return nil
	}
	l.smu.Lock()
	defer l.smu.Unlock()
	if err := l.sync(); err != nil {
		return err
	}
	return full
}

// sync makes everything written durable, and leaves the mark. REQUIRES: smu.
func (l *Log) sync() error {
	if err := l.Err(); err != nil {
		return err
	}
	g := l.gen.Load()
	written, txn := g.written.Load(), l.writtenTxn.Load() // in this order: txn is not older
	if g.durable.Load() >= written {
		return nil
	}
	// The file can't change: that needs smu. Writes that end while the sync runs are not counted.
	began := time.Now()
	if err := l.w.file.Sync(); err != nil {
		return l.fail("sync", &syncError{l.w.seg.path(), err})
	}
	l.syncTime.Store((7*l.syncTime.Load() + int64(time.Since(began))) / 8)
	l.durableTxn.Store(txn)
	g.durable.Store(written)
	l.marks.advance(g)
	return l.leaveMark(mark{Cursor{g.id, written}, l.w.seg.number})
}

// leaveMark writes the durable mark, unless the last one is recent. REQUIRES: smu, m is durable.
func (l *Log) leaveMark(m mark) error {
	end, now := l.w.seg.end.Load(), time.Now()
	if m.segment == l.marked.segment && m.cursor.Generation == l.marked.cursor.Generation &&
		end-l.markedEnd < markEvery && now.Sub(l.markedAt) < markPause {
		return nil
	}
	m.put(&l.markBuf)
	if _, err := l.markFile.WriteAt(l.markBuf[:], 0); err != nil && !isFull(err) {
		return l.fail("write of the durable mark", err)
	}
	l.marked, l.markedEnd, l.markedAt = m, end, now
	return nil
}

// SyncTime returns how long a sync takes, a moving average of the last ones; 0 before the first.
func (l *Log) SyncTime() time.Duration { return time.Duration(l.syncTime.Load()) }

// SyncThrough asks the committer to make everything below off durable, whatever the policy is, and returns at once.
func (l *Log) SyncThrough(off uint64) {
	if l.Durable() < off {
		l.asked.Store(true)
		l.kick()
	}
}

// kick wakes the committer. Kicks while it works are one kick.
func (l *Log) kick() {
	select {
	case l.kicked <- struct{}{}:
	default:
	}
}

// commit is the committer: it does what request paths must not wait for.
func (l *Log) commit() {
	defer close(l.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		second := false
		select {
		case <-l.quit:
			return
		case <-l.kicked:
		case <-tick.C:
			second = true
		}
		l.maintain(second)
	}
}

// maintain syncs as the policy says and SyncThrough asks, and keeps house after each sync. Under always it goes on until
// everything appended is durable. Errors that matter are sticky: there is nobody to return them to.
func (l *Log) maintain(second bool) {
	for l.Err() == nil {
		g, policy := l.gen.Load(), l.Policy()
		behind := func() bool { return g.durable.Load() < g.appended.Load() }
		asked := l.asked.Swap(false)
		var err error
		if behind() && (asked || policy == Always || (policy == EverySec && second)) {
			err = l.Sync()
		}
		if err != nil && asked {
			l.asked.Store(true) // the disk is full: again in a second
		}
		if policy == EverySec { // a sync of always may hold smu
			l.writeBack()
		}
		l.keepHouse(second)
		if policy != Always || err != nil || !behind() {
			return
		}
	}
}

// writeBack has the disk begin with what the sync of the second would find. A sync that has a whole second's frames to
// write holds a CPU for milliseconds, in which the turns, and the readers that wait for their frames, come too late.
func (l *Log) writeBack() {
	l.smu.Lock() // the file stays
	defer l.smu.Unlock()
	l.wmu.Lock()
	due, back, end := l.needsBack(), l.w.back, l.wholePages()
	if due {
		l.w.back = end
	}
	l.wmu.Unlock()
	if due {
		l.w.file.WriteBack(back, end-back)
	}
}

// keepHouse retries after a full disk, reserves space ahead and rolls the segment.
func (l *Log) keepHouse(second bool) {
	l.wmu.Lock()
	if second {
		_ = l.flush() // appended without a Flush, or left from a full disk: its error is sticky or comes again
	}
	size := l.w.seg.end.Load()
	mayTry := l.Err() == nil && time.Now().After(l.w.retryAt)
	if mayTry && (l.w.alloc-size < l.step/2 || l.short.Load()) {
		_ = l.grow(0) // sticky, or Reserve will find out
	}
	if mayTry && l.needsZeros() {
		_ = l.writeAhead() // sticky
	}
	l.wmu.Unlock()
	if mayTry && size >= l.segmentBytes && l.Err() == nil && l.roll() == nil && l.onRoll != nil {
		l.onRoll()
	}
}

// errUnsettled postpones a roll: a group over several shards is not in all of their logs yet.
var errUnsettled = errors.New("log: group over several shards is being appended")

// roll goes on in a new segment. A full disk or an unsettled group leaves everything as it was. So does a newest segment without
// frames, which a generation has begun since the roll was decided: segments of one generation differ by their cursors, and its file
// may have what a Bridge has written.
//
// Only the newest segment is cut by recovery, and it may have to be cut before a group over several
// shards whose parts are not all there, or that follows such a group on any of its shards, and so on.
// So a segment ends only when it is durable itself and all those groups are durable everywhere.
func (l *Log) roll() error {
	l.dir.rolling.Lock()
	defer l.dir.rolling.Unlock()
	// Most of it without holding up the writers.
	if err := l.Sync(); err != nil {
		return err
	}
	if err := l.settleSiblings(); err != nil {
		return err
	}
	l.smu.Lock()
	defer l.smu.Unlock()
	l.wmu.Lock()
	defer l.wmu.Unlock()
	if err := l.settle(); err != nil {
		return err
	}
	if err := l.settleSiblings(); err != nil {
		return err
	}
	if l.w.seg.end.Load() == headerBytes {
		return nil
	}
	next, err := l.createNext(l.continued())
	if err != nil {
		return err
	}
	return l.use(next, l.w.seg.genPos+l.w.seg.end.Load()-headerBytes)
}

// settleSiblings makes all parts of the groups over several shards durable that the groups written
// here depend on. Such a group was appended to all of its shards, under their locks, before
// the next one to any of them. So all of them are among the groups that the logs know of now.
// REQUIRES: Dir.rolling; wmu for the result to last, as then nothing more is written here.
func (l *Log) settleSiblings() error {
	var need needs
	for _, other := range l.dir.logs {
		other.mu.Lock()
		for i, txn := range other.needs {
			need[i] = max(need[i], txn)
		}
		other.mu.Unlock()
	}
	for i, other := range l.dir.logs {
		if other == l || other.durableTxn.Load() >= need[i] {
			continue
		}
		if err := other.Sync(); err != nil {
			return err
		}
		if other.durableTxn.Load() < need[i] {
			return errUnsettled
		}
	}
	return nil
}

// settle flushes and syncs. REQUIRES: smu and wmu.
func (l *Log) settle() error {
	if err := l.flush(); err != nil {
		return err
	}
	return l.sync()
}

// continued is the header of the segment after this one. REQUIRES: wmu, everything flushed.
func (l *Log) continued() segmentHeader {
	s, t := l.w.seg, &l.w.tail
	return segmentHeader{
		shard: l.shard, number: s.number + 1, generation: s.generation, base: t.off,
		parent: s.generation, parentOff: t.off, cause: s.cause, createdMS: l.now(),
		prev: s.number, prevSize: t.pos, prevCRC: t.crc, lastTxn: t.txn, lastTimeMS: t.timeMS,
	}
}

// forked is the header of the first segment of a new generation. REQUIRES: as continued.
func (l *Log) forked(g Lineage) segmentHeader {
	h := l.continued()
	h.parent, h.parentOff = l.w.seg.generation, h.base
	h.generation, h.base, h.cause, h.createdMS = g.Generation, 0, g.Cause, g.TimeMS
	return h
}

// nextSegment is a segment file that is made but not yet part of the log. It has a header once it is completed.
type nextSegment struct {
	seg   *segment
	file  vfs.File
	alloc int64
	// second is the end of what a Bridge has written there already, 0: nothing. It must stay as it is until the same
	// frames are appended.
	second int64
}

// createNext makes the file of the next segment, durably. A full disk is ErrDiskFull, with nothing left behind. REQUIRES: wmu.
func (l *Log) createNext(h segmentHeader) (*nextSegment, error) {
	next, err := l.openNext()
	if err != nil {
		return nil, err
	}
	if err = l.complete(next, h); !errors.Is(err, ErrDiskFull) || l.Err() != nil {
		return next, err
	}
	return nil, l.gaveUp(next.seg.number, err)
}

// openNext makes the file of the next segment, without a header but with at least as much reserved space as is admitted
// now. A full disk is ErrDiskFull, with nothing left behind. REQUIRES: wmu.
func (l *Log) openNext() (*nextSegment, error) {
	number := l.w.seg.number + 1
	next, err := openSegment(l.fs, l.path, number, headerBytes+max(l.step, l.w.alloc-l.w.seg.end.Load()))
	switch {
	case err == nil:
		return next, nil
	case !isFull(err):
		return nil, l.fail("new segment", err)
	}
	return nil, l.gaveUp(number, ErrDiskFull)
}

// complete makes a segment of the file, durably. A full disk is ErrDiskFull. REQUIRES: wmu.
func (l *Log) complete(next *nextSegment, h segmentHeader) error {
	err := next.complete(h)
	switch {
	case err == nil:
		return nil
	case !isFull(err):
		return l.fail("new segment", err)
	}
	return ErrDiskFull
}

// gaveUp removes a segment for which there is no space, and returns err, which says so. REQUIRES: wmu.
func (l *Log) gaveUp(number uint64, err error) error {
	if err := l.dropNext(path.Join(l.path, segmentName(number))); err != nil {
		return l.fail("removal of a half-made segment", err)
	}
	l.w.retryAt = time.Now().Add(fullPause)
	return err
}

// dropNext durably removes a segment file that did not become part of the log: it must not come
// back after a crash, when the segment before it has grown.
func (l *Log) dropNext(name string) error {
	if err := vfs.RemoveIfThere(l.fs, name); err != nil {
		return err
	}
	return l.fs.SyncDir(l.path)
}

// createSegment makes a segment file, its header and directory entry durable. An error of a sync
// does not match ENOSPC: it is final whatever it is.
func createSegment(fsys vfs.FS, dir string, h segmentHeader, alloc int64) (*nextSegment, error) {
	next, err := openSegment(fsys, dir, h.number, alloc)
	if err != nil {
		return nil, err
	}
	return next, next.complete(h)
}

// openSegment makes a segment file of zero length with reserved space. A crash leaves what recovery removes.
func openSegment(fsys vfs.FS, dir string, number uint64, alloc int64) (*nextSegment, error) {
	f, err := fsys.Create(path.Join(dir, segmentName(number)))
	if err != nil {
		return nil, err
	}
	if err := f.Preallocate(0, alloc); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	seg := &segment{segmentHeader: segmentHeader{number: number}, fs: fsys, dir: dir}
	return &nextSegment{seg: seg, file: f, alloc: alloc}, nil
}

// complete gives the segment its header and makes it durable; after an error the file is closed.
func (n *nextSegment) complete(h segmentHeader) error {
	err := h.validate()
	if err == nil {
		_, err = n.file.WriteAt(h.encode(), 0)
	}
	if err != nil {
		return errors.Join(err, n.file.Close())
	}
	if err = n.file.Sync(); err == nil {
		err = n.seg.fs.SyncDir(n.seg.dir)
	}
	if err != nil {
		_ = n.file.Close() // the failed sync is the news
		return &syncError{n.seg.path(), err}
	}
	n.seg.segmentHeader = h
	n.seg.end.Store(headerBytes)
	return nil
}

// use makes next the newest segment; its frames start at genPos in the generation's bytes.
// REQUIRES: smu and wmu, everything synced.
func (l *Log) use(next *nextSegment, genPos int64) error {
	w := &l.w
	old, oldHandle, end := w.seg, w.handle, w.seg.end.Load()
	handle := next.seg.adopt(next.file)
	next.seg.genPos, next.seg.cache = genPos, &l.dir.cache
	l.segMu.Lock()
	l.segs = append(l.segs, next.seg)
	l.segMu.Unlock()
	w.seg, w.handle, w.file, w.alloc = next.seg, handle, next.file, next.alloc
	w.back, w.zeroed, w.nextIdx = 0, next.second, headerBytes+seekGranule
	w.tail.pos = headerBytes
	w.tail.crc = 0
	l.admit()
	err := oldHandle.file.Truncate(end) // gives back what was reserved ahead
	oldHandle.release()
	if err != nil {
		return l.fail("truncation of "+old.path(), err)
	}
	return nil
}
