package log

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
)

const (
	defaultSegmentBytes = 64 << 20
	defaultWindow       = 64 << 20
	defaultSealAfter    = 10 * time.Minute
)

// Options say how a directory is opened. The zero value of a field is its default.
type Options struct {
	FS  vfs.FS // nil: the operating system's
	Dir string // slash-separated path

	Shards   int    // used when the directory is created; 0: 1; at most MaxShards
	HashSeed uint64 // used when the directory is created; 0: random

	// RestoredFrom, used when the directory is created, has a cursor for each shard: the state that
	// will be put here is that of another directory there. The first generation then has the cause
	// restore, and the cursor as its parent.
	RestoredFrom []Cursor

	// Follower says that the directory is to follow another store. One that did so before goes on in its generations after whatever stop:
	// what it has lost, the other store still has. Without Follower such a directory begins a new generation, of cause
	// promotion, as from now on it may have a history of its own.
	Follower bool

	SegmentBytes int64 // a segment is rolled when it is this long; 0: 64 MiB
	Window       int64 // bytes the feed serves behind the tail, per shard; 0: 64 MiB
	ServeAll     bool  // the feed serves everything of the current generation that is on disk
	Ephemeral    bool  // drop whatever the window does not need: for stores in memory
	Policy       Policy

	KeepBytes int64         // bytes of log to keep on disk per shard although a snapshot covers them
	KeepTime  time.Duration // age up to which log is kept although a snapshot covers it

	// SealAfter is how long ago a segment must have ended for Maintain to seal it; 0: 10 minutes, negative: none. Under a high rate of
	// writes the next snapshot drops segments before that, and what compresses them would be for nothing.
	SealAfter time.Duration

	// Background runs what takes CPU for long and may wait, as sealing does, and returns when it has ended; nil: like anything else.
	// fn calls giveWay after each small piece of its work.
	Background func(fn func(giveWay func()))

	Now    func() int64  // unix ms, safe for concurrent use; nil: the system's clock
	Rand   func() uint64 // nil: crypto/rand
	Logger *slog.Logger  // nil: nothing is logged

	sealSizes sealSizes // for tests
}

func (o *Options) withDefaults() (Options, error) {
	c := *o
	if c.FS == nil {
		c.FS = vfs.OS()
	}
	if c.Shards == 0 {
		c.Shards = 1
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = defaultSegmentBytes
	}
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.SealAfter == 0 {
		c.SealAfter = defaultSealAfter
	}
	if c.Now == nil {
		c.Now = unixMS
	}
	if c.Rand == nil {
		c.Rand = randomUint64
	}
	if c.sealSizes == (sealSizes{}) {
		c.sealSizes = defaultSealSizes
	}
	if c.Background == nil {
		c.Background = func(fn func(giveWay func())) { fn(func() {}) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, c.validate()
}

func (o *Options) validate() error {
	switch {
	case o.Dir == "":
		return errors.New("log: Options.Dir is empty")
	case o.Shards < 1 || o.Shards > MaxShards:
		return fmt.Errorf("log: Options.Shards is %d, want 1..%d", o.Shards, MaxShards)
	case o.RestoredFrom != nil && len(o.RestoredFrom) != o.Shards:
		return fmt.Errorf("log: Options.RestoredFrom has %d cursors for %d shards", len(o.RestoredFrom), o.Shards)
	case o.SegmentBytes < headerBytes:
		return fmt.Errorf("log: Options.SegmentBytes is %d, want at least %d", o.SegmentBytes, headerBytes)
	case o.Window < 1:
		return fmt.Errorf("log: Options.Window is %d, want at least 1", o.Window)
	case o.KeepBytes < 0 || o.KeepTime < 0:
		return fmt.Errorf("log: Options.KeepBytes is %d, KeepTime %v: want none below 0", o.KeepBytes, o.KeepTime)
	case o.Policy < EverySec || o.Policy > No:
		return fmt.Errorf("log: Options.Policy is %v", o.Policy)
	}
	return nil
}

func randomUint64() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return le.Uint64(b[:])
}
