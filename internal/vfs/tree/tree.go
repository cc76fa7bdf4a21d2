// Package tree keeps the directories of an in-memory file system: names, and the errors that a
// POSIX system gives for them. What a file holds is up to the user (type parameter F).
//
// Paths are slash-separated; relative and absolute ones mean the same. A Tree is not safe for
// concurrent use.
package tree

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Node is a file or a directory.
type Node[F any] struct {
	File    F                   // the file; zero for a directory
	Entries map[string]*Node[F] // the entries of a directory; nil for a file
}

// NewDir returns an empty directory.
func NewDir[F any]() *Node[F] { return &Node[F]{Entries: map[string]*Node[F]{}} }

// IsDir reports whether n is a directory.
func (n *Node[F]) IsDir() bool { return n.Entries != nil }

// Change is a change of one directory entry.
type Change[F any] struct {
	Dir     *Node[F]
	Name    string
	Node    *Node[F] // nil: the entry was removed
	Renamed bool     // this removal is the second half of a rename; the change before is the first
}

// Tree is a tree of directories.
type Tree[F any] struct {
	Root    *Node[F]
	Changed func(Change[F]) // called after each change of an entry, if set
}

// New returns a tree with an empty root directory.
func New[F any]() *Tree[F] { return &Tree[F]{Root: NewDir[F]()} }

// Lookup finds a file or directory.
func (t *Tree[F]) Lookup(op, name string) (*Node[F], error) {
	n := t.Root
	for _, elem := range split(name) {
		if !n.IsDir() {
			return nil, pathError(op, name, syscall.ENOTDIR)
		}
		next, ok := n.Entries[elem]
		if !ok {
			return nil, pathError(op, name, syscall.ENOENT)
		}
		n = next
	}
	return n, nil
}

// File finds a file.
func (t *Tree[F]) File(op, name string) (F, error) {
	n, err := t.Lookup(op, name)
	if err == nil && n.IsDir() {
		err = pathError(op, name, syscall.EISDIR)
	}
	if err != nil {
		var none F
		return none, err
	}
	return n.File, nil
}

// Create enters a new file.
func (t *Tree[F]) Create(name string, file F) error {
	dir, base, err := t.parent("create", name)
	if err != nil {
		return err
	}
	if _, ok := dir.Entries[base]; ok || base == "" {
		return pathError("create", name, syscall.EEXIST)
	}
	t.set(Change[F]{Dir: dir, Name: base, Node: &Node[F]{File: file}})
	return nil
}

// MkdirAll makes the directories of name that are missing.
func (t *Tree[F]) MkdirAll(name string) error {
	n := t.Root
	for _, elem := range split(name) {
		next, ok := n.Entries[elem]
		if !ok {
			next = NewDir[F]()
			t.set(Change[F]{Dir: n, Name: elem, Node: next})
		}
		if !next.IsDir() {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// ReadDir lists the names in a directory, sorted.
func (t *Tree[F]) ReadDir(name string) ([]string, error) {
	n, err := t.Dir("readdir", name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.Entries)), nil
}

// Dir finds a directory.
func (t *Tree[F]) Dir(op, name string) (*Node[F], error) {
	n, err := t.Lookup(op, name)
	if err == nil && !n.IsDir() {
		err = pathError(op, name, syscall.ENOTDIR)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Rename moves a file or directory. As with os.Rename, only files are replaced.
func (t *Tree[F]) Rename(oldname, newname string) error {
	n, err := t.Lookup("rename", oldname)
	if err != nil {
		return err
	}
	from, oldbase, err := t.parent("rename", oldname)
	if err != nil {
		return err
	}
	to, newbase, err := t.parent("rename", newname)
	if err != nil {
		return err
	}
	old := to.Entries[newbase]
	switch {
	case strings.HasPrefix(clean(newname), strings.TrimSuffix(clean(oldname), "/")+"/"):
		return pathError("rename", oldname, syscall.EINVAL) // into itself
	case old == n:
		return nil
	case newbase == "", old != nil && old.IsDir():
		return pathError("rename", newname, syscall.EEXIST)
	case old != nil && n.IsDir():
		return pathError("rename", newname, syscall.ENOTDIR)
	}
	t.set(Change[F]{Dir: to, Name: newbase, Node: n})
	t.set(Change[F]{Dir: from, Name: oldbase, Renamed: true})
	return nil
}

// Remove removes a file or an empty directory.
func (t *Tree[F]) Remove(name string) error {
	n, err := t.Lookup("remove", name)
	if err != nil {
		return err
	}
	dir, base, err := t.parent("remove", name)
	switch {
	case err != nil:
		return err
	case base == "":
		return pathError("remove", name, syscall.EBUSY)
	case len(n.Entries) > 0:
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	t.set(Change[F]{Dir: dir, Name: base})
	return nil
}

// RemoveAll removes a tree, the deepest entries first. It is no error if there is none.
func (t *Tree[F]) RemoveAll(name string) error {
	n, err := t.Lookup("removeall", name)
	if err != nil {
		return nil //nolint:nilerr // nothing there
	}
	for _, child := range slices.Sorted(maps.Keys(n.Entries)) {
		if err := t.RemoveAll(path.Join(clean(name), child)); err != nil {
			return err
		}
	}
	return t.Remove(name)
}

// parent finds the directory that holds, or would hold, name. For the root, base is empty.
func (t *Tree[F]) parent(op, name string) (dir *Node[F], base string, err error) {
	dirname, base := path.Split(clean(name))
	dir, err = t.Dir(op, dirname)
	return dir, base, err
}

func (t *Tree[F]) set(c Change[F]) {
	if c.Node == nil {
		delete(c.Dir.Entries, c.Name)
	} else {
		c.Dir.Entries[c.Name] = c.Node
	}
	if t.Changed != nil {
		t.Changed(c)
	}
}

func clean(name string) string { return path.Clean("/" + name) }

func split(name string) []string {
	return strings.FieldsFunc(clean(name), func(r rune) bool { return r == '/' })
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}
