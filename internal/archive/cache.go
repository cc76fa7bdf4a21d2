package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync"
)

// How much of an archive is kept on this machine while it is read, beyond what is open: bytes, and objects.
const (
	cacheBytes   = 1 << 30
	cacheObjects = 64
)

// cache holds objects that were fetched, each checked as a whole against the manifest. Those of a store of files are only checked, and
// read where they are.
type cache struct {
	ctx   context.Context
	store Store

	mu    sync.Mutex
	total int64 // bytes that the objects take here
	idle  int   // objects that nobody uses
	clock uint64
	have  map[string]*cached
}

// cached is an object at hand.
type cached struct {
	object
	data interface {
		io.ReaderAt
		io.Closer
	}
	here int64 // bytes it takes on this machine
	refs int
	used uint64
	once sync.Once
	err  error
}

func newCache(ctx context.Context, s Store) *cache {
	return &cache{ctx: ctx, store: s, have: make(map[string]*cached)}
}

// get fetches an object, or takes the one that is there. Each get needs a release.
func (c *cache) get(o object) (*cached, error) {
	c.mu.Lock()
	x := c.have[o.Name]
	switch {
	case x == nil:
		x = &cached{object: o}
		c.have[o.Name] = x
	case x.refs == 0:
		c.idle--
	}
	x.refs++
	c.mu.Unlock()
	x.once.Do(func() { x.err = c.fetch(x) })
	if x.err != nil {
		c.release(x)
		return nil, x.err
	}
	return x, nil
}

// release ends one use. What nobody uses goes, the oldest first, when there is too much.
func (c *cache) release(x *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.refs--
	switch {
	case x.refs > 0:
		return
	case x.err != nil:
		delete(c.have, x.Name) // the next get tries again
		return
	}
	c.clock++
	x.used = c.clock
	c.idle++
	for c.idle > cacheObjects || c.total > cacheBytes && c.idle > 0 {
		c.dropOldest()
	}
}

// dropOldest removes the object that nobody has used for longest. REQUIRES: c.mu, there is one.
func (c *cache) dropOldest() {
	var oldest *cached
	for _, x := range c.have {
		if x.refs == 0 && (oldest == nil || x.used < oldest.used) {
			oldest = x
		}
	}
	delete(c.have, oldest.Name)
	_ = oldest.data.Close() // only read
	c.idle--
	c.total -= oldest.here
}

// fetch makes an object's bytes available, if they are what the manifest says.
func (c *cache) fetch(x *cached) error {
	if s, ok := c.store.(*fileStore); ok {
		f, err := s.fs.Open(s.path(x.Name))
		if err != nil {
			return c.missing(x, err)
		}
		n, crc, err := sum(io.NewSectionReader(f, 0, x.Size+1))
		if err = c.checked(x, n, crc, err); err != nil {
			return errors.Join(err, f.Close())
		}
		x.data = f
		return nil
	}
	r, err := c.store.Get(c.ctx, x.Name, 0, -1)
	if err != nil {
		return c.missing(x, err)
	}
	to, err := roomFor(x.Size)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	h := crc32.New(castagnoli)
	n, err := copyAll(io.MultiWriter(to, h), io.LimitReader(r, x.Size+1))
	if err = errors.Join(c.checked(x, n, h.Sum32(), err), r.Close()); err != nil {
		return errors.Join(err, to.Close())
	}
	x.data, x.here = to, x.Size
	c.mu.Lock()
	c.total += x.Size
	c.mu.Unlock()
	return nil
}

// room is where the bytes of a fetched object are.
type room interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// roomFor returns room for an object: small ones are held in memory.
func roomFor(size int64) (room, error) {
	if size <= smallObject {
		return new(memory), nil
	}
	return tempFile()
}

// memory is the bytes of a small object.
type memory []byte

func (m *memory) Write(p []byte) (int, error) {
	*m = append(*m, p...)
	return len(p), nil
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(*m).ReadAt(p, off) }

func (m *memory) Close() error { return nil }

// tempFile makes a file without a name, so that nothing stays of it when the process ends, however it does.
func tempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "kevy-archive-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checked names an object that is not as it was written.
func (c *cache) checked(x *cached, n int64, crc uint32, err error) error {
	if err != nil {
		return c.missing(x, err)
	}
	if n != x.Size || crc != x.CRC {
		return fmt.Errorf("%w: object %s/%s is damaged: %d bytes or more with checksum %08x, the archive's manifest has %d with %08x",
			ErrCorrupt, c.store, x.Name, n, crc, x.Size, x.CRC)
	}
	return nil
}

// missing makes an object that should be there and is not a damage.
func (c *cache) missing(x *cached, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: object %s/%s is missing (or the archive's retention has removed it since it was opened)", ErrCorrupt, c.store, x.Name)
	}
	return fmt.Errorf("reading %s/%s: %w", c.store, x.Name, err)
}

// read fills p from an object without fetching it.
func (c *cache) read(o object, p []byte, off int64) (int, error) {
	r, err := c.store.Get(c.ctx, o.Name, off, int64(len(p)))
	if err != nil {
		return 0, c.missing(&cached{object: o}, err)
	}
	n, err := io.ReadFull(r, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: object %s/%s ends at byte %d of %d", ErrCorrupt, c.store, o.Name, off+int64(n), o.Size)
	} else if err != nil {
		err = c.missing(&cached{object: o}, err)
	}
	return n, errors.Join(err, r.Close())
}

// close lets go of all.
func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.have {
		if x.data != nil {
			_ = x.data.Close() // only read
		}
	}
	c.have = nil
}
