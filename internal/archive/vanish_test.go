package archive_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
)

// hookStore calls before with the name of each object that is put.
type hookStore struct {
	archive.Store
	before func(name string)
}

func (s *hookStore) Put(ctx context.Context, name string, src io.ReaderAt, size int64) error {
	s.before(name)
	return s.Store.Put(ctx, name, src, size)
}

// TestSetVanishes removes a snapshot set while it is sent: it is left out, and nothing of it stays.
func TestSetVanishes(t *testing.T) {
	store := &hookStore{Store: archive.NewFileStore(vfs.NewMem(), place), before: func(string) {}}
	l := newLife(t, 71, store)
	l.write(30)
	l.record()
	l.save()
	store.before = func(name string) {
		if strings.HasPrefix(name, "snapshots/") {
			if err := l.fs.RemoveAll(gate.Dir + "/snapshots"); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.pass()
	if st := l.a.Status(); st.Sets != 0 {
		t.Errorf("%+v", st)
	}
	for _, name := range names(t, store) {
		if strings.HasPrefix(name, "snapshots/") {
			t.Errorf("%s stays", name)
		}
	}
	store.before = func(string) {}
	l.write(1)
	l.save()
	l.pass()
	if st := l.a.Status(); st.Sets != 1 {
		t.Errorf("the next set: %+v", st)
	}
	l.check()
}

// TestLogsBetweenFiles writes while a set is sent: the logs go on between its files.
func TestLogsBetweenFiles(t *testing.T) {
	store := &hookStore{Store: archive.NewFileStore(vfs.NewMem(), place), before: func(string) {}}
	l := newLife(t, 72, store)
	l.o.Interval = 1
	l.restart()
	l.write(30)
	l.save()
	var order []string
	store.before = func(name string) {
		kind, _, _ := strings.Cut(name, "/")
		order = append(order, kind)
		if kind == "snapshots" && len(order) < 20 {
			l.write(3)
			l.record()
		}
	}
	l.pass()
	if all := strings.Join(order, " "); !strings.Contains(all, "snapshots shard-0") || !strings.Contains(all, "ARCHIVE snapshots snapshots ARCHIVE") {
		t.Errorf("order of the objects: %s", all)
	}
	store.before = func(string) {}
	l.pass()
	l.check()
}
