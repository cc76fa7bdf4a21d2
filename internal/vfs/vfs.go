// Package vfs is the small part of a file system that kevy's log and snapshots need, so that tests
// can put a crashing, failing or memory-only one in its place.
package vfs

import (
	"io"
	"io/fs"
)

// FS is a file system. Paths are slash-separated. All methods are safe for concurrent use.
//
// Durability: file contents are durable after File.Sync; directory entries (creation, rename,
// removal) are durable after SyncDir of their directory. Until then either may be lost on power
// failure, in any combination.
type FS interface {
	// Create makes a new file for reading and writing. It fails with fs.ErrExist if there is one.
	Create(name string) (File, error)
	// Open opens an existing file for reading only.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing file for reading and writing.
	OpenReadWrite(name string) (File, error)
	// Rename atomically replaces newname by oldname.
	Rename(oldname, newname string) error
	// Remove removes a file or an empty directory. Open files stay readable.
	Remove(name string) error
	// RemoveAll removes a tree. It is no error if there is none.
	RemoveAll(name string) error
	// MkdirAll makes a directory and its parents; it is no error if they exist.
	MkdirAll(name string) error
	// ReadDir lists the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(name string) error
	// Lock takes an exclusive lock on the named file, creating it if needed, until Close of the
	// result. It fails at once with ErrLocked if another process (or FS user) holds it.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt may be called concurrently with everything; the writing methods
// must not be called concurrently with each other, except that Sync may run beside WriteAt
// (it covers the writes that ended before it began).
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and size durable (fdatasync where there is one).
	Sync() error
	// Truncate sets the size.
	Truncate(size int64) error
	// Size returns the current size in bytes.
	Size() (int64, error)
	// Preallocate reserves disk space for bytes [off, off+n) without changing the size, so that a
	// full disk shows here (as syscall.ENOSPC) and not at a later WriteAt. It may do nothing where
	// the system cannot.
	Preallocate(off, n int64) error
	// WriteBack has the system begin to write bytes [off, off+n) to the disk, so that a Sync to come has less to
	// do at once. It promises nothing: what fails shows at Sync. It may do nothing where the system cannot, and may run
	// beside WriteAt.
	WriteBack(off, n int64)
}
