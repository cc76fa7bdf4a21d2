package main

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
)

// archiving is the archiver of a server that runs; nil: there is none.
type archiving struct {
	*archive.Archiver
	quit context.CancelFunc
	done sync.WaitGroup
}

// archiveStore is the store of the configuration, nil: none.
func archiveStore(cfg *config.Config) (archive.Store, error) {
	if cfg.ArchiveURL == "" {
		return nil, nil
	}
	s, err := archive.OpenStore(cfg.ArchiveURL)
	if err != nil {
		return nil, fmt.Errorf("archive-url: %w", err)
	}
	if place, ok := strings.CutPrefix(cfg.ArchiveURL, "file://"); ok {
		if within(slashed(cfg.Dir), path.Clean(place)) || within(path.Clean(place), slashed(cfg.Dir)) {
			return nil, fmt.Errorf("archive-url: %s and the data directory %s are one in the other: name another place", cfg.ArchiveURL, cfg.Dir)
		}
	}
	return s, nil
}

// within reports whether dir is parent or below it, as far as their names tell.
func within(dir, parent string) bool { return strings.HasPrefix(dir+"/", parent+"/") }

// startArchiving begins to ship to the store. Without one, what an archive still had to take is let go.
func startArchiving(cfg *config.Config, eng *engine.Engine, store archive.Store, logger *slog.Logger) (*archiving, error) {
	if store == nil {
		return nil, eng.Dir().ClearFloor(archive.Floor)
	}
	ctx, quit := context.WithCancel(context.Background())
	a := &archiving{quit: quit, Archiver: archive.New(
		archive.Source{FS: vfs.OS(), Dir: eng.DirAfter, Cut: eng.Cut, Now: eng.Now},
		archive.Options{
			Store: store, Interval: cfg.ArchiveInterval, KeepTime: cfg.ArchiveKeepTime, KeepSets: int(cfg.ArchiveKeepSets), Logger: logger,
		})}
	a.done.Go(func() { a.Run(ctx) })
	return a, nil
}

// status is what INFO shows; nil: there is no archive.
func (a *archiving) status() func() archive.Status {
	if a == nil {
		return nil
	}
	return a.Status
}

// end ends the shipping; what is new stays in the log for the next start.
func (a *archiving) end() {
	if a != nil {
		a.quit()
		a.done.Wait()
	}
}

// finish ends the shipping after what is new has been sent, unless ctx ends before.
func (a *archiving) finish(ctx context.Context, logger *slog.Logger) {
	if a == nil {
		return
	}
	a.end()
	if err := a.Pass(ctx); err != nil {
		logger.Warn("the archive does not have the newest frames: the next start sends them", "error", err)
	}
}
