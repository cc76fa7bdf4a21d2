package kevy

import "github.com/kevydb/kevy/internal/vfs"

// SetCountForTesting sets how many keys or frames the mirror asks for at a time.
func (m *Mirror) SetCountForTesting(n int) { m.count = n }

// OnFSForTesting keeps the store's directory in fs.
func (c Config) OnFSForTesting(fs vfs.FS) Config { c.fs = fs; return c }
