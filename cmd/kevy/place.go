package main

import (
	"context"
	"regexp"
	"strings"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/vfs"
)

// openPlace returns the history that a command line names: a data directory, or the URL of an archive. done removes what was fetched, after
// the last use of src.
func openPlace(place string) (src history.Source, done func(), err error) {
	if !isURL(place) {
		return history.Source{FS: vfs.OS(), Dir: slashed(place)}, func() {}, nil
	}
	store, err := archive.OpenStore(place)
	if err != nil {
		return src, nil, err
	}
	fsys, dir, err := archive.OpenFS(context.Background(), store)
	if err != nil {
		return src, nil, err
	}
	return history.Source{FS: fsys, Dir: dir}, fsys.Close, nil
}

// isURL reports whether a place is not a directory's name, whatever it is the URL of.
func isURL(place string) bool { return strings.Contains(place, "://") }

var plainWord = regexp.MustCompile(`^[\w./:@%+=,-]+$`)

// shellWord quotes a word of a command that is printed for a shell, if it needs that.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// buildPlace builds a point.
func buildPlace(p place, prefix []byte, m *history.Meter) (*history.Built, error) {
	src, done, err := openPlace(p.dir)
	if err != nil {
		return nil, err
	}
	defer done()
	return history.BuildFrom(src, p.point, prefix, m)
}

// openHistory opens what a place holds; done ends that.
func openHistory(place string) (h *history.History, done func(), err error) {
	src, gone, err := openPlace(place)
	if err != nil {
		return nil, nil, err
	}
	if h, err = history.Open(src); err != nil {
		gone()
		return nil, nil, err
	}
	return h, func() {
		h.Close()
		gone()
	}, nil
}
