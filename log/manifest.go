package log

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/kevydb/kevy/internal/vfs"
)

const (
	manifestName    = "MANIFEST"
	manifestTemp    = "MANIFEST.tmp"
	manifestVersion = 1
	maxManifest     = 64 << 20
)

// MaxShards is the largest number of shards: a group over several shards names them in 64 bits.
const MaxShards = 64

// manifest is the content of DIR/MANIFEST: a JSON document, then a line "crc32c <8 hex>" over all
// bytes before that line.
type manifest struct {
	Version  int    `json:"version"`
	HashSeed uint64 `json:"hash_seed"`
	Clean    bool   `json:"clean"`
	LastTxn  uint64 `json:"last_transaction"`
	// Follower: the log is a copy of another store's, and goes on with its generations. See follow.go.
	Follower bool         `json:"follower,omitempty"`
	Snapshot *snapshotRef `json:"snapshot,omitempty"`
	// Floors has, by the name of who needs it, a cursor for each shard from which on nothing is dropped.
	Floors map[string][]Cursor `json:"floors,omitempty"`
	Shards []shardManifest     `json:"shards"`
}

// snapshotRef names the newest snapshot set and the cursor of each shard in it.
type snapshotRef struct {
	ID      string   `json:"id"`
	Cursors []Cursor `json:"cursors"`
}

type shardManifest struct {
	FirstLive uint64    `json:"first_live"` // oldest segment that is part of the log
	End       *shardEnd `json:"end,omitempty"`
	// Unborn is the number of a segment that is being made for another base, and no part of this log; 0: none.
	Unborn uint64 `json:"unborn,omitempty"`
	// Cut: the log has been taken back to End, and what the files hold behind that is no part of it.
	Cut     bool      `json:"cut,omitempty"`
	Lineage []Lineage `json:"lineage"` // oldest first; the last one is current
}

// shardEnd is where a shard's log ended when it was closed cleanly.
type shardEnd struct {
	Segment uint64 `json:"segment"`
	Size    int64  `json:"size"`
	Cursor  Cursor `json:"cursor"`
}

func (m *manifest) clone() *manifest {
	c := *m
	if m.Snapshot != nil {
		s := *m.Snapshot
		s.Cursors = append([]Cursor(nil), s.Cursors...)
		c.Snapshot = &s
	}
	c.Floors = maps.Clone(m.Floors)
	c.Shards = make([]shardManifest, len(m.Shards))
	for i, s := range m.Shards {
		s.Lineage = append([]Lineage(nil), s.Lineage...)
		if s.End != nil {
			end := *s.End
			s.End = &end
		}
		c.Shards[i] = s
	}
	return &c
}

// dirty marks the manifest as that of a directory in use.
func (m *manifest) dirty() {
	m.Clean = false
	for i := range m.Shards {
		m.Shards[i].End, m.Shards[i].Unborn, m.Shards[i].Cut = nil, 0, false
	}
}

func (s *shardManifest) current() uint64 { return s.Lineage[len(s.Lineage)-1].Generation }

// validate checks what no manifest may violate; encode and decode both call it.
func (m *manifest) validate() error {
	if n := len(m.Shards); n < 1 || n > MaxShards {
		return corruptf("manifest: %d shards", n)
	}
	if s := m.Snapshot; s != nil && (s.ID == "" || len(s.Cursors) != len(m.Shards)) {
		return corruptf("manifest: snapshot %q with %d cursors for %d shards", s.ID, len(s.Cursors), len(m.Shards))
	}
	for name, from := range m.Floors {
		if len(from) != len(m.Shards) {
			return corruptf("manifest: floor %q with %d cursors for %d shards", name, len(from), len(m.Shards))
		}
	}
	for i := range m.Shards {
		s := &m.Shards[i]
		if len(s.Lineage) == 0 || s.FirstLive == 0 || (s.End != nil) != m.Clean || s.Cut && !m.Clean {
			return corruptf("manifest: shard %d is incomplete", i)
		}
		last := uint64(0)
		for _, l := range s.Lineage {
			if l.Generation <= last || l.Generation > maxGeneration || l.Parent >= l.Generation {
				return corruptf("manifest: shard %d: generation %d after %d, parent %d", i, l.Generation, last, l.Parent)
			}
			last = l.Generation
		}
	}
	return nil
}

func (m *manifest) encode() ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return signed(append(b, '\n')), nil
}

// signed appends the line with the checksum.
func signed(b []byte) []byte {
	return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b, castagnoli))
}

// decodeManifest reads what encode wrote. The error matches ErrVersion for a version this program
// does not know, ErrCorrupt for anything else that is wrong.
func decodeManifest(b []byte) (*manifest, error) {
	const trailer = len("crc32c 01234567\n")
	if len(b) < trailer {
		return nil, corruptf("manifest of %d bytes", len(b))
	}
	doc, sum := b[:len(b)-trailer], b[len(b)-trailer:]
	if !bytes.Equal(sum, signed(slices.Clip(doc))[len(doc):]) {
		return nil, corruptf("manifest: checksum")
	}
	var v struct{ Version int }
	if err := json.Unmarshal(doc, &v); err != nil {
		return nil, corruptf("manifest: %v", err)
	}
	if v.Version != manifestVersion {
		return nil, fmt.Errorf("%w: manifest version %d, newest known is %d", ErrVersion, v.Version, manifestVersion)
	}
	m := &manifest{}
	if err := json.Unmarshal(doc, m); err != nil {
		return nil, corruptf("manifest: %v", err)
	}
	return m, m.validate()
}

// readManifest returns nil without an error when there is none.
func readManifest(fsys vfs.FS, dir string) (*manifest, error) {
	name := path.Join(dir, manifestName)
	b, err := readFile(fsys, name, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(b)
	if err != nil {
		err = &CorruptError{File: name, Position: -1, Err: err}
	}
	if errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %s", err, rebuildAdvice(dir))
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// noManifest says what a directory without a manifest is, and what can be done about it.
func noManifest(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); err != nil {
		return err
	}
	fresh, err := isNew(fsys, dir)
	switch {
	case err != nil:
		return err
	case fresh:
		return fmt.Errorf("%w: %s is no data directory of kevy", ErrNoManifest, dir)
	}
	return fmt.Errorf("%w: %s is lost; %s", ErrNoManifest, path.Join(dir, manifestName), rebuildAdvice(dir))
}

// rebuildAdvice says what can be done about a directory whose manifest is lost or damaged.
func rebuildAdvice(dir string) string {
	return fmt.Sprintf("kevy restore --from %s --to NEWDIR --rebuild-manifest makes another directory of the rest if that proves whole", dir)
}

// replaced says how far a publication that failed had come.
type replaced int

const (
	untouched replaced = iota // the old manifest is the one on disk
	unknown                   // either may be, now or after a crash
)

// writeManifest replaces the manifest atomically and durably. When it fails, it says whether the
// old one is certainly still in place.
func writeManifest(fsys vfs.FS, dir string, m *manifest) (replaced, error) {
	b, err := m.encode()
	if err != nil {
		return untouched, err
	}
	temp := path.Join(dir, manifestTemp)
	if err := writeFile(fsys, temp, b); err != nil {
		_ = fsys.Remove(temp) // gone or replaced at the next publication anyway
		return untouched, fmt.Errorf("log: writing %s: %w", temp, err)
	}
	if err := fsys.Rename(temp, path.Join(dir, manifestName)); err != nil {
		return unknown, fmt.Errorf("log: publishing the manifest: %w", err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return unknown, fmt.Errorf("log: publishing the manifest: %w", err)
	}
	return unknown, nil
}

// reserveManifest takes the disk space for a manifest somewhat longer than m, until the next one is written.
func reserveManifest(fsys vfs.FS, dir string, m *manifest) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	temp := path.Join(dir, manifestTemp)
	if err := vfs.RemoveIfThere(fsys, temp); err != nil {
		return err
	}
	f, err := fsys.Create(temp)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, int64(2*len(b)))
	return errors.Join(err, f.Close())
}

// writeFile makes a file anew with the given content, synced, its directory entry not.
func writeFile(fsys vfs.FS, name string, b []byte) error {
	if err := vfs.RemoveIfThere(fsys, name); err != nil {
		return err
	}
	return vfs.WriteFile(fsys, name, b)
}

func readFile(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	b, err := vfs.ReadFile(fsys, name, limit)
	switch {
	case errors.Is(err, vfs.ErrTooLarge):
		return nil, &CorruptError{File: name, Position: -1, Err: corruptf("%v", err)}
	case err != nil:
		return nil, fmt.Errorf("log: reading %s: %w", name, err)
	}
	return b, nil
}
