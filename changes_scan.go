package kevy

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// Scan is a run of keys as they were at one cursor. The slices belong to the receiver.
type Scan struct {
	// Cursor is where the frames are exact: the changes from there on are not in them.
	Cursor log.Cursor
	// Next is the key to go on with; empty when there are no more keys.
	Next []byte
	// Frames rebuild the keys, in key order: each is a Redis command, verb and arguments. A scan from the beginning starts with
	// the libraries of functions (FUNCTION LOAD REPLACE).
	Frames [][][]byte
}

// ChangesScan returns up to limit keys (at least 1, at most 4096) from start on (inclusive, nil being the beginning) as frames that
// rebuild them, about 4 MiB at most, but never less than one key. With prefixes, only keys that start with one of them, at the cost of
// those. Together with the changes from its cursor on it makes an exact copy while writes go on, see Mirror. Errors:
// ErrFeedDisabled, ErrSeveralShards.
func (s *Store) ChangesScan(start []byte, limit int, prefixes ...[]byte) (Scan, error) {
	return s.only().ChangesScan(start, limit, prefixes...)
}

// ChangesScan is Store.ChangesScan of one shard. The libraries of functions are on shard 0.
func (d Shard) ChangesScan(start []byte, limit int, prefixes ...[]byte) (Scan, error) {
	if err := d.enter(); err != nil {
		return Scan{}, err
	}
	s := d.s
	defer s.mu.RUnlock()
	req := feed.ScanRequest{Shard: uint64(d.n), Start: start, Filter: feed.Filter{Count: min(max(limit, 1), 4096), Prefixes: prefixes}} //nolint:gosec // not negative
	var c copier
	at, next, err := s.feed.Keys(&req, s.freezer(nil), &c)
	if err != nil {
		return Scan{}, publicError(err)
	}
	return Scan{Cursor: at, Next: next, Frames: c.frames}, nil
}

// freezer freezes the store; c is the context of the group that asks for it, if there is one.
func (s *Store) freezer(c *command.Ctx) feed.Freezer {
	return func(shard int) (feed.Frozen, error) { return s.e.Freeze(c, shard) }
}

// copier keeps copies of the frames of a scan.
type copier struct {
	frames   [][][]byte
	size     int
	kept     int // frames
	keptSize int
}

// Add implements feed.KeySink.
func (c *copier) Add(e *effect.Effect) {
	payload, _ := effect.AppendPayload(nil, e)
	argv, _ := effect.DecodeArgv(payload, make([][]byte, 0, 1+len(e.Args))) // what AppendPayload writes is well-formed
	c.frames = append(c.frames, argv)
	c.size += len(payload)
}

// Size implements feed.KeySink.
func (c *copier) Size() int { return c.size }

// Keep implements feed.KeySink.
func (c *copier) Keep() { c.kept, c.keptSize = len(c.frames), c.size }

// Undo implements feed.KeySink.
func (c *copier) Undo() { c.frames, c.size = c.frames[:c.kept], c.keptSize }
