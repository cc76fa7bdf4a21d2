package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/kevydb/kevy/internal/vfs"
)

// putSuffix is what a file is called that is being written.
const putSuffix = ".put"

// fileStore keeps objects as files of a directory.
type fileStore struct {
	fs  vfs.FS
	dir string
}

// NewFileStore returns the store of a directory, which is made when the first object is put.
func NewFileStore(fsys vfs.FS, dir string) Store { return &fileStore{fsys, dir} }

func (s *fileStore) String() string { return s.dir }

func (s *fileStore) path(name string) string { return path.Join(s.dir, name) }

// makeDir makes the directory of an object, durably.
func (s *fileStore) makeDir(dir string) error {
	if _, err := s.fs.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) || dir == path.Dir(dir) {
		return err
	}
	if err := s.makeDir(path.Dir(dir)); err != nil {
		return err
	}
	if err := s.fs.MkdirAll(dir); err != nil {
		return err
	}
	return s.fs.SyncDir(path.Dir(dir))
}

// Put writes the file under another name, syncs it, renames it and syncs the directory.
func (s *fileStore) Put(ctx context.Context, name string, src io.ReaderAt, size int64) error {
	to := s.path(name)
	if err := s.makeDir(path.Dir(to)); err != nil {
		return err
	}
	temp := to + putSuffix
	if err := vfs.RemoveIfThere(s.fs, temp); err != nil {
		return err
	}
	f, err := s.fs.Create(temp)
	if err != nil {
		return err
	}
	err = s.write(ctx, f, io.NewSectionReader(src, 0, size))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fs.Rename(temp, to)
	}
	if err != nil {
		_ = s.fs.Remove(temp) // the next Put of the name removes it, and so does the sweep
		return err
	}
	return s.fs.SyncDir(path.Dir(to))
}

func (s *fileStore) write(ctx context.Context, f vfs.File, src *io.SectionReader) error {
	buf := make([]byte, min(copyBytes, src.Size()))
	for off := int64(0); off < src.Size(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(src, buf[:min(int64(len(buf)), src.Size()-off)])
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// fileReader is an open file from a position on.
type fileReader struct {
	io.Reader
	io.Closer
}

func (s *fileStore) Get(_ context.Context, name string, off, size int64) (io.ReadCloser, error) {
	f, err := s.fs.Open(s.path(name))
	if err != nil {
		return nil, err
	}
	if size < 0 {
		total, err := f.Size()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		size = total - off
	}
	return fileReader{io.NewSectionReader(f, off, size), f}, nil
}

func (s *fileStore) List(_ context.Context, prefix string, each func(string, int64)) error {
	return s.walk("", func(name string, size int64) {
		if strings.HasPrefix(name, prefix) {
			each(name, size)
		}
	})
}

func (s *fileStore) walk(dir string, each func(string, int64)) error {
	names, err := s.fs.ReadDir(s.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		name := path.Join(dir, n)
		fi, e := s.fs.Stat(s.path(name))
		switch {
		case errors.Is(e, fs.ErrNotExist): // removed meanwhile
		case e != nil:
			err = errors.Join(err, e)
		case fi.IsDir():
			err = errors.Join(err, s.walk(name, each))
		default:
			each(name, fi.Size())
		}
	}
	return err
}

// Delete removes the file, and the directory of a set with its last file.
func (s *fileStore) Delete(_ context.Context, name string) error {
	err := s.fs.Remove(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if dir := path.Dir(name); err == nil && dir != "." {
		if left, e := s.fs.ReadDir(s.path(dir)); e == nil && len(left) == 0 {
			_ = s.fs.Remove(s.path(dir)) // it comes back with the next object in it
		}
	}
	return err
}
