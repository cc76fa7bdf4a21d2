package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// RestoreOptions say what to restore and where.
type RestoreOptions struct {
	FS   vfs.FS // nil: the operating system's
	From string // data directory, in use or copied; it is only read
	To   string // new data directory; must not exist or be empty
	// At is the cursor to restore each shard to: the first frame not to apply. nil: the latest.
	At []log.Cursor
	// DryRun only plans.
	DryRun bool
	// Now is the clock in unix ms; nil: the system's.
	Now func() int64
	// Progress is called now and then with the frames folded so far; may be nil.
	Progress func(frames uint64)
}

// Restored tells what Restore did, or would do.
type Restored struct {
	Set    string          `json:"set"` // snapshot set it starts from; empty: from the first frame
	Shards []RestoredShard `json:"shards"`
	Keys   int             `json:"keys"`
	Digest string          `json:"digest"` // as PREFIX.DIGEST "" tells it
}

// RestoredShard is one shard's part.
type RestoredShard struct {
	From   log.Cursor `json:"from"`   // where the log is read from
	To     log.Cursor `json:"to"`     // first frame not applied
	Frames uint64     `json:"frames"` // applied
	New    log.Cursor `json:"new"`    // cursor in the new directory
}

// Restore makes a new data directory with the state that another one had at a cursor: the newest
// snapshot set from which the cursor can be reached, and the frames from there. The new directory
// begins a generation of cause "restore" whose parent is the cursor. It is verified by loading it
// again.
func Restore(o RestoreOptions) (*Restored, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	src, _, err := log.OpenReadOnly(o.FS, o.From)
	if err != nil {
		return nil, fmt.Errorf("restore: reading %s: %w", o.From, err)
	}
	defer func() { _ = src.Close(false) }() // only read
	if err := checkEmpty(o.FS, o.To); err != nil {
		return nil, err
	}
	r := &restorer{o: o, src: src}
	if err := r.plan(); err != nil {
		return nil, err
	}
	if o.DryRun {
		return &r.result, nil
	}
	defer r.release()
	if err := r.fold(); err != nil {
		return nil, err
	}
	if err := r.write(); err != nil {
		return nil, errors.Join(err, o.FS.RemoveAll(o.To))
	}
	return &r.result, r.verify()
}

func checkEmpty(fsys vfs.FS, dir string) error {
	names, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(names) > 0 {
		return fmt.Errorf("restore: %s is not empty: name a new directory", dir)
	}
	return err
}

type restorer struct {
	o      RestoreOptions
	src    *log.Dir
	result Restored
	base   *snapshot.Set
	ks     []*state.Keyspace
	total  uint64
}

// plan chooses the targets and the newest set from which all of them can be reached.
func (r *restorer) plan() error {
	n := r.src.Shards()
	if r.o.At != nil && len(r.o.At) != n {
		return fmt.Errorf("restore: %s has %d shards: name a cursor for each (--at generation:offset, in shard order)", r.o.From, n)
	}
	for i := range n {
		to := r.latest(i)
		if r.o.At != nil {
			to = r.o.At[i]
		}
		r.result.Shards = append(r.result.Shards, RestoredShard{To: to})
	}
	ids, err := snapshot.List(r.o.FS, r.o.From)
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		set, err := snapshot.ReadSet(r.o.FS, r.o.From, id)
		if err != nil || len(set.Shards) != n {
			continue // an unreadable set is no base; an older one or the log may be
		}
		if r.reachable(set.Cursors()) == nil {
			r.base, r.result.Set = &set, set.ID
			return nil
		}
	}
	return r.planFromStart()
}

func (r *restorer) planFromStart() error {
	starts := make([]log.Cursor, r.src.Shards())
	for i := range starts {
		c, err := startOf(r.src.Log(i), nil)
		if err != nil {
			return fmt.Errorf("restore: no snapshot set leads to the cursor: %w", err)
		}
		starts[i] = c
	}
	return r.reachable(starts)
}

func (r *restorer) latest(i int) log.Cursor {
	l := r.src.Log(i)
	return log.Cursor{Generation: l.Generation(), Offset: l.Written()}
}

// reachable takes from as the cursors to read from, if every target lies at or behind its cursor
// in the same history and the frames between are on disk.
func (r *restorer) reachable(from []log.Cursor) error {
	for i := range from {
		s := &r.result.Shards[i]
		rd, err := r.open(i, from[i])
		if err == nil && !r.leadsTo(i, from[i], s.To) {
			err = log.ErrGone
		}
		if rd != nil {
			rd.Close()
		}
		if err != nil {
			return fmt.Errorf("restore: shard %d: %s can't be reached from %s: %w", i, s.To, from[i], err)
		}
		s.From = from[i]
	}
	return nil
}

// leadsTo reports whether to is at or after from in the history of shard i.
func (r *restorer) leadsTo(i int, from, to log.Cursor) bool {
	if from.Generation == to.Generation {
		return from.Offset <= to.Offset
	}
	parents := make(map[uint64]log.Lineage)
	for _, g := range r.src.Lineage(i) {
		parents[g.Generation] = g
	}
	for g, ok := parents[to.Generation]; ok; g, ok = parents[g.Parent] {
		if g.Parent == from.Generation {
			return from.Offset <= g.ParentOffset
		}
	}
	return false
}

func (r *restorer) open(i int, from log.Cursor) (*log.Reader, error) {
	return r.src.Log(i).NewReader(from, log.ReaderOptions{
		Limit: log.LimitEnd, End: r.result.Shards[i].To, Follow: true,
	})
}

// fold builds the keyspaces.
func (r *restorer) fold() error {
	for i := range r.result.Shards {
		ks := state.New(r.src.HashSeed())
		r.ks = append(r.ks, ks)
		ks.BeginBulk()
		if r.base != nil {
			p := snapshot.ShardPath(snapshot.Dir(r.o.From, r.base.ID), i)
			if err := loadSnapshot(r.o.FS, p, ks); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
		}
		if err := r.foldFrames(i, ks); err != nil {
			return fmt.Errorf("restore: shard %d: %w", i, err)
		}
		ks.EndBulk()
	}
	return nil
}

func (r *restorer) foldFrames(i int, ks *state.Keyspace) error {
	s := &r.result.Shards[i]
	rd, err := r.open(i, s.From)
	if err != nil {
		return err
	}
	defer rd.Close()
	var ef effect.Effect
	for {
		f, err := rd.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := FoldFrame(ks, f, &ef); err != nil {
			return err
		}
		s.Frames++
		r.total++
		if r.o.Progress != nil && r.total%(1<<20) == 0 {
			r.o.Progress(r.total)
		}
	}
	if at := rd.Cursor(); at != s.To {
		return fmt.Errorf("the log ends at %s, before %s", at, s.To)
	}
	return nil
}

// write makes the new directory: a fresh log, and the state as its first snapshot set.
func (r *restorer) write() error {
	origin := make([]log.Cursor, len(r.ks))
	for i := range origin {
		origin[i] = r.result.Shards[i].To
	}
	e, _, err := Open(Options{Now: r.o.Now, Log: log.Options{
		FS: r.o.FS, Dir: r.o.To, Shards: len(r.ks), HashSeed: r.src.HashSeed(), RestoredFrom: origin,
	}})
	if err != nil {
		return err
	}
	e.SetActiveExpire(false) // what was due then is restored as it was
	for i, sh := range e.shards {
		sh.mu.Lock()
		sh.ks.Release()
		sh.ks, e.keyspaces[i] = r.ks[i], r.ks[i]
		sh.mu.Unlock()
		r.result.Shards[i].New = sh.log.Tail()
	}
	r.result.Keys, r.result.Digest = digest(r.ks)
	r.ks = nil // they belong to e now
	return errors.Join(e.Save(), e.Close(true))
}

func digest(kss []*state.Keyspace) (keys int, text string) {
	var sum uint64
	for _, ks := range kss {
		n, d := ks.Digest(nil, 0)
		keys += n
		sum += d
	}
	return keys, command.FormatDigest(sum)
}

// verify loads the new directory once more, without opening it for writing.
func (r *restorer) verify() error {
	dir, _, err := log.OpenReadOnly(r.o.FS, r.o.To)
	if err != nil {
		return fmt.Errorf("restore: verifying %s: %w", r.o.To, err)
	}
	defer func() { _ = dir.Close(false) }() // only read
	id, cursors := dir.Snapshot()
	for i := range cursors {
		ks, _, err := loadShard(r.o.FS, dir, i, id, &cursors[i], log.LimitWritten, settings{limits: state.DefaultLimits()})
		r.ks = append(r.ks, ks)
		if err != nil {
			return fmt.Errorf("restore: verifying %s: %w", r.o.To, err)
		}
	}
	if keys, sum := digest(r.ks); keys != r.result.Keys || sum != r.result.Digest {
		return fmt.Errorf("restore: %s has %d keys with digest %s, restored were %d with %s: do not use it",
			r.o.To, keys, sum, r.result.Keys, r.result.Digest)
	}
	return nil
}

func (r *restorer) release() {
	for _, ks := range r.ks {
		ks.Release()
	}
}
