package tree

import (
	"io/fs"
	"path"
	"time"
)

// Info returns a description of a file or directory. An in-memory file system has no clock: the
// modification time is zero.
func Info(name string, size int64, dir bool) fs.FileInfo {
	return info{name: path.Base(clean(name)), size: size, dir: dir}
}

type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.dir }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o750
	}
	return 0o640
}
