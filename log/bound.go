package log

import (
	"errors"
	"io/fs"
	"math"
	"path"
)

// bound is how far the files of a shard are read while another process may be writing to them: segments behind it are not there, and of that one
// itself there are so many bytes.
type bound struct {
	segment uint64
	size    int64
}

// bindAll finds segments that were all the newest ones of their shards at one and the same moment, and after it their sizes.
//
// The shards of a directory in use can't be looked at all at once. Each look alone is no better than a crash, and cutGroups makes the shards agree, but only
// as far as it can cut: in the newest segment. A segment that has ended holds no part of a group whose other parts are not in the files (roll), but they may be in
// bytes, or segments, that came after another shard had been looked at. If all segments were the newest at one moment, those before them had
// ended by then; all that they need was in the files by then, and in the sizes, which are taken later.
func bindAll(shards []*shardScan) error {
	for _, s := range shards {
		numbers, err := s.numbers()
		if err != nil {
			return err
		}
		s.bound = &bound{segment: math.MaxUint64}
		if n := len(numbers); n > 0 {
			s.bound.segment = numbers[n-1]
		}
	}
	// A round in which nothing has ended: when it began, each segment had been seen, and it was still the newest afterwards.
	for moved := true; moved; {
		moved = false
		for _, s := range shards {
			ended, err := s.advance()
			if err != nil {
				return err
			}
			moved = moved || ended
		}
	}
	for _, s := range shards {
		var err error
		if s.bound.size, err = s.rawSize(s.bound.segment); err != nil {
			return err
		}
		if s.bound.size < 0 { // sealed, or not there at all
			s.bound.size = math.MaxInt64
		}
	}
	return nil
}

// advance goes on to the segments behind the bound and reports whether there are any.
func (s *shardScan) advance() (moved bool, err error) {
	for n := s.bound.segment + 1; n != 0 && s.wants(n); n++ {
		size, err := s.rawSize(n)
		if err != nil || size < 0 {
			return moved, err
		}
		s.bound.segment, moved = n, true
	}
	return moved, nil
}

// rawSize returns the size of a segment's raw file, -1 if there is none.
func (s *shardScan) rawSize(n uint64) (int64, error) {
	fi, err := s.fs.Stat(path.Join(s.dir, segmentName(n)))
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
