package log

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/kevydb/kevy/internal/vfs"
)

// cut keeps the bytes after the end aside and truncates the newest segment, durably (step 5).
func (s *shardScan) cut(r *ShardRecovery) error {
	seg := s.newest()
	if s.size > s.end.pos {
		r.CutBytes, r.CutFrames = s.size-s.end.pos, s.read-min(s.read, s.end.off)
		r.Reason = s.reason.Error()
	}
	f, err := s.fs.OpenReadWrite(seg.path())
	if err != nil {
		return err
	}
	err = s.cutFile(f, r)
	return errors.Join(err, f.Close())
}

// syncNewest makes the newest segment durable as it was found, where another one is about to follow it: the first part of a Bridge that a killed
// process wrote may be in no fsync yet.
func (s *shardScan) syncNewest() error {
	f, err := s.fs.OpenReadWrite(s.newest().path())
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (s *shardScan) cutFile(f vfs.File, r *ShardRecovery) error {
	seg := s.newest()
	if s.size == s.end.pos {
		// Nothing to cut, but what a killed process wrote may be in no fsync yet: it is about to
		// become the past, whose damage nobody forgives. The truncation gives back what was reserved ahead.
		if err := f.Truncate(s.size); err != nil {
			return err
		}
		return f.Sync()
	}
	dir := path.Join(s.dir, "cut")
	name := path.Join(dir, fmt.Sprintf("%020d-%d", seg.number, s.end.pos))
	kept, err := keepAside(s.fs, f, s.end.pos, s.size, s.dir, dir, name)
	if err != nil {
		return fmt.Errorf("log: keeping the cut tail of %s: %w", seg.path(), err)
	}
	if kept {
		r.CutFile = name
	}
	// A cut below the mark (a group that is not whole on other shards) must not look like damage when
	// recovery starts again after a crash.
	if m := s.mark.cursor; m.Generation == s.generation() && m.Offset > s.end.off {
		if err := lowerMark(s.fs, s.dir); err != nil {
			return err
		}
	}
	if err := f.Truncate(s.end.pos); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	seg.end.Store(s.end.pos)
	s.size = s.end.pos
	return nil
}

// keepAside copies the bytes [from, to) of f into a file of its own, durably, without the zeros at
// the end. It reports whether there was anything but zeros.
func keepAside(fsys vfs.FS, f vfs.File, from, to int64, parent, dir, name string) (bool, error) {
	buf := *buffers.Get().(*[]byte)
	defer buffers.Put(&buf)
	to, err := trimZeros(f, from, to, buf)
	if err != nil || to == from {
		return false, err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return false, err
	}
	if err := vfs.RemoveIfThere(fsys, name); err != nil {
		return false, err
	}
	out, err := fsys.Create(name)
	if err != nil {
		return false, err
	}
	err = copyBytes(out, 0, f, from, to, buf)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = errors.Join(fsys.SyncDir(dir), fsys.SyncDir(parent))
	}
	return true, err
}

// copyBytes copies the bytes [from, to) of src to dst, where they begin at at. buf is for use on the way.
func copyBytes(dst vfs.File, at int64, src io.ReaderAt, from, to int64, buf []byte) error {
	for pos := from; pos < to; pos += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), to-pos)]
		if err := readFull(src, buf, pos); err != nil {
			return err
		}
		if _, err := dst.WriteAt(buf, at+pos-from); err != nil {
			return err
		}
	}
	return nil
}

// trimZeros returns the end of the last byte in [from, to) that is not zero, or from.
func trimZeros(f vfs.File, from, to int64, buf []byte) (int64, error) {
	for to > from {
		n := min(int64(len(buf)), to-from)
		b := buf[:n]
		if err := readFull(f, b, to-n); err != nil {
			return 0, err
		}
		for i := len(b); i > 0; i-- {
			if b[i-1] != 0 {
				return to - n + int64(i), nil
			}
		}
		to -= n
	}
	return from, nil
}

func readFull(f io.ReaderAt, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF: //nolint:errorlint // io.ReaderAt says io.EOF
		return io.ErrUnexpectedEOF
	default:
		return err
	}
}
