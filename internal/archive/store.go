package archive

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/kevydb/kevy/internal/vfs"
)

// Store keeps objects by name. Names are slash-separated. It is safe for concurrent use. A name without an
// object is fs.ErrNotExist.
type Store interface {
	// Put makes or replaces an object with the size bytes of src. When it returns nil the object is durable; at no time
	// is a part of it seen under its name.
	Put(ctx context.Context, name string, src io.ReaderAt, size int64) error
	// Get opens the size bytes from off on; size -1: all of them.
	Get(ctx context.Context, name string, off, size int64) (io.ReadCloser, error)
	// List calls each with every object whose name begins with prefix.
	List(ctx context.Context, prefix string, each func(name string, size int64)) error
	// Delete removes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error
	// String is where the objects are, without secrets.
	String() string
}

// IsURL reports whether a place named on a command line is an archive.
func IsURL(place string) bool {
	return strings.HasPrefix(place, "file://") || strings.HasPrefix(place, "s3://")
}

// OpenStore returns the store of a URL: file:///dir, or s3://bucket/prefix with the parameters endpoint (host:port or
// URL; without it AWS) and region. It connects to nothing.
func OpenStore(text string) (Store, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("archive: %q is no URL", text)
	case u.User != nil:
		return nil, errors.New("archive: credentials don't belong into the URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && len(u.Path) > 1 && u.RawQuery == "":
		return NewFileStore(vfs.OS(), path.Clean(u.Path)), nil
	case u.Scheme == "file":
		return nil, fmt.Errorf("archive: %q: want file:///dir, an absolute path and no parameters", text)
	case u.Scheme == "s3":
		return newS3Store(u)
	}
	return nil, fmt.Errorf("archive: %q: want file:///dir or s3://bucket/prefix", text)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// copyBytes is how much of an object is in memory while it is copied.
const copyBytes = 1 << 20

var copyBuffers = sync.Pool{New: func() any { return new([copyBytes]byte) }}

// copyAll copies all of r.
func copyAll(w io.Writer, r io.Reader) (int64, error) {
	buf := copyBuffers.Get().(*[copyBytes]byte)
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(w, r, buf[:])
}

// sum reads all of r and returns how many bytes it has and their CRC32C.
func sum(r io.Reader) (size int64, crc uint32, err error) {
	h := crc32.New(castagnoli)
	size, err = copyAll(h, r)
	return size, h.Sum32(), err
}

// sumObject reads an object back.
func sumObject(ctx context.Context, s Store, name string) (size int64, crc uint32, err error) {
	r, err := s.Get(ctx, name, 0, -1)
	if err != nil {
		return 0, 0, err
	}
	size, crc, err = sum(r)
	return size, crc, errors.Join(err, r.Close())
}

// readObject reads an object of at most limit bytes.
func readObject(ctx context.Context, s Store, name string, limit int64) ([]byte, error) {
	r, err := s.Get(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: %s/%s is longer than %d bytes", ErrCorrupt, s, name, limit)
	}
	return b, errors.Join(err, r.Close())
}
