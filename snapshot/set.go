package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

const (
	dirName   = "snapshots"
	tmpPrefix = "tmp-"
	// SetFile is the name of the description in a set's directory.
	SetFile = "SET"
	maxSet  = 1 << 20 // bytes of a SET file
)

// Set describes a published snapshot set.
type Set struct {
	Version int        `json:"version"`
	ID      string     `json:"id"`
	TimeMS  int64      `json:"time_ms"`
	Shards  []ShardSet `json:"shards"`
	// Digest is that of all keys, due ones included, as PREFIX.DIGEST spells it; "": it was not computed.
	Digest string `json:"digest,omitempty"`
}

// ShardSet is one shard's part of a set.
type ShardSet struct {
	Generation uint64 `json:"generation"`
	Offset     uint64 `json:"offset"`
	Keys       uint64 `json:"keys"`
	Bytes      int64  `json:"bytes"`       // of the file
	FrameBytes int64  `json:"frame_bytes"` // of its frames, uncompressed
}

// Cursors returns the set's cursor of each shard.
func (s *Set) Cursors() []log.Cursor {
	cs := make([]log.Cursor, len(s.Shards))
	for i, p := range s.Shards {
		cs[i] = log.Cursor{Generation: p.Generation, Offset: p.Offset}
	}
	return cs
}

// Keys returns the keys of all shards.
func (s *Set) Keys() (n uint64) {
	for i := range s.Shards {
		n += s.Shards[i].Keys
	}
	return n
}

// Bytes returns the bytes of all shards' files.
func (s *Set) Bytes() (n int64) {
	for i := range s.Shards {
		n += s.Shards[i].Bytes
	}
	return n
}

// FormatID spells a set id as its directory is named.
func FormatID(id uint64) string { return fmt.Sprintf("%016x", id) }

// IsID reports whether text is a set id: the name of a set's directory.
func IsID(text string) bool {
	_, err := strconv.ParseUint(text, 16, 64)
	return err == nil && len(text) == 16
}

// Dir returns the directory of a set below a data directory.
func Dir(data, id string) string { return path.Join(data, dirName, id) }

// ShardPath returns the snapshot file of a shard below a set's directory.
func ShardPath(set string, shard int) string {
	return path.Join(set, fmt.Sprintf("shard-%02d.snap", shard))
}

// Begin makes the empty directory in which a set is written before Publish, and removes what an
// interrupted writer left.
func Begin(fsys vfs.FS, data, id string) (dir string, err error) {
	if err := RemoveLeft(fsys, data); err != nil {
		return "", err
	}
	return Resume(fsys, data, id)
}

// Resume is Begin that keeps what an interrupted writer of the same set left.
func Resume(fsys vfs.FS, data, id string) (dir string, err error) {
	if err := removeLeft(fsys, data, tmpPrefix+id); err != nil {
		return "", err
	}
	dir = path.Join(data, dirName, tmpPrefix+id)
	return dir, fsys.MkdirAll(dir)
}

// Left returns the ids of sets that interrupted writers left.
func Left(fsys vfs.FS, data string) (ids []string, err error) {
	names, err := leftovers(fsys, data)
	for _, n := range names {
		if id := strings.TrimPrefix(n, tmpPrefix); IsID(id) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// Publish makes a set written in the directory that Begin returned visible under its name. All of
// its shard files must have been written and synced.
func Publish(fsys vfs.FS, data, tmp string, set Set) error {
	set.Version = version
	b, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		return err
	}
	if err := vfs.WriteFile(fsys, path.Join(tmp, SetFile), signed(append(b, '\n'))); err != nil {
		return err
	}
	if err := fsys.SyncDir(tmp); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, Dir(data, set.ID)); err != nil {
		return err
	}
	if err := fsys.SyncDir(path.Join(data, dirName)); err != nil {
		return err
	}
	return fsys.SyncDir(data)
}

// signed appends a line with the checksum of b.
func signed(b []byte) []byte {
	return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b, castagnoli))
}

// ReadSet reads the description of the set id below a data directory.
func ReadSet(fsys vfs.FS, data, id string) (Set, error) {
	var s Set
	name := path.Join(Dir(data, id), SetFile)
	b, err := readFile(fsys, name)
	if err != nil {
		return s, fmt.Errorf("snapshot: set %s: %w", id, err)
	}
	doc := b[:max(0, len(b)-len("crc32c 01234567\n"))]
	if err := json.Unmarshal(doc, &s); err == nil && s.Version != version {
		return s, fmt.Errorf("%s: %w %d: this kevy reads version %d", name, ErrVersion, s.Version, version)
	}
	if !bytes.Equal(signed(slices.Clip(doc)), b) {
		return s, fmt.Errorf("%s: %w: checksum", name, ErrCorrupt)
	}
	if s.ID != id || len(s.Shards) == 0 {
		return s, fmt.Errorf("%s: %w: describes set %q of %d shards", name, ErrCorrupt, s.ID, len(s.Shards))
	}
	return s, nil
}

// Inspect reads the description of a set, and checks headers, footers and lengths of its files, not their content:
// Load does.
func Inspect(fsys vfs.FS, data, id string) (Set, error) {
	s, err := ReadSet(fsys, data, id)
	if err != nil {
		return s, err
	}
	for i := range s.Shards {
		if err := s.inspect(fsys, data, i); err != nil {
			return s, fmt.Errorf("%s: %w", ShardPath(Dir(data, id), i), err)
		}
	}
	return s, nil
}

// CheckSet is Inspect, and reads the files: all their bytes must be as they were written.
func CheckSet(fsys vfs.FS, data, id string) (Set, error) {
	s, err := Inspect(fsys, data, id)
	for i := range s.Shards {
		if err == nil {
			err = checkSum(fsys, ShardPath(Dir(data, id), i))
		}
	}
	return s, err
}

// checkSum compares the bytes of a shard's file with the checksum in its footer.
func checkSum(fsys vfs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	foot, end, err := readFooter(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	h := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, end), make([]byte, blockBytes)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if sum := h.Sum32(); sum != foot.sum {
		return fmt.Errorf("%s: %w: checksum %08x, the footer has %08x", name, ErrCorrupt, sum, foot.sum)
	}
	return nil
}

func (s *Set) inspect(fsys vfs.FS, data string, shard int) error {
	f, err := fsys.Open(ShardPath(Dir(data, s.ID), shard))
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return err
	}
	foot, end, err := readFooter(f)
	if err != nil {
		return err
	}
	want := s.Shards[shard]
	got := ShardSet{h.Cursor.Generation, h.Cursor.Offset, foot.keys, end + footerSize, foot.raw}
	if h.Shard != shard || h.Shards != len(s.Shards) || FormatID(h.Set) != s.ID || got != want {
		return fmt.Errorf("%w: it is shard %d of %d of set %s, %+v; the set has %+v", ErrCorrupt, h.Shard, h.Shards, FormatID(h.Set), got, want)
	}
	return nil
}

func readFile(fsys vfs.FS, name string) ([]byte, error) {
	b, err := vfs.ReadFile(fsys, name, maxSet)
	if errors.Is(err, vfs.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
	}
	return b, err
}

// List returns the ids of the published sets below a data directory, sorted by name.
func List(fsys vfs.FS, data string) ([]string, error) {
	names, err := fsys.ReadDir(path.Join(data, dirName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, n := range names {
		if IsID(n) {
			ids = append(ids, n)
		}
	}
	return ids, err
}

// Remove removes a set. It takes its name away first, durably: what a crash leaves of it is removed by the
// next Begin or RemoveLeft.
func Remove(fsys vfs.FS, data, id string) error {
	parent := path.Join(data, dirName)
	gone := path.Join(parent, tmpPrefix+"removed-"+id)
	if err := fsys.RemoveAll(gone); err != nil {
		return err
	}
	if err := fsys.Rename(path.Join(parent, id), gone); err != nil {
		return err
	}
	if err := fsys.SyncDir(parent); err != nil {
		return err
	}
	return fsys.RemoveAll(gone)
}

// RemoveLeft removes what interrupted writers and removals left. REQUIRES: no set is being written.
func RemoveLeft(fsys vfs.FS, data string) error { return removeLeft(fsys, data, "") }

func removeLeft(fsys vfs.FS, data, but string) error {
	names, err := leftovers(fsys, data)
	for _, n := range names {
		if n != but {
			err = errors.Join(err, fsys.RemoveAll(path.Join(data, dirName, n)))
		}
	}
	return err
}

// leftovers returns the names of what interrupted writers and removals left.
func leftovers(fsys vfs.FS, data string) ([]string, error) {
	names, err := fsys.ReadDir(path.Join(data, dirName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, tmpPrefix) }), err
}

// Check reports whether h is the header of the file that s has for a shard, in a directory with the
// given hash seed.
func (s *Set) Check(h *Header, shard int, seed uint64) error {
	return h.Check(s.ID, shard, len(s.Shards), s.Cursors()[shard], seed)
}

// Check reports whether h is the header of a shard's file in the set id: a file of another set, shard or
// directory is whole, but not what it is taken for.
func (h *Header) Check(id string, shard, shards int, at log.Cursor, seed uint64) error {
	if FormatID(h.Set) != id || h.Shard != shard || h.Shards != shards || h.Cursor != at || h.HashSeed != seed {
		return fmt.Errorf("%w: this is shard %d of %d of set %s at %s (hash seed %x), not shard %d of %d of set %s at %s (%x)",
			ErrCorrupt, h.Shard, h.Shards, FormatID(h.Set), h.Cursor, h.HashSeed, shard, shards, id, at, seed)
	}
	return nil
}
