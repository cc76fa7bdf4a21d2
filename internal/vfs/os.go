package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	fileMode = 0o640
	dirMode  = 0o750
)

// OS returns the file system of the operating system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

func (osFS) OpenReadWrite(name string) (File, error) { return openOS(name, os.O_RDWR) }

func (osFS) Rename(oldname, newname string) error {
	return os.Rename(filepath.FromSlash(oldname), filepath.FromSlash(newname))
}

func (osFS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

func (osFS) RemoveAll(name string) error { return os.RemoveAll(filepath.FromSlash(name)) }

func (osFS) MkdirAll(name string) error { return os.MkdirAll(filepath.FromSlash(name), dirMode) }

func (osFS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.FromSlash(name)) }

// SyncDir syncs the directory. File systems that cannot sync directories say EINVAL, always; that
// is no failure of the disk and there is nothing the caller could do, so it is ignored.
func (osFS) SyncDir(name string) error {
	d, err := os.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Lock takes an flock, which the system drops when the process ends in whatever way, and leaves
// the process id in the file for people who look at it.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	err = control(f, "flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", ErrLocked, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The lock holds with or without the id in it; a full disk must not keep a store from opening.
	if f.Truncate(0) == nil {
		_, _ = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	return f, nil
}

type osFile struct{ f *os.File }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), flag, fileMode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (o osFile) ReadAt(p []byte, off int64) (int, error) { return o.f.ReadAt(p, off) }

// WriteAt goes on after short writes: os.File.WriteAt loops until all is written or fails.
func (o osFile) WriteAt(p []byte, off int64) (int, error) { return o.f.WriteAt(p, off) }

func (o osFile) Close() error { return o.f.Close() }

func (o osFile) Sync() error { return datasync(o.f) }

func (o osFile) Truncate(size int64) error { return o.f.Truncate(size) }

func (o osFile) Size() (int64, error) {
	fi, err := o.f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (o osFile) Preallocate(off, n int64) error {
	if n <= 0 {
		return nil
	}
	return preallocate(o.f, off, n)
}

func (o osFile) WriteBack(off, n int64) {
	if n > 0 {
		writeBack(o.f, off, n)
	}
}

// control runs a system call on the file's descriptor, again after EINTR, while keeping the
// descriptor from being closed and reused under it.
func control(f *os.File, op string, call func(fd int) error) error {
	rc, err := f.SyscallConn()
	if err != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: err}
	}
	var callErr error
	err = rc.Control(func(fd uintptr) {
		callErr = unix.EINTR
		for errors.Is(callErr, unix.EINTR) {
			callErr = call(int(fd))
		}
	})
	switch {
	case err != nil: // of Control's own there is only this one
		err = fs.ErrClosed
	case callErr == nil:
		return nil
	default:
		err = callErr
	}
	return &fs.PathError{Op: op, Path: f.Name(), Err: err}
}
