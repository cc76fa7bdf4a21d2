package log

import (
	"fmt"

	"github.com/kevydb/kevy/log/effect"
)

// AppendRaw appends whole groups of frames as another log of the same shard has them: the same bytes at the same
// offsets. It returns the appended tail. Groups that do not begin at the tail are refused, and nothing has changed.
//
// REQUIRES: the shard's lock; no open group; Reserve(len(raw)) succeeded; a Stream has decoded raw at c, from the first frame of the first
// group to the last one of the last, which checks it against shard, generation and offsets; a group over several shards comes by itself.
func (l *Log) AppendRaw(c Cursor, raw []byte) (next uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := (Cursor{l.gen.Load().id, l.enc.next}); c != at {
		return at.Offset, fmt.Errorf("log: shard %d: frames from %v on do not continue the log, which ends at %v", l.shard, c, at)
	}
	bytes := l.bytes.Load()
	if err := l.enc.AppendRaw(raw); err != nil {
		return c.Offset, err
	}
	for at, off := 0, c.Offset; at < len(raw); off++ {
		size, _ := frameSize(raw[at:]) // checked
		l.win.add(off, bytes+int64(at), int64(size))
		at += size
	}
	return l.ended(), nil
}

// AppendRaw appends whole groups of frames that have been encoded for just this place and checked as for Log.AppendRaw. It keeps nothing of raw. On an error
// nothing has changed. REQUIRES: no open group.
func (e *Encoder) AppendRaw(raw []byte) error {
	first, start, last, time := e.next, len(e.Buf), 0, e.time
	for at := 0; at < len(raw); e.next++ {
		size, err := frameSize(raw[at:])
		if err != nil || size > len(raw)-at {
			e.next = first
			return corruptf("raw frames from offset %d on: byte %d of %d", first, at, len(raw))
		}
		last, time = start+at, timeOf(raw[at:])
		at += size
	}
	e.start, e.first, e.last, e.frames, e.time = start, first, last, int(e.next-first), time //nolint:gosec // a count
	e.txn, e.mask = 0, 0
	if raw[posFlags]&flagTxn != 0 {
		e.txn, e.mask = le.Uint64(raw[posTxn:]), le.Uint64(raw[posTxnMask:])
	}
	e.Buf = append(e.Buf, raw...)
	return nil
}

// PeekAlone reports whether raw begins with a whole frame that is a group by itself, on one shard, and returns its op. It checks nothing else.
func PeekAlone(raw []byte) (op effect.Op, alone bool) {
	if len(raw) < frameHeader || raw[posFlags]&(flagFirst|flagLast|flagTxn) != flagFirst|flagLast {
		return 0, false
	}
	size, err := frameSize(raw)
	return effect.Op(raw[posOp]), err == nil && size <= len(raw)
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
