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
}

// push appends b, and owns it if it returns true; otherwise b was copied.
func (o *output) push(b []byte) bool {
	o.size += len(b)
	if last := len(o.chunks) - 1; last >= o.first {
		if c := o.chunks[last]; cap(c)-len(c) >= len(b) {
			o.chunks[last] = append(c, b...)
			return false
		}
	}
	if len(b) >= chunkSize {
		o.chunks = append(o.chunks, b)
		return true
	}
	o.chunks = append(o.chunks, append(make([]byte, 0, chunkSize), b...))
	return false
}

// front returns the bytes to send next, nil if there are none.
func (o *output) front() []byte {
	if o.size == 0 {
		return nil
	}
	return o.chunks[o.first][o.sent:]
}

// seal returns front for a send that other goroutines may push during: nothing is added to its chunk any more.
func (o *output) seal() []byte {
	o.chunks[o.first] = o.chunks[o.first][:len(o.chunks[o.first]):len(o.chunks[o.first])]
	return o.front()
}

// pop takes n sent bytes off front. It returns the chunk if that is used up.
func (o *output) pop(n int) []byte {
	o.size -= n
	o.sent += n
	c := o.chunks[o.first]
	if o.sent < len(c) {
		return nil
	}
	o.chunks[o.first] = nil
	o.first++
	o.sent = 0
	if o.size == 0 {
		o.chunks, o.first = nil, 0
	}
	return c
}
