package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kevydb/kevy/log"
)

// shipLogs brings the logs up to a cut, publishes that, and lets go of what is whole in the archive.
func (a *Archiver) shipLogs(ctx context.Context) error {
	a.logsAt = time.Now()
	now := a.src.Now()
	if a.upToDate() {
		a.noteCut(now)
		return a.hold()
	}
	cut, err := a.src.Cut()
	if err != nil {
		return err
	}
	m := a.man.clone()
	if len(m.Shards) == 0 {
		m.Shards = make([]shardPart, len(cut))
	}
	for i := range m.Shards {
		if err := a.shipShard(ctx, m, i, cut[i]); err != nil {
			return fmt.Errorf("archive: shard %d: %w", i, err)
		}
	}
	m.CutMS, m.LastTxn = now, a.dir.LastTxn()
	if err := a.publish(ctx, m); err != nil {
		return err
	}
	return a.hold()
}

// shipLogsIfDue is shipLogs in the middle of something long, when its time has come.
func (a *Archiver) shipLogsIfDue(ctx context.Context) error {
	if time.Since(a.logsAt) < a.o.Interval {
		return nil
	}
	return a.shipLogs(ctx)
}

// upToDate reports whether there are no frames that the archive has not.
func (a *Archiver) upToDate() bool {
	for i := range a.man.Shards {
		if a.man.Shards[i].End != a.dir.Log(i).Tail() {
			return false
		}
	}
	return len(a.man.Shards) > 0
}

// hold keeps of the directory's log what is not whole in the archive.
func (a *Archiver) hold() error {
	var from []log.Cursor
	for i := range a.man.Shards {
		segs := a.man.Shards[i].Segments
		from = append(from, segs[len(segs)-1].Start)
	}
	return a.dir.SetFloor(Floor, from)
}

// shipShard takes the segments of one shard up to its cut into m.
func (a *Archiver) shipShard(ctx context.Context, m *manifest, shard int, cut log.Cursor) error {
	l, p := a.dir.Log(shard), &m.Shards[shard]
	lineage := a.dir.Lineage(shard)
	for _, info := range l.SegmentList() {
		n := len(p.Segments)
		if n > 0 && info.Number < p.Segments[n-1].Number {
			continue
		}
		if n == 0 || info.Number > p.Segments[n-1].Number {
			if err := p.leadsTo(&info); err != nil {
				return err
			}
			p.Segments = append(p.Segments, segment{Number: info.Number, Start: info.Start})
		}
		s := &p.Segments[len(p.Segments)-1]
		last := info.Start.Generation == cut.Generation && cut.Offset <= info.End
		var err error
		if last {
			err = a.shipPart(ctx, m, shard, s, cut.Offset)
		} else {
			err = a.shipWhole(ctx, m, shard, s, &info)
		}
		if err != nil {
			return err
		}
		if last {
			p.End, p.Lineage = cut, mergeLineage(p, lineage, cut.Generation)
			return nil
		}
	}
	return fmt.Errorf("%w: %s is in no segment", log.ErrGone, cut)
}

// leadsTo checks that a segment of the directory, the oldest that the archive has nothing of, follows what it has. If that ends where the segment
// starts it is whole, even if the directory has dropped it as it was.
func (s *shardPart) leadsTo(info *log.SegmentInfo) error {
	if len(s.Segments) == 0 {
		return nil
	}
	last := &s.Segments[len(s.Segments)-1]
	missing := last.Number
	if last.Whole = last.Whole || info.Start == s.End; last.Whole {
		missing++
	}
	if missing < info.Number {
		return fmt.Errorf("segment %d is not on disk any more, and not whole in the archive: from there on this directory needs another archive", missing)
	}
	return nil
}

// mergeLineage adds to the archive's lineage what the directory knows, up to a generation, and leaves out generations that are older than all segments.
func mergeLineage(p *shardPart, lineage []log.Lineage, upTo uint64) []log.Lineage {
	const most = 256
	all := slices.Clone(p.Lineage)
	for _, l := range lineage {
		if l.Generation <= upTo && (len(all) == 0 || l.Generation > all[len(all)-1].Generation) {
			all = append(all, l)
		}
	}
	for len(all) > most && all[0].Generation < p.Segments[0].Start.Generation {
		all = all[1:]
	}
	return all
}

// shipWhole takes a segment that has ended: sealed, if it is worth it.
func (a *Archiver) shipWhole(ctx context.Context, m *manifest, shard int, s *segment, info *log.SegmentInfo) error {
	if s.Whole {
		return nil
	}
	if err := a.dir.SealSegment(shard, s.Number); err != nil {
		a.o.Logger.Warn("a segment goes to the archive as it is: it can't be sealed", "shard", shard, "segment", s.Number, "error", err)
	}
	c, err := a.dir.Log(shard).OpenCopy(s.Number)
	if errors.Is(err, ErrCorrupt) {
		return a.shipUnread(ctx, m, shard, s, info, err)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	end, err := c.End(s.Start, log.HeaderBytes, info.End)
	s.Whole = true
	switch src, size := c.Sealed(); {
	case errors.Is(err, ErrCorrupt):
		return a.shipDamaged(ctx, m, shard, s, info, c, err)
	case err != nil:
		return err
	case src == nil:
		return a.addPart(ctx, m, shard, s, c, end, info.End)
	default:
		return a.shipSealed(ctx, m, shard, s, src, size)
	}
}

// shipDamaged takes a segment that is damaged on disk, which INFO shows and verify names: what lies behind it can be restored from a newer set
// all the same. What the archive has of it was sound when it was sent, and stays; the rest comes as it is. A sealed one, whose rest
// can't be had by itself, comes as a whole, unless more of it is in the archive than can be read here.
func (a *Archiver) shipDamaged(ctx context.Context, m *manifest, shard int, s *segment, info *log.SegmentInfo, c *log.Copy, cause error) error {
	a.o.Logger.Error("a damaged segment goes to the archive as it is", "shard", shard, "segment", s.Number, "error", cause)
	_, rest := c.End(log.Cursor{Generation: s.Start.Generation, Offset: s.end()}, max(s.bytes(), log.HeaderBytes), info.End)
	src, size := c.Sealed()
	switch bad, _ := errors.AsType[*log.CorruptError](cause); {
	case src == nil || rest == nil:
		return a.addPart(ctx, m, shard, s, c, info.RawBytes, info.End)
	case len(s.Parts) > 0 && bad != nil && bad.Cursor.Offset <= s.end():
		return nil
	}
	return a.shipSealed(ctx, m, shard, s, src, size)
}

// shipUnread takes a sealed segment whose header or index is damaged, so that nothing in it can be read: its file as it is, unless the archive has something of it.
func (a *Archiver) shipUnread(ctx context.Context, m *manifest, shard int, s *segment, info *log.SegmentInfo, cause error) error {
	a.o.Logger.Error("a segment that can't be read goes to the archive as it is", "shard", shard, "segment", s.Number, "error", cause)
	if s.Whole = true; len(s.Parts) > 0 {
		return nil
	}
	f, err := a.src.FS.Open(info.File)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	size, err := f.Size()
	if err != nil {
		return err
	}
	return a.shipSealed(ctx, m, shard, s, f, size)
}

// shipSealed takes a sealed file in place of parts.
func (a *Archiver) shipSealed(ctx context.Context, m *manifest, shard int, s *segment, src io.ReaderAt, size int64) error {
	o, err := a.upload(ctx, fmt.Sprintf("shard-%02d/%020d.sealed", shard, s.Number), src, size)
	if err != nil {
		return err
	}
	m.retire(a.src.Now(), s.objects()...)
	s.Sealed, s.Parts = &o, nil
	return nil
}

// shipPart takes the frames of a segment before the offset to.
func (a *Archiver) shipPart(ctx context.Context, m *manifest, shard int, s *segment, to uint64) error {
	c, err := a.dir.Log(shard).OpenCopy(s.Number)
	if err != nil {
		return err
	}
	defer c.Close()
	end, err := c.End(log.Cursor{Generation: s.Start.Generation, Offset: s.end()}, max(s.bytes(), log.HeaderBytes), to)
	if err != nil {
		return err
	}
	return a.addPart(ctx, m, shard, s, c, end, to)
}

// unchanged reports whether the disk still has a part's bytes. One that it has not stays in the archive as it was sent.
func (a *Archiver) unchanged(c *log.Copy, p *part) bool {
	n, crc, err := sum(io.NewSectionReader(c, p.From, p.Size))
	if err == nil && n == p.Size && crc == p.CRC {
		return true
	}
	a.o.Logger.Error("a segment was damaged after it went to the archive, which keeps what it has", "object", p.Name, "error", err)
	return false
}

// addPart takes the raw bytes before end, which are the frames before the offset to.
func (a *Archiver) addPart(ctx context.Context, m *manifest, shard int, s *segment, c *log.Copy, end int64, to uint64) error {
	from := s.bytes()
	if end == from {
		return nil
	}
	n := len(s.Parts)
	for n > 0 && s.Parts[n-1].Size <= end-from && a.unchanged(c, &s.Parts[n-1]) {
		n--
		from = s.Parts[n].From
	}
	name := fmt.Sprintf("shard-%02d/%020d.seg.%d-%d", shard, s.Number, from, end)
	o, err := a.upload(ctx, name, io.NewSectionReader(c, from, end-from), end-from)
	if err != nil {
		return err
	}
	for _, old := range s.Parts[n:] {
		m.retire(a.src.Now(), old.object)
	}
	s.Parts = append(s.Parts[:n:n], part{o, from, to})
	return nil
}

// upload puts an object, and reads it back. One of that name and content which no manifest names is taken as it is.
func (a *Archiver) upload(ctx context.Context, name string, src io.ReaderAt, size int64) (object, error) {
	n, crc, err := sum(io.NewSectionReader(src, 0, size))
	if err != nil {
		return object{}, err
	}
	o := object{name, size, crc}
	if n != size {
		return o, fmt.Errorf("%s has %d bytes, not %d: %w", name, n, size, io.ErrUnexpectedEOF)
	}
	if left, ok := a.orphans[name]; ok && left == size {
		if n, got, err := sumObject(ctx, a.o.Store, name); err == nil && n == size && got == crc {
			return o, nil
		}
	}
	if err := a.o.Store.Put(ctx, name, src, size); err != nil {
		return o, err
	}
	a.noteShipped(size)
	return o, o.readBack(ctx, a.o.Store)
}

// readBack compares an object that was written with what it should be.
func (o *object) readBack(ctx context.Context, s Store) error {
	n, crc, err := sumObject(ctx, s, o.Name)
	if err == nil && (n != o.Size || crc != o.CRC) {
		err = fmt.Errorf("%w: %s/%s reads back as %d bytes with checksum %08x, written were %d with %08x", ErrCorrupt, s, o.Name, n, crc, o.Size, o.CRC)
	}
	return err
}
