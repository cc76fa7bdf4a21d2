package archive_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/snapshot"
)

// TestRot archives a directory with a damaged segment, sealed or not: it is told, named in the archive, and what a newer set leads to
// can be restored.
func TestRot(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		l := newLife(t, 91, archive.NewFileStore(vfs.NewMem(), place))
		l.write(100)
		l.s.Do("FLUSHALL") // the first segments have ended
		l.save()           // a restart does not read them
		if sealed {
			if n, err := l.s.E.Dir().Seal(); err != nil || n == 0 {
				t.Fatalf("%d sealed: %v", n, err)
			}
		}
		info := l.s.E.Dir().Log(0).SegmentList()[0]
		f, err := l.fs.OpenReadWrite(info.File)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		_, err = f.ReadAt(b, 200)
		b[0] ^= 1
		if err == nil {
			_, err = f.WriteAt(b, 200)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.restart()
		l.write(10)
		l.save()
		l.record()
		l.pass()
		if st := l.s.E.Dir().Log(0).Stats(); st.Damaged != 1 {
			t.Errorf("sealed %v: %d damaged segments are shown", sealed, st.Damaged)
		}
		name := fmt.Sprintf("shard-00/%020d.se", info.Number)
		if got := problems(l.store); !strings.Contains(got, name) || info.Sealed != sealed {
			t.Errorf("sealed %v: verify of the archive says %q, want %s", sealed, got, name)
		}
		h := read(t, l.store)
		got, err := h.Build(history.At(l.instants[0].cursors...), nil, nil)
		if err != nil {
			t.Fatalf("sealed %v, behind the set: %v", sealed, err)
		}
		got.Release()
	}
}

// TestRottenSet: a snapshot set that is damaged on disk does not go to the archive, so its retention never goes by one.
func TestRottenSet(t *testing.T) {
	l := newLife(t, 92, archive.NewFileStore(vfs.NewMem(), place))
	l.o = archive.Options{KeepSets: 1, Grace: 1}
	l.restart()
	l.write(100)
	l.save()
	l.pass()
	l.write(100)
	l.record()
	l.save()
	sets, err := snapshot.List(l.fs, gate.Dir)
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	name := snapshot.ShardPath(snapshot.Dir(gate.Dir, sets[0]), 1)
	f, err := l.fs.OpenReadWrite(name)
	if err != nil {
		t.Fatal(err)
	}
	size, _ := f.Size()
	b := make([]byte, 1)
	if _, err = f.ReadAt(b, size/2); err == nil {
		b[0] ^= 8
		_, err = f.WriteAt(b, size/2)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.pass()
	if st := l.a.Status(); st.Sets != 1 || st.LastSet == sets[0] || st.LagMS != 0 {
		t.Errorf("%+v; the damaged set is %s", st, sets[0])
	}
	if l.check() == 0 {
		t.Error("nothing can be restored")
	}
}
