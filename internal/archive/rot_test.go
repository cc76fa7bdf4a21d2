package archive_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/vfs"
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
