package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/kevydb/kevy/internal/vfs"
)

// Recovery is what Open found and did, for a line in the server's log.
type Recovery struct {
	Created bool // the directory is new
	Clean   bool // it was closed cleanly (or is new): every shard goes on in its generation
	Shards  []ShardRecovery
}

// ShardRecovery is what Open found and did in one shard.
type ShardRecovery struct {
	Generation uint64 // current now
	Found      Cursor // end of the log that was found, after cutting
	Tail       Cursor // where the shard goes on: Found, or offset 0 of a new generation
	CutBytes   int64  // bytes cut off the unclean tail
	CutFile    string // where they are kept; "" when there were none but zeros
	CutFrames  uint64 // whole valid frames among them: parts of groups that were not whole
	Reason     string // why the tail was cut, "" when nothing was
	// Stray, of OpenReadOnly and Examine: the newest segment file has a bad header and no frames, so that it was being made when the process
	// ended, and Open would remove it; nil: there is none.
	Stray error
	// Damage, of Examine: why Open would refuse the shard, in the order of the log.
	Damage []error
	// Lost, of Examine: which of it takes frames behind Tail away; nil: none is known to.
	Lost error
}

// shardScan is what the directory of one shard holds.
type shardScan struct {
	fs       vfs.FS
	shard    int
	dir      string
	man      *shardManifest
	sealed   []uint64 // of which segments there is a sealed file, ascending
	stray    string   // a newest segment that is not part of the log
	strayErr error    // its header is bad, nil: it is not
	ahead    *segment // the same, when its header is good; see Bridge
	// aheadSize is the length of ahead's file.
	aheadSize int64
	segs      []*segment // the log's, ascending
	mark      mark
	size      int64     // of the newest segment's file
	end       tailState // of the log
	read      uint64    // offset up to which whole valid frames were found
	reason    error     // why the log ends before the file does, nil: it does not
	maxTxn    uint64    // highest transaction id found, also in what is to be cut
	needs     needs     // of the groups found
	win       *window   // when not nil: takes in the newest segment's frames
	index     seekIndex // of the newest segment

	bound *bound // how far files are read, nil: as far as they go

	tolerant bool    // damage is noted, not returned
	damage   []error // noted
	lost     error   // the one that took frames behind the end
}

// broken returns damage, or notes it and returns nil.
func (s *shardScan) broken(err error) error {
	if !s.tolerant {
		return err
	}
	s.damage = append(s.damage, err)
	return nil
}

func (s *shardScan) newest() *segment { return s.segs[len(s.segs)-1] }

func (s *shardScan) generation() uint64 { return s.man.current() }

// list finds the segments and checks headers and links (DESIGN 4.3, step 2). It changes nothing.
func (s *shardScan) list() error {
	numbers, err := s.numbers()
	if err != nil {
		return err
	}
	if len(numbers) == 0 || numbers[0] != s.man.FirstLive {
		if err := s.broken(s.missing(s.man.FirstLive, "")); err != nil {
			return err
		}
	}
	for i, n := range numbers {
		if i > 0 && n != numbers[i-1]+1 {
			if err := s.broken(s.missing(numbers[i-1]+1, ": there is one after it")); err != nil {
				return err
			}
		}
		if err := s.take(n, i > 0 && i == len(numbers)-1); err != nil {
			return err
		}
	}
	if len(s.segs) == 0 { // nothing to note damage of
		return errors.Join(s.damage...)
	}
	if n := numbers[len(numbers)-1]; s.newest().number != n && s.stray == "" {
		s.lost = s.damage[len(s.damage)-1]
	}
	if n := s.newest(); n.sealed.Load() {
		if err := s.broken(s.missing(n.number+1, ": the one before it is sealed")); err != nil {
			return err
		}
		s.lost = s.damage[len(s.damage)-1]
	}
	if g := s.newest().generation; g != s.generation() {
		err := s.strayErr // it was no stray: the manifest knows its generation
		switch {
		case err != nil:
		case g < s.generation():
			err = s.missing(s.newest().number+1, fmt.Sprintf(": the one before it is of generation %d, the manifest's is %d", g, s.generation()))
		default:
			err = &CorruptError{
				File: s.newest().path(), Position: 0,
				Err: corruptf("newest segment is of generation %d, the manifest's is %d", g, s.generation()),
			}
		}
		if err := s.broken(err); err != nil {
			return err
		}
		s.lost = s.damage[len(s.damage)-1]
		return s.endAt(g)
	}
	return nil
}

func (s *shardScan) missing(number uint64, more string) error {
	return &CorruptError{
		File: path.Join(s.dir, segmentName(number)), Position: -1,
		Err: corruptf("segment is missing%s", more),
	}
}

// endAt makes g the newest generation of a shard that has lost the segments of those behind it.
func (s *shardScan) endAt(g uint64) error {
	man := *s.man
	for i, l := range man.Lineage {
		if l.Generation == g {
			man.Lineage = slices.Clip(man.Lineage[:i+1])
			s.man = &man
			return nil
		}
	}
	return &CorruptError{File: s.newest().path(), Position: 0, Err: corruptf("generation %d is not in the manifest", g)}
}

// take adds segment number n to the shard's, if it is one; newest: there may be one that is none.
func (s *shardScan) take(n uint64, newest bool) error {
	name, err := s.fileOf(n)
	if err != nil {
		return err
	}
	newest = newest && path.Base(name) == segmentName(n)
	seg, size, err := s.openHeader(name, n)
	if err == nil && s.man.Cut && n == s.man.End.Segment && !seg.sealed.Load() {
		size = min(size, s.man.End.Size)
		seg.end.Store(size)
	}
	if err != nil {
		if newest && size <= headerBytes && errors.Is(err, ErrCorrupt) {
			s.stray, s.strayErr = name, err // made just before a crash, which took its header
			return nil
		}
		return s.broken(err)
	}
	if newest && seg.generation > s.generation() && (size <= headerBytes || seg.begins() && seg.cause == CauseFlush) {
		s.stray, s.ahead, s.aheadSize = name, seg, size // made just before a crash, which came before the manifest
		return nil
	}
	if len(s.segs) > 0 {
		prev := s.newest()
		if err := forgetAhead(prev, seg); err != nil {
			return err
		}
		if err := checkNext(prev, seg); err != nil {
			if err := s.broken(err); err != nil {
				return err
			}
		}
		if seg.generation < prev.generation || seg.generation == prev.generation && seg.base < prev.base {
			return nil // noted: it is from elsewhere
		}
	}
	s.segs = append(s.segs, seg)
	s.size = size
	return nil
}

// numbers lists the segments from the first live one on.
func (s *shardScan) numbers() ([]uint64, error) {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a directory there are no segments
		return nil, fmt.Errorf("log: shard %d: %w", s.shard, err)
	}
	var numbers []uint64
	s.sealed = nil
	for _, name := range names {
		n, sealed, ok := segmentNumber(name)
		if !ok || !s.wants(n) || s.bound != nil && n > s.bound.segment {
			continue
		}
		if sealed {
			s.sealed = append(s.sealed, n)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// wants reports whether the manifest has a segment of this number in the log, if there is one.
func (s *shardScan) wants(n uint64) bool {
	return n >= s.man.FirstLive && n != s.man.Unborn && (!s.man.Cut || n <= s.man.End.Segment)
}

// fileOf returns the file of a segment: the raw one if it is there, as then nobody is sure of the sealed one.
func (s *shardScan) fileOf(number uint64) (name string, err error) {
	name = path.Join(s.dir, segmentName(number))
	if !slices.Contains(s.sealed, number) {
		return name, nil
	}
	if _, err = s.fs.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return path.Join(s.dir, sealedName(number)), nil
	}
	return name, err
}

// openHeader reads the header of a segment and checks it against its place.
func (s *shardScan) openHeader(name string, number uint64) (*segment, int64, error) {
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	size, err := f.Size()
	if err != nil {
		return nil, 0, err
	}
	if s.bound != nil && number == s.bound.segment {
		size = min(size, s.bound.size)
	}
	h, firstMS, err := readHeader(f, name, size)
	if err != nil {
		return nil, size, err
	}
	if h.number != number || h.shard != s.shard {
		return nil, size, &CorruptError{
			File: name, Position: 0,
			Err: corruptf("this is segment %d of shard %d", h.number, h.shard),
		}
	}
	info := h.seal
	h.seal = nil
	seg := &segment{segmentHeader: h, fs: s.fs, dir: s.dir}
	seg.end.Store(size)
	seg.firstMS.Store(firstMS)
	if info != nil {
		seg.sealed.Store(true)
		seg.end.Store(info.rawSize)
		seg.sealedBytes.Store(size)
		seg.lastCRC = info.lastCRC
	}
	if (info != nil) != (path.Base(name) == sealedName(number)) {
		return nil, size, &CorruptError{File: name, Position: 0, Err: corruptf("raw and sealed segments are swapped")}
	}
	return seg, size, nil
}

// checkNext checks the link between two neighbours, as far as headers and sizes go.
func checkNext(prev, next *segment) error {
	end := prev.end.Load()
	switch {
	case next.prev != prev.number:
	case next.prevSize != end:
		return &CorruptError{
			File: prev.path(), Position: min(end, next.prevSize),
			Err: corruptf("segment has %d bytes, segment %d says %d", end, next.number, next.prevSize),
		}
	case next.parent != prev.generation || next.parentOff < prev.base:
	case prev.lastCRC != 0 && prev.lastCRC != next.prevCRC:
	default:
		return nil
	}
	return &CorruptError{File: next.path(), Position: 0, Err: corruptf(
		"segment of %v with parent %d:%d after segment %d does not continue segment %d of %v",
		next.start(), next.parent, next.parentOff, next.prev, prev.number, prev.start())}
}

// forgetAhead leaves out the zeros written ahead at the end of a segment that is no longer the newest: the
// process ended after next was made, before prev was truncated.
func forgetAhead(prev, next *segment) error {
	end := prev.end.Load()
	ahead := end - next.prevSize
	if next.prev != prev.number || next.prevSize < headerBytes || ahead <= 0 || ahead > int64(len(zeros)) {
		return nil
	}
	f, err := prev.fs.Open(prev.path())
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	b := make([]byte, ahead)
	if _, err := f.ReadAt(b, next.prevSize); err != nil {
		return fmt.Errorf("log: %s: %w", prev.path(), err)
	}
	if bytes.Equal(b, zeros[:ahead]) {
		prev.end.Store(next.prevSize)
	}
	return nil
}

// scan reads the newest segment to its last whole group (step 3).
func (s *shardScan) scan() error {
	seg := s.newest()
	f, err := s.fs.Open(seg.path())
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	st := NewStream(f, seg.path(), s.shard, seg.start(), headerBytes, s.size)
	defer st.Close()
	s.end = tailState{headerBytes, seg.base, 0, seg.lastTimeMS, seg.lastTxn}
	s.maxTxn = seg.lastTxn
	for {
		off, pos := st.off, st.pos
		fr, err := st.Next()
		if err != nil {
			return s.ended(st, err)
		}
		s.read = st.off
		if fr.GroupFirst {
			s.index.add(off, pos)
			s.group(fr)
		}
		if s.win != nil {
			s.win.add(off, seg.genPos+pos-headerBytes, st.pos-pos)
		}
		if fr.GroupLast {
			s.end = tailState{st.pos, st.off, st.lastCRC, fr.TimeMS, max(s.end.txn, fr.Txn)}
		}
	}
}

// group takes note of a group over several shards.
func (s *shardScan) group(f *Frame) {
	if f.Txn == 0 {
		return
	}
	s.maxTxn = max(s.maxTxn, f.Txn)
	s.needs.add(f.Txn, f.Mask)
}

// ended decides what the end of the stream means.
func (s *shardScan) ended(st *Stream, err error) error {
	switch {
	case err == io.EOF && !st.inGroup: //nolint:errorlint // the stream's own, never wrapped
		return nil
	case err == io.EOF: //nolint:errorlint // the stream's own, never wrapped
		s.reason = corruptf("the last group is not whole")
	case errors.Is(err, ErrCorrupt):
		s.reason = err
	case s.tolerant && errors.Is(err, syscall.EIO): // a bad sector
		s.damage, s.lost, s.reason = append(s.damage, err), err, err
	default:
		return err
	}
	return nil
}

// checkClean checks the end the manifest recorded. Bytes after it that are no frame are a tail to
// cut: then the shard was not closed cleanly by the last one who wrote here.
func (s *shardScan) checkClean() (clean bool, err error) {
	end := s.man.End
	found := shardEnd{s.newest().number, s.end.pos, Cursor{s.generation(), s.end.off}}
	switch {
	case s.strayErr != nil:
		return false, s.strayErr
	case s.stray == "" && found.Segment < end.Segment:
		return false, s.missing(found.Segment+1, fmt.Sprintf(": the log was closed cleanly in segment %d", end.Segment))
	}
	if s.stray != "" || found != *end {
		return false, &CorruptError{File: s.newest().path(), Position: s.end.pos, Cursor: found.Cursor, Err: corruptf(
			"closed cleanly at %v, byte %d of segment %d, but the log ends here", end.Cursor, end.Size, end.Segment)}
	}
	return s.size == end.Size, nil
}

// checkMark refuses a log that ends before what was durable.
func (s *shardScan) checkMark() error {
	m := s.mark.cursor
	if m.Generation != s.generation() || m.Offset <= s.end.off {
		return nil
	}
	err := s.reason
	if err == nil {
		err = corruptf("the log ends too early")
	}
	return &CorruptError{
		File: s.newest().path(), Position: s.end.pos, Cursor: Cursor{s.generation(), s.end.off},
		Err: fmt.Errorf("frames up to %v were durable: %w", m, err),
	}
}

// isNew reports whether a directory without a manifest holds no data: at most what a crash while
// it was being created leaves.
func isNew(fsys vfs.FS, dir string) (bool, error) {
	for i := range MaxShards {
		shard := shardDir(dir, i)
		names, err := fsys.ReadDir(shard)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		for _, name := range names {
			fi, err := fsys.Stat(path.Join(shard, name))
			if err != nil {
				return false, err
			}
			if n, sealed, ok := segmentNumber(name); !ok || sealed || n != 1 || fi.Size() > headerBytes {
				return false, nil
			}
		}
	}
	names, err := fsys.ReadDir(path.Join(dir, "snapshots"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return len(names) == 0, err
}
