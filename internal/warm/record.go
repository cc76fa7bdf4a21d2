package warm

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// recordFile, in the directory of a copy that was ended cleanly while it followed, says where it is in its source. It is removed before the
// directory gets anything else: so what it says is true as long as the logs end where it says.
const (
	recordFile = "MIRROR"
	maxRecord  = 4 << 30
)

// record is where a copy stands, and from which shard of the source each key is.
type record struct {
	Positions []string     `json:"positions"` // by shard of the source: MirrorBatch.Position
	Tails     []log.Cursor `json:"tails"`     // of the copy's logs
	Owners    []byte       `json:"owners"`    // the source's shard of each key: by shard of the copy, in key order
}

// resume opens the directory of a copy that goes on; nil: it is none.
func resume(o *Options) (*copier, error) {
	name := path.Join(o.To, recordFile)
	if !vfs.HasRecord(o.FS, name) {
		return nil, nil
	}
	e, _, err := engine.Open(engine.Options{Logger: o.From.Logger, Log: log.Options{FS: o.FS, Dir: o.To}})
	if err != nil {
		return nil, err
	}
	c := newCopier(o, e)
	c.resumed = true
	r, err := vfs.TakeRecord[record](o.FS, name, maxRecord)
	if err == nil {
		err = c.recall(&r)
	}
	if err != nil {
		c.release()
		return nil, errors.Join(err, e.Close(true))
	}
	return c, nil
}

// recall takes over what a record says.
func (c *copier) recall(r *record) error {
	if len(r.Positions) == 0 || !slices.Equal(r.Tails, c.tails()) {
		return fmt.Errorf("%s has been written to since it was left as a copy, or was not left cleanly: name a new directory", c.o.To)
	}
	c.positions = r.Positions
	owners := r.Owners
	return c.eachKey(func(key []byte) error {
		if len(owners) == 0 || int(owners[0]) >= log.MaxShards {
			return fmt.Errorf("%s: the record %s has other keys than the copy", c.o.To, recordFile)
		}
		_, err := c.track(int(owners[0])).Fold(&effect.Effect{Op: effect.Set, Args: [][]byte{key, nil}})
		owners = owners[1:]
		return err
	})
}

// remember leaves the record. REQUIRES: nothing is appended to the directory before it is closed.
func (c *copier) remember() error {
	r := record{Positions: c.positions, Tails: c.tails()}
	if n := len(c.o.From.Status()); n > 0 { // so many shards there are now
		r.Positions = r.Positions[:min(n, len(r.Positions))]
	}
	err := c.eachKey(func(key []byte) error {
		at := slices.IndexFunc(c.tracks, func(ks *state.Keyspace) bool { _, ok := ks.Lookup(key); return ok })
		if at < 0 {
			return fmt.Errorf("%s: a key of the copy is of no shard", c.o.To)
		}
		r.Owners = append(r.Owners, byte(at))
		return nil
	})
	if err != nil {
		return err
	}
	return vfs.WriteRecord(c.o.FS, path.Join(c.o.To, recordFile), &r)
}

// eachKey calls f with the keys of the copy, by its shards, in key order.
func (c *copier) eachKey(f func(key []byte) error) error {
	v, err := c.e.FreezeAll()
	if err != nil {
		return err
	}
	for i := range c.e.Shards() {
		v.View(i).AscendFrom(nil, func(key, _ []byte, _ int64) bool {
			err = f(key)
			return err == nil
		})
		if err != nil {
			break
		}
	}
	return errors.Join(err, v.Close())
}

// tails returns where the copy's logs end.
func (c *copier) tails() (all []log.Cursor) {
	for i := range c.e.Shards() {
		all = append(all, c.e.Dir().Log(i).Tail())
	}
	return all
}
