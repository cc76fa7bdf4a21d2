package archive_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// many makes an archive of more segments than a process should hold open.
func many(t *testing.T, store archive.Store, segments int) *life {
	t.Helper()
	l := newLife(t, 82, store)
	for l.a.Status().Segments < segments {
		for range 10 {
			l.s.Do("SET k " + noise(l, 70_000))
			l.s.Clock.Advance(1)
		}
		l.pass()
	}
	return l
}

// TestOpenFiles reads an archive of files with a bounded number of them open at a time, and leaves none.
func TestOpenFiles(t *testing.T) {
	ffs := faultfs.New(vfs.NewMem())
	store := archive.NewFileStore(ffs, place)
	many(t, store, 150)
	var opened, most atomic.Int64
	ffs.Inject(func(op faultfs.Op) error {
		switch op.Kind {
		case faultfs.OpOpen:
			most.Store(max(most.Load(), opened.Add(1)))
		case faultfs.OpClose:
			opened.Add(-1)
		default:
		}
		return nil
	})
	fsys, dir, err := archive.OpenFS(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := history.Verify(history.Source{FS: fsys, Dir: dir}, history.VerifyOptions{}); err != nil || len(v.Damage) > 0 {
		t.Errorf("%v, %+v", err, v)
	}
	if n := most.Load(); n > 100 {
		t.Errorf("%d files were open at a time", n)
	}
	if fsys.Close(); opened.Load() != 0 {
		t.Errorf("%d files stay open", opened.Load())
	}
}

// TestLargeObjects damages objects that are not fetched whole for a look at their headers: verify names them all the same.
func TestLargeObjects(t *testing.T) {
	files := archive.NewFileStore(vfs.NewMem(), place)
	l := many(t, files, 5)
	l.save()
	l.pass()
	l.o.Grace = 1
	l.open2()
	for _, name := range names(t, files) {
		whole := content(t, files, name)
		if !strings.HasPrefix(name, "shard-") && !strings.HasPrefix(name, "snapshots/") {
			continue
		}
		for what, b := range map[string]string{
			"cut": string(whole[:len(whole)-1]), "flipped": flipped(whole, len(whole)*2/3), "empty": "",
		} {
			if err := files.Put(t.Context(), name, strings.NewReader(b), int64(len(b))); err != nil {
				t.Fatal(err)
			}
			for kind, store := range map[string]archive.Store{"files": files, "fetched": &meterStore{Store: files}} {
				if got := problems(store); !strings.Contains(got, name) {
					t.Errorf("%s, %s, %s: verify says %q", name, what, kind, got)
				}
			}
		}
		if err := files.Put(t.Context(), name, strings.NewReader(string(whole)), int64(len(whole))); err != nil {
			t.Fatal(err)
		}
	}
	l.sound()
}

func flipped(b []byte, at int) string {
	c := []byte(string(b))
	c[at] ^= 0x20
	return string(c)
}
