package kevy

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// Limits of the feed window in bytes.
const (
	DefaultFeedWindow = 64 << 20
	MaxFeedWindow     = 1 << 30
)

// snapshotMin is how many bytes a snapshot and the log behind it have at least before a snapshot is taken by itself. It
// is a variable only for tests.
var snapshotMin int64 = 64 << 20

// Config says how a Store is opened. Start from DefaultConfig; the With methods return changed
// copies.
type Config struct {
	// Dir is the data directory. Empty: the store lives in memory and ends with Close; the log is
	// still its primary structure.
	Dir string
	// Feed enables ChangesTail, ChangesSince and Follow.
	Feed bool
	// FeedWindow is how many bytes of changes back from the newest can be read; 0 means
	// DefaultFeedWindow.
	FeedWindow int64
	// Fsync is log.Always, log.EverySec (default) or log.No: when a write is acknowledged.
	Fsync log.Policy
	// SnapshotGrowth takes a snapshot when the log behind the last one has grown by so many percent of it, and both
	// together are more than 64 MiB; 0 means 100, less none: the log then grows until Snapshot is called.
	SnapshotGrowth int
	// SnapshotKeep is how many snapshots stay, the newest included; 0 means 2.
	SnapshotKeep int
	// Shards is how many independent logs a new directory, or a store in memory, gets (at most 32); 0 means one, or for a replica as many as its
	// source has. The first Open of such a replica asks the source, and fails if that can't be asked.
	Shards int
	// ReplicaOf is the host:port of a kevy server whose history the store follows: it has the server's keys and
	// changes, with the same cursors on each shard, and refuses writes with ErrReadOnly. Empty: none. A directory that followed a server and is
	// opened without begins a generation of its own.
	ReplicaOf string
	// ReplicaUser and ReplicaPassword log in there; without a password nothing does, an empty user is "default".
	ReplicaUser, ReplicaPassword string
	// ReplicaTLS, if set, is what is spoken to the source.
	ReplicaTLS *ReplicaTLS
	// Now is the clock in unix ms; nil means the system's.
	Now func() int64
	// Logger takes warnings; nil discards them.
	Logger *slog.Logger

	fs vfs.FS // tests only
}

// ReplicaTLS are the files for TLS to a source, as the server's settings tls-ca-cert-file, tls-cert-file and tls-key-file name them. CACertFile
// must have signed the source's certificate, whatever name is in that; the other two are shown to a source that asks for them. They are
// read at each connection.
type ReplicaTLS struct {
	CACertFile, CertFile, KeyFile string
}

// DefaultConfig is a store in memory, without the feed.
func DefaultConfig() Config { return Config{Fsync: log.EverySec} }

// WithDir keeps the store in a directory, created if needed.
func (c Config) WithDir(dir string) Config { c.Dir = dir; return c }

// WithFeed enables the change feed with a window of the given bytes; 0 means DefaultFeedWindow.
func (c Config) WithFeed(window int64) Config { c.Feed, c.FeedWindow = true, window; return c }

// WithFsync sets when a write is acknowledged.
func (c Config) WithFsync(p log.Policy) Config { c.Fsync = p; return c }

// WithShards sets the number of shards of a new directory.
func (c Config) WithShards(n int) Config { c.Shards = n; return c }

// WithReplicaOf makes the store a replica of the server at host:port.
func (c Config) WithReplicaOf(addr string) Config { c.ReplicaOf = addr; return c }

// WithReplicaLogin logs the replica in as a user; the empty name is "default".
func (c Config) WithReplicaLogin(user, password string) Config {
	c.ReplicaUser, c.ReplicaPassword = user, password
	return c
}

// WithReplicaTLS speaks TLS to the source.
func (c Config) WithReplicaTLS(files ReplicaTLS) Config { c.ReplicaTLS = &files; return c }

// WithLogger sets the logger.
func (c Config) WithLogger(l *slog.Logger) Config { c.Logger = l; return c }

// Validate names the field that cannot be as it is.
func (c Config) Validate() error {
	if c.FeedWindow < 0 || c.FeedWindow > MaxFeedWindow {
		return fmt.Errorf("kevy: FeedWindow = %d: must be 0 to %d bytes", c.FeedWindow, MaxFeedWindow)
	}
	if c.SnapshotKeep < 0 {
		return fmt.Errorf("kevy: SnapshotKeep = %d: the newest snapshot always stays", c.SnapshotKeep)
	}
	if c.Shards < 0 || c.Shards > engine.MaxShards {
		return fmt.Errorf("kevy: Shards = %d: must be 0 to %d", c.Shards, engine.MaxShards)
	}
	if c.ReplicaOf != "" {
		if _, _, err := net.SplitHostPort(c.ReplicaOf); err != nil {
			return fmt.Errorf("kevy: ReplicaOf = %q: want host:port", c.ReplicaOf)
		}
	}
	if c.ReplicaTLS != nil {
		if _, err := c.ReplicaTLS.settings().ToSource(); err != nil {
			return fmt.Errorf("kevy: ReplicaTLS: %w", err)
		}
	}
	switch c.Fsync {
	case log.Always, log.EverySec, log.No:
		return nil
	}
	return errors.New("kevy: Fsync must be log.Always, log.EverySec or log.No")
}

func (t *ReplicaTLS) settings() *client.TLS {
	return &client.TLS{CACert: t.CACertFile, Cert: t.CertFile, Key: t.KeyFile}
}

func (c Config) snapshots() *engine.SnapshotPolicy {
	p := engine.SnapshotPolicy{GrowthPercent: 100, GrowthMin: snapshotMin, Keep: 2}
	if c.SnapshotGrowth != 0 {
		p.GrowthPercent = int64(max(0, c.SnapshotGrowth))
	}
	if c.SnapshotKeep != 0 {
		p.Keep = c.SnapshotKeep
	}
	return &p
}

func (c Config) options() engine.Options {
	o := engine.Options{
		Now:       c.Now,
		Logger:    c.Logger,
		Snapshots: c.snapshots(),
		Log: log.Options{
			FS: c.fs, Dir: filepath.ToSlash(c.Dir), Shards: c.Shards, Window: c.FeedWindow, Policy: c.Fsync,
			Follower: c.ReplicaOf != "",
		},
	}
	if c.Dir == "" {
		o.Log.FS, o.Log.Dir, o.Log.Ephemeral = vfs.NewMem(), "mem", true
	} else if o.Log.FS == nil {
		o.Log.FS = vfs.OS()
	}
	return o
}
