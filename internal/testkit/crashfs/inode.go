package crashfs

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// sectorSize is the unit in which bytes survive a crash.
const sectorSize = 512

// inode is the content of a file.
//
// Invariant: durable with all of pending applied is data.
type inode struct {
	data    []byte   // as readers see it
	durable []byte   // as of the last sync
	pending []change // since the last sync, in order
	locked  bool
}

// change is one write or truncation.
type change struct {
	off   int64
	bytes []byte // never modified; nil for a truncation
	size  int64  // of the file afterwards
	cut   bool   // a truncation
}

func (i *inode) writeAt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	size := max(int64(len(i.data)), off+int64(len(p)))
	i.apply(change{off: off, bytes: bytes.Clone(p), size: size})
}

func (i *inode) truncate(size int64) { i.apply(change{size: size, cut: true}) }

func (i *inode) apply(c change) {
	i.data = resize(i.data, c.size)
	copy(i.data[c.off:], c.bytes)
	i.pending = append(i.pending, c)
}

func (i *inode) sync() {
	for _, c := range i.pending {
		i.durable = resize(i.durable, c.size)
		copy(i.durable[c.off:], c.bytes)
	}
	i.pending = nil
}

// clone copies i, synced and unsynced apart as they are.
func (i *inode) clone() *inode {
	return &inode{
		data:    bytes.Clone(i.data),
		durable: bytes.Clone(i.durable),
		pending: slices.Clone(i.pending),
	}
}

// crash returns what could be left of i after a power failure.
func (i *inode) crash(rng *rand.Rand) *inode {
	if len(i.pending) == 0 {
		return &inode{data: bytes.Clone(i.durable), durable: bytes.Clone(i.durable)}
	}
	size, sized := i.crashSize(rng)
	longest := int64(len(i.durable))
	for _, c := range i.pending {
		longest = max(longest, c.size)
	}
	data := resize(bytes.Clone(i.durable), longest)
	kept := newSurvivors[int64](rng)
	for _, c := range i.pending {
		c.sectors(func(sector, _, _ int64) { kept.count(sector) })
	}
	for n, c := range i.pending {
		if c.cut && n < sized {
			clear(data[c.size:])
		}
		c.sectors(func(sector, from, to int64) {
			if kept.next(sector) {
				copy(data[from:to], c.bytes[from-c.off:])
			}
		})
	}
	data = data[:size:size]
	return &inode{data: data, durable: bytes.Clone(data)}
}

// crashSize draws the size that survives, and how many of the pending changes it reflects.
func (i *inode) crashSize(rng *rand.Rand) (size int64, changes int) {
	m := drawMood(rng)
	changes = m.draw(rng, len(i.pending))
	size = int64(len(i.durable))
	if changes > 0 {
		size = i.pending[changes-1].size
	}
	if m == mixed && changes < len(i.pending) {
		if next := i.pending[changes]; !next.cut && next.size > size {
			size = between(rng, size, next.size)
		}
	}
	return size, changes
}

// between draws a size from low to high, often at the end of a sector.
func between(rng *rand.Rand, low, high int64) int64 {
	size := low + rng.Int64N(high-low+1)
	if rng.IntN(2) == 0 {
		size = max(low, size/sectorSize*sectorSize)
	}
	return size
}

// sectors calls f with each sector that c writes to and the bytes [from, to) it writes there.
func (c change) sectors(f func(sector, from, to int64)) {
	end := c.off + int64(len(c.bytes))
	for from := c.off; from < end; {
		sector := from / sectorSize
		to := min((sector+1)*sectorSize, end)
		f(sector, from, to)
		from = to
	}
}

// resize cuts b or extends it by zeros.
func resize(b []byte, size int64) []byte {
	old := int64(len(b))
	if size <= old {
		return b[:size]
	}
	b = slices.Grow(b, int(size-old))[:size]
	clear(b[old:])
	return b
}
