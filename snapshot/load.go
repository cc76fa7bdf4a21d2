package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// Load folds a snapshot file: fold is called with every effect, in order. It checks the header,
// every frame, and the footer's counts and whole-file checksum; the caller must throw away what it has folded
// when Load fails.
func Load(fs vfs.FS, path string, fold func(*effect.Effect) error) (h Header, info Info, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return h, info, fmt.Errorf("snapshot: %w", err)
	}
	defer f.Close()
	h, info, err = load(f, path, fold)
	if err != nil {
		return h, info, fmt.Errorf("%s: %w", path, err)
	}
	return h, info, nil
}

func load(f vfs.File, path string, fold func(*effect.Effect) error) (h Header, info Info, err error) {
	if h, err = readHeader(f); err != nil {
		return h, info, err
	}
	foot, end, err := readFooter(f)
	if err != nil {
		return h, info, err
	}
	sum := &summed{r: f}
	if err := sum.skip(headerSize); err != nil {
		return h, info, err
	}
	s := log.NewStream(sum, path, h.Shard, log.Cursor{Generation: h.Set}, headerSize, end)
	defer s.Close()
	var e effect.Effect
	for {
		fr, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return h, info, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if err := effect.Decode(fr.Payload, &e); err != nil {
			return h, info, fmt.Errorf("%w: frame %d: %w", ErrCorrupt, fr.Cursor.Offset, err)
		}
		if err := fold(&e); err != nil {
			return h, info, fmt.Errorf("frame %d: %w", fr.Cursor.Offset, err)
		}
		info.Frames++
		if fr.GroupLast {
			info.Keys++
		}
	}
	info.Bytes = end + footerSize
	if info.Frames != foot.frames || info.Keys != foot.keys || sum.crc != foot.sum {
		return h, info, fmt.Errorf("%w: the footer says %d frames of %d keys with checksum %08x, the file has %d of %d with %08x",
			ErrCorrupt, foot.frames, foot.keys, foot.sum, info.Frames, info.Keys, sum.crc)
	}
	return h, info, nil
}

func readFooter(f vfs.File) (foot footer, end int64, err error) {
	size, err := f.Size()
	if err != nil {
		return foot, 0, err
	}
	end = size - footerSize
	if end < headerSize {
		return foot, 0, fmt.Errorf("%w: %d bytes are too few", ErrCorrupt, size)
	}
	b := make([]byte, footerSize)
	if _, err := f.ReadAt(b, end); err != nil {
		return foot, 0, err
	}
	foot, err = decodeFooter(b)
	return foot, end, err
}

// summed is a ReaderAt that sums up what is read in order; reading a range again does not count.
type summed struct {
	r   io.ReaderAt
	pos int64
	crc uint32
}

func (s *summed) skip(n int64) error {
	_, err := s.ReadAt(make([]byte, n), 0)
	return err
}

// ReadAt implements io.ReaderAt.
func (s *summed) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.r.ReadAt(p, off)
	if from := s.pos - off; from >= 0 && from < int64(n) {
		s.crc = crc32.Update(s.crc, castagnoli, p[from:n])
		s.pos = off + int64(n)
	}
	return n, err
}
