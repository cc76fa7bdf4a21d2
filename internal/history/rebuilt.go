package history

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// manifestName is the file that a directory can't be read without.
const manifestName = "MANIFEST"

// Rebuilt returns the directory of src, which has lost its MANIFEST or has a damaged one, with one made anew in memory. Nothing
// is written. It is made of the headers of segments and of the newest snapshot set that is whole, and then everything is read as by a
// deep Verify: unless all of it agrees the result is an error. m may be nil.
func Rebuilt(src Source, m *Meter) (Source, error) {
	if src.FS == nil {
		src.FS = vfs.OS()
	}
	switch _, err := log.SnapshotOnRecord(src.FS, src.Dir); {
	case err == nil:
		return src, fmt.Errorf("%s has a MANIFEST that can be read: there is nothing to make anew", src.Dir)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, log.ErrCorrupt):
		return src, fmt.Errorf("the MANIFEST of %s: %w", src.Dir, err)
	}
	lost, err := findLost(src)
	if err != nil {
		return src, err
	}
	doc, err := log.Rebuild(src.FS, src.Dir, *lost)
	if err != nil {
		return src, fmt.Errorf("making the MANIFEST of %s anew: %w", src.Dir, err)
	}
	if src, err = withManifest(src, doc); err != nil {
		return src, err
	}
	v, err := Verify(src, VerifyOptions{Deep: true, Meter: m})
	if err != nil {
		return src, err
	}
	if n := len(v.Damage); n > 0 {
		return src, fmt.Errorf("%w: without its MANIFEST nothing that is not whole is trusted, and %d places are not: %s", ErrDamaged, n, v.Damage[0].Problem)
	}
	src.Notes = append(src.Notes, fmt.Sprintf("the MANIFEST was made anew from %d segments and snapshot set %s; segments that are missing behind the newest ones "+
		"in all shards alike show only if they were the last to be synced", v.Segments, lost.Set))
	return src, nil
}

// Proven is Rebuilt, and finds where the logs end: the newest cursors that tear no group, whichever shards have something behind them.
func Proven(src Source, m *Meter) (proven Source, ends []log.Cursor, err error) {
	if proven, err = Rebuilt(src, m); err != nil {
		return proven, nil, err
	}
	h, err := Open(proven)
	if err != nil {
		return proven, nil, err
	}
	defer h.Close()
	pl, err := h.Plan(BeforeDamage(), m)
	if err != nil {
		return proven, nil, err
	}
	for _, s := range pl.Shards {
		ends = append(ends, s.To)
	}
	return proven, ends, nil
}

var shardDir = regexp.MustCompile(`^shard-\d\d$`)

// findLost finds the newest set that is whole, and in it what the manifest said.
func findLost(src Source) (*log.Lost, error) {
	names, err := src.FS.ReadDir(src.Dir)
	if err != nil {
		return nil, err
	}
	shards := len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !shardDir.MatchString(n) }))
	ids, err := snapshot.List(src.FS, src.Dir)
	if err != nil {
		return nil, err
	}
	why := errors.New("it has no snapshot set")
	for _, id := range slices.Backward(ids) {
		set, err := snapshot.CheckSet(src.FS, src.Dir, id)
		if err != nil {
			why = err
			continue
		}
		if n := len(set.Shards); n != shards {
			return nil, fmt.Errorf("%w: %s has directories of %d shards, snapshot set %s has %d", ErrDamaged, src.Dir, shards, id, n)
		}
		hd, err := snapshot.ReadHeader(src.FS, snapshot.ShardPath(snapshot.Dir(src.Dir, id), 0))
		if err != nil {
			return nil, err
		}
		return &log.Lost{HashSeed: hd.HashSeed, Set: id, Cursors: set.Cursors()}, nil
	}
	return nil, fmt.Errorf("%w: the number of shards and the seed of the hash that assigns keys to them were in the MANIFEST of %s, and are else only in a "+
		"snapshot set: %w", ErrDamaged, src.Dir, why)
}

// overlay is a file system with one file from another.
type overlay struct {
	vfs.FS
	with vfs.FS
	name string
}

// Open opens a file.
func (o *overlay) Open(name string) (vfs.File, error) {
	if name == o.name {
		return o.with.Open(name)
	}
	return o.FS.Open(name)
}

// withManifest returns the directory of src with doc as its MANIFEST.
func withManifest(src Source, doc []byte) (Source, error) {
	o := &overlay{src.FS, vfs.NewMem(), path.Join(src.Dir, manifestName)}
	if err := o.with.MkdirAll(src.Dir); err != nil {
		return src, err
	}
	src.FS = o
	return src, vfs.WriteFile(o.with, o.name, doc)
}
