package archive_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/vfs"
)

// meterStore counts the bytes that are read; it is no store of files, so objects are fetched as from S3.
type meterStore struct {
	archive.Store
	bytes, whole atomic.Int64 // objects are read by several goroutines
}

func (s *meterStore) Get(ctx context.Context, name string, off, size int64) (io.ReadCloser, error) {
	if size < 0 {
		s.whole.Add(1)
	}
	r, err := s.Store.Get(ctx, name, off, size)
	if err != nil {
		return nil, err
	}
	return meterReader{r, s}, nil
}

type meterReader struct {
	io.ReadCloser
	s *meterStore
}

func (r meterReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.s.bytes.Add(int64(n))
	return n, err
}

// TestProbes lists an archive without fetching its segments, and fetches each object once to read it.
func TestProbes(t *testing.T) {
	files := archive.NewFileStore(vfs.NewMem(), place)
	l := newLife(t, 81, files)
	for range 40 {
		l.s.Do("SET k " + noise(l, 120_000)) // segments of a few frames that can't be compressed
		l.s.Clock.Advance(1)
		l.pass()
	}
	l.record()
	l.pass()
	total := l.a.Status().Bytes
	m := &meterStore{Store: files}
	h := read(t, m)
	listing := h.List()
	if m.whole.Load() > 2+int64(len(listing.Shards)) || m.bytes.Load() > total/4 {
		t.Errorf("a list of %d bytes reads %d of them, and %d whole objects", total, m.bytes.Load(), m.whole.Load())
	}
	before := m.bytes.Load()
	b, err := h.Build(history.Latest(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	if n := m.bytes.Load() - before; n > total*3/2 {
		t.Errorf("%d bytes are read to restore from %d", n, total)
	}
}

func noise(l *life, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + l.rng.IntN(26))
	}
	return string(b)
}
