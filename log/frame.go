package log

import (
	"github.com/kevydb/kevy/log/effect"
)

// A frame, little-endian:
//
//	off size
//	  0   4  CRC32C: seed(shard, generation), then the frame's offset as u64, then bytes 4..end
//	  4   4  payload length, 4..MaxPayload
//	  8   6  unix ms, never decreasing within a shard
//	 14   1  op (log/effect)
//	 15   1  flags
//	 16   1  cause (FrameCause)
//	 17   1  position of the key in the payload (flag single)
//	 18   2  database number, 0
//	 20   4  key length (flag single)
//	 24  16  flag transaction only: transaction id u64, mask of taking shards u64
//	 ..   n  payload: the effect's argv as RESP
//
// The offset is not stored: frames are contiguous, and the checksum binds each to its own. A frame
// header of zeros means that nothing was written there.
const (
	frameHeader  = 24
	txnExtension = 16
	minPayload   = 4
	maxKeyPos    = 255
	maxTime      = 1<<48 - 1
	flagFirst    = 1
	flagLast     = 2
	flagSingle   = 4
	flagTxn      = 8
	knownFlags   = flagFirst | flagLast | flagSingle | flagTxn
	posLength    = 4
	posTime      = 8
	posOp        = 14
	posFlags     = 15
	posCause     = 16
	posKey       = 17
	posDatabase  = 18
	posKeyLength = 20
	posTxn       = 24
	posTxnMask   = 32
)

// MaxPayload is the largest payload of a frame in bytes: a key, a field and a value of 512 MiB each fit, and a frame has less than
// 2 GiB.
const MaxPayload = 2000 << 20

// Frame is one decoded frame. Key and Payload point into the reader's buffer: they are valid until
// its next call.
type Frame struct {
	Cursor  Cursor // of this frame
	Payload []byte // the effect's argv as RESP
	Key     []byte // the key, when Single
	TimeMS  int64  // unix ms
	Txn     uint64 // identity of the group over several shards, 0: none
	Mask    uint64 // its shards, one bit each
	// Group is the offset of the first frame of the frame's group.
	Group      uint64
	Op         effect.Op
	Cause      FrameCause
	Single     bool // plain single-key shape: the only one a prefix filter may test
	GroupFirst bool
	GroupLast  bool
}

// frameSize returns the bytes of the frame whose first frameHeader bytes are h, or an error when
// h can't be the start of a frame.
func frameSize(h []byte) (int, error) {
	n := le.Uint32(h[posLength:])
	if n < minPayload || n > MaxPayload {
		return 0, corruptf("payload length %d", n)
	}
	size := frameHeader + int(n)
	if h[posFlags]&flagTxn != 0 {
		size += txnExtension
	}
	return size, nil
}

func timeOf(h []byte) int64 { return int64(le.Uint64(h[posTime:]) & maxTime) }

// decode fills f from the bytes of one whole frame (b is exactly frameSize long) and checks
// everything but the order of groups. Group, Txn and Mask are set for the first frame of a group and left
// alone for the others: they carry over.
func (f *Frame) decode(seed uint32, generation, offset uint64, b []byte) error {
	flags, err := checkFrame(seed, offset, b)
	if err != nil {
		return err
	}
	f.Cursor = Cursor{generation, offset}
	f.Op = effect.Op(b[posOp])
	f.Cause = FrameCause(b[posCause])
	f.TimeMS = timeOf(b)
	f.GroupFirst = flags&flagFirst != 0
	f.GroupLast = flags&flagLast != 0
	payload := frameHeader
	if f.GroupFirst {
		f.Group, f.Txn, f.Mask = offset, 0, 0
		if flags&flagTxn != 0 {
			payload += txnExtension
			f.Txn, f.Mask = le.Uint64(b[posTxn:]), le.Uint64(b[posTxnMask:])
		}
	}
	f.Payload = b[payload:]
	if f.Key, f.Single = frameKey(b); f.Single && f.Key == nil {
		return corruptf("key of %d bytes at %d in a payload of %d", le.Uint32(b[posKeyLength:]), b[posKey], len(f.Payload))
	}
	return nil
}

// checkFrame checks the checksum and the flags of a whole frame, and returns these.
func checkFrame(seed uint32, offset uint64, b []byte) (flags byte, err error) {
	if sum := frameCRC(seed, offset, b); sum != le.Uint32(b) {
		return 0, corruptf("checksum of the frame is %08x, computed %08x", le.Uint32(b), sum)
	}
	flags = b[posFlags]
	if flags&^knownFlags != 0 || flags&(flagTxn|flagFirst) == flagTxn {
		return 0, corruptf("frame flags %#x", flags)
	}
	return flags, nil
}

// frameKey returns the key of a whole frame of the single-key shape; nil when it is not in the payload.
func frameKey(b []byte) (key []byte, single bool) {
	flags := b[posFlags]
	if flags&flagSingle == 0 {
		return nil, false
	}
	payload := b[frameHeader:]
	if flags&flagTxn != 0 {
		payload = payload[txnExtension:]
	}
	pos, n := int(b[posKey]), uint64(le.Uint32(b[posKeyLength:]))
	if uint64(pos)+n > uint64(len(payload)) {
		return nil, true
	}
	return payload[pos : pos+int(n) : pos+int(n)], true
}
