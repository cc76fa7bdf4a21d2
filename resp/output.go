package resp

// chunkSize is the least size of a chunk of queued output, in bytes.
const chunkSize = 16 << 10

// output is what a connection's client has not taken yet, in order. Large replies are queued as they
// are, small ones are gathered. The zero value is empty. Owned by the connection's loop.
type output struct {
	chunks [][]byte
	first  int // index of the first chunk with unsent bytes
	sent   int // bytes of that chunk already sent
	size   int // unsent bytes of all chunks
	// sealed: the first chunk is being sent without the loop; nothing is added to it.
	sealed bool
}

// push appends b, and owns it if it returns true; otherwise b was copied. Chunks come from the pool.
func (o *output) push(b []byte, pool *bufPool) bool {
	o.size += len(b)
	if last := len(o.chunks) - 1; last > o.first || last == o.first && !o.sealed {
		if c := o.chunks[last]; cap(c)-len(c) >= len(b) {
			o.chunks[last] = append(c, b...)
			return false
		}
	}
	if len(b) >= chunkSize {
		o.chunks = append(o.chunks, b)
		return true
	}
	o.chunks = append(o.chunks, append(pool.get(chunkSize), b...))
	return false
}

// front returns the bytes to send next, nil if there are none.
func (o *output) front() []byte {
	if o.size == 0 {
		return nil
	}
	return o.chunks[o.first][o.sent:]
}

// seal returns front, to be sent while others push. pop ends that.
func (o *output) seal() []byte {
	o.sealed = true
	return o.front()
}

// pop takes n sent bytes off front. It returns the chunk if that is used up.
func (o *output) pop(n int) []byte {
	o.size -= n
	o.sent += n
	o.sealed = false
	c := o.chunks[o.first]
	if o.sent < len(c) {
		return nil
	}
	o.chunks[o.first] = nil
	o.first++
	o.sent = 0
	if o.size == 0 {
		o.first = 0
		if o.chunks = o.chunks[:0]; cap(o.chunks) > 4 {
			o.chunks = nil
		}
	}
	return c
}
