package vfs

import (
	"errors"
	"fmt"
	"io"
)

// WriteFile makes a file with the given content and syncs it, its directory entry not.
func WriteFile(fsys FS, name string, b []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ErrTooLarge is returned by ReadFile for a file above its limit.
var ErrTooLarge = errors.New("file is too large")

// ReadFile reads a file of at most limit bytes.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, size, limit)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); err != nil && (!errors.Is(err, io.EOF) || int64(n) < size) {
		return nil, err
	}
	return b, nil
}
