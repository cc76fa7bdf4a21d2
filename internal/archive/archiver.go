package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// Floor is the name of the log's floor that holds what the archive has not taken.
const Floor = "archive"

const (
	defaultInterval = time.Minute
	defaultGrace    = time.Hour
	firstRetry      = time.Second
	longestRetry    = 5 * time.Minute
)

// Source is the directory that is archived.
type Source struct {
	FS vfs.FS
	// Dir returns the open directory: given one that is closed, the one in its place, for which it waits. That of a replica that takes a full copy
	// is replaced. It is the same when there is none.
	Dir func(closed *log.Dir) *log.Dir
	// Cut returns cursors of all shards at one instant between groups, once the log is durable up to them.
	Cut func() ([]log.Cursor, error)
	Now func() int64 // unix ms
}

// Options say how an Archiver works. The zero value of a field is its default.
type Options struct {
	Store    Store
	Interval time.Duration // between passes; 0: a minute
	// KeepTime is the age up to which every point stays restorable; KeepSets how many of the newest snapshot sets stay
	// at least. Both 0: nothing is removed.
	KeepTime time.Duration
	KeepSets int
	Grace    time.Duration // how long objects stay that are no part of the archive any more; 0: an hour
	Logger   *slog.Logger
}

// Archiver ships a directory's history to a store. Status may be called by anyone, the other methods
// not concurrently.
type Archiver struct {
	src  Source
	o    Options
	dir  *log.Dir  // of the pass
	man  *manifest // nil: not read yet
	last []byte    // the ARCHIVE object that man is

	orphans map[string]int64 // objects that no manifest names, and their sizes
	skipped map[string]bool  // sets that are of no use here
	sweep   bool             // look for orphans after the next good pass
	logsAt  time.Time        // when the logs were last looked at

	mu     sync.Mutex
	status Status
	ends   []log.Cursor // of the published manifest
}

// New returns an Archiver. REQUIRES: the floor Floor of the directory was set before anything was dropped.
func New(src Source, o Options) *Archiver {
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Archiver{src: src, o: o}
	a.status.Place = o.Store.String()
	return a
}

// Run ships until ctx ends: a pass each interval, and after a failure again, at growing distances.
func (a *Archiver) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	retry := firstRetry
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := a.Pass(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, log.ErrClosed) && a.src.Dir(a.dir) == a.dir:
			return
		case err == nil:
			retry = firstRetry
			timer.Reset(a.o.Interval)
		default:
			wait := retry/2 + rand.N(retry/2)
			retry = min(2*retry, longestRetry)
			a.o.Logger.Error("the archive could not be brought up to date: the log is kept meanwhile",
				"archive", a.o.Store.String(), "error", err, "retry_in", wait.Round(time.Millisecond).String())
			timer.Reset(wait)
		}
	}
}

// Pass brings the archive up to date once.
func (a *Archiver) Pass(ctx context.Context) error {
	err := a.pass(ctx)
	if err != nil {
		// It is not known how far the pass came: what is in the store decides.
		a.man = nil
	}
	a.noteResult(err)
	return err
}

func (a *Archiver) pass(ctx context.Context) error {
	if dir := a.src.Dir(nil); dir != a.dir {
		a.dir, a.man, a.skipped = dir, nil, make(map[string]bool)
	}
	if a.man == nil {
		if err := a.open(ctx); err != nil {
			return err
		}
	}
	sets, err := a.localSets() // before the cut: the archive's log must reach them
	if err != nil {
		return err
	}
	if err := a.shipLogs(ctx); err != nil {
		return err
	}
	var unread error
	for _, id := range sets {
		err := a.shipSet(ctx, id)
		if e, ok := errors.AsType[*unreadError](err); ok {
			unread = errors.Join(unread, e)
		} else if err != nil {
			return err
		}
	}
	if err := a.retain(ctx); err != nil {
		return err
	}
	if a.sweep {
		if err := a.removeOrphans(ctx); err != nil {
			return err
		}
		a.sweep = false
	}
	return errors.Join(unread, a.removeRetired(ctx))
}

// open reads the manifest and checks that the archive is this directory's.
func (a *Archiver) open(ctx context.Context) error {
	m, err := readManifest(ctx, a.o.Store)
	if err != nil {
		return err
	}
	if a.orphans, err = a.listOrphans(ctx, m); err != nil {
		return err
	}
	if m == nil {
		n := 0
		for name := range a.orphans {
			if !strings.HasSuffix(name, putSuffix) { // that one never became an object
				n++
			}
		}
		if n > 0 {
			return lostManifest(a.o.Store, n)
		}
		m = &manifest{HashSeed: a.dir.HashSeed()}
		if err := writeManifest(ctx, a.o.Store, m); err != nil {
			return err
		}
	}
	if a.last, err = m.encode(); err != nil {
		return err
	}
	if m.HashSeed != a.dir.HashSeed() && m.empty() { // of a replica before its first full copy
		fresh := &manifest{HashSeed: a.dir.HashSeed()}
		fresh.retireAll(a.src.Now(), m)
		if err := a.publish(ctx, fresh); err != nil {
			return err
		}
		m = fresh
	}
	if err := a.check(m); err != nil {
		return err
	}
	if len(m.Shards) == 0 { // another archive may have had some of the log
		a.sayBegun()
		if err := a.dir.SetFloor(Floor, make([]log.Cursor, a.dir.Shards())); err != nil {
			return err
		}
	}
	a.man, a.sweep = m, len(a.orphans) > 0
	a.noteManifest(m)
	return nil
}

// sayBegun tells that nothing was found in the store. It may be that a disk is not mounted.
func (a *Archiver) sayBegun() {
	from := make([]log.Cursor, a.dir.Shards())
	for i := range from {
		from[i] = a.dir.Log(i).Oldest()
	}
	if slices.ContainsFunc(a.dir.Floors()[Floor], func(c log.Cursor) bool { return c != log.Cursor{} }) {
		a.o.Logger.Warn("an archive is begun, although this directory was archived before: what the log has dropped since is not in this one; "+
			"was there one here, on a disk that is not mounted?", "archive", a.o.Store.String(), "from", fmt.Sprint(from))
		return
	}
	a.o.Logger.Info("an archive is begun", "archive", a.o.Store.String(), "from", fmt.Sprint(from))
}

// check reports whether m is an archive of this directory, no further than it.
func (a *Archiver) check(m *manifest) error {
	d := a.dir
	if m.HashSeed != d.HashSeed() || len(m.Shards) > 0 && len(m.Shards) != d.Shards() {
		return fmt.Errorf("%w: %s has hash seed %x and %d shards, the directory %x and %d: name another place",
			ErrForeign, a.o.Store, m.HashSeed, len(m.Shards), d.HashSeed(), d.Shards())
	}
	for i := range m.Shards {
		tail := d.Log(i).Tail() // before the lineage, which has its generation then
		if end := m.Shards[i].End; !within(d.Lineage(i), tail, end) {
			return fmt.Errorf("%w: %s has shard %d up to %s, which is not in the directory's history: that was restored, or "+
				"is an older copy; name another place", ErrForeign, a.o.Store, i, end)
		}
	}
	return nil
}

// within reports whether a cursor is in the history that ends at tail.
func within(lineage []log.Lineage, tail, c log.Cursor) bool {
	end := tail
	for _, l := range slices.Backward(lineage) {
		if l.Generation == end.Generation {
			if c.Generation == l.Generation {
				return c.Offset <= end.Offset
			}
			end = log.Cursor{Generation: l.Parent, Offset: l.ParentOffset}
		}
	}
	return false
}

// publish makes m the archive's manifest. Another writer, who has changed it meanwhile, must be someone else's mistake.
func (a *Archiver) publish(ctx context.Context, m *manifest) error {
	now, err := readObject(ctx, a.o.Store, manifestName, maxManifest)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, a.last) {
		return fmt.Errorf("archive: another kevy writes to %s too: %s has changed", a.o.Store, manifestName)
	}
	live := m.live() // an archive that is begun anew may use a name again
	m.Retired = slices.DeleteFunc(m.Retired, func(r retired) bool { return live[r.Name] })
	if err := writeManifest(ctx, a.o.Store, m); err != nil {
		return err
	}
	if a.last, err = m.encode(); err != nil {
		return err
	}
	a.man = m
	a.noteManifest(m)
	return nil
}
