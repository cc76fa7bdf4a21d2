package log

import (
	"errors"
	"io"
	"log/slog"
	"math/bits"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
)

// Log is the log of one shard. Append-side methods (Reserve, Begin to End) need the shard's lock:
// there is one appender at a time. Everything else is safe for concurrent use.
//
// Lock order: Dir.mu, Dir.rolling, smu, wmu, then one of mu, segMu, marks.mu, segment.mu. Several
// logs' smu and wmu are only taken under Dir.rolling.
type Log struct {
	dir          *Dir
	fs           vfs.FS
	shard        int
	path         string // directory of the shard
	segmentBytes int64
	step         int64 // preallocation
	zeroAhead    bool  // writeAhead makes syncs cheaper: the directory is on a disk
	serveAll     bool
	now          func() int64
	logger       *slog.Logger
	onRoll       func() // called by the committer after a new segment began; nil: nothing to do

	gen     atomic.Pointer[generation]
	lineage atomic.Pointer[[]Lineage] // stored before gen
	failed  atomic.Pointer[error]     // sticky
	limit   atomic.Int64              // appends up to this byte of the generation are admitted
	bytes   atomic.Int64              // bytes appended to the generation; stored under mu
	lastTxn atomic.Uint64             // highest transaction id appended; stored under mu
	marks   watermarks

	syncTime   atomic.Int64  // nanoseconds; stored under smu
	writtenTxn atomic.Uint64 // highest transaction id written; stored under wmu, before the watermark
	durableTxn atomic.Uint64 // highest transaction id known to be durable; stored under smu

	mu      sync.Mutex // guards the append side; held while a group is open
	enc     Encoder
	win     window
	winMark int          // entries of win when the open group began
	groups  []indexEntry // some groups in enc.Buf and where they start
	crc     uint32       // checksum of the newest frame in enc.Buf
	needs   needs        // as the groups in this log say

	resolving sync.Mutex // held while the window's older part is being indexed

	wmu sync.Mutex // guards w: the file side
	w   fileSide

	smu      sync.Mutex // held while syncing; with wmu while the file changes
	markFile vfs.File   // nil: read-only
	markBuf  [markBytes]byte

	marked    mark // the mark written last
	markedEnd int64
	markedAt  time.Time

	fileMu sync.Mutex // held while files of ended segments are replaced or removed; taken before segMu

	sealFailures atomic.Uint64
	short        atomic.Bool // a write was refused, or waits, for space on the disk; stored under wmu

	segMu sync.RWMutex // guards segs and pins
	segs  []*segment   // ascending, the newest last; never empty
	pins  map[*Reader]uint64

	kicked chan struct{} // one pending kick of the committer
	asked  atomic.Bool   // SyncThrough has asked for a sync that has not begun
	quit   chan struct{}
	done   chan struct{} // closed when the committer has ended; nil: there is none
}

// fileSide is what moves frames from the buffer to the file.
type fileSide struct {
	seg     *segment
	handle  *handle
	file    vfs.File // the handle's, for writing
	bytes   int64    // bytes of the generation written
	alloc   int64    // the file's space is reserved up to here
	back    int64    // the disk was asked to write up to here
	zeroed  int64    // zeros are written ahead up to here; what is behind end counts
	full    bool     // a write hit the full disk: out is waiting
	retryAt time.Time
	nextIdx int64 // position from which on a group gets an entry in seg's index

	out       []byte // taken from the encoder, not yet written
	outNext   uint64
	outGroups []indexEntry
	spare     []byte // empty buffers to give to the encoder
	spareGrps []indexEntry

	tail tailState // after the last byte of out
}

// needs says for each shard the highest id of a group of which it must have a part.
type needs [MaxShards]uint64

func (n *needs) add(txn, mask uint64) {
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros64(mask)
		n[i] = max(n[i], txn)
	}
}

// tailState is what is known about the end of a shard's log at the end of a group.
type tailState struct {
	pos    int64  // position in the newest segment
	off    uint64 // offset of the next frame
	crc    uint32 // checksum of the last frame in the newest segment, 0: none
	timeMS int64  // of the shard's last frame, 0: none
	txn    uint64 // last transaction id in the shard, 0: none
}

// Shard returns the shard's number.
func (l *Log) Shard() int { return l.shard }

// Err returns the sticky error: why the log takes no more frames. It is nil while all is well, also
// while the disk is full; ErrClosed after Close. It matches ErrFailed and the cause after a failed
// write or fsync.
func (l *Log) Err() error {
	if e := l.failed.Load(); e != nil {
		return *e
	}
	return nil
}

// fail makes err sticky. Only the first one counts.
func (l *Log) fail(op string, err error) error {
	var sticky error = &failedError{op: op, err: err}
	if l.failed.CompareAndSwap(nil, &sticky) {
		l.logger.Error("log failed: it takes no more writes", "shard", l.shard, "op", op, "err", err)
	}
	l.limit.Store(closedLimit)
	l.marks.wakeAll()
	return l.Err()
}

// shut makes ErrClosed (or another end that is no failure) sticky.
func (l *Log) shut(err error) {
	l.failed.CompareAndSwap(nil, &err)
	l.limit.Store(closedLimit)
	l.marks.wakeAll()
}

// Bytes returns the bytes of the current generation's frames, those appended last included, counted from its
// oldest frame that was on disk at Open. It grows with each frame until the next generation begins.
func (l *Log) Bytes() int64 { return l.bytes.Load() }

// LastTxn returns the highest transaction id in the log.
func (l *Log) LastTxn() uint64 { return l.lastTxn.Load() }

// Lineage returns the generations of the shard that are on record, the current one last.
func (l *Log) Lineage() []Lineage { return append([]Lineage(nil), *l.lineage.Load()...) }

// Oldest returns the cursor of the oldest frame on disk.
func (l *Log) Oldest() Cursor {
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	return l.segs[0].start()
}

// Segments returns how many segments are on disk.
func (l *Log) Segments() int {
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	return len(l.segs)
}

// Base returns the first offset of the current generation the feed serves: at least the window's
// bytes behind the tail, and always the newest frame.
func (l *Log) Base() uint64 {
	if l.serveAll {
		return l.oldestOfCurrent()
	}
	// The window's index is coarse: what it names may lie before the segment that the window begins in.
	return max(l.indexedBase(), l.oldestOfCurrent())
}

// indexedBase returns the first offset that the window's index has for the window, which may have been dropped already.
func (l *Log) indexedBase() uint64 {
	off, ok := l.windowBase()
	if ok {
		return off
	}
	l.resolving.Lock()
	defer l.resolving.Unlock()
	if off, ok = l.windowBase(); ok {
		return off
	}
	l.resolveWindow()
	l.mu.Lock()
	defer l.mu.Unlock()
	if off, ok = l.win.base(l.bytes.Load()); ok {
		return off
	}
	return l.win.known.off // a damaged segment: serve what is surely there
}

func (l *Log) windowBase() (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.win.base(l.bytes.Load())
}

func (l *Log) oldestOfCurrent() uint64 {
	g := l.gen.Load().id
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	i := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].generation >= g })
	if i == len(l.segs) || l.segs[i].generation != g {
		return 0 // the generation is just beginning
	}
	return l.segs[i].base
}

// resolveWindow indexes the part of the window that was on disk before the newest segment when
// the log was opened. REQUIRES: l.resolving is held.
func (l *Log) resolveWindow() {
	l.mu.Lock()
	known, boundary, gen := l.win.known, l.bytes.Load()-l.win.size, l.gen.Load().id
	granule := l.win.granule
	l.mu.Unlock()
	scan := newWindow(0)
	scan.granule = granule
	for _, s := range l.segments() {
		next := s.genPos + s.end.Load() - headerBytes
		if s.generation != gen || next <= boundary || s.genPos >= known.pos {
			continue
		}
		if len(scan.entries) == 0 {
			first := indexEntry{s.base, s.genPos}
			scan.begin(first, first)
		}
		if err := s.indexWindow(&scan); err != nil {
			l.logger.Error("feed window: segment can't be read", "shard", l.shard, "err", err)
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gen.Load().id == gen && l.win.known == known && l.win.head == 0 {
		l.win.prepend(scan.entries)
		l.win.trim(l.bytes.Load())
	}
}

// indexWindow adds the frames of a segment to w.
func (s *segment) indexWindow(w *window) error {
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	st := NewStream(h.src, h.name, s.shard, s.start(), headerBytes, s.end.Load())
	defer st.Close()
	for {
		off, pos := st.off, st.pos
		if err := st.skip(); err != nil {
			return ignoreEOF(err)
		}
		w.add(off, s.genPos+pos-headerBytes, st.pos-pos)
	}
}

func (l *Log) segments() []*segment {
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	return append([]*segment(nil), l.segs...)
}

// endOf returns the end of a generation: its frames below it are part of this history. child is
// the generation that follows, 0 for the current one. ok is false for a generation that is not on record.
func (l *Log) endOf(gen uint64) (end uint64, child uint64, ok bool) {
	g := l.gen.Load()
	if gen == g.id {
		return g.written.Load(), 0, true
	}
	lin := *l.lineage.Load()
	for i := range lin {
		if lin[i].Parent == gen && gen != 0 {
			return lin[i].ParentOffset, lin[i].Generation, true
		}
	}
	return 0, 0, false
}

// find returns the segment that holds or will hold the frame at c, nil when it is not on disk.
func (l *Log) find(c Cursor) *segment {
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	return l.findLocked(c)
}

func (l *Log) findLocked(c Cursor) *segment {
	i := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].startsBehind(c) })
	if i == 0 || l.segs[i-1].generation != c.Generation {
		return nil
	}
	return l.segs[i-1]
}

// after returns the segment after s, nil when it is the newest.
func (l *Log) after(s *segment) *segment {
	l.segMu.RLock()
	defer l.segMu.RUnlock()
	i := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].number > s.number })
	if i == len(l.segs) {
		return nil
	}
	return l.segs[i]
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
