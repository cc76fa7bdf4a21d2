// Package warm makes a data directory from a running server, and keeps it in step: kevy restore --from redis://.
//
// The base comes from FEED.SCAN and what follows from FEED.READ (kevy.Mirror). Everything enters the new directory through its log
// (engine.Ingest), one group for each batch, so it is whole groups of the source's shards at any time. The directory begins with generations of
// cause restore whose parents are the source's; while it has no snapshot it refuses to be opened, and the first one is taken when the base
// is complete: half a copy cannot be taken for a whole one. One that is ended cleanly while it follows can be taken up again (record.go).
package warm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Options say what to copy and where.
type Options struct {
	// From names the server and how to reach it (Addr, User, Password, Dial, Prefixes, Logger); the rest is set here.
	From *kevy.Mirror
	FS   vfs.FS // of To; nil: the operating system's
	To   string // new data directory, which must not exist or be empty; or that of a copy that was ended while it followed: it goes on
	// Follow goes on until ctx ends.
	Follow bool
	// Resumed is called when a copy goes on, with what it has; may be nil.
	Resumed func(keys int, digest string)
	// Based is called when the base is complete, and the directory can be opened, and when a copy that goes on has come to where the source was by then; may be nil.
	Based func(keys int, digest string)
}

// Result tells what was copied.
type Result struct {
	To     string       `json:"to"`
	Source []log.Cursor `json:"source"` // by shard of the source: the first frame that is not in the copy
	New    []log.Cursor `json:"new"`    // by shard of the copy: where it goes on
	Keys   int          `json:"keys"`
	Digest string       `json:"digest"` // as PREFIX.DIGEST tells it, keys past their deadline included
	Copies int          `json:"copies"` // base copies begun, of all shards
}

// While it follows, the copy takes a snapshot when its log has grown by so much (percent of the last one, bytes): the log before it goes.
const (
	growthPercent = 100
	growthMin     = 64 << 20
)

// errEnough ends the mirror when nobody wants to follow.
var errEnough = errors.New("warm: the copy is complete")

// Run makes the copy, or goes on with one. Without Follow it ends when every shard has reached the tail it had when its base was complete. When ctx ends earlier
// and the base is complete, that is no error; otherwise nothing is left in o.To. What follows, or went on, can be taken up again. The directory is verified by reading it again.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	c, err := begin(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer c.release()
	e := c.e
	err = c.mirror(ctx)
	if !c.usable() {
		return nil, errors.Join(err, e.Close(false), o.FS.RemoveAll(o.To))
	}
	if errors.Is(err, errEnough) || ctx.Err() != nil {
		err = nil
	}
	r := &Result{To: o.To}
	r.Keys, r.Digest = e.Digest()
	for _, s := range o.From.Status() {
		r.Source = append(r.Source, s.Cursor)
		r.Copies += s.Copies
	}
	r.New = c.tails()
	err = errors.Join(err, e.SaveAfter())
	if o.Follow || c.resumed {
		err = errors.Join(err, c.remember())
	}
	if err := errors.Join(err, e.Close(true)); err != nil {
		return r, err
	}
	return r, history.CheckCopy(o.FS, o.To, r.Keys, r.Digest, nil)
}

// begin makes the directory, or opens that of a copy that goes on.
func begin(ctx context.Context, o *Options) (*copier, error) {
	tails, err := o.From.Tails(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.From.Addr, err)
	}
	if c, err := resume(o); c != nil || err != nil {
		return c, err
	}
	if err := engine.CheckEmpty(o.FS, o.To); err != nil {
		return nil, err
	}
	e, _, err := engine.Open(engine.Options{
		Logger: o.From.Logger,
		Log:    log.Options{FS: o.FS, Dir: o.To, Shards: len(tails), RestoredFrom: tails},
	})
	if err != nil {
		return nil, err
	}
	return newCopier(o, e), nil
}

func newCopier(o *Options, e *engine.Engine) *copier {
	e.SetActiveExpire(false) // the source expires; its DELs come as frames
	return &copier{o: o, e: e, ready: make(map[int]bool)}
}

// copier applies the batches.
type copier struct {
	o *Options
	e *engine.Engine

	// tracks has the keys of each shard of the source: in the copy they lie elsewhere, and a reset is about one shard of the source.
	tracks    []*state.Keyspace
	effects   []effect.Effect
	positions []string // by shard of the source

	resumed bool // it went on with a copy
	cancel  context.CancelCauseFunc

	mu    sync.Mutex
	ready map[int]bool // shards that have been copied
	done  bool         // all had been, at one time
}

func (c *copier) mirror(ctx context.Context) error {
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	m := c.o.From
	m.Apply, m.Ready, m.Load, m.Save, m.Functions = c.apply, c.copied, c.load, c.save, true
	if c.resumed && c.o.Resumed != nil {
		c.o.Resumed(c.e.Digest())
	}
	if c.resumed && c.o.Follow {
		c.boundLog()
	}
	return m.Run(ctx)
}

// load is the Mirror's Load.
func (c *copier) load(_ context.Context, shard int) (position string, err error) {
	if shard < len(c.positions) {
		position = c.positions[shard]
	}
	return position, nil
}

// save is the Mirror's Save.
func (c *copier) save(_ context.Context, shard int, position string) error {
	for len(c.positions) <= shard {
		c.positions = append(c.positions, "")
	}
	c.positions[shard] = position
	return nil
}

// boundLog lets a log that grows without end be replaced by snapshots.
func (c *copier) boundLog() {
	c.e.SetSnapshotPolicy(engine.SnapshotPolicy{GrowthPercent: growthPercent, GrowthMin: growthMin})
}

// usable reports whether the directory can be opened.
func (c *copier) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done || c.resumed
}

// copied is told that a shard has been copied.
func (c *copier) copied(shard int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready[shard] = true
	for i, s := range c.o.From.Status() {
		if s.Rebuilding || !c.ready[i] {
			return
		}
	}
	if c.done {
		return
	}
	if !c.resumed {
		if err := c.e.SaveAfter(); err != nil {
			c.cancel(err)
			return
		}
	}
	c.done = true
	if c.o.Based != nil {
		c.o.Based(c.e.Digest())
	}
	if !c.o.Follow {
		c.cancel(errEnough)
		return
	}
	c.boundLog()
}

// track returns the keys of a shard of the source.
func (c *copier) track(shard int) *state.Keyspace {
	for len(c.tracks) <= shard {
		c.tracks = append(c.tracks, state.New(1))
	}
	return c.tracks[shard]
}

func (c *copier) release() {
	for _, ks := range c.tracks {
		ks.Release()
	}
}

// apply is the Mirror's Apply.
func (c *copier) apply(_ context.Context, b *kevy.MirrorBatch) error {
	keys := c.track(b.Shard)
	c.effects = c.effects[:0]
	if b.Reset != nil {
		keys.AscendFrom(b.Reset.From, func(e state.Entry) bool {
			in := b.Reset.Contains(e.Key())
			if in {
				c.effects = append(c.effects, effect.Effect{Op: effect.Del, Args: [][]byte{bytes.Clone(e.Key())}})
			}
			return in
		})
	}
	for i := range b.Changes {
		e, err := effect.FromArgv(b.Changes[i].Argv)
		if err != nil {
			return err
		}
		c.effects = append(c.effects, e)
	}
	if len(c.effects) == 0 {
		return nil
	}
	if err := c.e.Ingest(c.effects); err != nil {
		return fmt.Errorf("shard %d up to %s: %w", b.Shard, b.Cursor, err)
	}
	return c.follow(keys)
}

// follow keeps the tracked keys in step with what was applied to a shard. A key belongs to the shard that has changed it last: another
// server at the same address has its keys elsewhere. A collection that becomes empty stays tracked, which costs its key, nothing else.
func (c *copier) follow(shard *state.Keyspace) (err error) {
	fold := func(ks *state.Keyspace, e effect.Effect) {
		if _, ferr := ks.Fold(&e); ferr != nil {
			err = ferr
		}
	}
	for i := range c.effects {
		gone := c.effects[i].Op == effect.Del
		c.effects[i].EachKey(func(key []byte) {
			for _, ks := range c.tracks {
				if ks != shard || gone {
					fold(ks, effect.Effect{Op: effect.Del, Args: [][]byte{key}})
				}
			}
			if !gone {
				fold(shard, effect.Effect{Op: effect.Set, Args: [][]byte{key, nil}})
			}
		})
	}
	return err
}
