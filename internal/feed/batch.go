package feed

import (
	"math/bits"
	"strconv"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// headerRoom is more than the bytes of a reply's header: three array headers and two integers.
const headerRoom = 96

// How the buffer of a reply grows.
const (
	firstBuffer = 4 << 10
	growBy      = 4
	metaRoom    = 256 // more than what WITHMETA adds to a payload

	moveLimit = 16 << 10 // frames of fewer bytes are moved to where the header ends
)

// batch builds one FEED.READ reply. The frames are written as they come, behind room for the
// header, which needs to know how many there are.
type batch struct {
	req    *Request
	w      *resp.Writer
	start  int // where the reply begins in w.Buf
	frames int

	group    []held // delivered frames of the open group, with WITHMETA
	payloads []byte
}

// held is a frame of a group whose end is not known yet.
type held struct {
	offset uint64
	time   int64
	cause  log.FrameCause
	end    int // of its payload in payloads
}

func newBatch(w *resp.Writer, req *Request) *batch {
	b := &batch{req: req, w: w, start: len(w.Buf)}
	grow(b.w, headerRoom)
	w.Buf = w.Buf[:b.start+headerRoom]
	return b
}

// grow makes room for n more bytes of a reply. It grows in large steps and takes large buffers from those that
// connections have sent: most replies are either a few frames or as many as there may be.
func grow(w *resp.Writer, n int) {
	old := w.Buf
	if cap(old)-len(old) >= n {
		return
	}
	w.Buf = append(resp.TakeBuffer(max(firstBuffer, growBy*len(old), len(old)+n)), old...)
	resp.LeaveBuffer(old)
}

// Add implements Sink.
func (b *batch) Add(f *log.Frame) (full bool) {
	if b.req.WithMeta {
		return b.addMeta(f)
	}
	if !b.req.Matches(f) {
		return false
	}
	grow(b.w, len(f.Payload)+headerRoom)
	buf := append(b.w.Buf, "*2\r\n:"...)
	buf = strconv.AppendUint(buf, f.Cursor.Offset, 10)
	buf = append(buf, '\r', '\n')
	b.w.Buf = append(buf, f.Payload...)
	b.frames++
	return b.enough()
}

// Frames implements Sink.
func (b *batch) Frames() int { return b.frames }

func (b *batch) enough() bool {
	return b.frames >= b.req.Count || len(b.w.Buf)-b.start >= replyBytes
}

// addMeta keeps a frame until its group is whole, then writes the group.
func (b *batch) addMeta(f *log.Frame) (full bool) {
	if b.req.Matches(f) {
		b.payloads = append(b.payloads, f.Payload...)
		b.group = append(b.group, held{offset: f.Cursor.Offset, time: f.TimeMS, cause: f.Cause, end: len(b.payloads)})
	}
	if !f.GroupLast {
		return false
	}
	from := 0
	for _, h := range b.group {
		b.writeMeta(f, h, b.payloads[from:h.end])
		from = h.end
	}
	b.group, b.payloads = b.group[:0], b.payloads[:0]
	return b.frames > 0 && b.enough()
}

// writeMeta writes one frame of the group whose last frame is last.
func (b *batch) writeMeta(last *log.Frame, h held, payload []byte) {
	grow(b.w, len(payload)+metaRoom)
	w := b.w
	w.Array(3)
	w.Uint(h.offset)
	w.Raw(payload)
	fields := 3
	if last.Txn != 0 {
		fields = 5
	}
	w.Map(fields)
	w.BulkString("time")
	w.Int(h.time)
	w.BulkString("cause")
	w.BulkString(h.cause.String())
	w.BulkString("group")
	w.Array(2)
	w.Uint(last.Group)
	w.Uint(last.Cursor.Offset)
	if last.Txn != 0 {
		w.BulkString("txn")
		w.Uint(last.Txn)
		w.BulkString("shards")
		w.Int(int64(bits.OnesCount64(last.Mask)))
	}
	b.frames++
}

// finish puts the header before the frames.
func (b *batch) finish(next log.Cursor) {
	var room [headerRoom]byte
	h := resp.Writer{Buf: room[:0]}
	h.Array(3)
	h.Uint(next.Generation)
	h.Uint(next.Offset)
	h.Array(b.frames)
	body := b.w.Buf[b.start+headerRoom:]
	if b.start == 0 && len(body) >= moveLimit { // each time, the buffer loses what it does not need of the room
		b.w.Buf = b.w.Buf[headerRoom-len(h.Buf):]
		copy(b.w.Buf, h.Buf)
		return
	}
	at := b.start + copy(b.w.Buf[b.start:], h.Buf)
	b.w.Buf = b.w.Buf[:at+copy(b.w.Buf[at:], body)]
}
