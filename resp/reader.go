package resp

// How a Reader keeps bytes between reads.
const (
	// carry is the longest unfinished request that is copied in front of the next read; longer ones
	// stay where they are and the next read goes behind them.
	carry = 2 << 10
	// growStep is the free space a kept request gets beyond the bytes that arrived.
	growStep = 16 << 10
	// readLimit is the most bytes taken in one read.
	readLimit = 256 << 10
	// argsKept is the largest argument vector kept for the next request.
	argsKept = 4 << 10
)

// scratch is the memory that readers used by turns share: the buffer input is read into, the
// vector of arguments, and the requests that were split ahead. Owned by one loop.
type scratch struct {
	in    []byte
	args  [][]byte
	ahead []parsed // of the Reader in use; ahead[next:] were not yet returned. They are still input: to forget them is safe
	next  int
	pool  bufPool
}

func (sc *scratch) forget() { sc.ahead, sc.next = sc.ahead[:0], 0 }

func newScratch(size int) *scratch {
	if size < 4<<10 {
		size = readBuffer
	}
	return &scratch{
		in:   make([]byte, size),
		args: make([][]byte, 0, 64),
		pool: bufPool{limit: poolBytes},
	}
}

// Reader splits a stream of bytes into requests, RESP arrays or inline. It is resumable: what was
// examined is never examined again, however the bytes are split. Arguments alias the input and are
// valid until the next call of any method but Next, or the next Next.
//
// The cycle of one turn is Space, read(2) into it, Advance (or Feed, for bytes already read), Next
// until ErrIncomplete, Settle. After Settle a Reader without an unfinished request holds no memory;
// with one it holds at most twice the bytes that arrived plus a constant, whatever lengths were announced.
// Not safe for concurrent use.
type Reader struct {
	lim *Limits
	sc  *scratch
	// buf[pos:] is input not yet returned by Next. It is memory of the pool if own is set, else the
	// scratch buffer or the caller's (Feed).
	buf []byte
	pos int
	own bool

	unauth bool
	err    error // sticky
	req    request
}

// NewReader returns a Reader of its own; lim may be changed while it is in use.
func NewReader(lim *Limits) *Reader {
	return &Reader{lim: lim, sc: newScratch(readBuffer)}
}

// SetAuthenticated says whether the client may send requests of full size. A new Reader is authenticated.
func (r *Reader) SetAuthenticated(ok bool) {
	r.unauth = !ok
	r.sc.forget() // other limits hold
}

// Buffered returns the number of bytes that arrived and were not yet returned as requests.
func (r *Reader) Buffered() int { return len(r.buf) - r.pos }

// Held returns the bytes of memory the Reader keeps for itself.
func (r *Reader) Held() int {
	if !r.own {
		return 0
	}
	return cap(r.buf)
}

// usage returns what the held bytes are: complete arguments of an unfinished request, what follows them, and the rest.
func (r *Reader) usage() (args, used, free int) {
	used = r.Buffered()
	q := &r.req
	if q.kind == kindArray {
		seen := q.line
		if q.bulk >= 0 {
			seen = q.scan
		}
		used -= seen
		if len(q.args) > 0 {
			args = seen
		}
	}
	return args, used, max(r.Held()-used-args, 0)
}

// Space returns where the next bytes are to be read. They become input by Advance.
func (r *Reader) Space() []byte {
	r.sc.forget()
	n := r.Buffered()
	if n <= carry {
		old, own := r.buf, r.own
		copy(r.sc.in, old[r.pos:])
		r.buf, r.pos, r.own = r.sc.in[:n], 0, false
		if own {
			r.sc.pool.put(old)
		}
		return r.sc.in[n:]
	}
	r.reserve(1)
	free := r.buf[len(r.buf):cap(r.buf)]
	return free[:min(len(free), readLimit)]
}

// Advance takes the first n bytes of the last Space as input.
func (r *Reader) Advance(n int) {
	r.buf = r.buf[:len(r.buf)+n]
	r.checkHeld()
}

// Feed takes p as input. With nothing buffered p is used in place until Settle.
func (r *Reader) Feed(p []byte) {
	r.sc.forget()
	if r.Buffered() == 0 && !r.own {
		r.buf, r.pos = p, 0
	} else {
		r.reserve(len(p))
		r.buf = append(r.buf, p...)
	}
	r.checkHeld()
}

func (r *Reader) checkHeld() {
	if r.own && r.err == nil && int64(r.Buffered()) > r.lim.queryBuffer() {
		r.err = ErrQueryBuffer
	}
}

// Settle ends a turn: input not yet returned moves to memory of the Reader's own, and memory without
// input is given back.
func (r *Reader) Settle() {
	r.sc.forget()
	n := r.Buffered()
	switch {
	case n == 0:
		r.release()
	case !r.own || cap(r.buf) > 4*n+2*growStep:
		b := append(r.sc.pool.get(n), r.buf[r.pos:]...)
		r.release()
		r.buf, r.own = b, true
	}
	if cap(r.sc.args) > argsKept {
		r.sc.args = make([][]byte, 0, 64)
	}
}

// Close gives back all memory. The Reader returns no further requests.
func (r *Reader) Close() {
	r.sc.forget()
	r.release()
	r.req = request{}
	if r.err == nil {
		r.err = ErrIncomplete
	}
}

func (r *Reader) release() {
	if r.own {
		r.sc.pool.put(r.buf)
	}
	r.buf, r.pos, r.own = nil, 0, false
}

// reserve makes the buffer the Reader's own, with room for n more bytes at least. It doubles, but
// does not go beyond the end of the argument being received, so a large one is copied few times and
// then fills its buffer exactly.
func (r *Reader) reserve(n int) {
	have := r.Buffered()
	want, size := max(n, growStep/4), have+max(n, growStep, have)
	if end := r.req.end(); end >= have+n {
		want = min(want, end-have)
		if size+growStep >= end { // no further growth for the last few bytes
			size = end
		}
	}
	if r.own && cap(r.buf)-len(r.buf) >= want {
		return
	}
	if r.own && r.pos >= have && cap(r.buf) >= size {
		copy(r.buf[:have], r.buf[r.pos:])
		r.buf, r.pos = r.buf[:have], 0
		return
	}
	b := append(r.sc.pool.get(size), r.buf[r.pos:]...)
	r.release()
	r.buf, r.own = b, true
}
