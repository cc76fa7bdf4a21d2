package log

import (
	"errors"
	"io"
	"slices"
)

// Limit says how far a reader goes.
type Limit int

// The limits.
const (
	LimitVisible Limit = iota // what consumers may see; moves on
	LimitWritten              // everything in the files; moves on
	LimitEnd                  // ReaderOptions.End, and not beyond what is written
)

// ReaderOptions say what a reader reads. The zero value reads what is visible of one generation.
type ReaderOptions struct {
	Limit Limit
	End   Cursor // for LimitEnd: the first frame not to read
	// Follow goes on in the child generation where one ends: the frames of the parent up to the
	// fork, then those of the child.
	Follow bool
	// Feed gives the errors of the feed: ResyncError for a cursor that is not served any more.
	Feed bool
	// Prefixes, if there are any, let the reader leave out frames that Frame.Wanted would not want; it need not. Group, Txn
	// and Mask of frames after one that is left out are not known then.
	Prefixes [][]byte
	// Groups, with Prefixes: they are known, and when a frame is wanted all that follow in its group are given too.
	Groups bool
}

// Reader reads the frames of one shard in order. It is the only way stored frames are read.
// It never sees a frame beyond its limit and never takes the shard's lock. It is not safe for
// concurrent use; there may be any number of readers.
//
// A reader that is not for the feed keeps the segments it still needs from being dropped, until Close.
type Reader struct {
	l      *Log
	o      ReaderOptions
	gen    uint64
	off    uint64 // valid while seg is nil; else s.off
	limit  uint64 // cached: frames of gen below it may be read
	seg    *segment
	handle *handle // seg's
	hits   hits    // view nil: seg is read in order
	s      Stream
	closed bool
}

// NewReader returns a reader that begins with the frame at c.
//
// It fails with ErrAhead when c is beyond the end of its generation. With o.Feed, a cursor of
// another generation than the current one (without o.Follow) or below Base is a *ResyncError;
// without, a generation of the lineage is served as long as it is on disk, else the error is ErrGone.
func (l *Log) NewReader(c Cursor, o ReaderOptions) (*Reader, error) {
	if e := l.Err(); errors.Is(e, ErrClosed) {
		return nil, e
	}
	r := &Reader{l: l, o: o, gen: c.Generation, off: c.Offset}
	if !anyEmpty(o.Prefixes) {
		r.hits.prefixes = o.Prefixes
	}
	if o.Feed {
		if err := l.checkFeed(c, o.Follow); err != nil {
			return nil, err
		}
		if c.Generation == l.Generation() {
			return r, nil
		}
	}
	end, _, ok := l.endOf(c.Generation)
	switch {
	case !ok:
		return nil, r.gone()
	case c.Offset > end && o.Feed: // it forked off before
		return nil, r.gone()
	case c.Offset > end:
		return nil, ErrAhead
	case !l.pin(r):
		return nil, r.gone()
	}
	if o.Limit == LimitEnd {
		if end, _, ok = l.endOf(o.End.Generation); !ok {
			return nil, ErrGone
		}
		if o.End.Offset > end {
			return nil, ErrAhead
		}
	}
	return r, nil
}

func anyEmpty(prefixes [][]byte) bool {
	for _, p := range prefixes {
		if len(p) == 0 {
			return true
		}
	}
	return false
}

// checkFeed applies the feed's rules to a cursor.
func (l *Log) checkFeed(c Cursor, follow bool) error {
	tail := l.Tail()
	if c.Generation != tail.Generation {
		if follow {
			return nil
		}
		return &ResyncError{tail.Generation, tail.Offset}
	}
	if c.Offset > tail.Offset {
		return ErrAhead
	}
	if base := l.Base(); c.Offset < base {
		return &ResyncError{tail.Generation, tail.Offset}
	}
	return nil
}

// gone is the error for frames that are not on disk any more.
func (r *Reader) gone() error {
	if r.o.Feed {
		t := r.l.Tail()
		return &ResyncError{t.Generation, t.Offset}
	}
	return ErrGone
}

// Cursor returns the cursor of the next frame.
func (r *Reader) Cursor() Cursor {
	if r.seg != nil {
		return r.s.Cursor()
	}
	return Cursor{r.gen, r.off}
}

// Close ends the reader. Its last frame is not valid afterwards.
func (r *Reader) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.leave()
	r.s.Close()
	r.l.unpin(r)
}

// OnAdvance is Log.OnAdvanceFrom at the reader's cursor: to be called after Next gave io.EOF.
func (r *Reader) OnAdvance(fn func()) (cancel func()) { return r.l.OnAdvanceFrom(r.Cursor(), fn) }

// Next returns the next frame, valid until the next call. io.EOF means that the limit is reached:
// a later call goes on when the limit has moved. Damage is a *CorruptError and is never passed over.
func (r *Reader) Next() (*Frame, error) {
	for {
		if err := r.ready(); err != nil {
			return nil, err
		}
		f, err := r.step()
		if f != nil {
			return f, nil
		}
		if err := r.stopped(err); err != nil {
			return nil, err
		}
	}
}

// NextRaw is Next for who wants the frames as they are in the log and not what is in them, as many as are at hand: it returns them and the cursor of the
// first, all of one generation. There are at most about most bytes behind the first frame; whole tells that they end with a group, which they do at the limit.
// Checksums and the order of groups are checked as by Next, which can't follow within a group. REQUIRES: a reader without prefixes.
func (r *Reader) NextRaw(most int) (raw []byte, first Cursor, whole bool, err error) {
	for {
		if err := r.ready(); err != nil {
			return nil, Cursor{}, false, err
		}
		first = r.s.Cursor()
		raw, err = r.s.run(r.limit, most)
		if raw != nil {
			return raw, first, !r.s.inGroup, nil
		}
		if err := r.stopped(err); err != nil {
			return nil, Cursor{}, false, err
		}
	}
}

// ready places the reader on a frame that it may read, or returns io.EOF.
func (r *Reader) ready() error {
	if r.seg != nil && r.s.off < r.limit {
		return nil
	}
	return r.proceed()
}

// stopped deals with what a step has returned in the place of a frame. It returns nil when there is another step to take.
func (r *Reader) stopped(err error) error {
	if err == io.EOF { //nolint:errorlint // the stream's own, never wrapped
		return r.extend()
	}
	if err != nil {
		return r.seg.noteDamage(err)
	}
	return nil
}

// Raw returns all bytes of the frame that Next has returned, as they are in the log; valid until the next call.
func (r *Reader) Raw() []byte { return r.s.Raw() }

// Ahead returns what is at hand of the log behind the frame that Next has returned: whole frames, and perhaps a part of one, for PeekKey. Valid until
// the next call. It is empty where frames are left out by their prefixes.
func (r *Reader) Ahead() []byte {
	if r.seg == nil || r.hits.view != nil {
		return nil
	}
	return r.s.buf[r.s.r:r.s.w]
}

// step returns the next frame of the segment: io.EOF at the end of what the reader knows of it, nil when it went on to
// the limit without one.
func (r *Reader) step() (*Frame, error) {
	if r.filtered() {
		return r.nextHit()
	}
	return r.s.Next()
}

// proceed finds out how far the reader may go now, and goes on to the next generation where it has
// to. It returns io.EOF at the limit. Afterwards the reader is placed on a frame below r.limit.
func (r *Reader) proceed() error {
	if r.closed {
		return ErrClosed
	}
	for {
		limit, child, err := r.bounds()
		if err != nil {
			return err
		}
		c := r.Cursor()
		if c.Offset < limit {
			r.limit = limit
			return r.place(c)
		}
		if child == 0 {
			if err := r.l.Err(); errors.Is(err, ErrClosed) {
				return err
			}
			return io.EOF
		}
		if crossed, err := r.toFork(child); err != nil || !crossed {
			if err != nil {
				return err
			}
			continue
		}
		r.leave()
		r.gen, r.off, r.limit = child, 0, 0
	}
}

// toFork checks that the segment after the one just read to the fork is the child's first one. It
// may be that there is one without frames between: then it enters that, and has not crossed.
func (r *Reader) toFork(child uint64) (crossed bool, err error) {
	if r.seg == nil {
		return true, nil
	}
	next := r.l.after(r.seg)
	if next == nil {
		return false, r.s.located(corruptf("generation %d does not follow", child))
	}
	if err := r.checkLink(next); err != nil {
		return false, err
	}
	if next.generation == r.gen {
		return false, r.enter(next, r.s.Cursor())
	}
	return true, nil
}

// bounds returns how far the reader may go in its generation, and the one to follow after that: 0
// when there is none or this reader does not go there.
func (r *Reader) bounds() (limit, child uint64, err error) {
	g := r.l.gen.Load()
	if r.gen == g.id {
		limit = g.written.Load()
		if r.o.Limit == LimitVisible {
			limit = g.visible.Load()
		}
	} else {
		if r.o.Feed && !r.o.Follow {
			return 0, 0, r.gone()
		}
		var ok bool
		if limit, child, ok = r.l.endOf(r.gen); !ok {
			return 0, 0, r.gone()
		}
	}
	if r.o.Limit == LimitEnd && r.gen == r.o.End.Generation {
		limit, child = min(limit, r.o.End.Offset), 0
	}
	if !r.o.Follow {
		child = 0
	}
	return limit, child, nil
}

// place opens the segment that holds the frame at c, unless it is open already.
func (r *Reader) place(c Cursor) error {
	if r.seg != nil {
		return nil
	}
	seg := r.l.find(c)
	if seg == nil {
		return r.gone()
	}
	return r.enter(seg, c)
}

func (r *Reader) enter(seg *segment, c Cursor) error {
	h, err := seg.acquire()
	if err != nil {
		if r.l.find(c) != seg {
			return r.gone()
		}
		return seg.noteDamage(err)
	}
	r.leave()
	end := seg.end.Load()
	if h.view != nil && len(r.hits.prefixes) > 0 {
		r.hits.open(h.view)
		r.s.open(h.src, h.name, seg.shard, c, end, end)
	} else if err := seg.seek(&r.s, h, c.Offset, end, indexEntry{}); err != nil {
		h.release()
		return seg.noteDamage(endIsDamage(&r.s, err))
	}
	r.seg, r.handle, r.gen = seg, h, c.Generation
	r.l.repin(r)
	return nil
}

// leave lets go of the segment, keeping the cursor.
func (r *Reader) leave() {
	if r.seg != nil {
		r.off = r.s.off
		if r.o.Feed && !r.s.inGroup && r.hits.view == nil {
			r.seg.leave(&r.s)
		}
		r.handle.release()
		r.seg, r.handle, r.hits.view = nil, nil, nil
	}
}

// extend goes on after the stream has come to the end of its region while there are frames to
// read: the segment has grown meanwhile, or the frames are in the next one.
func (r *Reader) extend() error {
	// The end was set before the watermark that is r.limit: if the frame is in this segment, it is
	// in here by now.
	if end := r.seg.end.Load(); end > r.s.end {
		r.s.end = end
		return nil
	}
	next, c := r.l.after(r.seg), r.s.Cursor()
	if next == nil {
		return r.s.located(corruptf("the log ends before frame %v", c))
	}
	if err := r.checkLink(next); err != nil {
		return err
	}
	return r.enter(next, c)
}

// checkLink checks that next is the continuation of the segment just read to its end.
func (r *Reader) checkLink(next *segment) error {
	switch {
	case next.prev != r.seg.number || next.parent != r.seg.generation || next.parentOff != r.s.off:
	case next.prevSize != r.s.pos:
	case r.s.lastCRC != 0 && next.prevCRC != r.s.lastCRC:
	default:
		return nil
	}
	if !slices.Contains(r.l.segments(), r.seg) {
		return r.gone() // it was dropped, and more behind it
	}
	return next.noteDamage(&CorruptError{File: next.path(), Position: 0, Cursor: r.s.Cursor(), Err: corruptf(
		"segment %d of %v after segment %d with %d bytes does not continue segment %d, which ends at byte %d",
		next.number, next.start(), next.prev, next.prevSize, r.seg.number, r.s.pos)})
}

// pin keeps the segments from r's cursor on from being dropped. It reports whether they are there.
func (l *Log) pin(r *Reader) bool {
	l.segMu.Lock()
	defer l.segMu.Unlock()
	s := l.findLocked(Cursor{r.gen, r.off})
	if s != nil && !r.o.Feed {
		l.pins[r] = s.number
	}
	return s != nil
}

// repin moves the pin of r to the segment it is in now.
func (l *Log) repin(r *Reader) {
	l.segMu.Lock()
	defer l.segMu.Unlock()
	if _, ok := l.pins[r]; ok {
		l.pins[r] = r.seg.number
	}
}

func (l *Log) unpin(r *Reader) {
	l.segMu.Lock()
	defer l.segMu.Unlock()
	delete(l.pins, r)
}
