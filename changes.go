package kevy

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

var (
	// ErrFeedDisabled is returned by the change feed of a store opened without WithFeed.
	ErrFeedDisabled = errors.New("kevy: feed disabled: open the store with Config.WithFeed")
	// ErrCursorAhead is returned for a cursor of the current generation beyond the newest change.
	ErrCursorAhead = errors.New("kevy: feed cursor ahead of stream")
)

// ResyncError says that a cursor cannot be served any more: its generation is over (crash,
// FLUSHALL, restore) or the changes after it have left the window. Rebuild from the keyspace, then go on
// from (Generation, Tail). It mirrors FEEDRESYNC.
type ResyncError struct {
	Generation uint64
	Tail       uint64
}

// Error implements error.
func (e *ResyncError) Error() string {
	return fmt.Sprintf("kevy: FEEDRESYNC %d %d: rebuild, then resume there", e.Generation, e.Tail)
}

// Change is one applied effect. The slices belong to the receiver.
type Change struct {
	Offset uint64   // of this change in its generation
	Argv   [][]byte // the effect as a Redis command: verb and arguments
	TimeMS int64    // unix ms, never decreasing
	Cause  string   // "client", "expired", "evicted", "script", "restore"
	Group  uint64   // offset of the first change of its group: those of one command, transaction or script share it
	Txn    uint64   // identity of a group over several shards, the same on each; 0 for others
}

// Batch is a run of changes.
type Batch struct {
	Changes []Change
	Next    log.Cursor // where to resume
}

// ErrSeveralShards is returned by the change feed of a Store that has several shards: each has its own, see Store.Shard.
var ErrSeveralShards = errors.New("kevy: the store has several shards: each has its own changes")

// FeedShards returns how many shards the store has: 1, unless its directory has more.
func (s *Store) FeedShards() int { return s.e.Shards() }

// Shard is the change feed of one shard of a store. A key lies on one shard; between shards there is no order. All methods are safe for concurrent
// use.
type Shard struct {
	s   *Store
	n   int
	err error // why there is none
}

// Shard returns the change feed of shard n, from 0 on. Of a shard that there is not, each method returns an error.
func (s *Store) Shard(n int) Shard {
	if n < 0 || n >= s.e.Shards() {
		return Shard{err: fmt.Errorf("kevy: shard %d of a store that has %d", n, s.e.Shards())}
	}
	return Shard{s: s, n: n}
}

// only returns the shard of a store that has one.
func (s *Store) only() Shard {
	if s.e.Shards() > 1 {
		return Shard{err: ErrSeveralShards}
	}
	return Shard{s: s}
}

// enter keeps the store open until s.mu.RUnlock.
func (d Shard) enter() error {
	if d.err != nil {
		return d.err
	}
	return d.s.enter()
}

// ChangesTail returns the cursor of the next change: where a fresh consumer starts. It fails with ErrSeveralShards if there are several.
func (s *Store) ChangesTail() (log.Cursor, error) { return s.only().ChangesTail() }

// ChangesTail returns the cursor of the shard's next change.
func (d Shard) ChangesTail() (log.Cursor, error) {
	if err := d.enter(); err != nil {
		return log.Cursor{}, err
	}
	defer d.s.mu.RUnlock()
	if !d.s.cfg.Feed {
		return log.Cursor{}, ErrFeedDisabled
	}
	return d.s.e.Dir().Log(d.n).Tail(), nil
}

// ChangesSince returns up to limit changes (at least 1, at most 4096) from cursor on, about 4 MiB of them at most, but never less than
// one. With prefixes, changes of single keys that start with none of them are left out; others are always
// delivered. An empty batch means caught up. Errors: *ResyncError, ErrCursorAhead, ErrFeedDisabled, ErrSeveralShards.
func (s *Store) ChangesSince(cursor log.Cursor, limit int, prefixes ...[]byte) (Batch, error) {
	return s.only().ChangesSince(cursor, limit, prefixes...)
}

// ChangesSince is Store.ChangesSince of one shard.
func (d Shard) ChangesSince(cursor log.Cursor, limit int, prefixes ...[]byte) (Batch, error) {
	if err := d.enter(); err != nil {
		return Batch{}, err
	}
	defer d.s.mu.RUnlock()
	return d.s.changes(context.Background(), feed.Request{
		Shard: uint64(d.n), Cursor: cursor, Filter: feed.Filter{Count: min(max(limit, 1), 4096), Prefixes: prefixes}, Block: -1, //nolint:gosec // not negative
	})
}

// Follow yields the changes from cursor on and waits for new ones, until ctx ends, the loop breaks,
// or an error, which it yields last. Remember Change.Offset+1 in the cursor's generation to go on
// from there.
func (s *Store) Follow(ctx context.Context, cursor log.Cursor, prefixes ...[]byte) iter.Seq2[Change, error] {
	return s.only().Follow(ctx, cursor, prefixes...)
}

// Follow is Store.Follow of one shard.
func (d Shard) Follow(ctx context.Context, cursor log.Cursor, prefixes ...[]byte) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			b, err := d.wait(ctx, feed.Request{Cursor: cursor, Filter: feed.Filter{Count: 256, Prefixes: prefixes}, Block: 0})
			if err != nil {
				yield(Change{}, err)
				return
			}
			for _, c := range b.Changes {
				if !yield(c, nil) {
					return
				}
			}
			cursor = b.Next
		}
	}
}

// wait is changes of the shard without keeping Close from ending it.
func (d Shard) wait(ctx context.Context, req feed.Request) (Batch, error) {
	if err := d.enter(); err != nil {
		return Batch{}, err
	}
	d.s.mu.RUnlock()
	req.Shard = uint64(d.n) //nolint:gosec // not negative
	b, err := d.s.changes(ctx, req)
	if cerr := ctx.Err(); cerr != nil && err != nil {
		return b, cerr
	}
	return b, err
}

func (s *Store) changes(ctx context.Context, req feed.Request) (Batch, error) {
	c := collector{req: &req}
	next, err := s.feed.Since(ctx, &req, &c)
	if err == nil {
		err = c.err
	}
	if err != nil {
		return Batch{}, publicError(err)
	}
	return Batch{Changes: c.changes, Next: next}, nil
}

func publicError(err error) error {
	var resync *log.ResyncError
	switch {
	case errors.As(err, &resync):
		return &ResyncError{Generation: resync.Generation, Tail: resync.Tail}
	case errors.Is(err, log.ErrAhead):
		return ErrCursorAhead
	case errors.Is(err, feed.ErrDisabled):
		return ErrFeedDisabled
	case errors.Is(err, log.ErrClosed):
		return ErrClosed
	}
	if reply, ok := errors.AsType[feed.Error](err); ok {
		return Error(reply)
	}
	return err
}

// collector copies matching frames.
type collector struct {
	req     *feed.Request
	changes []Change
	bytes   int
	err     error
}

// collectBytes is about how many bytes are collected at a time.
const collectBytes = 4 << 20

// Add implements feed.Sink.
func (c *collector) Add(f *log.Frame) (full bool) {
	if !c.req.Matches(f) {
		return len(c.changes) > 0 && c.enough(f)
	}
	argv, err := effect.DecodeArgv(append([]byte(nil), f.Payload...), nil)
	if err != nil {
		c.err = err
		return true
	}
	c.changes = append(c.changes, Change{
		Offset: f.Cursor.Offset, Argv: argv, TimeMS: f.TimeMS, Cause: f.Cause.String(), Group: f.Group, Txn: f.Txn,
	})
	c.bytes += len(f.Payload)
	return c.enough(f)
}

// enough reports whether the batch may end behind f: with req.WithMeta between groups only, as FEED.READ does.
func (c *collector) enough(f *log.Frame) bool {
	return (f.GroupLast || !c.req.WithMeta) && (len(c.changes) >= c.req.Count || c.bytes >= collectBytes)
}

// Frames implements feed.Sink.
func (c *collector) Frames() int { return len(c.changes) }
