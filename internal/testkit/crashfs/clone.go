package crashfs

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/kevydb/kevy/internal/vfs/tree"
)

// Crash freezes f and returns what a power failure leaves of it.
func (f *FS) Crash(rng *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = true
	return f.crash(rng)
}

// CrashClone returns what a power failure now would leave of f. All in it is durable. f goes on.
func (f *FS) CrashClone(rng *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crash(rng)
}

func (f *FS) crash(rng *rand.Rand) *FS {
	c := crasher{rng: rng, entries: f.journal.crash(rng), done: map[*node]*node{}, journal: newJournal()}
	root := c.node(f.tree.Root)
	return newFS(root, c.journal)
}

// crasher copies what is left, from the root down.
type crasher struct {
	rng     *rand.Rand
	entries map[*node]map[string]*node // of the original
	done    map[*node]*node            // a file may be left under two names
	journal journal                    // of the copy
}

func (c *crasher) node(n *node) *node {
	if twin, ok := c.done[n]; ok {
		return twin
	}
	if !n.IsDir() {
		c.done[n] = &node{File: n.File.crash(c.rng)}
		return c.done[n]
	}
	twin := tree.NewDir[*inode]()
	c.done[n] = twin
	for _, name := range slices.Sorted(maps.Keys(c.entries[n])) {
		twin.Entries[name] = c.node(c.entries[n][name])
	}
	c.journal.durable[twin] = maps.Clone(twin.Entries)
	return twin
}

// KillClone returns what the end of the process now would leave of f: everything, though what was
// not synced is not synced in the clone either.
func (f *FS) KillClone() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := copier{done: map[*node]*node{}}
	return newFS(c.node(f.tree.Root), c.journal(f.journal))
}

// TruncateClone returns a KillClone in which the file is cut, or extended by zeros, to size.
func (f *FS) TruncateClone(name string, size int64) (_ *FS, err error) {
	clone := f.KillClone()
	file, err := clone.OpenReadWrite(name)
	if err != nil {
		return nil, fmt.Errorf("crashfs: truncate clone: %w", err)
	}
	if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
		return nil, fmt.Errorf("crashfs: truncate clone: %w", err)
	}
	return clone, nil
}

// copier copies nodes, whether they are reachable, only durable or only in the journal.
type copier struct{ done map[*node]*node }

func (c copier) node(n *node) *node {
	if n == nil {
		return nil
	}
	if twin, ok := c.done[n]; ok {
		return twin
	}
	if !n.IsDir() {
		c.done[n] = &node{File: n.File.clone()}
		return c.done[n]
	}
	twin := tree.NewDir[*inode]()
	c.done[n] = twin
	for name, child := range n.Entries {
		twin.Entries[name] = c.node(child)
	}
	return twin
}

func (c copier) journal(j journal) journal {
	twin := newJournal()
	for dir, entries := range j.durable {
		copied := make(map[string]*node, len(entries))
		for name, n := range entries {
			copied[name] = c.node(n)
		}
		twin.durable[c.node(dir)] = copied
	}
	records := map[*record]*record{nil: nil}
	for _, r := range j.pending {
		records[r] = &record{after: records[r.after]}
		for _, e := range r.entries {
			e.dir, e.node = c.node(e.dir), c.node(e.node)
			records[r].entries = append(records[r].entries, e)
		}
		twin.pending = append(twin.pending, records[r])
	}
	return twin
}
