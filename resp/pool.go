package resp

import (
	"math/bits"
	"sync"
)

// Sizes of buffers, in bytes.
const (
	smallBuffer = 2 << 10   // the least, what an output or a carried-over request begins with
	hugeBuffer  = 128 << 10 // from here on only all loops together keep buffers
	poolBuffer  = 8 << 20   // larger buffers are left to the garbage collector
	poolBytes   = 1 << 20   // what is kept of each size at most, by a loop and by all of them together
	readBuffer  = 64 << 10  // the default of Config.ReadBuffer

	// slack is what a buffer may lack of its size: who builds a reply behind room for its header cuts off what the
	// header did not need.
	slack = 128
)

// sizes are those of the buffers below hugeBuffer; what is asked for is rounded up to one of them.
var sizes = [...]int{smallBuffer, 8 << 10, 16 << 10, 32 << 10, 64 << 10}

// shared keeps buffers for all loops and for the goroutines that build replies off the loop; huge the large
// ones of them, by sizeClass, until the garbage collector takes them. (A sync.Pool for all would keep some of them where
// another processor, on which the next reply is built, does not find them.)
//
// Each size has a pool of its own: what a pool keeps outlives a collection and counts as live, so one that does not find what
// fits, and takes in more with every request, has the heap grow by itself.
var (
	huge   [hugeClasses]sync.Pool
	shared = struct {
		mu   sync.Mutex
		free bufPool
	}{free: bufPool{limit: poolBytes}}
)

// fitting returns the index of the smallest size that holds n bytes for sure; len(sizes) is huge.
func fitting(n int) int {
	for i, size := range sizes {
		if n <= size-slack {
			return i
		}
	}
	return len(sizes)
}

// filled returns the index of the size that a buffer of n bytes counts for, -1 if it is too small.
func filled(n int) int {
	if n >= hugeBuffer-slack {
		return len(sizes)
	}
	i := len(sizes) - 1
	for i >= 0 && n < sizes[i]-slack {
		i--
	}
	return i
}

// TakeBuffer returns an empty buffer of at least n bytes for a reply that is built off the loop. Give hands it
// on and takes it back. Any goroutine.
func TakeBuffer(n int) []byte {
	i := fitting(n)
	if i == len(sizes) {
		return takeHuge(max(hugeBuffer, n+slack))
	}
	shared.mu.Lock()
	b := shared.free.pop(i)
	shared.mu.Unlock()
	if b == nil {
		b = make([]byte, 0, sizes[i])
	}
	return b
}

func takeHuge(n int) []byte {
	size := sizeClass(n)
	if size > poolBuffer {
		return make([]byte, 0, size)
	}
	if p, ok := huge[hugeClass(size)].Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return make([]byte, 0, size)
}

// hugeClasses is the number of size classes from hugeBuffer to poolBuffer.
const hugeClasses = 25

// hugeClass returns the index of a size class among those.
func hugeClass(size int) int {
	k := bits.Len(uint(size-1)) - 1 // 1<<k < size <= 2<<k
	return 4*(k-17) + size>>(k-2) - 4
}

// sizeClass rounds n up, by less than a quarter: there are four sizes from each power of two to the next.
func sizeClass(n int) int {
	step := 1 << max(0, bits.Len(uint(n-1))-3)
	return (n + step - 1) / step * step
}

// LeaveBuffer takes back a buffer of TakeBuffer that nobody uses any more. Any goroutine.
func LeaveBuffer(b []byte) {
	switch i := filled(cap(b)); {
	case i < 0 || cap(b) > poolBuffer:
	case i == len(sizes):
		empty, size := b[:0], sizeClass(cap(b)+slack) // b itself must not escape
		i := hugeClass(size)
		if size > cap(b)+slack { // it is between this size and the one before
			i--
		}
		huge[i].Put(&empty)
	default:
		shared.mu.Lock()
		shared.free.push(i, b)
		shared.mu.Unlock()
	}
}

// Give appends b, replies built in a buffer of their own (TakeBuffer), to the replies of the connection,
// without a copy if b is large and no replies are waiting. The connection owns b from then on.
func (c *Conn) Give(b []byte) {
	switch {
	case len(c.W.Buf) > 0 || len(b) < chunkSize:
		c.W.Buf = append(c.W.Buf, b...)
		LeaveBuffer(b)
	default:
		c.t.sc.pool.put(c.W.Buf)
		c.W.Buf = b
	}
}

// bufPool keeps buffers by size, last in first out, so that the one taken next is still in the CPU's cache. That of
// a loop keeps those that its connections took and gave back.
type bufPool struct {
	free  [len(sizes)][][]byte
	limit int // bytes of each size
}

// pop returns a buffer of the size with index i, nil if there is none.
func (p *bufPool) pop(i int) []byte {
	list := p.free[i]
	last := len(list) - 1
	if last < 0 {
		return nil
	}
	b := list[last]
	list[last] = nil
	p.free[i] = list[:last]
	return b
}

// push keeps b, of the size with index i, unless there are enough.
func (p *bufPool) push(i int, b []byte) (kept bool) {
	if (len(p.free[i])+1)*sizes[i] > p.limit {
		return false
	}
	p.free[i] = append(p.free[i], b[:0])
	return true
}

// get returns an empty buffer of at least n bytes.
func (p *bufPool) get(n int) []byte {
	if i := fitting(n); i < len(sizes) {
		if b := p.pop(i); b != nil {
			return b
		}
	}
	return TakeBuffer(n)
}

// put takes a buffer nobody uses any more.
func (p *bufPool) put(b []byte) {
	if i := filled(cap(b)); i < 0 || i == len(sizes) || !p.push(i, b) {
		LeaveBuffer(b)
	}
}
