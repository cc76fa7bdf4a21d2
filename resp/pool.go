package resp

// Sizes of buffers, in bytes.
const (
	smallBuffer = 2 << 10  // what an output or a carried-over request begins with
	largeBuffer = 16 << 10 // what is taken when more than that is asked for
	poolBuffer  = 1 << 20  // larger buffers are left to the garbage collector
	poolBytes   = 4 << 20  // what one pool keeps at most
	readBuffer  = 64 << 10 // the default of Config.ReadBuffer
)

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
	if n > smallBuffer {
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
	if n < smallBuffer || n > poolBuffer || p.bytes+n > p.limit {
		return
	}
	p.bytes += n
	if n < largeBuffer {
		p.small = append(p.small, b[:0])
		return
	}
	p.large = append(p.large, b[:0])
}
