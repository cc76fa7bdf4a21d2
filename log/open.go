package log

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/kevydb/kevy/internal/vfs"
)

// Open opens a data directory, or creates it if there is none, and recovers it as DESIGN 4.3 says.
// The directory is locked for this process until Close.
//
// Damage is a *CorruptError, and leaves everything as it is. A directory that some other version
// wrote is ErrVersion; one in use is vfs.ErrLocked; one that holds data but no manifest is
// ErrNoManifest.
func Open(o Options) (*Dir, *Recovery, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	lock, err := prepare(&opts)
	if err != nil {
		return nil, nil, fmt.Errorf("log: opening %s: %w", opts.Dir, err)
	}
	d := newDir(opts)
	d.lock = lock
	rec, err := d.open()
	if err != nil {
		for _, l := range d.logs {
			_ = l.close() // err is the news
		}
		return nil, nil, errors.Join(err, lock.Close())
	}
	for _, l := range d.logs {
		l.done = make(chan struct{})
		go l.commit()
	}
	return d, rec, nil
}

// newDir makes a Dir without logs.
func newDir(o Options) *Dir {
	d := &Dir{o: o, keeper: keeper{kicked: make(chan struct{}, 1), quit: make(chan struct{})}}
	d.keepBytes.Store(o.KeepBytes)
	d.keepTime.Store(int64(o.KeepTime))
	d.blocks = sync.OnceValue(func() *BlockEncoder { return NewBlockEncoder(true, 1, MaxBlock) })
	return d
}

func (d *Dir) open() (*Recovery, error) {
	rec := &Recovery{}
	if err := d.load(rec); err != nil {
		return nil, err
	}
	shards, err := d.recovered(rec)
	if err != nil {
		return nil, err
	}
	for _, s := range shards {
		d.lastTxn = max(d.lastTxn, s.maxTxn)
	}
	if err := d.settleShards(shards, rec); err != nil {
		return nil, err
	}
	m := d.man.clone()
	m.dirty()
	m.Follower = d.follows()
	for i, s := range shards {
		m.Shards[i].Lineage = s.man.Lineage
	}
	if _, err := d.publish(m); err != nil {
		return nil, err
	}
	for _, s := range shards {
		if err := d.attach(s); err != nil {
			return nil, err
		}
	}
	return rec, nil
}

// recovered scans all shards and decides where each of them ends (steps 2 to 4).
func (d *Dir) recovered(rec *Recovery) (shards []*shardScan, err error) {
	for {
		if shards, err = d.scanAll(); err != nil {
			return nil, err
		}
		if rec.Clean, err = checkEnds(d.man, shards); err != nil || rec.Clean {
			return shards, err
		}
		if err := cutGroups(shards); err != nil {
			return nil, err
		}
		m, err := rollForward(d.man, shards)
		if err != nil || m == nil {
			return shards, err
		}
		for _, s := range shards {
			if err := s.syncNewest(); err != nil {
				return nil, err
			}
		}
		if _, err := d.publish(m); err != nil {
			return nil, err
		}
	}
}

// load reads the manifest, or creates the directory's files (step 1).
func (d *Dir) load(rec *Recovery) error {
	fsys, dir := d.o.FS, d.o.Dir
	m, err := readManifest(fsys, dir)
	if err != nil {
		return err
	}
	// A process that was killed may have published it without syncing the directory: a power failure
	// amid what is built on it must not bring back the one before.
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	if m == nil {
		if m, err = d.create(); err != nil {
			return err
		}
		rec.Created = true
	}
	d.man, d.hashSeed, d.lastTxn = m, m.HashSeed, m.LastTxn
	for i := range m.Shards {
		s := &m.Shards[i]
		if s.Cut {
			if err := finishCut(fsys, shardDir(dir, i), i, s); err != nil {
				return fmt.Errorf("log: shard %d: taking the log back: %w", i, err)
			}
		}
		if s.Unborn == 0 {
			continue
		}
		if err := vfs.RemoveIfThere(fsys, path.Join(shardDir(dir, i), segmentName(s.Unborn))); err != nil {
			return err
		}
		if err := fsys.SyncDir(shardDir(dir, i)); err != nil {
			return err
		}
	}
	return vfs.RemoveIfThere(fsys, path.Join(dir, manifestTemp))
}

func (d *Dir) create() (*manifest, error) {
	fresh, err := isNew(d.o.FS, d.o.Dir)
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, noManifest(d.o.FS, d.o.Dir)
	}
	for i := range MaxShards {
		if err := d.o.FS.RemoveAll(shardDir(d.o.Dir, i)); err != nil {
			return nil, err
		}
	}
	m, err := create(&d.o)
	if err != nil {
		return nil, fmt.Errorf("log: creating %s: %w", d.o.Dir, err)
	}
	return m, nil
}

// scanAll lists and scans every shard (steps 2 and 3). It changes nothing.
func (d *Dir) scanAll() ([]*shardScan, error) {
	shards, err := d.newScans(false)
	if err != nil {
		return nil, err
	}
	return shards, d.scanShards(shards)
}

// newScans begins the scans of all shards; with tolerant, damage will be noted in them. The marks are read before anything else: in a directory in
// use they may get ahead of what has been read of the files.
func (d *Dir) newScans(tolerant bool) (shards []*shardScan, err error) {
	for i := range d.man.Shards {
		s := &shardScan{fs: d.o.FS, shard: i, dir: shardDir(d.o.Dir, i), man: &d.man.Shards[i], tolerant: tolerant}
		if s.mark, err = readMark(s.fs, s.dir); err != nil {
			return nil, err
		}
		shards = append(shards, s)
	}
	return shards, nil
}

// scanShards lists and scans.
func (d *Dir) scanShards(shards []*shardScan) error {
	return parallel(len(shards), func(i int) error {
		s := shards[i]
		if err := s.list(); err != nil {
			return err
		}
		if d.man.Clean || d.follows() {
			s.win = d.windowFor(s)
		}
		return s.scan()
	})
}

// windowFor makes the feed window of a shard that goes on, and gives its segments their places.
func (d *Dir) windowFor(s *shardScan) *window {
	w := newWindow(d.o.Window)
	var oldest *segment
	start := int64(0)
	for _, seg := range s.segs {
		if seg.generation != s.generation() {
			continue
		}
		if oldest == nil {
			oldest = seg
		}
		seg.genPos = start
		start += seg.end.Load() - headerBytes
	}
	w.begin(indexEntry{oldest.base, 0}, indexEntry{s.newest().base, s.newest().genPos})
	return &w
}

// checkEnds compares what was found with what must be there, and tells whether every shard was
// closed cleanly.
func checkEnds(m *manifest, shards []*shardScan) (clean bool, err error) {
	clean = m.Clean
	for _, s := range shards {
		if m.Clean {
			ok, err := s.checkClean()
			if err != nil {
				return false, err
			}
			clean = clean && ok
		}
		if err := s.checkMark(); err != nil {
			return false, err
		}
	}
	return clean, nil
}

// settleShards brings the files of all shards into the state they go on in: cut, strays removed, a
// new segment for a new generation (steps 5 and 6).
func (d *Dir) settleShards(shards []*shardScan, rec *Recovery) error {
	for _, s := range shards {
		r := ShardRecovery{Found: Cursor{s.generation(), s.end.off}}
		if !rec.Clean {
			if err := s.cut(&r); err != nil {
				return err
			}
			if err := s.tidy(&r); err != nil {
				return err
			}
		}
		switch {
		case d.man.Follower && !d.o.Follower:
			if err := d.fork(s, CausePromotion); err != nil {
				return err
			}
		case !rec.Clean && !d.follows():
			if err := d.fork(s, CauseCrash); err != nil {
				return err
			}
		}
		r.Tail = Cursor{s.generation(), s.end.off}
		r.Generation = r.Tail.Generation
		rec.Shards = append(rec.Shards, r)
	}
	return nil
}

// tidy leaves no file behind the newest segment, and that durably: it may have been made by a process that died before
// it synced the directory, and must not be missing when there is one after it.
func (s *shardScan) tidy(r *ShardRecovery) error {
	if s.stray != "" {
		if err := s.removeStray(r); err != nil {
			return err
		}
	}
	return s.fs.SyncDir(s.dir)
}

// fork makes the first segment of a new generation. REQUIRES: tidy is done, or the directory was closed cleanly.
func (d *Dir) fork(s *shardScan, cause Cause) error {
	old := s.newest()
	h := segmentHeader{
		shard: s.shard, number: old.number + 1, cause: cause, createdMS: d.o.Now(),
		generation: newGeneration(d.o.Now(), d.o.Rand(), s.generation()),
		parent:     s.generation(), parentOff: s.end.off,
		prev: old.number, prevSize: s.end.pos, prevCRC: s.end.crc,
		lastTxn: s.end.txn, lastTimeMS: s.end.timeMS,
	}
	next, err := createSegment(s.fs, s.dir, h, headerBytes)
	if err != nil {
		return err
	}
	if err := next.file.Close(); err != nil {
		return err
	}
	man := *s.man
	man.Lineage = append(append([]Lineage(nil), man.Lineage...), h.lineage())
	s.man = &man
	s.segs = append(s.segs, next.seg)
	s.end = tailState{headerBytes, 0, 0, s.end.timeMS, s.end.txn}
	s.win, s.index = nil, seekIndex{}
	return nil
}

// attach makes the Log of a shard that is ready.
func (d *Dir) attach(s *shardScan) error {
	l := d.newLog(s)
	d.logs = append(d.logs, l)
	if err := sweep(s.fs, s.dir, s.man.FirstLive); err != nil {
		return err
	}
	f, err := s.fs.OpenReadWrite(s.newest().path())
	if err != nil {
		return err
	}
	l.w.handle, l.w.file = s.newest().adopt(f), f
	if l.markFile, err = openMark(s.fs, s.dir); err != nil {
		return err
	}
	l.wmu.Lock()
	defer l.wmu.Unlock()
	if err := l.grow(0); err != nil && !errors.Is(err, ErrDiskFull) {
		return err
	}
	return nil
}

// newLog makes the Log of a shard, without its files.
func (d *Dir) newLog(s *shardScan) *Log {
	o := &d.o
	l := &Log{
		dir: d, fs: o.FS, shard: s.shard, path: s.dir, segmentBytes: o.SegmentBytes,
		step:      min(preallocStep, max(o.SegmentBytes, 64<<10)),
		zeroAhead: !o.Ephemeral,
		serveAll:  o.ServeAll, now: o.Now, logger: o.Logger,
		segs: s.segs, pins: make(map[*Reader]uint64),
		kicked: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	l.onRoll = d.kickKeeper
	if o.Ephemeral {
		l.onRoll = d.dropAfterRoll
	}
	lin := append([]Lineage(nil), s.man.Lineage...)
	l.lineage.Store(&lin)
	for _, seg := range s.segs {
		seg.cache = &d.cache
	}
	l.gen.Store(newGenerationAt(s.generation(), s.end.off))
	l.lastTxn.Store(s.end.txn)
	l.writtenTxn.Store(s.end.txn)
	l.durableTxn.Store(s.end.txn)
	l.marks.hold = noHold
	l.marks.policy.Store(int64(o.Policy))
	seg := s.newest()
	bytes := seg.genPos + s.end.pos - headerBytes
	if s.win != nil {
		l.win = *s.win
		l.win.end(bytes)
		l.win.trim(bytes)
	} else {
		l.win = newWindow(o.Window)
		l.win.begin(indexEntry{}, indexEntry{})
	}
	l.bytes.Store(bytes)
	l.enc.reset(s.shard, Cursor{s.generation(), s.end.off}, s.end.timeMS)
	seg.index = s.index
	seg.index.end(s.end.pos)
	seg.end.Store(s.end.pos)
	l.w.seg, l.w.bytes, l.w.alloc, l.w.tail = seg, bytes, s.end.pos, s.end
	if n := len(seg.index.entries); n > 0 {
		l.w.nextIdx = seg.index.entries[n-1].pos + seekGranule
	} else {
		l.w.nextIdx = headerBytes + seekGranule
	}
	return l
}
