package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
)

// Dir is an open data directory: the logs of all shards and the manifest. Safe for concurrent use.
type Dir struct {
	o        Options
	lock     io.Closer // nil: read-only
	readOnly bool
	logs     []*Log
	hashSeed uint64
	lastTxn  uint64 // highest transaction id seen at Open

	rolling sync.Mutex // held while a segment is ended
	cache   chunkCache // of sealed segments

	keepBytes atomic.Int64 // see Options
	keepTime  atomic.Int64 // nanoseconds

	keeper  keeper
	sealing sync.Mutex           // held while segments are sealed; taken before any other lock
	blocks  func() *BlockEncoder // for sealing

	mu     sync.Mutex // guards the manifest, in memory and on disk; taken before any lock of a Log
	man    *manifest
	closed bool
}

// Path returns the directory.
func (d *Dir) Path() string { return d.o.Dir }

// Shards returns how many shards the directory has.
func (d *Dir) Shards() int { return len(d.logs) }

// HashSeed returns the seed of the hash that assigns keys to shards.
func (d *Dir) HashSeed() uint64 { return d.hashSeed }

// Log returns the log of a shard, 0 <= i < Shards().
func (d *Dir) Log(i int) *Log { return d.logs[i] }

// LastTxn returns the highest transaction id ever seen, cut ones included: new ones go on above it.
func (d *Dir) LastTxn() uint64 {
	last := d.lastTxn
	for _, l := range d.logs {
		last = max(last, l.LastTxn())
	}
	return last
}

// Lineage returns the generations of a shard that are on record, the current one last.
func (d *Dir) Lineage(shard int) []Lineage { return d.logs[shard].Lineage() }

// SetPolicy changes the policy of all shards.
func (d *Dir) SetPolicy(p Policy) {
	for _, l := range d.logs {
		l.SetPolicy(p)
	}
}

// Err returns the first sticky error of a shard's log.
func (d *Dir) Err() error {
	for _, l := range d.logs {
		if err := l.Err(); err != nil {
			return fmt.Errorf("shard %d: %w", l.shard, err)
		}
	}
	return nil
}

// publish makes m the manifest. A full disk is ErrDiskFull. REQUIRES: d.mu.
func (d *Dir) publish(m *manifest) (replaced, error) {
	m.LastTxn = d.LastTxn()
	state, err := writeManifest(d.o.FS, d.o.Dir, m)
	if err == nil {
		d.man = m
		return state, nil
	}
	if state == untouched && isFull(err) {
		err = fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return state, err
}

// Snapshot returns the newest snapshot set on record and the cursor of each shard in it; "" when
// there is none.
func (d *Dir) Snapshot() (id string, cursors []Cursor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.man.Snapshot == nil {
		return "", nil
	}
	return d.man.Snapshot.ID, append([]Cursor(nil), d.man.Snapshot.Cursors...)
}

// SetSnapshot puts the newest snapshot set on record, "" for none. When it fails, either the old
// or the new one is on record after a restart.
//
// REQUIRES: the set is durable, and so is the log up to the cursors (Sync): otherwise the set
// would hold what a power loss takes from the log.
func (d *Dir) SetSnapshot(id string, cursors []Cursor) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return err
	}
	if id != "" && len(cursors) != len(d.logs) {
		return fmt.Errorf("log: snapshot set %q has %d cursors for %d shards", id, len(cursors), len(d.logs))
	}
	m := d.man.clone()
	m.Snapshot = nil
	if id != "" {
		m.Snapshot = &snapshotRef{id, append([]Cursor(nil), cursors...)}
	}
	_, err := d.publish(m)
	return err
}

func (d *Dir) writable() error {
	switch {
	case d.readOnly:
		return ErrReadOnly
	case d.closed:
		return ErrClosed
	}
	return nil
}

// NewGeneration begins a new generation on every shard, at offset 0, as the child of the current
// one at its tail. Everything appended is made durable first.
//
// REQUIRES: no appends are running (the caller holds all shards' locks), no group over several
// shards is unsettled.
//
// On ErrDiskFull nothing has changed. Any other error is sticky on all shards: on disk, the old
// or the new generation may be the current one.
func (d *Dir) NewGeneration(cause Cause) error { return d.BridgeGeneration(cause, nil) }

// BridgeGeneration is NewGeneration behind or amid a group; see Bridge. On ErrDiskFull without a sticky error Before has not been called.
func (d *Dir) BridgeGeneration(cause Cause, b *Bridge) error {
	return d.begin(b, func(_ int, l *Log, current uint64) (Lineage, error) {
		return d.next(current, cause, l.Tail()), nil
	}, nil)
}

// next is a generation, greater than current, that forks off at a cursor now.
func (d *Dir) next(current uint64, cause Cause, at Cursor) Lineage {
	now := d.o.Now()
	return Lineage{Generation: newGeneration(now, d.o.Rand(), current), Cause: cause, Parent: at.Generation, ParentOffset: at.Offset, TimeMS: now}
}

// begin begins the generations that lineage names, on every shard. change, if there is one, is made to the manifest that names them.
func (d *Dir) begin(b *Bridge, lineage func(i int, l *Log, current uint64) (Lineage, error), change func(*manifest)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return err
	}
	d.rolling.Lock()
	defer d.rolling.Unlock()
	for _, l := range d.logs {
		l.smu.Lock()
		l.wmu.Lock()
	}
	err := d.newGeneration(b, lineage, change)
	for _, l := range d.logs {
		l.wmu.Unlock()
		l.smu.Unlock()
	}
	return err
}

func (d *Dir) newGeneration(b *Bridge, lineage func(int, *Log, uint64) (Lineage, error), change func(*manifest)) error {
	m := d.man.clone()
	made, err := d.room(m)
	if err != nil {
		return d.undo(made, err)
	}
	if b != nil {
		d.before(b)
	}
	begun := make([]Lineage, len(d.logs))
	for i, l := range d.logs {
		if begun[i], err = lineage(i, l, m.Shards[i].current()); err == nil {
			continue
		}
		if b != nil {
			return d.failAll("new generation", err) // what has been appended can't be taken back
		}
		return d.unmake(made, err)
	}
	if change != nil {
		change(m)
	}
	err = parallel(len(d.logs), func(i int) error {
		l, s := d.logs[i], &m.Shards[i]
		h := l.forked(begun[i])
		s.Lineage = append(s.Lineage, h.lineage())
		err := l.complete(made[i], h)
		if err == nil && b != nil && b.After != nil {
			err = l.writeSecond(made[i], b.After)
		}
		return err
	})
	if err == nil && b != nil {
		err = d.settleAll()
	}
	if err != nil && b != nil {
		return d.failAll("new generation", err)
	}
	if err != nil {
		return d.undo(made, err)
	}
	if state, err := d.publish(m); err != nil {
		if b == nil && state == untouched && isFull(err) {
			return d.undo(made, err)
		}
		return d.failAll("new generation", err)
	}
	for i, l := range d.logs {
		if err := l.beginGeneration(made[i], m.Shards[i].Lineage); err != nil {
			return d.failAll("new generation", err)
		}
	}
	d.kickKeeper()
	return nil
}

// room makes everything appended durable, and takes the disk space for new generations: the files of the next segments, and as
// much as a manifest like m needs. After an error, what was made is still to be undone.
func (d *Dir) room(m *manifest) (made []*nextSegment, err error) {
	made = make([]*nextSegment, len(d.logs))
	if err := d.settleAll(); err != nil {
		return made, err
	}
	err = parallel(len(d.logs), func(i int) (err error) {
		made[i], err = d.logs[i].openNext()
		return err
	})
	if err != nil {
		return made, err
	}
	if err = reserveManifest(d.o.FS, d.o.Dir, m); isFull(err) {
		err = fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return made, err
}

// undo removes segments that did not become part of the log. Only a full disk can be undone, where
// no shard has failed.
func (d *Dir) undo(made []*nextSegment, err error) error {
	if !errors.Is(err, ErrDiskFull) || d.Err() != nil {
		return d.failAll("new generation", err)
	}
	return d.unmake(made, err)
}

// unmake removes segments that did not become part of the log, and returns err, which is the reason.
func (d *Dir) unmake(made []*nextSegment, err error) error {
	for i, n := range made {
		if n == nil {
			continue
		}
		_ = n.file.Close() // it goes away
		if err := d.logs[i].dropNext(n.seg.path()); err != nil {
			return d.failAll("removal of a half-made generation", err)
		}
	}
	return err
}

func (d *Dir) failAll(op string, err error) error {
	for _, l := range d.logs {
		_ = l.fail(op, err) // returned here once for all
	}
	return &failedError{op, err}
}

// beginGeneration makes next the first segment of the new current generation. REQUIRES: smu, wmu,
// everything durable, the manifest published.
func (l *Log) beginGeneration(next *nextSegment, lineage []Lineage) error {
	lin := append([]Lineage(nil), lineage...)
	l.lineage.Store(&lin)
	err := l.use(next, 0)
	l.marks.mu.Lock()
	l.marks.hold = noHold
	l.marks.mu.Unlock()
	l.marks.advance(l.gen.Load())
	l.mu.Lock()
	l.w.bytes = 0
	l.bytes.Store(0)
	l.win.begin(indexEntry{}, indexEntry{})
	l.enc.reset(l.shard, Cursor{next.seg.generation, 0}, l.enc.time)
	l.w.tail.off = 0
	l.gen.Store(newGenerationAt(next.seg.generation, 0))
	l.mu.Unlock()
	l.admit()
	l.marks.wakeAll()
	return err
}

// Close ends the use of the directory. With clean, everything is made durable first and the
// manifest records where each shard ended, so that the next Open goes on there; the error then is that
// of the first step that failed, and the directory counts as not closed cleanly. Without, Close is
// the end of the process as far as the directory is concerned. Readers get errors from then on.
//
// REQUIRES: no appends are running.
func (d *Dir) Close(clean bool) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock() // the keeper or a committer may be waiting for it
	d.stopKeeper()
	for _, l := range d.logs {
		if l.done != nil {
			close(l.quit)
			<-l.done
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if clean && !d.readOnly {
		err = d.closeClean()
	}
	for _, l := range d.logs {
		err = errors.Join(err, l.close())
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

func (d *Dir) closeClean() error {
	m := d.man.clone()
	m.Clean = true
	for i, l := range d.logs {
		end, err := l.finish()
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		m.Shards[i].End = end
	}
	_, err := d.publish(m)
	return err
}

// finish makes everything durable, gives the space reserved ahead back and returns the end.
func (l *Log) finish() (*shardEnd, error) {
	l.smu.Lock()
	defer l.smu.Unlock()
	l.wmu.Lock()
	defer l.wmu.Unlock()
	if err := l.settle(); err != nil {
		return nil, err
	}
	s := l.w.seg
	end := s.end.Load()
	if err := l.w.file.Truncate(end); err != nil {
		return nil, l.fail("truncation of "+s.path(), err)
	}
	l.w.alloc = end
	l.limit.Store(closedLimit)
	if err := l.w.file.Sync(); err != nil {
		return nil, l.fail("sync", &syncError{s.path(), err})
	}
	return &shardEnd{s.number, end, l.Tail()}, nil
}

// close closes the files.
func (l *Log) close() error {
	l.shut(ErrClosed)
	l.smu.Lock()
	defer l.smu.Unlock()
	l.wmu.Lock()
	defer l.wmu.Unlock()
	var err error
	if l.w.file != nil {
		l.w.handle.release()
		l.w.file = nil
	}
	if l.markFile != nil {
		err = l.markFile.Close()
		l.markFile = nil
	}
	return err
}

// parallel calls f for 0..n-1, at the same time: most of what it is used for is waiting for the disk.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// create makes the files of a new directory and publishes its manifest: that of an empty store that
// was closed cleanly.
func create(o *Options) (*manifest, error) {
	m := &manifest{Version: manifestVersion, HashSeed: o.HashSeed, Clean: true}
	for m.HashSeed == 0 {
		m.HashSeed = o.Rand()
	}
	for i := range o.Shards {
		dir := shardDir(o.Dir, i)
		if err := o.FS.MkdirAll(dir); err != nil {
			return nil, err
		}
		h := segmentHeader{
			shard: i, number: 1, generation: newGeneration(o.Now(), o.Rand(), 0),
			cause: CauseCreate, createdMS: o.Now(),
		}
		if o.RestoredFrom != nil {
			c := o.RestoredFrom[i]
			h.cause, h.parent, h.parentOff = CauseRestore, c.Generation, c.Offset
			h.generation = newGeneration(o.Now(), o.Rand(), c.Generation)
		}
		next, err := createSegment(o.FS, dir, h, headerBytes)
		if err != nil {
			return nil, err
		}
		if err := next.file.Close(); err != nil {
			return nil, err
		}
		m.Shards = append(m.Shards, shardManifest{
			FirstLive: 1,
			End:       &shardEnd{1, headerBytes, h.start()},
			Lineage:   []Lineage{h.lineage()},
		})
	}
	_, err := writeManifest(o.FS, o.Dir, m)
	return m, err
}

// lineage is the generation as the header tells it.
func (h *segmentHeader) lineage() Lineage {
	return Lineage{Generation: h.generation, Cause: h.cause, Parent: h.parent, ParentOffset: h.parentOff, TimeMS: h.createdMS}
}

// prepare makes the directory itself, durably, and locks it.
func prepare(o *Options) (io.Closer, error) {
	var missing []string
	for dir := path.Clean(o.Dir); ; dir = path.Dir(dir) {
		if _, err := o.FS.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == path.Dir(dir) {
			break
		}
		missing = append(missing, dir)
	}
	if len(missing) > 0 {
		if err := o.FS.MkdirAll(o.Dir); err != nil {
			return nil, err
		}
	}
	for _, dir := range missing {
		if err := o.FS.SyncDir(path.Dir(dir)); err != nil {
			return nil, err
		}
	}
	return o.FS.Lock(path.Join(o.Dir, "LOCK"))
}
