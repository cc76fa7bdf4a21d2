package engine

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// ErrSaving is returned while another snapshot is being written. The text is Redis's.
var ErrSaving = errors.New("ERR Background save already in progress")

// ErrNoDirectory is returned by snapshots of a store that lives in memory.
var ErrNoDirectory = errors.New("ERR this store has no directory: it lives in memory only")

// checkpointer writes snapshot sets, one at a time.
type checkpointer struct {
	e *Engine

	mu      sync.Mutex
	running bool
	idle    *sync.Cond
	closed  bool
	status  SaveStatus
}

// SaveStatus is what INFO and LASTSAVE tell about snapshots.
type SaveStatus struct {
	Running   bool
	StartedMS int64 // of the running one
	LastMS    int64 // when the last good set was published; start-up time if there was none
	LastID    string
	LastErr   error // of the last try
	LastTook  int64 // ms
	Count     int   // since start
}

func (c *checkpointer) init(e *Engine) {
	c.e = e
	c.idle = sync.NewCond(&c.mu)
	c.status.LastMS = e.now()
	if id, _ := e.dir.Snapshot(); id != "" {
		if set, err := snapshot.ReadSet(e.fs, e.dir.Path(), id); err == nil {
			c.status.LastID, c.status.LastMS = id, set.TimeMS
		}
	}
}

func (c *checkpointer) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrClosed
	case c.running:
		return ErrSaving
	case c.e.opt.Log.Ephemeral:
		return ErrNoDirectory
	}
	c.running, c.status.Running, c.status.StartedMS = true, true, c.e.now()
	return nil
}

func (c *checkpointer) end(id string, at int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.status.Running = false, false
	c.status.LastErr = err
	c.status.LastTook = c.e.now() - c.status.StartedMS
	if err == nil {
		c.status.LastID, c.status.LastMS = id, at
		c.status.Count++
	}
	c.idle.Broadcast()
}

// close waits for a running snapshot and refuses later ones.
func (c *checkpointer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.running {
		c.idle.Wait()
	}
}

// SaveStatus tells about the snapshots taken.
func (e *Engine) SaveStatus() SaveStatus {
	e.checkpoint.mu.Lock()
	defer e.checkpoint.mu.Unlock()
	return e.checkpoint.status
}

// LastSave returns the unix time in seconds of the last published snapshot set.
func (e *Engine) LastSave() int64 { return e.SaveStatus().LastMS / 1000 }

// Save writes and publishes a snapshot set and drops the log segments that neither it nor the feed
// window needs. It returns when the set is durable. Writers go on meanwhile.
func (e *Engine) Save() error {
	if err := e.checkpoint.begin(); err != nil {
		return err
	}
	return e.save()
}

// BGSave starts a snapshot and returns at once.
func (e *Engine) BGSave() error {
	if err := e.checkpoint.begin(); err != nil {
		return err
	}
	go func() {
		if err := e.save(); err != nil {
			e.logger.Error("background save failed", "error", err)
		}
	}()
	return nil
}

func (e *Engine) save() error {
	set, err := e.writeSet()
	e.checkpoint.end(set.ID, set.TimeMS, err)
	return err
}

// frozen is one shard at the instant of a snapshot.
type frozen struct {
	cursor log.Cursor
	view   *state.View
	dirty  uint64
}

// freeze takes the views and cursors of all shards at one instant: no append runs, so a group over
// several shards is in all of them or in none.
func (e *Engine) freeze() (fs []frozen, nowMS int64) {
	e.lock(e.all())
	defer e.unlock(e.all())
	for _, sh := range e.shards {
		fs = append(fs, frozen{cursor: sh.log.Tail(), view: sh.ks.View(), dirty: sh.dirty})
	}
	return fs, e.now()
}

func (e *Engine) closeViews(fs []frozen) {
	for i, f := range fs {
		sh := e.shards[i]
		sh.mu.Lock()
		f.view.Close()
		sh.mu.Unlock()
	}
}

func (e *Engine) writeSet() (set snapshot.Set, err error) {
	fs, now := e.freeze()
	id := max(uint64(now), 1)
	if last, err := e.lastSetID(); err != nil {
		return set, err
	} else if id <= last {
		id = last + 1
	}
	set = snapshot.Set{ID: snapshot.FormatID(id), TimeMS: now}
	err = e.writeShards(&set, id, fs)
	e.closeViews(fs)
	if err != nil {
		return set, err
	}
	return set, e.adopt(set, fs)
}

// lastSetID returns the largest id among the sets on disk.
func (e *Engine) lastSetID() (uint64, error) {
	ids, err := snapshot.List(e.fs, e.dir.Path())
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	var last uint64
	_, err = fmt.Sscanf(ids[len(ids)-1], "%x", &last)
	return last, err
}

func (e *Engine) writeShards(set *snapshot.Set, id uint64, fs []frozen) error {
	fsys, data := e.fs, e.dir.Path()
	tmp, err := snapshot.Begin(fsys, data, set.ID)
	if err != nil {
		return err
	}
	for i, f := range fs {
		h := snapshot.Header{
			Shard: i, Shards: len(fs), Set: id, Cursor: f.cursor, TimeMS: set.TimeMS, HashSeed: e.dir.HashSeed(),
		}
		info, err := snapshot.WriteShard(fsys, snapshot.ShardPath(tmp, i), h, viewSource(f.view))
		if err != nil {
			return errors.Join(err, fsys.RemoveAll(tmp))
		}
		set.Shards = append(set.Shards, snapshot.ShardSet{
			Generation: f.cursor.Generation, Offset: f.cursor.Offset, Keys: info.Keys, Bytes: info.Bytes,
		})
	}
	// The cursor must not name frames that a power loss could still take away.
	for _, sh := range e.shards {
		if err := sh.log.Sync(); err != nil {
			return errors.Join(err, fsys.RemoveAll(tmp))
		}
	}
	return snapshot.Publish(fsys, data, tmp, *set)
}

// viewSource emits what rebuilds the keys of a view.
func viewSource(v *state.View) snapshot.Source {
	return func(emit func(*effect.Effect) error, done func() error) (err error) {
		v.Rebuild(func(ef *effect.Effect, last bool) bool {
			if err = emit(ef); err == nil && last {
				err = done()
			}
			return err == nil
		})
		return err
	}
}

// adopt makes a published set the one that recovery starts from, and drops what it made unneeded.
func (e *Engine) adopt(set snapshot.Set, fs []frozen) error {
	old, _ := e.dir.Snapshot()
	if err := e.dir.SetSnapshot(set.ID, set.Cursors()); err != nil {
		return err
	}
	for i, sh := range e.shards {
		sh.mu.Lock()
		sh.dirty -= min(sh.dirty, fs[i].dirty)
		sh.mu.Unlock()
	}
	if _, err := e.dir.DropUnneeded(); err != nil {
		return err
	}
	if old != "" {
		return snapshot.Remove(e.fs, e.dir.Path(), old)
	}
	return nil
}

// Reload throws the keyspaces away and folds them again from disk (DEBUG RELOAD). With save, a
// snapshot is taken first.
func (e *Engine) Reload(save bool) error {
	if save {
		if err := e.Save(); err != nil {
			return err
		}
	}
	e.lock(e.all())
	defer e.unlock(e.all())
	if err := e.flush(e.all()); err != nil {
		return err
	}
	var rep Report
	return e.load(&rep, log.LimitWritten)
}
