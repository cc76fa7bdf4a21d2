package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// Bootstrap is a snapshot set of another store on its way into this one. While there is one, no snapshots are written
// here. It belongs to one goroutine.
type Bootstrap struct {
	e   *Engine
	set snapshot.Set
	tmp string
}

// BeginBootstrap prepares for the files of a set, and keeps what an interrupted bootstrap with it has left. ErrSaving or ErrRewriting: a snapshot is being written.
func (e *Engine) BeginBootstrap(set snapshot.Set) (*Bootstrap, error) {
	if len(set.Shards) != len(e.shards) || !snapshot.IsID(set.ID) {
		return nil, fmt.Errorf("engine: the set %.40q of %d shards for %d", set.ID, len(set.Shards), len(e.shards))
	}
	if err := e.checkpoint.beginPrune(); err != nil {
		return nil, err
	}
	tmp, err := e.placeFor(set.ID)
	if err != nil {
		e.checkpoint.endPrune()
		return nil, err
	}
	return &Bootstrap{e: e, set: set, tmp: tmp}, nil
}

// placeFor makes the directory in which a set of another store is put together. A set of that name may be left from a bootstrap that
// ended between its publication and its becoming the base.
func (e *Engine) placeFor(id string) (tmp string, err error) {
	data := e.Dir().Path()
	if inUse, _ := e.Dir().Snapshot(); id == inUse {
		return "", fmt.Errorf("engine: snapshot set %s is the one in force", id)
	}
	ids, err := snapshot.List(e.fs, data)
	if err != nil {
		return "", err
	}
	if slices.Contains(ids, id) {
		if err := snapshot.Remove(e.fs, data, id); err != nil {
			return "", err
		}
	}
	return snapshot.Resume(e.fs, data, id)
}

// LeftBootstraps returns the ids of the sets of which an interrupted bootstrap has left something.
func (e *Engine) LeftBootstraps() ([]string, error) { return snapshot.Left(e.fs, e.Dir().Path()) }

// Set returns the set.
func (b *Bootstrap) Set() *snapshot.Set { return &b.set }

// Create opens the file of a shard for writing, and returns how many bytes an interrupted bootstrap has left in it. Its bytes are to be those of
// the other store, synced: Finish checks all of them.
func (b *Bootstrap) Create(shard int) (f vfs.File, have int64, err error) {
	name := snapshot.ShardPath(b.tmp, shard)
	if f, err = b.e.fs.OpenReadWrite(name); err == nil {
		if have, err = f.Size(); err == nil && have <= b.set.Shards[shard].Bytes {
			return f, have, nil
		}
		_ = f.Close() // it is made anew
	}
	f, err = b.e.fs.Create(name)
	return f, 0, err
}

// Suspend ends the bootstrap, and leaves what has come for a later one.
func (b *Bootstrap) Suspend() {
	if b.e != nil {
		b.e.checkpoint.endPrune()
		b.e = nil
	}
}

// Abandon ends the bootstrap, and removes what has come, unless it has been finished.
func (b *Bootstrap) Abandon() error {
	if b.e == nil {
		return nil
	}
	e := b.e
	b.e = nil
	defer e.checkpoint.endPrune()
	return e.fs.RemoveAll(b.tmp)
}

// Origin is what a store must know of another one to go on with its log.
type Origin struct {
	HashSeed uint64
	LastTxn  uint64
	Lineage  [][]log.Lineage // of each shard
}

// Finish folds the set, checking all of it, and makes it the state of the store, from which the frames of the other one go on. The frames
// from the cursors aside on, if there are any, are kept; it returns the names of these files.
// REQUIRES: all files are there, synced; the store follows.
func (b *Bootstrap) Finish(o Origin, aside []log.Cursor) (kept []string, err error) {
	e := b.e
	fresh := make([]*state.Keyspace, len(e.shards))
	for i := range fresh {
		if fresh[i], err = b.load(i, o.HashSeed); err != nil {
			releaseAll(fresh[:i])
			return nil, err
		}
	}
	if err := snapshot.Publish(e.fs, e.Dir().Path(), b.tmp, b.set); err != nil {
		releaseAll(fresh)
		return nil, err
	}
	kept, err = e.replaceBase(baseOf(&b.set, o, aside), fresh)
	b.e = nil
	e.checkpoint.endPrune()
	return kept, err
}

func (b *Bootstrap) load(shard int, seed uint64) (*state.Keyspace, error) {
	ks := state.New(seed)
	b.e.settings().give(ks)
	ks.BeginBulk()
	h, err := loadSnapshot(b.e.fs, snapshot.ShardPath(b.tmp, shard), ks)
	if err == nil {
		err = b.set.Check(&h, shard, seed)
	}
	if err != nil {
		ks.Release()
		return nil, err
	}
	ks.EndBulk()
	return ks, nil
}

// baseOf makes the base that a set is for those who know where it comes from.
func baseOf(set *snapshot.Set, o Origin, aside []log.Cursor) *log.Base {
	base := &log.Base{HashSeed: o.HashSeed, LastTxn: o.LastTxn, Set: set.ID, TimeMS: set.TimeMS, Cursors: set.Cursors(), Aside: aside}
	for i, c := range base.Cursors {
		base.Lineage = append(base.Lineage, upTo(o.Lineage[i], c.Generation))
	}
	return base
}

// upTo returns the generations up to one, nil if that is not among them.
func upTo(lineage []log.Lineage, generation uint64) []log.Lineage {
	for i := range lineage {
		if lineage[i].Generation == generation {
			return lineage[:i+1]
		}
	}
	return nil
}

// ErrNoWayBack is Rewind's error when the state at the cursors cannot be had from what is on disk.
var ErrNoWayBack = errors.New("engine: no snapshot and log on disk lead there")

// Rewind makes the store as it was at the cursors, which lie behind on the lineage: what has happened since is no part of its history any
// more. The frames are kept aside, in the files whose names it returns. REQUIRES: the store follows; no Applier is in use.
func (e *Engine) Rewind(to []log.Cursor) (kept []string, err error) {
	if err := e.checkpoint.beginPrune(); err != nil {
		return nil, err
	}
	defer e.checkpoint.endPrune()
	if err := e.flush(e.all()); err != nil {
		return nil, err
	}
	fresh, behind, back, err := e.stateAt(to)
	if err != nil {
		return nil, err
	}
	if err := e.fitCut(to); err != nil { // while the lineage leads there
		releaseAll(fresh)
		return nil, err
	}
	return e.replaceLog(func(d *log.Dir) (*log.Dir, []string, error) { return d.TakeBack(back) }, back.Set, fresh, behind)
}

// stateAt folds the state at the cursors, and tells from what set the log behind it leads there.
func (e *Engine) stateAt(to []log.Cursor) (fresh []*state.Keyspace, behind []replayed, back *log.Back, err error) {
	sets, unreadable, err := candidates(e.fs, e.Dir())
	if err != nil {
		return nil, nil, nil, err
	}
	if unreadable != nil {
		e.logger.Warn("snapshot sets that can't be read", "error", unreadable)
	}
	back = &log.Back{To: to}
	for i := len(sets) - 1; i >= 0 && back.Set == ""; i-- {
		if s := &sets[i]; s.Reachable && e.allBefore(s.Set.Cursors(), to) {
			back.Set, back.Cursors = s.Set.ID, s.Set.Cursors()
		}
	}
	if back.Set == "" && beginning(e.Dir()) == nil {
		return nil, nil, nil, ErrNoWayBack
	}
	fresh, behind = make([]*state.Keyspace, len(e.shards)), make([]replayed, len(e.shards))
	for i := range fresh {
		var c *log.Cursor
		if back.Set != "" {
			c = &back.Cursors[i]
		}
		o := log.ReaderOptions{Limit: log.LimitEnd, End: to[i], Follow: true}
		if fresh[i], behind[i], err = loadShard(e.fs, e.Dir(), i, back.Set, c, o, e.settings()); err != nil {
			fresh[i].Release()
			releaseAll(fresh[:i])
			return nil, nil, nil, fmt.Errorf("%w: %w", ErrNoWayBack, err)
		}
	}
	return fresh, behind, back, nil
}

// allBefore reports whether the histories of to go through from.
func (e *Engine) allBefore(from, to []log.Cursor) bool {
	for i := range from {
		if !e.Dir().Log(i).Before(from[i], to[i]) {
			return false
		}
	}
	return true
}

// writeStates publishes a snapshot set of keyspaces that stand at the cursors.
func (e *Engine) writeStates(fresh []*state.Keyspace, at []log.Cursor) (set snapshot.Set, err error) {
	fs := make([]frozen, len(fresh))
	for i, ks := range fresh {
		fs[i] = frozen{cursor: at[i], view: ks.View()}
	}
	set, id, err := e.nextSet(e.now())
	if err == nil {
		err = e.writeShards(&set, id, fs)
	}
	for i := range fs {
		fs[i].view.Close()
	}
	return set, err
}
