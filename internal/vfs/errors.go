package vfs

import "errors"

// ErrLocked is returned by FS.Lock when somebody else holds the lock.
var ErrLocked = errors.New("vfs: locked by another process")
