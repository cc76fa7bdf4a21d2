package gate

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

const start = 1_800_000_000_000

func TestEveryWriteCommandHasExamples(t *testing.T) {
	for _, c := range command.All() {
		if c.Flags&command.Write == 0 || c.Plan == nil {
			continue
		}
		if len(examples[c.Name]) == 0 {
			t.Errorf("write command %q has no example in the equality gate", c.Name)
		}
	}
}

func TestEqualityGate(t *testing.T) {
	for _, shards := range []int{1, 3} {
		for name, scripts := range examples {
			for i, script := range scripts {
				t.Run(fmt.Sprintf("%d/%s/%d", shards, name, i), func(t *testing.T) { run(t, shards, script) })
			}
		}
		for i, script := range sequences {
			t.Run(fmt.Sprintf("%d/sequence/%d", shards, i), func(t *testing.T) { run(t, shards, script) })
		}
	}
}

// point is a moment between two commands.
type point struct {
	cursors []log.Cursor
	digest  string
	ms      int64 // clock: keys past their deadline are not in the digest
}

// run plays a script, with a snapshot before its last command, and compares all ways to get its state.
func run(t *testing.T, shards int, script []string) {
	fs := crashfs.New()
	clock := &Clock{MS: start}
	s := Open(t, fs, shards, clock)
	points := []point{s.point()}
	for i, line := range script {
		if i == len(script)-1 {
			if err := s.E.Save(); err != nil {
				t.Fatal(err)
			}
		}
		s.step(line)
		points = append(points, s.point())
	}
	live := points[len(points)-1]

	killed := Open(t, fs.KillClone(), shards, clock)
	killed.same("killed and recovered", live)
	for i, c := range killed.Cursors() {
		if c.Generation <= live.cursors[i].Generation || c.Offset != 0 {
			t.Errorf("shard %d after a kill: cursor %v, was %v: want a new generation at 0", i, c, live.cursors[i])
		}
	}
	killed.Close()

	feedFolded(t, s, points)
	setPlusFrames(t, s, live)
	s.Close()

	restarted := Open(t, fs, shards, clock)
	restarted.same("restarted", live)
	for i, c := range restarted.Cursors() {
		if c != live.cursors[i] {
			t.Errorf("shard %d after a clean restart: cursor %v, want %v", i, c, live.cursors[i])
		}
	}
	restarted.Close()
	restored(t, fs, shards, clock, live)
}

func (s *Store) step(line string) {
	s.T.Helper()
	if ms, ok := strings.CutPrefix(line, "tick "); ok {
		var d int64
		if _, err := fmt.Sscan(ms, &d); err != nil {
			s.T.Fatal(err)
		}
		s.Clock.Advance(d)
		return
	}
	s.Do(line)
}

func (s *Store) point() point { return point{cursors: s.Cursors(), digest: s.Digest(), ms: s.Clock.MS} }

func (s *Store) same(what string, want point) {
	s.T.Helper()
	if got := s.Digest(); got != want.digest {
		s.T.Errorf("%s: digest %q, live %q", what, got, want.digest)
	}
}

// feedFolded folds the log from its first frame and compares at every point between commands. (The
// snapshot has dropped generations that a FLUSHALL ended before it.)
func feedFolded(t *testing.T, s *Store, points []point) {
	for _, p := range points {
		if p.cursors[0].Generation < s.E.Dir().Log(0).Oldest().Generation {
			continue
		}
		fold(t, s, p, func(i int, ks *state.Keyspace) *log.Cursor { return nil })
	}
}

// setPlusFrames loads the snapshot set and folds the frames from its cursors.
func setPlusFrames(t *testing.T, s *Store, live point) {
	id, cursors := s.E.Dir().Snapshot()
	fold(t, s, live, func(i int, ks *state.Keyspace) *log.Cursor {
		path := snapshot.ShardPath(snapshot.Dir(Dir, id), i)
		h, _, err := snapshot.Load(s.FS, path, func(e *effect.Effect) error {
			_, err := ks.Fold(e)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if h.Cursor != cursors[i] {
			t.Errorf("header of %s: cursor %v, manifest %v", path, h.Cursor, cursors[i])
		}
		return &h.Cursor
	})
}

// fold makes keyspaces from what base gives and the frames behind it, up to p, and compares.
func fold(t *testing.T, s *Store, p point, base func(i int, ks *state.Keyspace) *log.Cursor) {
	t.Helper()
	keys, sum := 0, uint64(0)
	for i := range s.E.Shards() {
		ks := state.New(s.E.Seed())
		defer ks.Release()
		from := base(i, ks)
		foldTo(t, s.E.Dir().Log(i), from, p.cursors[i], ks)
		n, d := ks.Digest(nil, p.ms)
		keys += n
		sum += d
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
	}
	if got := digestReply(keys, sum); got != p.digest {
		t.Errorf("folded to %v: %q, live %q", p.cursors, got, p.digest)
	}
}

// digestReply is PREFIX.DIGEST's reply.
func digestReply(keys int, sum uint64) string {
	return fmt.Sprintf("*2\r\n:%d\r\n$16\r\n%s\r\n", keys, command.FormatDigest(sum))
}

func foldTo(t *testing.T, l *log.Log, from *log.Cursor, to log.Cursor, ks *state.Keyspace) {
	t.Helper()
	start := l.Oldest()
	if from != nil {
		start = *from
	}
	r, err := l.NewReader(start, log.ReaderOptions{Limit: log.LimitEnd, End: to, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var e effect.Effect
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := engine.FoldFrame(ks, f, &e); err != nil {
			t.Fatal(err)
		}
	}
	if r.Cursor() != to {
		t.Errorf("the log ends at %v, before %v", r.Cursor(), to)
	}
}

// restored restores the closed directory to its latest state in a new directory.
func restored(t *testing.T, fs vfs.FS, shards int, clock *Clock, live point) {
	_, err := engine.Restore(engine.RestoreOptions{FS: fs, From: Dir, To: "restored", Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: fs, Dir: "restored"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{T: t, E: e, FS: fs, Clock: clock, ctx: e.NewCtx()}
	s.same("restored", live)
	for i, c := range s.Cursors() {
		if c.Generation <= live.cursors[i].Generation || c.Offset != 0 {
			t.Errorf("shard %d restored: cursor %v, was %v: want a new generation at 0", i, c, live.cursors[i])
		}
	}
	s.Close()
}
