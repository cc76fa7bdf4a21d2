package log

import "github.com/kevydb/kevy/log/effect"

// Encoder writes groups of frames into a buffer: it is the only code that makes frames. A group is
// Begin, Append for each effect, then End or Abort. The buffer grows as needed; its owner may take
// or empty it between groups.
//
// Not safe for concurrent use.
type Encoder struct {
	Buf []byte // the encoded frames, whole groups only when no group is open

	seed  uint32
	next  uint64 // offset of the next frame
	time  int64  // of the newest frame; the next is never older
	cause FrameCause
	txn   uint64
	mask  uint64

	open      bool   // a group is
	start     int    // where the open group starts in Buf
	first     uint64 // offset of its first frame
	last      int    // where its newest frame starts
	frames    int    // how many it has
	startTime int64  // time before it
}

// NewEncoder returns an encoder of frames for one generation of one shard, whose next frame gets
// the given offset and is not older than timeMS.
func NewEncoder(shard int, c Cursor, timeMS int64) *Encoder {
	e := &Encoder{}
	e.reset(shard, c, timeMS)
	return e
}

func (e *Encoder) reset(shard int, c Cursor, timeMS int64) {
	e.seed = frameSeed(shard, c.Generation)
	e.next = c.Offset
	e.time = timeMS
}

// Next returns the offset of the next frame.
func (e *Encoder) Next() uint64 { return e.next }

// Begin opens a group. Its frames get the time timeMS (unix ms), or that of the newest frame if
// that is later. txn 0 means that the group is not part of one over several shards; otherwise mask
// has a bit for each of these.
func (e *Encoder) Begin(timeMS int64, cause FrameCause, txn, mask uint64) {
	e.start, e.first, e.frames, e.startTime = len(e.Buf), e.next, 0, e.time
	e.time = min(max(e.time, timeMS), maxTime)
	e.cause, e.txn, e.mask, e.open = cause, txn, mask, true
}

// SetCause changes the cause for the following frames of the open group.
func (e *Encoder) SetCause(cause FrameCause) { e.cause = cause }

// Append encodes one frame into the open group.
//
// REQUIRES: x.Validate() == nil, and its payload is at most MaxPayload bytes.
func (e *Encoder) Append(x *effect.Effect) {
	var flags byte
	if e.frames == 0 {
		flags = flagFirst
		if e.txn != 0 {
			flags |= flagTxn
		}
	} else {
		e.seal(e.last, e.next-1)
	}
	at := len(e.Buf)
	b := append(e.Buf, zeroHeader[:]...)
	if flags&flagTxn != 0 {
		b = append(b, zeroHeader[:txnExtension]...)
		le.PutUint64(b[at+posTxn:], e.txn)
		le.PutUint64(b[at+posTxnMask:], e.mask)
	}
	payload := len(b)
	b, keyPos := effect.AppendPayload(b, x)
	h := b[at : at+frameHeader]
	if key, ok := x.SingleKey(); ok && keyPos <= maxKeyPos {
		flags |= flagSingle
		h[posKey] = byte(keyPos)
		le.PutUint32(h[posKeyLength:], uint32(len(key)))
	}
	le.PutUint32(h[posLength:], uint32(len(b)-payload))
	le.PutUint64(h[posTime:], uint64(e.time)|uint64(x.Op)<<48|uint64(flags)<<56)
	h[posCause] = byte(e.cause)
	e.Buf, e.last = b, at
	e.next++
	e.frames++
}

var zeroHeader [frameHeader]byte

// End closes the open group and returns the offset after it. A group without frames leaves
// nothing behind.
func (e *Encoder) End() (next uint64) {
	e.open = false
	if e.frames == 0 {
		e.time = e.startTime
		return e.next
	}
	e.Buf[e.last+posFlags] |= flagLast
	e.seal(e.last, e.next-1)
	return e.next
}

// Sealed returns how many bytes of Buf are final. While a group is open its newest frame is not.
func (e *Encoder) Sealed() int {
	if e.open && e.frames > 0 {
		return e.last
	}
	return len(e.Buf)
}

// Drop removes the first n bytes of Buf, which must be sealed; a group that is open then can't be aborted. It
// is for owners who write very large groups.
func (e *Encoder) Drop(n int) {
	e.Buf = e.Buf[:copy(e.Buf, e.Buf[n:])]
	e.last, e.start = e.last-n, max(0, e.start-n)
}

// Abort drops the open group.
func (e *Encoder) Abort() {
	e.open = false
	e.Buf, e.next, e.time = e.Buf[:e.start], e.first, e.startTime
}

// seal sets the checksum of the frame that starts at and ends where the next one starts or Buf ends.
func (e *Encoder) seal(at int, offset uint64) {
	b := e.Buf[at:]
	le.PutUint32(b, frameCRC(e.seed, offset, b))
}

// lastCRC returns the checksum of the newest frame of the group just ended.
func (e *Encoder) lastCRC() uint32 { return le.Uint32(e.Buf[e.last:]) }
