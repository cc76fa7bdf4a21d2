package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
)

// rebuildsArchive reports whether an ARCHIVE is to be made anew.
func (o *restoreOptions) rebuildsArchive() bool { return o.rebuild && archive.IsURL(o.from) }

// checkRebuild refuses flags that do not go with --rebuild-manifest of an archive, which restores nothing.
func (o *restoreOptions) checkRebuild(p history.Point) error {
	if o.to != "" || o.prefix != "" || o.keepExpired || o.latest || p.String() != history.Latest().String() {
		return errors.New("--rebuild-manifest of an archive puts its ARCHIVE back, and restores nothing: it goes with --dry-run and --json only; restore from it afterwards")
	}
	return nil
}

// rebuildArchive is kevy restore --rebuild-manifest of an archive.
func (t *tool) rebuildArchive(o *restoreOptions) int {
	stop := t.watch()
	r, err := t.rebuiltArchive(o)
	stop()
	if err != nil {
		return t.fail(err)
	}
	return t.print(r, func() []byte { return describeRebuilt(r) })
}

func (t *tool) rebuiltArchive(o *restoreOptions) (*archive.Rebuilt, error) {
	store, err := archive.OpenStore(o.from)
	if err != nil {
		return nil, err
	}
	lost, dir, err := archive.OpenLost(context.Background(), store, func(done, total int64) {
		t.meter.Set("reading objects, in bytes", uint64(done), uint64(total))
	})
	if err != nil {
		return nil, err
	}
	defer lost.Close()
	src, ends, err := history.Proven(history.Source{FS: lost, Dir: dir}, &t.meter)
	if err != nil {
		return nil, fmt.Errorf("the objects of %s: %w", store, err)
	}
	return lost.Rebuild(src.FS, ends, o.dryRun)
}

func describeRebuilt(r *archive.Rebuilt) []byte {
	out := fmt.Appendf(nil, "%s: %d segments and %d snapshot sets of %d bytes prove whole\n", r.Archive, r.Segments, r.Sets, r.Bytes)
	for i, c := range r.Ends {
		out = fmt.Appendf(out, "shard %d: up to %s\n", i, c)
	}
	out = append(out, notes(&history.Plan{Notes: r.Notes})...)
	if r.DryRun {
		return append(out, "nothing was written: --dry-run\n"...)
	}
	return append(out, "ARCHIVE was made anew\n"...)
}
