package archive

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// localSets returns the directory's snapshot sets that the archive may still want, oldest first.
func (a *Archiver) localSets() (ids []string, err error) {
	all, err := snapshot.List(a.src.FS, a.dir.Path())
	if err != nil {
		return nil, err
	}
	newest := ""
	if n := len(a.man.Sets); n > 0 {
		newest = a.man.Sets[n-1].ID
	}
	for _, id := range all {
		if id > newest && !a.skipped[id] {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// unreadError is a set that can't be read here: newer ones, and retention, do not wait for it.
type unreadError struct {
	id  string
	err error
}

func (e *unreadError) Error() string { return "archive: snapshot set " + e.id + ": " + e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// shipSet takes a snapshot set. One that is removed meanwhile, or from which the archive has no log, is left out; so is
// a damaged one, with a warning: the log leads past it.
func (a *Archiver) shipSet(ctx context.Context, id string) error {
	set, err := snapshot.CheckSet(a.src.FS, a.dir.Path(), id)
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return nil // it is listed again if it is only in part there
	case errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrVersion):
		a.o.Logger.Error("a snapshot set does not go to the archive", "set", id, "error", err)
		a.skipped[id] = true
		return nil
	case err != nil:
		return &unreadError{id, err}
	}
	cursors := set.Cursors()
	for i, c := range cursors {
		if i >= len(a.man.Shards) || !a.man.Shards[i].holds(c) {
			a.skipped[id] = true
			return nil
		}
	}
	p := setPart{ID: id, TimeMS: set.TimeMS, Keys: set.Keys(), Cursors: cursors}
	dir := snapshot.Dir(a.dir.Path(), id)
	for i := range cursors {
		if err := a.shipLogsIfDue(ctx); err != nil {
			return err
		}
		o, err := a.uploadFile(ctx, dir, id, path.Base(snapshot.ShardPath(dir, i)))
		if errors.Is(err, fs.ErrNotExist) {
			return a.abandon()
		}
		if err != nil {
			return err
		}
		p.Files = append(p.Files, o)
	}
	o, err := a.uploadFile(ctx, dir, id, snapshot.SetFile)
	if errors.Is(err, fs.ErrNotExist) {
		return a.abandon()
	}
	if err != nil {
		return err
	}
	p.Files = append(p.Files, o)
	m := a.man.clone()
	m.Sets = append(m.Sets, p)
	return a.publish(ctx, m)
}

// abandon gives up a set that was removed while it was sent: what was sent of it goes in the next sweep.
func (a *Archiver) abandon() error {
	a.sweep = true
	return nil
}

// setObject is the name of the object that has a file of a set.
func setObject(id, file string) string { return "snapshots/" + id + "/" + file }

// shardObject is setObject for a shard's file.
func shardObject(id string, shard int) string {
	return setObject(id, path.Base(snapshot.ShardPath("", shard)))
}

func (a *Archiver) uploadFile(ctx context.Context, dir, id, name string) (object, error) {
	f, err := a.src.FS.Open(path.Join(dir, name))
	if err != nil {
		return object{}, err
	}
	size, err := f.Size()
	if err != nil {
		return object{}, errors.Join(err, f.Close())
	}
	o, err := a.upload(ctx, setObject(id, name), f, size)
	return o, errors.Join(err, f.Close())
}

// holds reports whether the frame at c is in the archive, or the end is there.
func (s *shardPart) holds(c log.Cursor) bool {
	if c.Generation == s.End.Generation && c.Offset > s.End.Offset {
		return false
	}
	return slices.ContainsFunc(s.Segments, func(g segment) bool {
		return g.Start.Generation == c.Generation && g.Start.Offset <= c.Offset
	})
}
