package history

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// RestoreOptions say what to restore and where.
type RestoreOptions struct {
	From  Source
	Point Point
	FS    vfs.FS // of To; nil: the operating system's
	To    string // new data directory; must not exist or be empty
	// Prefix restores only the keys that start with it, and the libraries of functions.
	Prefix []byte
	// KeepExpired takes the deadline of keys and fields away that has passed by now: they stay.
	KeepExpired bool
	// DryRun only plans.
	DryRun bool
	// Now is the clock in unix ms; nil: the system's.
	Now   func() int64
	Meter *Meter // may be nil
	// Planned is called with the plan before it is carried out; may be nil.
	Planned func(*Plan)
}

// Restored tells what Restore did, or would do.
type Restored struct {
	*Plan
	To      string       `json:"to"`
	New     []log.Cursor `json:"new,omitempty"` // where each shard goes on in the new directory
	Keys    int          `json:"keys"`
	Digest  string       `json:"digest"`          // as PREFIX.DIGEST tells it; of a dry run only if it is known
	Overdue int          `json:"past_deadline"`   // keys and fields whose deadline has passed since
	Kept    bool         `json:"kept,omitempty"`  // without their deadlines
	Found   []string     `json:"found,omitempty"` // what was noticed on the way
	DryRun  bool         `json:"dry_run,omitempty"`
}

// Restore makes a new data directory with the state that another one had at a point. The new directory begins a
// generation of cause "restore" whose parent is the point's cursor, and is verified by loading it again; one that is not as it should be is removed. A directory
// in use may drop what is just being read: then it plans anew.
func Restore(o RestoreOptions) (*Restored, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if within(o.To, o.From.Dir) {
		return nil, fmt.Errorf("restore: %s is inside %s, which is only read: name another directory", o.To, o.From.Dir)
	}
	if err := engine.CheckEmpty(o.FS, o.To); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	r, b, err := o.read()
	for try := 0; try < 3 && errors.Is(err, fs.ErrNotExist); try++ {
		r, b, err = o.read()
	}
	if err == nil && b != nil {
		err = o.write(r, b)
	}
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return r, nil
}

// within reports whether dir is below parent, as far as their names tell.
func within(dir, parent string) bool {
	return strings.HasPrefix(path.Clean(dir)+"/", path.Clean(parent)+"/")
}

// read makes the state that is to be restored; a dry run has none.
func (o *RestoreOptions) read() (r *Restored, b *Built, err error) {
	h, err := Open(o.From)
	if err != nil {
		return nil, nil, err
	}
	defer h.Close()
	r = &Restored{To: o.To, DryRun: o.DryRun}
	if o.DryRun {
		if r.Plan, err = h.Plan(o.Point, o.Meter); err == nil && len(o.Prefix) == 0 && !o.KeepExpired {
			r.Keys, r.Digest = r.known()
		}
		return r, nil, err
	}
	if b, err = h.build(o.Point, o.Prefix, o.Meter, o.Planned); err != nil {
		return nil, nil, err
	}
	r.Plan, r.Found, r.Kept = b.Plan, b.Found, o.KeepExpired
	if r.Overdue, err = b.overdue(o.Now(), o.KeepExpired); err != nil {
		b.Release()
		return nil, nil, err
	}
	r.Keys, r.Digest = b.Digest(nil, 0)
	return r, b, nil
}

// write makes the new directory and reads it once more.
func (o *RestoreOptions) write(r *Restored, b *Built) (err error) {
	o.Meter.Begin("writing", 0)
	_, stat := o.FS.Stat(o.To)
	if r.New, err = o.create(b); err != nil {
		return err
	}
	if err := CheckCopy(o.FS, o.To, r.Keys, r.Digest, o.Meter); err != nil {
		return errors.Join(err, engine.Unmake(o.FS, o.To, stat == nil))
	}
	return nil
}

// known returns what a plan leads to if that is known without carrying it out: it is a snapshot set whose digest is on record.
func (pl *Plan) known() (keys int, digest string) {
	if pl.base.set == nil || pl.Frames > 0 || pl.base.set.Digest == "" {
		return 0, ""
	}
	return int(pl.SetKeys), pl.base.set.Digest //nolint:gosec // counts keys in memory
}

func (o *RestoreOptions) create(b *Built) ([]log.Cursor, error) {
	origin := make([]log.Cursor, len(b.Plan.Shards))
	for i, s := range b.Plan.Shards {
		origin[i] = s.To
	}
	return engine.Create(engine.Options{Now: o.Now, Log: log.Options{
		FS: o.FS, Dir: o.To, HashSeed: b.seed, RestoredFrom: origin,
	}}, b.Shards)
}
