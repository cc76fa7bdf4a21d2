package vfs

import "errors"

// ErrLocked is returned by FS.Lock when somebody else holds the lock.
var ErrLocked = errors.New("vfs: in use by another process, or by this one already")
