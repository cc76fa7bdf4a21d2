package log

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
)

// hits finds the frames of a sealed segment that a reader of some prefixes wants, without decoding the others.
type hits struct {
	prefixes [][]byte
	view     *sealedView
	chunk    int // the one list is of, -1: none
	list     []hit
	at       int        // list[at:] is still to come
	streamed indexEntry // a group that was read in order before: the next one to be read so is behind it
}

// hit is a frame of a chunk.
type hit struct {
	n     uint32 // in the chunk
	frame []byte // nil: in a plain chunk
}

func (x *hits) open(v *sealedView) {
	x.view, x.chunk, x.list, x.at, x.streamed = v, -1, nil, 0, indexEntry{}
}

// next returns the first wanted frame at or after off, and its bytes unless it has to be read from its chunk. io.EOF
// means that there is none in the segment.
func (x *hits) next(off uint64) (at uint64, frame []byte, err error) {
	i := x.view.index.of(off)
	for ; i < len(x.view.index.chunks); i++ {
		c := &x.view.index.chunks[i]
		if c.frames == 0 {
			continue
		}
		if x.chunk != i {
			if err := x.load(i); err != nil {
				return 0, nil, err
			}
		}
		for ; x.at < len(x.list); x.at++ {
			if h := &x.list[x.at]; c.off+uint64(h.n) >= off {
				return c.off + uint64(h.n), h.frame, nil
			}
		}
	}
	return 0, nil, io.EOF
}

// load finds the wanted frames of a chunk.
func (x *hits) load(i int) error {
	c := &x.view.index.chunks[i]
	x.chunk, x.list, x.at = -1, x.list[:0], 0
	buckets, err := x.view.table(c)
	if err != nil {
		return err
	}
	for j := range buckets {
		k := &buckets[j]
		switch {
		case !k.mayHold(x.prefixes):
		case c.plain:
			x.list = append(x.list, hit{})
		default:
			if err := x.collect(c, k); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(x.list, func(a, b hit) int { return cmp.Compare(a.n, b.n) })
	x.chunk = i
	return nil
}

// collect takes the wanted frames of a bucket.
func (x *hits) collect(c *chunk, k *bucket) error {
	pos := c.pos + int64(k.at)
	stored := make([]byte, k.stored)
	if err := x.view.read(stored, pos, x.view.cursor(c)); err != nil {
		return err
	}
	_, err := x.view.bucket(nil, c, k, stored, func(n uint32, frame []byte) error {
		if key, single := frameKey(frame); !single || hasPrefix(key, x.prefixes) {
			x.list = append(x.list, hit{n, frame})
		}
		return nil
	})
	if err != nil {
		return x.view.damaged(pos, x.view.cursor(c), err)
	}
	return nil
}

func hasPrefix(key []byte, prefixes [][]byte) bool {
	for _, p := range prefixes {
		if bytes.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// Wanted reports whether a reader of the given prefixes has to be given the frame: it has one of them, or it is not
// of the single-key shape. No prefixes want everything.
func (f *Frame) Wanted(prefixes [][]byte) bool {
	return len(prefixes) == 0 || !f.Single || hasPrefix(f.Key, prefixes)
}

// filtered reports whether the reader jumps from hit to hit in its segment.
func (r *Reader) filtered() bool { return r.hits.view != nil && !r.s.inGroup }

// nextHit returns the next wanted frame of a sealed segment: nil when there is none below the limit, where the reader
// stands then, and io.EOF when there is none and the limit is beyond the segment.
func (r *Reader) nextHit() (*Frame, error) {
	off, frame, err := r.hits.next(r.s.off)
	if err == io.EOF { //nolint:errorlint // the function's own, never wrapped
		end := r.hits.view.end()
		r.passTo(min(end, r.limit))
		if end < r.limit {
			return nil, io.EOF
		}
		return nil, nil
	}
	switch {
	case err != nil:
		return nil, err
	case off >= r.limit:
		r.passTo(r.limit)
		return nil, nil
	case frame == nil || (r.o.Groups && frame[posFlags]&(flagFirst|flagLast) != flagFirst|flagLast):
		return r.stream(off)
	}
	r.s.off = off
	if err := r.s.frame.decode(r.s.seed, r.gen, off, frame); err != nil {
		c := &r.hits.view.index.chunks[r.hits.chunk]
		return nil, r.hits.view.damaged(c.pos, Cursor{r.gen, off}, err)
	}
	r.passTo(off + 1)
	r.s.whole = frame
	return &r.s.frame, nil
}

// passTo puts the reader at offset off, at the end of the segment also as far as the link to the next one goes.
func (r *Reader) passTo(off uint64) {
	r.s.off = off
	if v := r.hits.view; off == v.end() {
		r.s.pos, r.s.lastCRC = v.head.seal.rawSize, v.head.seal.lastCRC
	}
}

// stream reads a frame of which more than its own bytes are wanted in the segment's order.
func (r *Reader) stream(off uint64) (*Frame, error) {
	at := r.s.off
	if err := r.seg.seek(&r.s, r.handle, off, r.seg.end.Load(), r.hits.streamed); err != nil {
		err = endIsDamage(&r.s, err)
		r.s.off, r.s.inGroup = at, false
		return nil, err
	}
	if !r.s.inGroup {
		r.hits.streamed = indexEntry{r.s.off, r.s.pos}
	}
	return r.s.Next()
}

func endIsDamage(s *Stream, err error) error {
	if errors.Is(err, io.EOF) {
		return s.located(corruptf("the segment ends before it should"))
	}
	return err
}
