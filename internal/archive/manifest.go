package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"

	"github.com/kevydb/kevy/log"
)

const (
	manifestName    = "ARCHIVE"
	manifestVersion = 1
	maxManifest     = 256 << 20
)

var (
	// ErrCorrupt is the class of objects that are not as they were written. It is that of the log, so that tools tell damage alike.
	ErrCorrupt = log.ErrCorrupt
	// ErrVersion is an archive that a newer kevy has written.
	ErrVersion = log.ErrVersion
	// ErrForeign is an archive with another history than the directory's.
	ErrForeign = errors.New("archive: it has the history of another directory")
)

// manifest is the content of the object ARCHIVE: what the archive holds. An object it does not name is no part of it. One
// without shards says that an archive was begun here.
type manifest struct {
	Version  int         `json:"version"`
	HashSeed uint64      `json:"hash_seed"`
	LastTxn  uint64      `json:"last_transaction"`
	CutMS    int64       `json:"cut_ms"` // unix ms: frames up to then are here
	Shards   []shardPart `json:"shards"`
	Sets     []setPart   `json:"snapshots"` // oldest first
	Retired  []retired   `json:"retired,omitempty"`
}

// shardPart is one shard's log: segments without a gap, up to a cursor that lies between groups, and between the same
// groups in all shards.
type shardPart struct {
	End      log.Cursor    `json:"end"`
	Lineage  []log.Lineage `json:"lineage"`
	Segments []segment     `json:"segments"` // oldest first
}

// segment is sealed, and complete, or in parts that hold its raw bytes from the first on.
type segment struct {
	Number uint64     `json:"number"`
	Start  log.Cursor `json:"start"`
	Sealed *object    `json:"sealed,omitempty"`
	Parts  []part     `json:"parts,omitempty"`
	Whole  bool       `json:"whole,omitempty"` // the segment has ended, and all of it is here
}

// part is the raw bytes from From on, which end before the frame End.
type part struct {
	object
	From int64  `json:"from"`
	End  uint64 `json:"end"`
}

// bytes is how many raw bytes the parts have.
func (s *segment) bytes() int64 {
	if n := len(s.Parts); n > 0 {
		return s.Parts[n-1].From + s.Parts[n-1].Size
	}
	return 0
}

// end is the offset behind the parts' last frame.
func (s *segment) end() uint64 {
	if n := len(s.Parts); n > 0 {
		return s.Parts[n-1].End
	}
	return s.Start.Offset
}

// objects are the segment's.
func (s *segment) objects() (all []object) {
	if s.Sealed != nil {
		all = append(all, *s.Sealed)
	}
	for _, p := range s.Parts {
		all = append(all, p.object)
	}
	return all
}

// object is one object as it was read back after it was written.
type object struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

// setPart is a snapshot set; the objects are the files of its directory.
type setPart struct {
	ID      string       `json:"id"`
	TimeMS  int64        `json:"time_ms"`
	Keys    uint64       `json:"keys"`
	Cursors []log.Cursor `json:"cursors"`
	Files   []object     `json:"files"`
}

// retired is an object that is no part of the archive any more, and stays for readers that began before.
type retired struct {
	Name string `json:"name"`
	AtMS int64  `json:"at_ms"`
}

// names returns all objects that the manifest knows.
func (m *manifest) names() map[string]bool {
	known := m.live()
	for _, r := range m.Retired {
		known[r.Name] = true
	}
	return known
}

// live returns the objects that make up the archive.
func (m *manifest) live() map[string]bool {
	known := map[string]bool{manifestName: true}
	for i := range m.Shards {
		for _, s := range m.Shards[i].Segments {
			for _, o := range s.objects() {
				known[o.Name] = true
			}
		}
	}
	for _, s := range m.Sets {
		for _, o := range s.Files {
			known[o.Name] = true
		}
	}
	return known
}

func (m *manifest) retire(nowMS int64, objects ...object) {
	for _, o := range objects {
		m.Retired = append(m.Retired, retired{o.Name, nowMS})
	}
}

// empty reports whether there has never been a frame in the archive's log.
func (m *manifest) empty() bool {
	for i := range m.Shards {
		s := &m.Shards[i]
		if s.End.Offset > 0 || slices.ContainsFunc(s.Lineage, func(l log.Lineage) bool { return l.ParentOffset > 0 }) {
			return false
		}
	}
	return len(m.Sets) == 0
}

// retireAll retires what another manifest has.
func (m *manifest) retireAll(nowMS int64, old *manifest) {
	m.Retired = append(m.Retired, old.Retired...)
	for i := range old.Shards {
		for _, s := range old.Shards[i].Segments {
			m.retire(nowMS, s.objects()...)
		}
	}
}

// clone returns a copy whose lists can be changed.
func (m *manifest) clone() *manifest {
	c := *m
	c.Shards = slices.Clone(m.Shards)
	for i := range c.Shards {
		c.Shards[i].Lineage = slices.Clone(m.Shards[i].Lineage)
		c.Shards[i].Segments = slices.Clone(m.Shards[i].Segments)
		for j := range c.Shards[i].Segments {
			s := &c.Shards[i].Segments[j]
			s.Parts = slices.Clone(s.Parts)
		}
	}
	c.Sets, c.Retired = slices.Clone(m.Sets), slices.Clone(m.Retired)
	return &c
}

// validate checks what no manifest may violate: writing and reading both call it.
func (m *manifest) validate() error {
	for name := range m.names() {
		if !ours.MatchString(name) {
			return fmt.Errorf("%w: %q is no name of an object", ErrCorrupt, name)
		}
	}
	if n := len(m.Shards); n > log.MaxShards || n == 0 && len(m.Sets) > 0 {
		return fmt.Errorf("%w: %d shards", ErrCorrupt, n)
	}
	for i := range m.Shards {
		if err := m.Shards[i].validate(); err != nil {
			return fmt.Errorf("%w: shard %d: %w", ErrCorrupt, i, err)
		}
	}
	for _, s := range m.Sets {
		if s.ID == "" || len(s.Cursors) != len(m.Shards) || len(s.Files) != len(m.Shards)+1 {
			return fmt.Errorf("%w: snapshot set %q has %d cursors and %d files", ErrCorrupt, s.ID, len(s.Cursors), len(s.Files))
		}
	}
	return nil
}

func (s *shardPart) validate() error {
	if len(s.Segments) == 0 || len(s.Lineage) == 0 || s.Lineage[len(s.Lineage)-1].Generation != s.End.Generation {
		return errors.New("it has no segments, or no lineage to its end")
	}
	for i := range s.Segments {
		g := &s.Segments[i]
		pos := int64(0)
		for _, p := range g.Parts {
			if p.From != pos {
				return fmt.Errorf("segment %d: a part at byte %d, not %d", g.Number, p.From, pos)
			}
			pos += p.Size
		}
		last := i == len(s.Segments)-1
		switch {
		case i > 0 && g.Number != s.Segments[i-1].Number+1:
			return fmt.Errorf("segment %d after %d", g.Number, s.Segments[i-1].Number)
		case (g.Sealed == nil) == (len(g.Parts) == 0):
			return fmt.Errorf("segment %d: sealed and in parts, or neither", g.Number)
		case last && (g.Sealed != nil || g.Start.Generation != s.End.Generation || g.end() != s.End.Offset):
			return fmt.Errorf("the last segment, %d, does not end at %s", g.Number, s.End)
		case !last && !g.Whole:
			return fmt.Errorf("segment %d is not whole", g.Number)
		}
	}
	return nil
}

func (m *manifest) encode() ([]byte, error) {
	m.Version = manifestVersion
	if err := m.validate(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return signed(append(b, '\n')), nil
}

func signed(b []byte) []byte { return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b, castagnoli)) }

func decodeManifest(b []byte) (*manifest, error) {
	doc := b[:max(0, len(b)-len("crc32c 01234567\n"))]
	var v struct{ Version int }
	if err := json.Unmarshal(doc, &v); err == nil && v.Version > manifestVersion {
		return nil, fmt.Errorf("%w: archive version %d, newest known is %d", ErrVersion, v.Version, manifestVersion)
	}
	if !bytes.Equal(signed(slices.Clip(doc)), b) {
		return nil, fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	m := &manifest{}
	if err := json.Unmarshal(doc, m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return m, m.validate()
}

// readManifest returns nil without an error when there is no archive, which only the store's word for a missing object says.
func readManifest(ctx context.Context, s Store) (*manifest, error) {
	b, err := readObject(ctx, s, manifestName, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(b)
	if err != nil {
		if errors.Is(err, ErrCorrupt) {
			err = fmt.Errorf("%w (%s)", err, remedy)
		}
		return nil, fmt.Errorf("%s/%s: %w", s, manifestName, err)
	}
	return m, nil
}

// writeManifest replaces the manifest and reads it back.
func writeManifest(ctx context.Context, s Store, m *manifest) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	if err := s.Put(ctx, manifestName, bytes.NewReader(b), int64(len(b))); err != nil {
		return err
	}
	got, err := readObject(ctx, s, manifestName, maxManifest)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, b) {
		return fmt.Errorf("%w: %s/%s is not what was just written", ErrCorrupt, s, manifestName)
	}
	return nil
}
