package faultfs

import "fmt"

// OpKind is a method of vfs.FS or vfs.File.
type OpKind int

// The methods of vfs.FS and vfs.File.
const (
	OpCreate OpKind = iota
	OpOpen
	OpOpenReadWrite
	OpRename
	OpRemove
	OpRemoveAll
	OpMkdirAll
	OpReadDir
	OpStat
	OpSyncDir
	OpLock
	OpReadAt
	OpWriteAt
	OpClose
	OpSync
	OpTruncate
	OpSize
	OpPreallocate
	numKinds
)

type class int

const (
	read  class = iota + 1 // leaves the disk as it is
	write                  // changes the disk, or what of it is durable
)

var kinds = [numKinds]struct {
	method string
	class  class
}{
	OpCreate:        {"Create", write},
	OpOpen:          {"Open", read},
	OpOpenReadWrite: {"OpenReadWrite", read},
	OpRename:        {"Rename", write},
	OpRemove:        {"Remove", write},
	OpRemoveAll:     {"RemoveAll", write},
	OpMkdirAll:      {"MkdirAll", write},
	OpReadDir:       {"ReadDir", read},
	OpStat:          {"Stat", read},
	OpSyncDir:       {"SyncDir", write},
	OpLock:          {"Lock", write},
	OpReadAt:        {"ReadAt", read},
	OpWriteAt:       {"WriteAt", write},
	OpClose:         {"Close", read},
	OpSync:          {"Sync", write},
	OpTruncate:      {"Truncate", write},
	OpSize:          {"Size", read},
	OpPreallocate:   {"Preallocate", write},
}

// String returns the name of the method.
func (k OpKind) String() string {
	if k < 0 || k >= numKinds {
		return fmt.Sprintf("OpKind(%d)", int(k))
	}
	return kinds[k].method
}

// IsWrite reports whether the method changes the disk, or what of it is durable.
func (k OpKind) IsWrite() bool { return kinds[k].class == write }

// Op is an operation about to be done.
type Op struct {
	Kind   OpKind
	Path   string // of a rename, the new one
	Offset int64  // of ReadAt, WriteAt and Preallocate; the size for Truncate
	N      int64  // number of bytes to read, write or preallocate
}

// String describes the operation for error messages and logs.
func (o Op) String() string { return fmt.Sprintf("%s %s [%d,+%d)", o.Kind, o.Path, o.Offset, o.N) }
