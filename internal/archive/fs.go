package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// FS shows an archive as the data directory it is a copy of, for reading only: what was there when it was opened. It
// is safe for concurrent use.
type FS struct {
	dir   string
	files map[string]*entry
	dirs  map[string][]string
	cache *cache
}

// entry is a file: some bytes, or objects one after the other.
type entry struct {
	bytes   []byte
	objects []object
	raw     *log.Copy // in place of objects: a sealed segment, shown raw
	parts   bool      // the objects are no file by themselves: they are always fetched, so that damage is named by object
	size    int64
	ms      int64
}

// OpenFS opens an archive for reading, as the directory dir of fsys. Close lets go of what was fetched.
func OpenFS(ctx context.Context, s Store) (fsys *FS, dir string, err error) {
	m, err := readManifest(ctx, s)
	if err == nil && m == nil {
		err = noManifest(ctx, s)
	}
	switch {
	case err != nil:
		return nil, "", err
	case len(m.Shards) == 0:
		return nil, "", fmt.Errorf("%s: the archive was begun, and nothing is in it yet", s)
	}
	doc, err := m.outline()
	if err != nil {
		return nil, "", err
	}
	f := newFS(s, newCache(ctx, s))
	f.add("MANIFEST", &entry{bytes: doc, size: int64(len(doc)), ms: m.CutMS})
	for i := range m.Shards {
		for _, g := range m.Shards[i].Segments {
			suffix := ".seg"
			if g.Sealed != nil {
				suffix = ".sealed"
			}
			all := g.objects()
			f.add(fmt.Sprintf("shard-%02d/%020d%s", i, g.Number, suffix), &entry{objects: all, parts: g.Sealed == nil, size: size(all), ms: m.CutMS})
		}
	}
	for _, set := range m.Sets {
		for _, o := range set.Files {
			f.add(o.Name, &entry{objects: []object{o}, size: o.Size, ms: set.TimeMS})
		}
	}
	return f, f.dir, nil
}

func newFS(s Store, c *cache) *FS {
	return &FS{dir: path.Clean(s.String()), files: make(map[string]*entry), dirs: make(map[string][]string), cache: c}
}

// noManifest says what a place without a manifest is.
func noManifest(ctx context.Context, s Store) error {
	n := 0
	err := s.List(ctx, "", func(name string, _ int64) {
		if ours.MatchString(name) {
			n++
		}
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("%s is no archive: it has no object %s", s, manifestName)
	}
	return lostManifest(s, n)
}

// lostManifest is the error of an archive with n objects that has no manifest.
func lostManifest(s Store, n int) error {
	return fmt.Errorf("%w: %s has %d objects of an archive but no %s: it is lost, or not written yet by another kevy (%s)", ErrCorrupt, s, n, manifestName, remedy)
}

// remedy is what can be done about a manifest that can't be read.
const remedy = "kevy restore --rebuild-manifest makes it anew if the rest proves whole"

// outline is the MANIFEST of the directory that the archive is shown as.
func (m *manifest) outline() ([]byte, error) {
	o := log.Outline{HashSeed: m.HashSeed, LastTxn: m.LastTxn}
	if n := len(m.Sets); n > 0 {
		o.Set, o.SetCursor = m.Sets[n-1].ID, m.Sets[n-1].Cursors
	}
	for i := range m.Shards {
		p := &m.Shards[i]
		last := &p.Segments[len(p.Segments)-1]
		o.Shards = append(o.Shards, log.ShardOutline{
			FirstLive: p.Segments[0].Number, Newest: last.Number, Size: last.bytes(), Tail: p.End, Lineage: p.Lineage,
		})
	}
	return o.Manifest()
}

// Close lets go of what was fetched. REQUIRES: no file is open.
func (f *FS) Close() { f.cache.close() }

// add adds a file, and its directories.
func (f *FS) add(name string, e *entry) {
	name = path.Join(f.dir, name)
	f.files[name] = e
	for name != f.dir {
		dir := path.Dir(name)
		_, known := f.dirs[dir]
		f.dirs[dir] = append(f.dirs[dir], path.Base(name))
		if known {
			return
		}
		name = dir
	}
}

// Open opens a file.
func (f *FS) Open(name string) (vfs.File, error) {
	e, ok := f.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{fs: f, entry: e}, nil
}

// ReadDir lists a directory, sorted.
func (f *FS) ReadDir(name string) ([]string, error) {
	names, ok := f.dirs[name]
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Sorted(slices.Values(names)), nil
}

// Stat describes a file or a directory.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	if e, ok := f.files[name]; ok {
		return info{path.Base(name), e}, nil
	}
	if _, ok := f.dirs[name]; ok {
		return info{path.Base(name), nil}, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// info describes a file, or a directory, which has no entry.
type info struct {
	name  string
	entry *entry
}

func (i info) Name() string { return i.name }
func (i info) IsDir() bool  { return i.entry == nil }
func (i info) Sys() any     { return nil }

// Size returns the size of a file in bytes.
func (i info) Size() int64 {
	if i.entry == nil {
		return 0
	}
	return i.entry.size
}

// Mode says that nothing can be written.
func (i info) Mode() fs.FileMode {
	if i.entry == nil {
		return fs.ModeDir | 0o500
	}
	return 0o400
}

// ModTime returns when the archive was brought up to date.
func (i info) ModTime() time.Time {
	if i.entry == nil {
		return time.Time{}
	}
	return time.UnixMilli(i.entry.ms)
}

func readOnly(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: errors.New("an archive is only read")}
}

// Create fails, as all that would change something does.
func (f *FS) Create(name string) (vfs.File, error) { return nil, readOnly("create", name) }

// OpenReadWrite fails.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) { return nil, readOnly("open", name) }

// Rename fails.
func (f *FS) Rename(_, name string) error { return readOnly("rename", name) }

// Remove fails.
func (f *FS) Remove(name string) error { return readOnly("remove", name) }

// RemoveAll fails.
func (f *FS) RemoveAll(name string) error { return readOnly("remove", name) }

// MkdirAll fails.
func (f *FS) MkdirAll(name string) error { return readOnly("mkdir", name) }

// SyncDir fails.
func (f *FS) SyncDir(name string) error { return readOnly("sync", name) }

// Lock fails.
func (f *FS) Lock(name string) (io.Closer, error) { return nil, readOnly("lock", name) }

// The first probes of an open file, of at most probeBytes each, go to the store; then its objects are fetched, and small ones at once. So
// headers and indexes are read without the rest.
const (
	probes      = 6
	probeBytes  = 4 << 20
	smallObject = 64 << 10
)

// file is an open file.
type file struct {
	fs     *FS
	entry  *entry
	mu     sync.Mutex
	probed int
	held   []*cached // by object, nil: not fetched
	closed bool
}

// Size returns the size in bytes.
func (f *file) Size() (int64, error) { return f.entry.size, nil }

// ReadAt reads, and fetches the objects it needs.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	if off >= f.entry.size {
		return 0, io.EOF
	}
	switch e := f.entry; {
	case e.bytes != nil:
		n = copy(p, e.bytes[off:])
	case e.raw != nil:
		return e.raw.ReadAt(p, off)
	default:
		n, err = f.readObjects(p, off)
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *file) readObjects(p []byte, off int64) (n int, err error) {
	for i, o := range f.entry.objects {
		if off >= o.Size {
			off -= o.Size
			continue
		}
		want := int(min(int64(len(p)-n), o.Size-off))
		if want == 0 {
			break
		}
		m, err := f.readObject(p[n:n+want], i, off)
		if n += m; err != nil {
			return n, err
		}
		off = 0
	}
	return n, nil
}

// readObject fills p from an object.
func (f *file) readObject(p []byte, i int, off int64) (int, error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return 0, fs.ErrClosed
	}
	if f.held == nil {
		f.held = make([]*cached, len(f.entry.objects))
	}
	c, o := f.held[i], f.entry.objects[i]
	probe := c == nil && len(p) <= probeBytes && f.probed < probes && o.Size > smallObject && !f.entry.parts
	if probe {
		f.probed++
	}
	var err error
	if c == nil && !probe {
		if c, err = f.fs.cache.get(o); err == nil {
			f.held[i] = c
		}
	}
	f.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if probe {
		return f.fs.cache.read(o, p, off)
	}
	n, err := c.data.ReadAt(p, off)
	if n == len(p) {
		err = nil
	}
	return n, err
}

// Close closes the file.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, c := range f.held {
		if c != nil {
			f.fs.cache.release(c)
		}
	}
	f.held = nil
	return nil
}

// WriteAt fails.
func (f *file) WriteAt([]byte, int64) (int, error) { return 0, readOnly("write", f.fs.dir) }

// Sync fails.
func (f *file) Sync() error { return readOnly("sync", f.fs.dir) }

// Truncate fails.
func (f *file) Truncate(int64) error { return readOnly("truncate", f.fs.dir) }

// WriteBack does nothing.
func (f *file) WriteBack(int64, int64) {}

// Preallocate fails.
func (f *file) Preallocate(_, _ int64) error { return readOnly("preallocate", f.fs.dir) }
