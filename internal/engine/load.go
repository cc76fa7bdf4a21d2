package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// load folds the newest snapshot set and the log behind it, up to limit, into fresh keyspaces, one
// goroutine a shard. REQUIRES: nobody else uses the shards.
func (e *Engine) load(rep *Report, limit log.Limit) error {
	id, cursors := e.Dir().Snapshot()
	rep.Snapshot = id
	if id != "" {
		if _, err := snapshot.ReadSet(e.fs, e.Dir().Path(), id); err != nil {
			return setErr(id, err)
		}
	}
	fresh := make([]*state.Keyspace, len(e.shards))
	errs := make([]error, len(e.shards))
	behind := make([]replayed, len(e.shards))
	var wg sync.WaitGroup
	for i := range e.shards {
		wg.Go(func() {
			var from *log.Cursor
			if id != "" {
				from = &cursors[i]
			}
			fresh[i], behind[i], errs[i] = loadShard(e.fs, e.Dir(), i, id, from, log.ReaderOptions{Limit: limit, Follow: true}, e.settings())
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, ks := range fresh {
			if ks != nil {
				ks.Release()
			}
		}
		return err
	}
	for i, ks := range fresh {
		if old := e.keyspaces[i]; old != nil {
			old.Release()
		}
		sh := e.shards[i]
		e.keyspaces[i], sh.ks = ks, ks
		sh.dirty = behind[i].frames
		sh.setGrown(behind[i].bytes)
		rep.Keys += ks.Len()
		rep.Frames += behind[i].frames
	}
	return nil
}

// setErr is the error for the snapshot set on record, which can't be loaded. A file that is missing is damage.
func setErr(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", snapshot.ErrCorrupt, err)
	}
	return fmt.Errorf("engine: snapshot set %s, and the log before it may be gone: %w", id, err)
}

// replayed is the log behind a snapshot.
type replayed struct {
	frames uint64
	bytes  int64
}

// loadShard folds one shard: the snapshot, then the log from its cursor to the written tail.
func loadShard(fsys vfs.FS, dir *log.Dir, i int, set string, from *log.Cursor, o log.ReaderOptions, with settings) (ks *state.Keyspace, behind replayed, err error) {
	ks = state.New(dir.HashSeed())
	with.give(ks)
	if from == nil && dir.Log(i).Appended() == 0 && len(dir.Lineage(i)) == 1 {
		return ks, behind, nil // just created
	}
	ks.BeginBulk()
	if from != nil {
		p := snapshot.ShardPath(snapshot.Dir(dir.Path(), set), i)
		h, err := loadSnapshot(fsys, p, ks)
		if err == nil {
			err = h.Check(set, i, dir.Shards(), *from, dir.HashSeed())
		}
		if err != nil {
			return ks, behind, setErr(set, err)
		}
		if few(dir.Log(i), *from, ks.Len()) {
			ks.EndBulk()
		}
	}
	behind, err = replay(dir.Log(i), from, o, ks)
	if err != nil {
		return ks, behind, err
	}
	ks.EndBulk()
	return ks, behind, nil
}

// few reports whether the frames from a cursor on are so few beside the keys that it is better to fold them one by one than to sort all keys in
// the end.
func few(l *log.Log, from log.Cursor, keys int) bool {
	tail := l.Tail()
	return tail.Generation == from.Generation && tail.Offset-from.Offset < uint64(keys)/8
}

func loadSnapshot(fsys vfs.FS, path string, ks *state.Keyspace) (snapshot.Header, error) {
	h, _, err := snapshot.Load(fsys, path, func(ef *effect.Effect) error {
		_, err := ks.Fold(ef)
		return err
	})
	return h, err
}

// replay folds a shard's frames from a cursor (nil: the very first) on, across generations, as far as o says.
func replay(l *log.Log, from *log.Cursor, o log.ReaderOptions, ks *state.Keyspace) (behind replayed, err error) {
	start, err := startOf(l, from)
	if err != nil {
		return behind, err
	}
	r, err := l.NewReader(start, o)
	if err != nil {
		return behind, fmt.Errorf("engine: shard %d from %s: %w", l.Shard(), start, err)
	}
	defer r.Close()
	var ef effect.Effect
	var ahead Lookahead
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return behind, nil
		}
		if err != nil {
			return behind, err
		}
		ahead.Before(r, ks)
		if err := FoldFrame(ks, f, &ef); err != nil {
			return behind, err
		}
		behind.frames++
		behind.bytes += int64(log.Overhead + len(f.Payload))
	}
}

// startOf returns from or, if there is no snapshot to start from, the first frame there ever was.
// A log that has lost its beginning is not taken for a shorter one.
func startOf(l *log.Log, from *log.Cursor) (log.Cursor, error) {
	if from != nil {
		return *from, nil
	}
	c, first := l.Oldest(), l.Lineage()[0]
	if c.Offset != 0 || c.Generation != first.Generation || first.Parent != 0 {
		return c, fmt.Errorf("engine: shard %d: the log begins at %s and no snapshot is on record: the frames before are missing", l.Shard(), c)
	}
	return c, nil
}

// FoldFrame folds one stored frame; ef is scratch.
func FoldFrame(ks *state.Keyspace, f *log.Frame, ef *effect.Effect) error {
	if err := effect.Decode(f.Payload, ef); err != nil {
		return fmt.Errorf("engine: frame %s: %w", f.Cursor, err)
	}
	if _, err := ks.Fold(ef); err != nil {
		return fmt.Errorf("engine: frame %s: %w", f.Cursor, err)
	}
	return nil
}
