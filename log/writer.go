package log

import (
	"time"

	"github.com/kevydb/kevy/log/effect"
)

const (
	preallocStep = 4 << 20
	keepBuffer   = 4 << 20 // a larger append buffer is not kept
	fullPause    = 100 * time.Millisecond
	backEvery    = 512 << 10 // bytes after which the disk is asked to begin
	pageBytes    = 4 << 10   // of the system's cache of files
	closedLimit  = -1 << 62
)

// Overhead is the most a frame takes in the log beyond its payload, in bytes.
const Overhead = frameHeader + txnExtension

// Reserve asks for room for n more bytes of frames (payloads plus Overhead each) before they are
// planned into the log. It returns nil, ErrDiskFull (try again later; the log keeps looking for
// space by itself) or the sticky error. An admitted group may still be aborted.
//
// REQUIRES: the shard's lock.
func (l *Log) Reserve(n int) error {
	if l.bytes.Load()+int64(n) <= l.limit.Load() {
		return nil
	}
	return l.reserveSlow(int64(n))
}

func (l *Log) reserveSlow(n int64) error {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if time.Now().Before(l.w.retryAt) {
		return ErrDiskFull
	}
	if l.w.full {
		if err := l.flush(); err != nil {
			return err
		}
	}
	return l.grow(n)
}

// Begin opens a group: until End or Abort its frames are in the log of nobody. timeMS is the
// group's time (unix ms; the log's last time if that is later), txn the identity of the group over
// the several shards in mask (0: only this shard's), which grows from group to group. Exactly the
// shards in mask get a part of such a group, with at least one frame each.
//
// REQUIRES: the shard's lock, kept until End or Abort.
func (l *Log) Begin(timeMS int64, cause FrameCause, txn, mask uint64) {
	l.mu.Lock()
	l.winMark = len(l.win.entries)
	l.enc.Begin(timeMS, cause, txn, mask)
}

// SetCause changes the cause of the frames that follow in the open group.
func (l *Log) SetCause(cause FrameCause) { l.enc.SetCause(cause) }

// Append encodes one frame into the open group. It keeps nothing of e.
//
// REQUIRES: an open group; e.Validate() == nil.
func (l *Log) Append(e *effect.Effect) {
	at, off := len(l.enc.Buf), l.enc.next
	l.enc.Append(e)
	l.win.add(off, l.bytes.Load()+int64(at-l.enc.start), int64(len(l.enc.Buf)-at))
}

// End closes the group and returns the appended tail. A group without frames leaves nothing.
func (l *Log) End() (next uint64) {
	next = l.enc.End()
	if l.enc.frames > 0 {
		l.ended()
	}
	l.mu.Unlock()
	return next
}

// ended takes note of the group that is now at the end of the encoder's buffer, and returns the appended tail.
// REQUIRES: mu.
func (l *Log) ended() (next uint64) {
	e := &l.enc
	l.crc = e.lastCRC()
	if e.txn != 0 {
		l.lastTxn.Store(max(e.txn, l.lastTxn.Load()))
		l.needs.add(e.txn, e.mask)
	}
	if n := len(l.groups); n == 0 || e.start >= int(l.groups[n-1].pos)+seekGranule {
		l.groups = append(l.groups, indexEntry{e.first, int64(e.start)})
	}
	bytes := l.bytes.Load() + int64(len(e.Buf)-e.start)
	l.bytes.Store(bytes)
	l.win.trim(bytes)
	l.gen.Load().appended.Store(e.next)
	return e.next
}

// Abort drops the open group.
func (l *Log) Abort() {
	l.enc.Abort()
	l.win.entries = l.win.entries[:l.winMark]
	l.mu.Unlock()
}

// Flush makes everything that is appended reach the file: it survives the end of the process. It
// costs two atomic loads when there is nothing to do. It returns ErrDiskFull when there is no space
// (the frames stay in the buffer) and the sticky error after a failure.
func (l *Log) Flush() error {
	g := l.gen.Load()
	if appended := g.appended.Load(); g.written.Load() >= appended {
		return l.Err()
	}
	l.wmu.Lock()
	defer l.wmu.Unlock()
	return l.flush()
}

// flush writes what is left from before, then what the buffer has. REQUIRES: wmu.
func (l *Log) flush() error {
	if err := l.Err(); err != nil {
		return err
	}
	if len(l.w.out) > 0 {
		if l.w.full && time.Now().Before(l.w.retryAt) {
			return ErrDiskFull
		}
		if err := l.writeOut(); err != nil {
			return err
		}
	}
	l.take()
	if len(l.w.out) == 0 {
		return nil
	}
	return l.writeOut()
}

// take swaps the encoder's buffer for an empty one. REQUIRES: wmu, and out is empty.
func (l *Log) take() {
	w := &l.w
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.enc.Buf) == 0 {
		return
	}
	w.out, l.enc.Buf = l.enc.Buf, w.spare[:0]
	w.outGroups, l.groups = l.groups, w.spareGrps[:0]
	w.spare, w.spareGrps = nil, nil
	w.outNext = l.enc.next
	w.tail = tailState{w.seg.end.Load() + int64(len(w.out)), w.outNext, l.crc, l.enc.time, l.lastTxn.Load()}
}

// writeOut writes out to the file and moves the written watermark. REQUIRES: wmu.
func (l *Log) writeOut() error {
	w := &l.w
	pos := w.seg.end.Load()
	if _, err := w.file.WriteAt(w.out, pos); err != nil {
		if !isFull(err) {
			return l.fail("write of "+w.seg.path(), err)
		}
		l.diskFull()
		return ErrDiskFull
	}
	g := l.gen.Load()
	if pos == headerBytes {
		w.seg.firstMS.Store(timeOf(w.out))
	}
	l.indexOut(pos)
	w.bytes += int64(len(w.out))
	w.seg.end.Store(w.tail.pos)
	l.writtenTxn.Store(w.tail.txn)
	g.written.Store(w.outNext)
	if cap(w.out) <= keepBuffer {
		w.spare = w.out[:0]
	}
	w.spareGrps = w.outGroups[:0]
	w.out, w.outGroups = nil, nil
	if w.full {
		w.full = false
		l.spaceAgain()
	}
	l.admit()
	l.marks.advance(g)
	if w.tail.pos >= l.segmentBytes || w.alloc-w.tail.pos < l.step/2 || l.needsZeros() || l.needsBack() {
		l.kick()
	}
	return nil
}

// indexOut notes some of the groups just written at pos in the segment's index.
func (l *Log) indexOut(pos int64) {
	w := &l.w
	for _, g := range w.outGroups {
		if at := pos + g.pos; at >= w.nextIdx {
			w.seg.note(g.off, at)
			w.nextIdx = at + seekGranule
		}
	}
}

// diskFull begins or prolongs the time in which nothing is admitted. REQUIRES: wmu.
func (l *Log) diskFull() {
	l.w.full = true
	l.noSpace()
	l.limit.Store(closedLimit)
}

// noSpace notes that there is no space for a write. REQUIRES: wmu.
func (l *Log) noSpace() {
	l.w.retryAt = time.Now().Add(fullPause)
	if !l.short.Swap(true) {
		l.logger.Warn("disk full: writes are refused until there is space", "shard", l.shard)
	}
}

// spaceAgain notes that there is. REQUIRES: wmu.
func (l *Log) spaceAgain() {
	if l.short.Swap(false) {
		l.logger.Info("disk has space again", "shard", l.shard)
	}
}

// admit lets appends in up to the reserved space. REQUIRES: wmu.
func (l *Log) admit() {
	if l.w.full {
		return
	}
	l.limit.Store(l.w.bytes + l.w.alloc - l.w.seg.end.Load())
	if l.failed.Load() != nil { // it failed meanwhile, and may have closed the limit before
		l.limit.Store(closedLimit)
	}
}

// grow reserves space in the file for what is appended, n more bytes, and a step ahead, or at
// least without the step. REQUIRES: wmu.
func (l *Log) grow(n int64) error {
	w := &l.w
	need := w.seg.end.Load() + l.bytes.Load() - w.bytes + n
	for _, ahead := range [...]int64{l.step, 0} {
		to := need + ahead
		if ahead > 0 && l.short.Load() { // is there space again?
			to = max(to, w.alloc+ahead)
		}
		if to <= w.alloc {
			break
		}
		err := w.file.Preallocate(w.alloc, to-w.alloc)
		if err == nil {
			w.alloc = to
			if ahead > 0 && !w.full {
				l.spaceAgain()
			}
			break
		}
		if !isFull(err) {
			return l.fail("preallocation of "+w.seg.path(), err)
		}
	}
	if need > w.alloc {
		l.noSpace()
		return ErrDiskFull
	}
	l.admit()
	return nil
}

// zeros are what is written ahead at most.
var zeros [512 << 10]byte

// needsZeros reports whether writeAhead has something to do. REQUIRES: wmu.
func (l *Log) needsZeros() bool {
	return l.zeroAhead && l.w.zeroed-l.w.seg.end.Load() < int64(len(zeros))/2 && l.Policy() == Always
}

// needsBack reports whether writeBack has something to do. REQUIRES: wmu.
func (l *Log) needsBack() bool {
	return l.wholePages()-l.w.back >= backEvery && l.Policy() == EverySec
}

// wholePages is how many bytes of the newest segment lie in pages that are full: the last one is still written to. REQUIRES: wmu.
func (l *Log) wholePages() int64 { return l.w.seg.end.Load() &^ (pageBytes - 1) }

// writeAhead keeps the file written, with zeros, for a while beyond its end. A sync of bytes that replace
// others leaves the file's metadata alone; one of bytes in space that was only reserved changes it (an
// extent becomes a written one), and takes twice as long. REQUIRES: wmu.
func (l *Log) writeAhead() error {
	w := &l.w
	end := w.seg.end.Load()
	from := max(w.zeroed, end)
	to := min(end+int64(len(zeros)), w.alloc)
	if to <= from {
		return nil
	}
	if _, err := w.file.WriteAt(zeros[:to-from], from); err != nil && !isFull(err) {
		return l.fail("writing ahead in "+w.seg.path(), err)
	}
	w.zeroed = to
	return nil
}
