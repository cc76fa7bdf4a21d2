package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/state"
)

// CheckEmpty reports whether dir can be made: it does not exist, or is an empty directory.
func CheckEmpty(fsys vfs.FS, dir string) error {
	names, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(names) > 0 {
		return fmt.Errorf("%s is not empty: name a new directory", dir)
	}
	return err
}

// Create makes the data directory o.Log.Dir, which must not exist or be empty, with the given state: a fresh log, and
// the keyspaces, one a shard, as its first snapshot set. It takes the keyspaces over, also when it fails; then it removes
// what it has made. It returns the cursor of each shard.
//
// REQUIRES: all keyspaces were made with the seed o.Log.HashSeed.
func Create(o Options, keyspaces []*state.Keyspace) ([]log.Cursor, error) {
	if o.Log.FS == nil {
		o.Log.FS = vfs.OS()
	}
	if err := CheckEmpty(o.Log.FS, o.Log.Dir); err != nil {
		releaseAll(keyspaces)
		return nil, err
	}
	_, stat := o.Log.FS.Stat(o.Log.Dir)
	cursors, err := create(o, keyspaces)
	if err != nil {
		return nil, errors.Join(err, Unmake(o.Log.FS, o.Log.Dir, stat == nil))
	}
	return cursors, nil
}

// Unmake removes what is in dir, and dir too unless it is to be kept: who has made it may have had his reasons.
func Unmake(fsys vfs.FS, dir string, keep bool) error {
	if !keep {
		return fsys.RemoveAll(dir)
	}
	names, err := fsys.ReadDir(dir)
	for _, n := range names {
		err = errors.Join(err, fsys.RemoveAll(path.Join(dir, n)))
	}
	return err
}

func create(o Options, keyspaces []*state.Keyspace) ([]log.Cursor, error) {
	o.Log.Shards, o.DigestSets = len(keyspaces), true // nobody waits for a lock meanwhile
	e, _, err := Open(o)
	if err != nil {
		releaseAll(keyspaces)
		return nil, err
	}
	e.SetActiveExpire(false) // what is due stays as it is
	var cursors []log.Cursor
	for i, sh := range e.shards {
		sh.mu.Lock()
		sh.ks.Release()
		sh.ks, e.keyspaces[i] = keyspaces[i], keyspaces[i]
		sh.mu.Unlock()
		cursors = append(cursors, sh.log().Tail())
	}
	return cursors, errors.Join(e.Save(), e.Close(true))
}

func releaseAll(keyspaces []*state.Keyspace) {
	for _, ks := range keyspaces {
		ks.Release()
	}
}
