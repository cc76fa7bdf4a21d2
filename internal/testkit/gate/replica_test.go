package gate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// TestReplicaGate: whatever write commands do, a store that follows is after each of them what the live one is, cursors included; and
// so it is once it has been killed.
func TestReplicaGate(t *testing.T) {
	for _, shards := range []int{1, 3} {
		for name, scripts := range examples {
			for i, script := range scripts {
				t.Run(fmt.Sprintf("%d/%s/%d", shards, name, i), func(t *testing.T) { replicate(t, shards, script) })
			}
		}
		for i, script := range sequences {
			t.Run(fmt.Sprintf("%d/sequence/%d", shards, i), func(t *testing.T) { replicate(t, shards, script) })
		}
	}
}

func replicate(t *testing.T, shards int, script []string) {
	clock := &Clock{MS: start}
	s := Open(t, vfs.NewMem(), shards, clock)
	defer s.Close()
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	fs := crashfs.New()
	r := openReplica(t, fs, shards, clock)
	bootstrap(t, s, r)
	a := r.E.NewApplier()
	for i, line := range script {
		s.step(line)
		if err := a.Apply(s.FramesFor(r)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		r.follows(fmt.Sprintf("after command %d (%s)", i, line), s)
	}
	killed := openReplica(t, fs.KillClone(), shards, clock)
	killed.follows("killed and recovered", s)
	killed.Close()
	r.Close()
}

func openReplica(t *testing.T, fs vfs.FS, shards int, clock *Clock) *Store {
	t.Helper()
	e, _, err := engine.Open(engine.Options{
		Now: clock.Now,
		Log: log.Options{FS: fs, Dir: Dir, Shards: shards, SegmentBytes: 64 << 10, Follower: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Follow(); err != nil {
		t.Fatal(err)
	}
	return Over(t, e, fs, clock)
}

// bootstrap makes r what the snapshot set on s's record is.
func bootstrap(t *testing.T, s, r *Store) {
	t.Helper()
	dir := s.E.Dir()
	id, _ := dir.Snapshot()
	set, err := snapshot.ReadSet(s.FS, dir.Path(), id)
	if err != nil {
		t.Fatal(err)
	}
	left := snapshot.Dir(Dir, id) // of a bootstrap that a crash has ended
	if err := r.FS.MkdirAll(left); err != nil {
		t.Fatal(err)
	}
	f, err := r.FS.Create(snapshot.ShardPath(left, 0))
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.E.BeginBootstrap(set)
	if err != nil {
		t.Fatal(err)
	}
	o := engine.Origin{HashSeed: dir.HashSeed(), LastTxn: dir.LastTxn()}
	for i := range set.Shards {
		o.Lineage = append(o.Lineage, dir.Lineage(i))
		from, err := s.FS.Open(snapshot.ShardPath(snapshot.Dir(dir.Path(), id), i))
		if err != nil {
			t.Fatal(err)
		}
		content := make([]byte, set.Shards[i].Bytes)
		if _, err := from.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		to, _, err := b.Create(i)
		if err == nil {
			_, err = to.WriteAt(content, 0)
		}
		if err = errors.Join(err, to.Sync(), to.Close(), from.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Finish(o, nil); err != nil {
		t.Fatal(err)
	}
}

// follows checks that s is as live is.
func (s *Store) follows(when string, live *Store) {
	s.T.Helper()
	if x, y := s.Cursors(), live.Cursors(); !slices.Equal(x, y) {
		s.T.Fatalf("%s: cursors %v, live %v", when, x, y)
	}
	for i := range live.E.Shards() {
		if x, y := s.E.Dir().Lineage(i), live.E.Dir().Lineage(i); !slices.Equal(x, y) {
			s.T.Errorf("%s: lineage %v, live %v", when, x, y)
		}
	}
	s.same(when, live.point())
}
