package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// fetch is a full copy on its way. It outlives the connection, and its files the process: what has come is not asked for again while the source has
// the set.
type fetch struct {
	boot  *engine.Bootstrap
	files []vfs.File // of the shards begun
	sizes []int64    // bytes of them that have come
}

// document asks for a JSON document.
func document(c *client.Conn, limit time.Duration, to any, args ...string) error {
	v, err := c.Do(limit, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%s: the reply is no document", args[0])
	}
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

// hello says who this is, and reads who the source is.
func (f *Follower) hello(c *client.Conn) (*Hello, error) {
	host, port := f.o.Announce()
	h, n := new(Hello), f.o.Engine.Shards()
	err := document(c, f.o.Timeout(), h, "REPL.HELLO", strconv.Itoa(Format), strconv.Itoa(n), f.o.ID, port, host)
	if err != nil {
		return nil, err
	}
	if h.Format != Format || h.Shards != n || len(h.Lineage) != n || len(h.Tails) != n {
		return nil, fmt.Errorf("the source speaks format %d and has %d shards, this kevy format %d and %d shards: it can't be followed", h.Format, h.Shards, Format, n)
	}
	return h, nil
}

// copyAll makes the store a copy of the source. The frames from the cursors aside on, if there are any, are kept.
func (f *Follower) copyAll(ctx context.Context, c *client.Conn, aside []log.Cursor) error {
	o := new(Offer)
	args := []string{"REPL.SNAPSHOT"}
	if id, _ := f.o.Engine.Dir().Snapshot(); id != "" {
		args = append(args, id)
	}
	left, err := f.o.Engine.LeftBootstraps() // the one that is under way, too
	if err != nil {
		return err
	}
	for _, id := range left {
		args = append(args, wanted+id)
	}
	if err := document(c, 0, o, args...); err != nil { // it may have to be written first
		return err
	}
	if len(o.Set.Shards) != f.o.Engine.Shards() || len(o.Lineage) != len(o.Set.Shards) {
		return fmt.Errorf("the source offers a snapshot of %d shards", len(o.Set.Shards))
	}
	if err := f.begin(o); err != nil {
		return err
	}
	f.note(func(s *Status) { s.Syncing, s.SyncTotal = true, o.Set.Bytes() })
	for i := range o.Set.Shards {
		if err := f.fetchShard(ctx, c, i, o.Set.Shards[i].Bytes); err != nil {
			return err
		}
	}
	boot := f.boot.boot
	if err := f.boot.close(); err != nil {
		return errors.Join(err, f.abandon())
	}
	kept, err := boot.Finish(engine.Origin{HashSeed: o.Seed, LastTxn: o.LastTxn, Lineage: o.Lineage}, aside)
	if err != nil {
		return errors.Join(err, f.abandon())
	}
	f.boot = nil
	f.o.Logger.Info("replication: the full copy is in place", "set", o.Set.ID, "keys", o.Set.Keys(), "bytes", o.Set.Bytes(), "kept", kept)
	f.note(func(s *Status) { s.Syncing, s.FullCopies, s.Aside = false, s.FullCopies+1, append(s.Aside, kept...) })
	return nil
}

// begin prepares for the offered set, or goes on with it.
func (f *Follower) begin(o *Offer) error {
	if f.boot != nil && f.boot.boot.Set().ID == o.Set.ID && f.boot.boot.Set().Bytes() == o.Set.Bytes() {
		f.o.Logger.Info("replication: going on with the full copy", "set", o.Set.ID)
		return nil
	}
	f.dropFetch()
	boot, err := f.o.Engine.BeginBootstrap(o.Set)
	if err != nil {
		return err
	}
	f.boot = &fetch{boot: boot}
	f.note(func(s *Status) { s.SyncBytes = 0 })
	return nil
}

// fetchShard brings a shard's file to its full size.
func (f *Follower) fetchShard(ctx context.Context, c *client.Conn, shard int, size int64) error {
	x := f.boot
	if shard == len(x.files) {
		file, have, err := x.boot.Create(shard)
		if err != nil {
			return err
		}
		x.files, x.sizes = append(x.files, file), append(x.sizes, have)
		f.note(func(s *Status) { s.SyncBytes, s.Resumed = s.SyncBytes+have, s.Resumed+have })
	}
	var b []byte
	for x.sizes[shard] < size {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.Send(f.o.Timeout(), []byte("REPL.FETCH"), strconv.AppendInt(nil, int64(shard), 10),
			strconv.AppendInt(nil, x.sizes[shard], 10), strconv.AppendInt(nil, pieceBytes, 10))
		if err != nil {
			return err
		}
		if b, err = c.BulkInto(b); err != nil {
			return err
		}
		if n := int64(len(b)); n == 0 || n > size-x.sizes[shard] {
			return fmt.Errorf("the snapshot of shard %d has %d bytes, not %d", shard, x.sizes[shard]+n, size)
		}
		if _, err := x.files[shard].WriteAt(b, x.sizes[shard]); err != nil {
			return err
		}
		x.sizes[shard] += int64(len(b))
		f.note(func(s *Status) { s.SyncBytes, s.LastIO = s.SyncBytes+int64(len(b)), time.Now() })
	}
	return nil
}

// close syncs and closes the files.
func (x *fetch) close() (err error) {
	for _, file := range x.files {
		err = errors.Join(err, file.Sync(), file.Close())
	}
	x.files = nil
	return err
}

// suspend leaves what has come of a full copy for the next time.
func (f *Follower) suspend() {
	if x := f.boot; x != nil {
		f.boot = nil
		if err := x.close(); err != nil {
			f.o.Logger.Warn("replication: what has come of a full copy may not be whole", "error", err)
		}
		x.boot.Suspend()
	}
}

// abandon gives up the full copy.
func (f *Follower) abandon() error {
	x := f.boot
	f.boot = nil
	return errors.Join(x.close(), x.boot.Abandon())
}

func (f *Follower) dropFetch() {
	if f.boot == nil {
		return
	}
	if err := f.abandon(); err != nil {
		f.o.Logger.Warn("replication: what has come of a full copy can't be removed", "error", err)
	}
}
