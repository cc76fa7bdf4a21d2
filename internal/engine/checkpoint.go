package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// Save writes and publishes a snapshot set and drops the log segments that neither it nor the feed
// window needs. It returns when the set is durable. Writers go on meanwhile.
func (e *Engine) Save() error { return e.saveNow(false) }

// SaveAfter is Save that first waits for a snapshot being written.
func (e *Engine) SaveAfter() error { return e.saveNow(true) }

func (e *Engine) saveNow(wait bool) error {
	if err := e.checkpoint.begin(SaveData, wait); err != nil {
		return err
	}
	return e.save()
}

// BGSave starts a snapshot and returns at once.
func (e *Engine) BGSave(kind SaveKind) error {
	if err := e.checkpoint.begin(kind, false); err != nil {
		return err
	}
	go func() { _ = e.save() }() // logged, and in SaveStatus
	return nil
}

func (e *Engine) save() error {
	set, err := e.contained()
	e.checkpoint.end(&set, err)
	e.collect()
	s := e.SaveStatus()
	switch {
	case err == nil:
		e.logger.Info("snapshot published", "set", set.ID, "keys", set.Keys(), "bytes", set.Bytes(), "ms", s.ByKind[s.Kind].TookMS)
	case !errors.Is(err, ErrClosed):
		e.logger.Error("snapshot failed: the one before stays in force", "error", err, "failures", s.Failures)
	}
	return err
}

// contained is writeSet, of which a panic is a failed snapshot: it has only read.
func (e *Engine) contained() (set snapshot.Set, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("engine: panic while a snapshot was written: %v", p)
			e.logger.Error("panic while a snapshot was written", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return e.writeSet()
}

// frozen is one shard at the instant of a snapshot.
type frozen struct {
	cursor log.Cursor
	view   *state.View
	dirty  uint64
	grown  int64
}

// freeze takes the views and cursors of all shards at one instant: no append runs, so a group over
// several shards is in all of them or in none.
func (e *Engine) freeze() (fs []frozen, nowMS int64) {
	e.lock(e.all())
	defer e.unlock(e.all())
	began := time.Now()
	defer func() { e.checkpoint.held(time.Since(began)) }()
	for _, sh := range e.shards {
		fs = append(fs, frozen{cursor: sh.log().Tail(), view: sh.ks.View(), dirty: sh.dirty, grown: sh.grown()})
	}
	return fs, e.now()
}

func (e *Engine) closeView(i int, f *frozen) {
	sh := e.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	began := time.Now()
	f.view.Close()
	e.checkpoint.held(time.Since(began))
}

// held takes note of how long a snapshot has held a shard's lock.
func (c *checkpointer) held(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Held = max(c.status.Held, d)
}

func (e *Engine) writeSet() (set snapshot.Set, err error) {
	if err := e.brokenErr(); err != nil {
		return set, err
	}
	fs, now := e.freeze()
	defer func() {
		for i := range fs {
			e.closeView(i, &fs[i]) // closing twice is allowed
		}
	}()
	total := 0
	for i := range fs {
		total += fs[i].view.Len()
	}
	e.checkpoint.expect(total)
	set, id, err := e.nextSet(now)
	if err != nil {
		return set, err
	}
	if e.opt.DigestSets {
		set.Digest = digestOf(fs)
	}
	if err = e.writeShards(&set, id, fs); err != nil {
		return set, err
	}
	return set, e.adopt(set, fs)
}

// digestOf is the digest of all keys of the views.
func digestOf(fs []frozen) string {
	sum := uint64(0)
	for i := range fs {
		_, d := fs[i].view.Digest(nil, 0)
		sum += d
	}
	return command.FormatDigest(sum)
}

// nextSet names a set of the state at a time (unix ms) that is to be written.
func (e *Engine) nextSet(now int64) (set snapshot.Set, id uint64, err error) {
	id = max(uint64(now), 1) //nolint:gosec // not negative
	last, err := e.lastSetID()
	if id <= last {
		id = last + 1
	}
	return snapshot.Set{ID: snapshot.FormatID(id), TimeMS: now}, id, err
}

// expect takes note of how many keys the running snapshot will write.
func (c *checkpointer) expect(keys int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.KeysTotal = int64(keys)
}

// lastSetID returns the largest id among the sets on disk.
func (e *Engine) lastSetID() (uint64, error) {
	ids, err := snapshot.List(e.fs, e.Dir().Path())
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	var last uint64
	_, err = fmt.Sscanf(ids[len(ids)-1], "%x", &last)
	return last, err
}

func (e *Engine) writeShards(set *snapshot.Set, id uint64, fs []frozen) error {
	fsys, data := e.fs, e.Dir().Path()
	tmp, err := snapshot.Begin(fsys, data, set.ID)
	if err != nil {
		return err
	}
	for i := range fs {
		f := &fs[i]
		h := snapshot.Header{
			Shard: i, Shards: len(fs), Set: id, Cursor: f.cursor, TimeMS: set.TimeMS, HashSeed: e.Dir().HashSeed(),
		}
		var info snapshot.Info
		var err error
		inBackground(func(giveWay func()) {
			info, err = snapshot.WriteShard(fsys, snapshot.ShardPath(tmp, i), h, e.checkpoint.source(f.view, giveWay))
		})
		e.closeView(i, f)
		if err != nil {
			return errors.Join(err, fsys.RemoveAll(tmp))
		}
		set.Shards = append(set.Shards, snapshot.ShardSet{
			Generation: f.cursor.Generation, Offset: f.cursor.Offset,
			Keys: info.Keys, Bytes: info.Bytes, FrameBytes: info.FrameBytes,
		})
	}
	// The cursor must not name frames that a power loss could still take away.
	for _, sh := range e.shards {
		if err := sh.log().Sync(); err != nil {
			return errors.Join(err, fsys.RemoveAll(tmp))
		}
	}
	return snapshot.Publish(fsys, data, tmp, *set)
}

// giveWayEvery is after how many effects of a snapshot the thread gives way.
const giveWayEvery = 16

// source emits what rebuilds the keys of a view, until the engine closes.
func (c *checkpointer) source(v *state.View, giveWay func()) snapshot.Source {
	return func(emit func(*effect.Effect) error, done func() error) (err error) {
		n := 0
		v.Rebuild(func(ef *effect.Effect, last bool) bool {
			if n++; n%giveWayEvery == 0 {
				giveWay()
			}
			if err = emit(ef); err == nil && last {
				c.progress.Add(1)
				err = done()
			}
			if err == nil && c.cancel.Load() {
				err = ErrClosed
			}
			return err == nil
		})
		return err
	}
}

// adopt makes a published set the one that recovery starts from, and drops what it made unneeded.
func (e *Engine) adopt(set snapshot.Set, fs []frozen) error {
	if err := e.Dir().SetSnapshot(set.ID, set.Cursors()); err != nil {
		return err
	}
	for i, sh := range e.shards {
		sh.mu.Lock()
		sh.dirty -= min(sh.dirty, fs[i].dirty)
		sh.setGrown(max(0, sh.grown()-fs[i].grown))
		sh.mu.Unlock()
	}
	// The set is in force: that something old is still there is no failure of it.
	e.checkpoint.tidy()
	return nil
}

// Reload throws the keyspaces away and folds them again from disk (DEBUG RELOAD). With save, a
// snapshot is taken first.
func (e *Engine) Reload(save bool) error {
	if save {
		if err := e.SaveAfter(); err != nil {
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
