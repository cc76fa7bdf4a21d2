package resp

import (
	"math/bits"
	"sync"
)

// Sizes of buffers, in bytes.
const (
	smallBuffer = 2 << 10   // what an output or a carried-over request begins with
	largeBuffer = 16 << 10  // what is taken when more than that is asked for
	hugeBuffer  = 128 << 10 // from here on buffers are shared by all loops (TakeBuffer)
	poolBuffer  = 8 << 20   // larger buffers are left to the garbage collector
	poolBytes   = 4 << 20   // what one pool keeps at most
	readBuffer  = 64 << 10  // the default of Config.ReadBuffer
)

// huge keeps the buffers of large replies, of all loops and of the goroutines that build such replies. The
// garbage collector empties it.
var huge sync.Pool

// TakeBuffer returns an empty buffer of at least n bytes for a reply that is built off the loop. Give hands it
// on and takes it back. Any goroutine.
func TakeBuffer(n int) []byte {
	if n < hugeBuffer {
		return make([]byte, 0, n)
	}
	if p, ok := huge.Get().(*[]byte); ok && cap(*p) >= n {
		return (*p)[:0]
	}
	return make([]byte, 0, 1<<bits.Len(uint(n-1)))
}

// Give appends b, replies built in a buffer of their own (TakeBuffer), to the replies of the connection,
// without a copy if b is large and no replies are waiting. The connection owns b from then on.
func (c *Conn) Give(b []byte) {
	switch {
	case len(c.W.Buf) > 0 || len(b) < chunkSize:
		c.W.Buf = append(c.W.Buf, b...)
		c.t.sc.pool.put(b)
	default:
		c.t.sc.pool.put(c.W.Buf)
		c.W.Buf = b
	}
}

// bufPool keeps buffers that connections of one loop took and gave back, last in first out, so that
// the one taken next is still in the CPU's cache. Owned by the loop.
type bufPool struct {
	small, large [][]byte
	bytes        int // of both
	limit        int
}

// get returns an empty buffer of at least n bytes.
func (p *bufPool) get(n int) []byte {
	list, size := &p.small, smallBuffer
	switch {
	case n >= hugeBuffer:
		return TakeBuffer(n)
	case n > smallBuffer:
		list, size = &p.large, largeBuffer
	}
	if last := len(*list) - 1; last >= 0 && cap((*list)[last]) >= n {
		b := (*list)[last]
		(*list)[last] = nil
		*list = (*list)[:last]
		p.bytes -= cap(b)
		return b
	}
	return make([]byte, 0, max(n, size))
}

// put takes a buffer nobody uses any more.
func (p *bufPool) put(b []byte) {
	n := cap(b)
	if n >= hugeBuffer && n <= poolBuffer {
		b = b[:0]
		huge.Put(&b)
		return
	}
	if n < smallBuffer || n >= hugeBuffer || p.bytes+n > p.limit {
		return
	}
	p.bytes += n
	if n < largeBuffer {
		p.small = append(p.small, b[:0])
		return
	}
	p.large = append(p.large, b[:0])
}
