package archive

import (
	"fmt"
	"io"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// Rebuilt says what a manifest made anew names.
type Rebuilt struct {
	Archive  string       `json:"archive"`
	Segments int          `json:"segments"`
	Sets     int          `json:"snapshots"`
	Bytes    int64        `json:"bytes"` // of the objects
	Ends     []log.Cursor `json:"ends"`  // by shard: the archive has the frames before
	Notes    []string     `json:"notes,omitempty"`
	DryRun   bool         `json:"dry_run,omitempty"`
}

// Rebuild makes the manifest anew, and writes it unless dryRun. proven shows what l does with a MANIFEST, everything in it read and found
// whole; ends are cursors in its logs between groups, and between the same groups in all shards. Nothing else in the archive changes but that a newest segment
// which is not in parts up to its end is written as one.
func (l *Lost) Rebuild(proven vfs.FS, ends []log.Cursor, dryRun bool) (*Rebuilt, error) {
	dir, _, err := log.OpenReadOnly(proven, l.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close(false) //nolint:errcheck // only read
	m := &manifest{HashSeed: dir.HashSeed(), LastTxn: dir.LastTxn()}
	for i, end := range ends {
		b := rebuilding{l: l, log: dir.Log(i), shard: i, dryRun: dryRun}
		p := shardPart{End: end, Lineage: slices.DeleteFunc(dir.Lineage(i), func(g log.Lineage) bool { return g.Generation > end.Generation })}
		if p.Segments, err = b.segments(end); err != nil {
			return nil, fmt.Errorf("archive: shard %d: %w", i, err)
		}
		m.Shards = append(m.Shards, p)
		m.LastTxn = max(m.LastTxn, b.txn)
		if m.CutMS == 0 || b.ms > 0 && b.ms < m.CutMS {
			m.CutMS = b.ms
		}
	}
	if err := l.addSets(m, proven); err != nil {
		return nil, err
	}
	r := &Rebuilt{Archive: l.store.String(), Sets: len(m.Sets), Ends: ends, Notes: l.Notes, DryRun: dryRun}
	for i := range m.Shards {
		r.Segments += len(m.Shards[i].Segments)
	}
	for name := range m.live() {
		r.Bytes += l.sums[name].Size
	}
	if dryRun {
		return r, m.validate()
	}
	if m, err := readManifest(l.ctx, l.store); err == nil && m != nil {
		return nil, fmt.Errorf("archive: somebody has written %s/%s meanwhile", l.store, manifestName)
	}
	return r, writeManifest(l.ctx, l.store, m)
}

// addSets adds the sets.
func (l *Lost) addSets(m *manifest, proven vfs.FS) error {
	ids, err := snapshot.List(proven, l.dir)
	if err != nil {
		return err
	}
	for _, id := range ids {
		set, err := snapshot.ReadSet(proven, l.dir, id)
		if err != nil {
			return err
		}
		p := setPart{ID: id, TimeMS: set.TimeMS, Keys: set.Keys(), Cursors: set.Cursors()}
		for i := range set.Shards {
			p.Files = append(p.Files, l.sums[shardObject(id, i)])
		}
		p.Files = append(p.Files, l.sums[setObject(id, snapshot.SetFile)])
		m.Sets = append(m.Sets, p)
	}
	return nil
}

// rebuilding makes a shard's part of a manifest.
type rebuilding struct {
	l      *Lost
	log    *log.Log
	shard  int
	dryRun bool
	ms     int64  // of the last frame
	txn    uint64 // highest in the last segment
}

// segments names the segments up to the one in which the log ends.
func (b *rebuilding) segments(end log.Cursor) (all []segment, err error) {
	var list []log.SegmentInfo
	for _, info := range b.log.SegmentList() {
		if s := info.Start; s.Generation < end.Generation || s.Generation == end.Generation && s.Offset <= end.Offset {
			list = append(list, info)
		}
	}
	for i := range list {
		g := *b.l.shards[b.shard][list[i].Number]
		g.Start, g.Whole = list[i].Start, i < len(list)-1
		if !g.Whole || g.Sealed == nil {
			if err := b.inParts(&g, end.Offset); err != nil {
				return nil, fmt.Errorf("segment %d: %w", g.Number, err)
			}
		}
		if g.Whole {
			b.ms = list[i].LastMS
		}
		all = append(all, g)
	}
	return all, nil
}

// inParts makes the parts of a segment true: where they end, and of the last segment that they end before the frame with offset to.
func (b *rebuilding) inParts(g *segment, to uint64) error {
	c, err := b.log.OpenCopy(g.Number)
	if err != nil {
		return err
	}
	defer c.Close()
	end := c.Size()
	if !g.Whole {
		if end, err = c.End(g.Start, log.HeaderBytes, to); err != nil {
			return err
		}
	}
	if g.Sealed != nil || g.bytes() != end {
		p := part{object: object{Name: fmt.Sprintf("shard-%02d/%020d.seg.0-%d", b.shard, g.Number, end), Size: end}}
		g.Sealed, g.Parts = nil, []part{p}
		if err := b.put(&g.Parts[0].object, c); err != nil {
			return err
		}
	}
	st := log.NewStream(c, g.Parts[0].Name, b.shard, g.Start, log.HeaderBytes, end)
	defer st.Close()
	for i := range g.Parts {
		p := &g.Parts[i]
		for st.Position() < p.From+p.Size {
			f, err := st.Next()
			if err != nil {
				return err
			}
			b.ms, b.txn = f.TimeMS, max(b.txn, f.Txn)
		}
		if st.Position() != p.From+p.Size {
			return fmt.Errorf("%w: %s ends within a frame", ErrCorrupt, p.Name)
		}
		p.End = st.Cursor().Offset
	}
	return nil
}

// put writes the bytes that an object is to have.
func (b *rebuilding) put(o *object, c *log.Copy) (err error) {
	if _, o.CRC, err = sum(io.NewSectionReader(c, 0, o.Size)); err != nil {
		return err
	}
	b.l.sums[o.Name] = *o
	if b.dryRun {
		return nil
	}
	if err := b.l.store.Put(b.l.ctx, o.Name, c, o.Size); err != nil {
		return err
	}
	return o.readBack(b.l.ctx, b.l.store)
}
