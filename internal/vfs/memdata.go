package vfs

import (
	"io"
	"sync"
)

// chunkSize is the unit of memory of a file in memory. Growing a file never copies full chunks.
const chunkSize = 64 << 10

// memData is the content of a file in memory: chunks of chunkSize bytes, nil ones being holes.
//
// Invariant: chunks covers size, and bytes of chunks beyond size are zero.
type memData struct {
	mu     sync.RWMutex // guards chunks and size
	chunks [][]byte
	size   int64

	locked bool // by FS.Lock; guarded by memFS.mu
}

func (d *memData) length() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.size
}

func (d *memData) readAt(p []byte, off int64) (int, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := 0
	for n < len(p) && off < d.size {
		end := min(d.size-off, chunkSize-off%chunkSize, int64(len(p)-n))
		part := p[n : n+int(end)]
		if chunk := d.chunks[off/chunkSize]; chunk != nil {
			copy(part, chunk[off%chunkSize:])
		} else {
			clear(part)
		}
		n += len(part)
		off += end
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (d *memData) writeAt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grow(off + int64(len(p)))
	for len(p) > 0 {
		i := off / chunkSize
		if d.chunks[i] == nil {
			d.chunks[i] = make([]byte, chunkSize)
		}
		n := copy(d.chunks[i][off%chunkSize:], p)
		p = p[n:]
		off += int64(n)
	}
}

func (d *memData) truncate(size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size >= d.size {
		d.grow(size)
		return
	}
	d.size = size
	used := chunksFor(size)
	clear(d.chunks[used:])
	d.chunks = d.chunks[:used]
	if rest := size % chunkSize; rest != 0 && d.chunks[used-1] != nil {
		clear(d.chunks[used-1][rest:])
	}
}

// grow makes the file at least size bytes long. REQUIRES: mu held for writing.
func (d *memData) grow(size int64) {
	if size <= d.size {
		return
	}
	d.size = size
	if missing := chunksFor(size) - len(d.chunks); missing > 0 {
		d.chunks = append(d.chunks, make([][]byte, missing)...)
	}
}

func chunksFor(size int64) int { return int((size + chunkSize - 1) / chunkSize) }
