package faultfs

import (
	"strings"
	"sync"

	"github.com/kevydb/kevy/internal/vfs"
)

// disk knows how much space files have, to simulate a full one. It sees a file as one extent from
// the start to the highest byte that was written or preallocated.
type disk struct {
	mu     sync.Mutex
	full   bool
	extent map[string]*extent // by path
}

// extent is the space of one file, shared by its open handles.
type extent struct{ end int64 } // guarded by disk.mu

func newDisk() *disk { return &disk{extent: map[string]*extent{}} }

func (d *disk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// open returns the extent of a file; one not seen before ends where the file does.
func (d *disk) open(name string, f vfs.File) (*extent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.extent[name]; e != nil {
		return e, nil
	}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	d.extent[name] = &extent{end: size}
	return d.extent[name], nil
}

// take takes space for n bytes at off and returns for how many of them there is some.
func (d *disk) take(e *extent, off, n int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return min(n, max(0, e.end-off))
	}
	e.end = max(e.end, off+n)
	return n
}

// truncate frees the space beyond size.
func (d *disk) truncate(e *extent, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.end = min(e.end, size)
}

// rename moves the extents of a file or of all files in a directory.
func (d *disk) rename(oldname, newname string) {
	if oldname == newname {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.extent, newname)
	for name, e := range d.extent {
		if rest, ok := under(name, oldname); ok {
			delete(d.extent, name)
			d.extent[newname+rest] = e
		}
	}
}

// remove forgets the extents of a file or of all files in a directory.
func (d *disk) remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other := range d.extent {
		if _, ok := under(other, name); ok {
			delete(d.extent, other)
		}
	}
}

// under reports whether name is top or in the directory top, and what follows top in it.
func under(name, top string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, top)
	return rest, ok && (rest == "" || rest[0] == '/')
}
