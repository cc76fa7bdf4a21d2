package log

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"syscall"

	"github.com/kevydb/kevy/internal/vfs"
)

// OpenReadOnly opens a data directory for reading only: one that is in use by another process, or
// a copy. It takes no lock and changes nothing. Each shard ends at the last whole group found, and
// before the first group over several shards that is not whole on all of them; what is written
// later is not seen. A bad tail is accepted whatever it is, as copies have it: Recovery says what
// would be cut. Damage elsewhere is a *CorruptError as for Open.
//
// The append side of the logs fails with ErrReadOnly; readers work as usual.
func OpenReadOnly(fsys vfs.FS, dir string) (*Dir, *Recovery, error) {
	return tryReadOnly(fsys, dir, false)
}

// Examine is OpenReadOnly for tools that look at a directory whatever state it is in: where Open
// would refuse, it notes the damage in Recovery and opens what is left. A reader that comes to a
// place where frames are missing or damaged fails there with a *CorruptError, as always. Only a
// directory without a readable manifest, or a shard without any segment, can't be opened.
func Examine(fsys vfs.FS, dir string) (*Dir, *Recovery, error) {
	return tryReadOnly(fsys, dir, true)
}

// tryReadOnly tries again where a directory in use may have changed between the manifest and the segments.
func tryReadOnly(fsys vfs.FS, dir string, tolerant bool) (*Dir, *Recovery, error) {
	opts, err := (&Options{FS: fsys, Dir: dir, ServeAll: true}).withDefaults()
	if err != nil {
		return nil, nil, err
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	for try := 0; ; try++ {
		d := newDir(opts)
		d.readOnly = true
		rec, err := d.openReadOnly(tolerant)
		again := err != nil && (errors.Is(err, ErrCorrupt) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF)) ||
			err == nil && rec.damaged()
		if try == 3 || !again {
			if err != nil {
				return nil, nil, err
			}
			return d, rec, nil
		}
	}
}

func (d *Dir) openReadOnly(tolerant bool) (*Recovery, error) {
	m, err := readManifest(d.o.FS, d.o.Dir)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, noManifest(d.o.FS, d.o.Dir)
	}
	d.man, d.hashSeed, d.lastTxn = m, m.HashSeed, m.LastTxn
	shards, err := d.scanReadOnly(tolerant)
	if err != nil {
		return nil, err
	}
	rec := &Recovery{Clean: m.Clean}
	for _, s := range shards {
		c := Cursor{s.generation(), s.end.off}
		r := ShardRecovery{Generation: c.Generation, Found: c, Tail: c, CutBytes: s.size - s.end.pos, Damage: s.damage, Lost: s.lost}
		if len(s.damage) == 0 {
			r.Stray = s.strayErr
		}
		if s.reason != nil {
			if r.CutBytes, err = s.behind(); err != nil {
				return nil, err
			}
		}
		if s.reason != nil && r.CutBytes > 0 {
			r.Reason = s.reason.Error()
			r.CutFrames = s.read - min(s.read, s.end.off)
		}
		rec.Shards = append(rec.Shards, r)
		l := d.newLog(s)
		l.shut(ErrReadOnly)
		d.logs = append(d.logs, l)
	}
	return rec, nil
}

// behind returns how many bytes lie behind the end of the log, without zeros at the end: space that is written ahead.
func (s *shardScan) behind() (int64, error) {
	f, err := s.fs.Open(s.newest().path())
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	buf := *buffers.Get().(*[]byte)
	defer buffers.Put(&buf)
	end, err := trimZeros(f, s.end.pos, s.size, buf)
	if s.tolerant && errors.Is(err, syscall.EIO) { // what is there can't be read
		end, err = s.size, nil
	}
	return end - s.end.pos, err
}

// scanReadOnly scans all shards and decides where each of them ends, as recovery would.
func (d *Dir) scanReadOnly(tolerant bool) (shards []*shardScan, err error) {
	for {
		if shards, err = d.newScans(tolerant); err != nil {
			return nil, err
		}
		if err = bindAll(shards); err != nil {
			return nil, err
		}
		if err = d.scanShards(shards); err != nil {
			return nil, err
		}
		if tolerant {
			noteEnds(d.man, shards)
		}
		if err := cutGroups(shards); err != nil {
			return nil, err
		}
		m, err := rollForward(d.man, shards)
		if err != nil && tolerant {
			shards[0].damage = append(shards[0].damage, err)
			return shards, nil
		}
		if err != nil || m == nil {
			return shards, err
		}
		d.man = m
	}
}

// noteEnds notes for each shard why checkEnds would refuse it.
func noteEnds(m *manifest, shards []*shardScan) {
	for _, s := range shards {
		var err error
		if m.Clean {
			_, err = s.checkClean()
		}
		if err == nil {
			err = s.checkMark()
		}
		if err != nil {
			s.damage, s.lost = append(s.damage, err), err
		}
	}
}

func (r *Recovery) damaged() bool {
	for _, s := range r.Shards {
		if len(s.Damage) > 0 {
			return true
		}
	}
	return false
}

// SegmentInfo describes a segment on disk.
type SegmentInfo struct {
	Number    uint64 `json:"number"`
	File      string `json:"file"`
	Start     Cursor `json:"start"`      // of its first frame
	End       uint64 `json:"end"`        // offset behind its last frame
	Bytes     int64  `json:"bytes"`      // of the file, without space written ahead
	RawBytes  int64  `json:"raw_bytes"`  // of the frames and a header, before compression
	Sealed    bool   `json:"sealed"`     // compressed
	Ended     bool   `json:"ended"`      // it is not the newest one: its frames do not change any more
	FirstMS   int64  `json:"first_ms"`   // unix ms of its first frame, 0: it has none
	LastMS    int64  `json:"last_ms"`    // unix ms of the newest frame up to its end, 0: there is none
	CreatedMS int64  `json:"created_ms"` // unix ms
	// Broken says why the segment does not continue the one before it in the list; nil: it does.
	Broken error `json:"-"`
}

// SegmentList describes the segments on disk, oldest first. The end of a segment is known from the
// one behind it; where that is missing it is taken to be the start, and the times are those before it.
//
// The file of a segment that has ended may be replaced by a sealed one, or dropped, at any time.
func (l *Log) SegmentList() []SegmentInfo {
	segs := l.segments()
	list := make([]SegmentInfo, len(segs))
	for i, s := range segs {
		list[i] = SegmentInfo{
			Number: s.number, File: s.path(), Start: s.start(), End: s.base, Bytes: s.diskBytes(), RawBytes: s.end.Load(),
			Sealed: s.sealed.Load(), Ended: i+1 < len(segs), FirstMS: s.oldest(), LastMS: s.lastTimeMS, CreatedMS: s.createdMS,
		}
		if i == 0 {
			continue
		}
		prev := &list[i-1]
		if err := checkNext(segs[i-1], s); err != nil {
			list[i].Broken = err
			continue
		}
		prev.End, prev.LastMS = s.parentOff, s.lastTimeMS
	}
	last := &list[len(list)-1]
	l.wmu.Lock()
	tail := l.w.tail
	l.wmu.Unlock()
	last.End, last.LastMS = tail.off, tail.timeMS
	return list
}
