package log

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
)

// FuzzSealed: whatever a sealed segment's file holds, with its checksums made right, reading it ends with frames
// that were there in their order or with damage.
func FuzzSealed(f *testing.F) {
	mem := vfs.NewMem()
	o, frames := sealable(f, mem)
	d, _ := mustOpen(f, o)
	if _, err := d.Seal(); err != nil {
		f.Fatal(err)
	}
	s := d.Log(0).segments()[0]
	good := fileBytes(f, mem, s.path())
	end := slices.IndexFunc(frames, func(x seen) bool { return x.cursor == d.Log(0).segments()[1].start() })
	frames = frames[:end]
	f.Add([]byte{}, 0, 0)
	f.Add([]byte{0xff, 3}, headerBytes+14, 1)
	f.Add([]byte{1, 2, 3}, len(good)-20, 2)
	f.Fuzz(func(t *testing.T, patch []byte, at, mode int) {
		b := bytes.Clone(good)
		if at >= 0 && at < len(b) {
			copy(b[at:], patch)
		}
		if mode == 1 {
			fixBlocks(b, s)
		}
		fsys := vfs.NewMem()
		_ = fsys.MkdirAll(s.dir)
		setBytes(t, fsys, s.path(), b)
		x := &segment{segmentHeader: s.segmentHeader, fs: fsys, dir: s.dir, cache: &chunkCache{}}
		x.end.Store(s.end.Load())
		x.sealed.Store(true)
		h, err := x.acquire()
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		defer h.release()
		readFuzzed(t, h, frames)
	})
}

// readFuzzed reads a sealed segment in order and by hits.
func readFuzzed(t *testing.T, h *handle, frames []seen) {
	s := h.seg
	st := NewStream(h.src, h.name, s.shard, s.start(), headerBytes, s.end.Load())
	defer st.Close()
	for i := 0; ; i++ {
		fr, err := st.Next()
		if errors.Is(err, io.EOF) && i == len(frames) || errors.Is(err, ErrCorrupt) {
			break
		}
		if err != nil || sight(fr) != frames[i] {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	q := hits{prefixes: [][]byte{[]byte("user:")}}
	q.open(h.view)
	for off := s.base; ; {
		at, _, err := q.next(off)
		if errors.Is(err, io.EOF) || errors.Is(err, ErrCorrupt) {
			return
		}
		if err != nil || at < off {
			t.Fatalf("hit %d from %d: %v", at, off, err)
		}
		off = at + 1
	}
}

// fixBlocks makes the checksums of what could be blocks from the start of the file on right.
func fixBlocks(b []byte, s *segment) {
	le.PutUint32(b[124:], headerSum(b))
	for pos := headerBytes; pos+BlockHeader <= len(b); {
		n, _, err := BlockSize(b[pos:])
		if err != nil || pos+n > len(b) {
			return
		}
		le.PutUint32(b[pos:], BlockPlace{s.blockFile(), int64(pos)}.sum(b[pos:pos+n]))
		pos += n
	}
}

func headerSum(b []byte) uint32 { return crc32.Checksum(b[:124], castagnoli) }
