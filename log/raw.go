package log

import "fmt"

// AppendRaw appends a whole group of frames as another log of the same shard has it: the same bytes at the same
// offsets. It returns the appended tail. A group that does not begin at the tail is refused, and nothing has changed.
//
// REQUIRES: the shard's lock; no open group; Reserve(len(raw)) succeeded; a Stream has decoded raw at c, from the first frame of the
// group to its last, which checks it against shard, generation and offsets.
func (l *Log) AppendRaw(c Cursor, raw []byte) (next uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := (Cursor{l.gen.Load().id, l.enc.next}); c != at {
		return at.Offset, fmt.Errorf("log: shard %d: frames from %v on do not continue the log, which ends at %v", l.shard, c, at)
	}
	for at := 0; at < len(raw); {
		size, err := frameSize(raw[at:])
		if err != nil || size > len(raw)-at {
			return c.Offset, corruptf("raw group at %v: byte %d of %d", c, at, len(raw))
		}
		at += size
	}
	bytes, e := l.bytes.Load(), &l.enc
	e.adopt(raw, func(off uint64, at, size int) { l.win.add(off, bytes+int64(at), int64(size)) })
	return l.ended(), nil
}

// AppendRaw appends a whole group of frames that has been encoded for just this place, from its first frame to its last, and checked as for
// Log.AppendRaw. It keeps nothing of raw. REQUIRES: no open group.
func (e *Encoder) AppendRaw(raw []byte) { e.adopt(raw, func(uint64, int, int) {}) }

// adopt takes in a whole group that has been encoded elsewhere, calling each with the offset, place and size of its frames.
func (e *Encoder) adopt(raw []byte, each func(off uint64, at, size int)) {
	e.start, e.first, e.frames = len(e.Buf), e.next, 0
	e.txn, e.mask = 0, 0
	if raw[posFlags]&flagTxn != 0 {
		e.txn, e.mask = le.Uint64(raw[posTxn:]), le.Uint64(raw[posTxnMask:])
	}
	for at := 0; at < len(raw); {
		size, _ := frameSize(raw[at:]) // checked
		each(e.next, at, size)
		e.last, e.time = e.start+at, timeOf(raw[at:])
		e.next++
		e.frames++
		at += size
	}
	e.Buf = append(e.Buf, raw...)
}

// PeekKey returns the key of the frame that raw begins with, nil if a prefix filter may not test the frame, and the length of the frame: 0 when raw
// does not hold the whole of it. It checks nothing but that: it is for who wants to know early which keys are coming.
func PeekKey(raw []byte) (key []byte, size int) {
	if len(raw) < frameHeader {
		return nil, 0
	}
	size, err := frameSize(raw)
	if err != nil || size > len(raw) {
		return nil, 0
	}
	key, _ = frameKey(raw[:size])
	return key, size
}
