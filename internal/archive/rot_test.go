package archive_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// TestRot archives a directory with a damaged segment, sealed or not, or one whose index is damaged: it is told, named in the archive, and what a newer set leads to
// can be restored.
func TestRot(t *testing.T) {
	for what, back := range map[string]int64{"raw": 0, "sealed": 0, "index": 3} {
		sealed := what != "raw"
		l, info := endedSegment(t, sealed)
		at := int64(200)
		if back > 0 {
			at = info.Bytes - back
		}
		l.flip(info.File, at)
		l.restart()
		pin, err := l.s.E.Dir().Log(0).NewReader(info.Start, log.ReaderOptions{Limit: log.LimitWritten}) // the segment stays when the archive has it
		must(t, err)
		l.write(10)
		l.save()
		l.record()
		l.pass()
		if st := l.s.E.Dir().Log(0).Stats(); st.Damaged != 1 {
			t.Errorf("%s: %d damaged segments are shown", what, st.Damaged)
		}
		pin.Close()
		name := fmt.Sprintf("shard-00/%020d.se", info.Number)
		if got := problems(l.store); !strings.Contains(got, name) || info.Sealed != sealed {
			t.Errorf("%s: verify of the archive says %q, want %s", what, got, name)
		}
		h := read(t, l.store)
		got, err := h.Build(history.At(l.instants[0].cursors...), nil, nil)
		if err != nil {
			t.Fatalf("%s, behind the set: %v", what, err)
		}
		got.Release()
	}
}

// endedSegment makes a store whose first segments have ended, and are read at no restart, and returns the oldest of the first shard.
func endedSegment(t *testing.T, sealed bool) (*life, log.SegmentInfo) {
	t.Helper()
	for seed := range uint64(100) { // how large that one is depends on when others ended
		l := newLife(t, 91+seed, archive.NewFileStore(vfs.NewMem(), place))
		l.write(100)
		l.s.Do("FLUSHALL")
		l.save()
		if sealed {
			_, err := l.s.E.Dir().Seal()
			must(t, err)
		}
		if info := l.s.E.Dir().Log(0).SegmentList()[0]; info.Sealed == sealed && info.RawBytes > 1000 {
			return l, info
		}
	}
	t.Fatalf("no segment with sealed: %v", sealed)
	return nil, log.SegmentInfo{}
}

// flip flips a bit of a file of the directory.
func (l *life) flip(name string, pos int64) {
	l.t.Helper()
	f, err := l.fs.OpenReadWrite(name)
	must(l.t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, pos)
	must(l.t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b, pos)
	must(l.t, err)
	must(l.t, f.Close())
}

// newest returns the first shard's segment that is being written.
func (l *life) newest() log.SegmentInfo {
	list := l.s.E.Dir().Log(0).SegmentList()
	return list[len(list)-1]
}

// archivedSegment makes a store whose archive has all of a segment in parts, which then may have ended, or been sealed.
func archivedSegment(t *testing.T, what string) (*life, log.SegmentInfo) {
	t.Helper()
	for seed := range uint64(100) { // whether the segment is large enough to be sealed depends on when others ended
		l := newLife(t, 930+seed, archive.NewFileStore(vfs.NewMem(), place))
		l.write(100)
		for what == "sealed" && l.newest().RawBytes < 64<<10 { // smaller ones are not sealed
			l.write(1)
		}
		info := l.newest()
		l.record()
		l.pass()
		if info.RawBytes < 1000 {
			continue // it had just begun
		}
		if what == "written" || what == "ended" {
			return l, info
		}
		l.s.Do("FLUSHALL")
		l.record()
		if what == "sealed" {
			_, err := l.s.E.Dir().Seal()
			must(t, err)
		}
		for _, now := range l.s.E.Dir().Log(0).SegmentList() {
			if now.Number == info.Number && now.Sealed == (what == "sealed") {
				return l, now
			}
		}
	}
	t.Fatal("no segment is " + what)
	return nil, log.SegmentInfo{}
}

// TestRotSealed: of a segment that went to the archive in part, and is damaged when it has been sealed, that part stays.
func TestRotSealed(t *testing.T) {
	l, info := archivedSegment(t, "sealed")
	l.flip(info.File, 400)
	l.write(10)
	l.save()
	l.record()
	l.pass()
	switch got := problems(l.store); {
	case got == "": // it had ended before the FLUSHALL: all of it is in the archive
		if n := l.check(); n != 2*len(l.instants) {
			t.Errorf("%d of %d points were restored", n, 2*len(l.instants))
		}
	case !strings.Contains(got, fmt.Sprintf("shard-00/%020d", info.Number)):
		t.Errorf("verify of the archive says %q, want %s", got, info.File)
	}
	h := read(t, l.store)
	for _, x := range []instant{l.instants[0], l.instants[len(l.instants)-1]} { // before the rest, and behind a set
		b, err := h.Build(history.At(x.cursors...), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, sum := b.Digest(nil, x.ms); !strings.Contains(x.digest, sum) {
			t.Errorf("digest %s, was %q", sum, x.digest)
		}
		b.Release()
	}
}

// TestRotAfterwards: bytes that rot on the disk after they went to the archive stay there as they were, whether the segment is still written
// or ends.
func TestRotAfterwards(t *testing.T) {
	for _, what := range []string{"written", "ended", "ended before"} {
		l, info := archivedSegment(t, what)
		l.flip(info.File, 400)
		if what == "ended" {
			l.write(10)
			l.s.Do("FLUSHALL")
			l.record()
		}
		for range 3 { // parts become one
			l.write(60)
			l.record()
			l.pass()
		}
		if n := l.check(); n != 2*len(l.instants) {
			t.Errorf("%s: %d of %d points were restored", what, n, 2*len(l.instants))
		}
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
	fi, err := l.fs.Stat(name)
	must(t, err)
	l.flip(name, fi.Size()/2)
	l.pass()
	if st := l.a.Status(); st.Sets != 1 || st.LastSet == sets[0] || st.LagMS != 0 {
		t.Errorf("%+v; the damaged set is %s", st, sets[0])
	}
	if l.check() == 0 {
		t.Error("nothing can be restored")
	}
}

// TestUnreadableSet: a set that can't be read is told, and newer ones do not wait for it.
func TestUnreadableSet(t *testing.T) {
	l := newLife(t, 94, archive.NewFileStore(vfs.NewMem(), place))
	l.s.E.SetSnapshotPolicy(engine.SnapshotPolicy{Keep: 2})
	for range 2 {
		l.write(50)
		l.record()
		l.save()
	}
	sets, err := snapshot.List(l.fs, gate.Dir)
	if err != nil || len(sets) != 2 {
		t.Fatal(sets, err)
	}
	ffs := faultfs.New(l.fs)
	ffs.Inject(faultfs.OnPath(sets[0]+"/shard-00", func(op faultfs.Op) error { return syscall.EACCES }))
	e := l.s.E
	l.a = archive.New(archive.Source{FS: ffs, Dir: e.DirAfter, Cut: e.Cut, Now: l.s.Clock.Now}, l.o)
	if err := l.a.Pass(t.Context()); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), sets[0]) {
		t.Errorf("the set can't be read: %v", err)
	}
	if st := l.a.Status(); st.Sets != 1 || st.LastSet != sets[1] || st.LagMS != 0 {
		t.Errorf("%+v; the set that can be read is %s", st, sets[1])
	}
	l.pass()
	l.check()
}
