package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
)

// Classes of errors, for errors.Is.
var (
	// ErrCorrupt: bytes that exist are not what was written. Nothing is ever skipped to get past them.
	ErrCorrupt = errors.New("log: corrupt")
	// ErrVersion: written by a version of the format this program does not know.
	ErrVersion = errors.New("log: unknown format version")
	// ErrDiskFull: there is no space for more frames. Not sticky: it ends when there is space again.
	// It wraps ENOSPC.
	ErrDiskFull error = diskFullError{}
	// ErrAhead: the cursor is beyond the tail of its generation.
	ErrAhead = errors.New("log: cursor ahead of the stream")
	// ErrGone: the frames at the cursor are no longer (or never were) in this log.
	ErrGone = errors.New("log: frames are no longer in the log")
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("log: closed")
	// ErrReadOnly: the log was opened with OpenReadOnly.
	ErrReadOnly = errors.New("log: opened read-only")
	// ErrFailed: an earlier write or fsync failed, and the log takes no more frames.
	ErrFailed = errors.New("log: failed")
	// ErrNoManifest: the directory has no manifest: it holds data that can't be told from damage, or is none of kevy's. It wraps
	// fs.ErrNotExist.
	ErrNoManifest error = noManifestError{}
)

type diskFullError struct{}

func (diskFullError) Error() string { return "log: no space left on the disk" }

// Unwrap makes errors.Is(ErrDiskFull, syscall.ENOSPC) true.
func (diskFullError) Unwrap() error { return syscall.ENOSPC }

type noManifestError struct{}

func (noManifestError) Error() string { return "log: no MANIFEST" }

// Unwrap makes errors.Is(ErrNoManifest, fs.ErrNotExist) true.
func (noManifestError) Unwrap() error { return fs.ErrNotExist }

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

// ResyncError says that a feed cursor can't be served any more: its generation is not the current
// one, or its offset is below the base. Rebuild, then go on from {Generation, Tail}.
type ResyncError struct {
	Generation uint64 // the current generation
	Tail       uint64 // its appended tail
}

// Error describes the error.
func (e *ResyncError) Error() string {
	return fmt.Sprintf("log: cursor out of the stream, resume from %d:%d", e.Generation, e.Tail)
}

// CorruptError locates damage (or, when it wraps ErrVersion, a foreign version).
type CorruptError struct {
	File     string // path
	Position int64  // byte in File; -1: the file as a whole
	Cursor   Cursor // the frame that should be there; zero when not in a frame
	Err      error  // what is wrong; matches ErrCorrupt or ErrVersion
}

// Error says where and what.
func (e *CorruptError) Error() string {
	s := e.File
	if e.Position >= 0 {
		s = fmt.Sprintf("%s at byte %d", s, e.Position)
	}
	if e.Cursor != (Cursor{}) {
		s = fmt.Sprintf("%s (frame %v)", s, e.Cursor)
	}
	return fmt.Sprintf("%v: %s", e.Err, s)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Advise adds to an error about a damaged directory what can be done about it; one about its manifest says that already. dir is the
// directory's name on a command line.
func Advise(err error, dir string) error {
	damage, ok := errors.AsType[*CorruptError](err)
	if ok && (path.Base(damage.File) == manifestName || !errors.Is(damage, ErrCorrupt)) {
		return err
	}
	return fmt.Errorf("%w; kevy verify %s shows all that is damaged, kevy restore --from %s --to NEWDIR --before-damage makes another directory with "+
		"the newest state that needs nothing of it", err, dir, dir)
}

// corruption is the cause of damage, matching ErrCorrupt.
type corruption string

func (c corruption) Error() string { return "log: corrupt: " + string(c) }

// Is makes every corruption match ErrCorrupt.
func (c corruption) Is(target error) bool { return target == ErrCorrupt } //nolint:errorlint // identity is meant

func corruptf(format string, args ...any) error { return corruption(fmt.Sprintf(format, args...)) }

// failedError is the sticky error: it matches ErrFailed and what caused it.
type failedError struct {
	op  string
	err error
}

func (e *failedError) Error() string   { return "log: failed: " + e.op + ": " + e.err.Error() }
func (e *failedError) Unwrap() []error { return []error{ErrFailed, e.err} }

// syncError is a failed fsync. It is final whatever its cause, so it does not match ENOSPC.
type syncError struct {
	name string
	err  error
}

func (e *syncError) Error() string { return "fsync of " + e.name + ": " + e.err.Error() }

func (e *syncError) Unwrap() error {
	if isFull(e.err) {
		return nil
	}
	return e.err
}
