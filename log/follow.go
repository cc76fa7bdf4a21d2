package log

import (
	"errors"
	"fmt"
	"path"
	"sort"

	"github.com/kevydb/kevy/internal/vfs"
)

// A directory that follows has the history of another store: its frames come by AppendRaw, its generations by
// FollowGenerations, and it begins none itself. After a crash it goes on in its generation, from where its log ends: the store
// that it follows has what was lost. What is cut there is cut as ever.

// follows reports whether the directory goes on as a follower.
func (d *Dir) follows() bool { return d.man.Follower && d.o.Follower }

// Follower reports whether the directory is on record as one that follows.
func (d *Dir) Follower() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.man.Follower
}

// Follow puts on record that the directory follows from now on.
//
// REQUIRES: nothing is appended any more but by AppendRaw.
func (d *Dir) Follow() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil || d.man.Follower {
		return err
	}
	m := d.man.clone()
	m.Follower = true
	_, err := d.publish(m)
	return err
}

// Promote begins a generation of cause promotion on every shard, and ends that the directory follows. It requires and
// fails as NewGeneration.
func (d *Dir) Promote() error {
	return d.begin(nil, func(_ int, l *Log, current uint64) (Lineage, error) {
		return d.next(current, CausePromotion, l.Tail()), nil
	}, func(m *manifest) { m.Follower = false })
}

// FollowGenerations begins the generations that the store which is followed has begun, one a shard; with b, which may be nil, behind or amid a
// group: see Bridge. Each must fork off the shard's current generation where b.Before, or else the log, ends; otherwise nothing has changed, unless b
// has been called: then the error is sticky. Else it requires and fails as BridgeGeneration.
func (d *Dir) FollowGenerations(lineage []Lineage, b *Bridge) error {
	if len(lineage) != len(d.logs) {
		return fmt.Errorf("log: %d generations for %d shards", len(lineage), len(d.logs))
	}
	for i, l := range d.logs {
		g, t := lineage[i], l.Tail()
		if g.Parent != t.Generation || g.ParentOffset < t.Offset || g.Generation <= t.Generation || g.Generation > maxGeneration {
			return strayed(i, g, t)
		}
	}
	return d.begin(b, func(i int, l *Log, _ uint64) (Lineage, error) {
		g, t := lineage[i], l.Tail()
		if g.ParentOffset != t.Offset {
			return g, strayed(i, g, t)
		}
		return g, nil
	}, nil)
}

func strayed(shard int, g Lineage, tail Cursor) error {
	return fmt.Errorf("log: shard %d: generation %d forks off at %d:%d, the log ends at %v", shard, g.Generation, g.Parent, g.ParentOffset, tail)
}

// Restored returns the lineage that each shard has if its log begins anew with a state from elsewhere: one generation of cause restore with the cursor
// from as its parent, greater than all that the shard has had.
func (d *Dir) Restored(from Cursor) [][]Lineage {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([][]Lineage, len(d.logs))
	for i := range out {
		out[i] = []Lineage{d.next(max(d.man.Shards[i].current(), from.Generation), CauseRestore, from)}
	}
	return out
}

// Base is a state from which a log goes on, instead of from its own: a snapshot set and where it stands.
type Base struct {
	HashSeed uint64
	LastTxn  uint64 // new transaction ids go on above it
	Set      string // the snapshot set, which is in its place, durably
	TimeMS   int64  // unix ms of the set: frames appended behind it are not older
	Cursors  []Cursor
	Lineage  [][]Lineage // of each shard, up to the generation of its cursor
	// Aside, if there are any, has a cursor for each shard from which on the old frames are kept, in the shard's cut directory, in
	// copies of their segments. A shard whose cursor is the tail has none.
	Aside []Cursor
}

func (b *Base) validate(shards int) error {
	if b.Set == "" || len(b.Cursors) != shards || len(b.Lineage) != shards || b.Aside != nil && len(b.Aside) != shards {
		return fmt.Errorf("log: base %q of %d cursors and %d lineages for %d shards", b.Set, len(b.Cursors), len(b.Lineage), shards)
	}
	for i, lin := range b.Lineage {
		if n := len(lin); n == 0 || lin[n-1].Generation != b.Cursors[i].Generation {
			return fmt.Errorf("log: base %q: the lineage of shard %d does not end with the generation of %v", b.Set, i, b.Cursors[i])
		}
	}
	return nil
}

// Replace closes d and opens the directory again, as a follower, with another base: its own frames, segments and lineage are no part of it
// any more. A crash at any time leaves the one or the other. Readers of d end with ErrClosed. It returns the file names of what was kept aside.
//
// After an error d is closed all the same, unless the base was refused.
//
// REQUIRES: no appends are running.
func (d *Dir) Replace(b *Base) (next *Dir, aside []string, err error) {
	if err := b.validate(len(d.logs)); err != nil {
		return nil, nil, err
	}
	return d.reopen(func() ([]string, error) { return d.replace(b) })
}

// reopen closes d, changes the directory and opens it again, as a follower.
func (d *Dir) reopen(change func() (aside []string, err error)) (next *Dir, aside []string, err error) {
	o := d.o
	o.Policy, o.Follower = d.logs[0].Policy(), true
	o.KeepBytes, o.KeepTime = d.keepBytes.Load(), d.keepTimeNow()
	d.mu.Lock()
	lock := d.lock
	d.lock = nil // it goes on to next
	d.mu.Unlock()
	next = newDir(o)
	next.lock = lock
	if err = d.Close(true); err == nil {
		if aside, err = change(); err == nil {
			_, err = next.open()
		}
	}
	if err != nil {
		for _, l := range next.logs {
			_ = l.close() // err is the news
		}
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, aside, err
	}
	for _, l := range next.logs {
		l.done = make(chan struct{})
		go l.commit()
	}
	return next, aside, nil
}

// replace makes the files and publishes the manifest of a new base in a closed directory. Before it makes segments it puts on record
// that they are no part of the log yet.
func (d *Dir) replace(b *Base) (aside []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	announced := d.man.clone()
	for i, l := range d.logs {
		announced.Shards[i].Unborn = l.w.seg.number + 2
		if b.Aside != nil {
			names, err := l.copyAside(b.Aside[i])
			aside = append(aside, names...)
			if err != nil {
				return aside, err
			}
		}
	}
	if _, err := d.publish(announced); err != nil {
		return aside, err
	}
	m := announced.clone()
	m.HashSeed, m.Follower, m.Clean, m.Floors = b.HashSeed, true, true, nil
	m.Snapshot = &snapshotRef{b.Set, append([]Cursor(nil), b.Cursors...)}
	for i := range d.logs {
		s := &m.Shards[i]
		if err := d.makeBase(i, s.Unborn, b); err != nil {
			return aside, err
		}
		*s = shardManifest{FirstLive: s.Unborn, End: &shardEnd{s.Unborn, headerBytes, b.Cursors[i]}, Lineage: append([]Lineage(nil), b.Lineage[i]...)}
	}
	d.lastTxn = max(d.lastTxn, b.LastTxn)
	_, err = d.publish(m)
	return aside, err
}

// makeBase makes the first segment of a shard for a new base. It goes on after one that is not there, as after those that
// retention has dropped.
func (d *Dir) makeBase(shard int, number uint64, b *Base) error {
	c, lin, dir := b.Cursors[shard], b.Lineage[shard], d.logs[shard].path
	h := segmentHeader{
		shard: shard, number: number, generation: c.Generation, base: c.Offset, parent: c.Generation, parentOff: c.Offset,
		prev: number - 1, prevSize: headerBytes, cause: lin[len(lin)-1].Cause, createdMS: d.o.Now(), lastTimeMS: b.TimeMS,
	}
	if err := vfs.RemoveIfThere(d.o.FS, path.Join(dir, segmentName(number))); err != nil {
		return err
	}
	seg, err := createSegment(d.o.FS, dir, h, headerBytes)
	if err != nil {
		return err
	}
	if err := seg.file.Close(); err != nil {
		return err
	}
	return lowerMark(d.o.FS, dir) // one of another life of this shard must not be held against the new one
}

// copyAside copies the segments with frames from c on, as far as they are on disk, durably, and returns the copies' names.
// REQUIRES: the log is closed.
func (l *Log) copyAside(c Cursor) (names []string, err error) {
	if l.Tail() == c {
		return nil, nil
	}
	segs := l.segments()
	first := sort.Search(len(segs), func(i int) bool { return segs[i].startsBehind(c) }) - 1
	dir := path.Join(l.path, "cut")
	for _, s := range segs[max(0, first):] { // of frames that retention has dropped there may be some left
		if s.end.Load() <= headerBytes {
			continue
		}
		f, err := l.fs.Open(s.path())
		if err != nil {
			return names, err
		}
		name := path.Join(dir, fmt.Sprintf("%s-from-%d-%d", path.Base(s.path()), c.Generation, c.Offset))
		_, err = keepAside(l.fs, f, 0, s.diskBytes(), l.path, dir, name)
		if err = errors.Join(err, f.Close()); err != nil {
			return names, fmt.Errorf("log: keeping %s aside: %w", s.path(), err)
		}
		names = append(names, name)
	}
	return names, nil
}

// Before is Before on the log's lineage.
func (l *Log) Before(from, to Cursor) bool { return Before(*l.lineage.Load(), from, to) }

// Before reports whether the history of cursor to, on a lineage, goes through cursor from: it is the same, or the frames from there on
// lead to it.
func Before(lineage []Lineage, from, to Cursor) bool {
	for i := len(lineage) - 1; i >= 0; i-- {
		g := &lineage[i]
		if g.Generation != to.Generation {
			continue
		}
		if g.Generation == from.Generation {
			return from.Offset <= to.Offset
		}
		to = Cursor{g.Parent, g.ParentOffset}
	}
	return false
}
