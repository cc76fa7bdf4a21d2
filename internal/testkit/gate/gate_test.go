package gate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
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
		if c.Plan == nil && !slices.Contains(scriptRows, c.Name) || c.Plan != nil && c.Flags&command.Write == 0 {
			continue
		}
		if len(examples[c.Name]) == 0 {
			t.Errorf("write command %q has no example in the equality gate", c.Name)
		}
	}
}

// scriptRows are the rows without a planner that change something.
var scriptRows = []string{"eval", "evalsha", "fcall", "function|load", "function|delete", "function|flush", "function|restore"}

func TestEqualityGate(t *testing.T) {
	counts := []int{1, 3}
	if testing.Short() {
		counts = counts[1:]
	}
	for _, shards := range counts {
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
	cursors   []log.Cursor
	digest    string // of the keys
	libraries string
	ms        int64 // clock: keys past their deadline are not in the digest
}

// run plays a script, with a snapshot before its last command, and compares all ways to get its state.
func run(t *testing.T, shards int, script []string) {
	fs := crashfs.New()
	clock := &Clock{MS: start}
	s := Open(t, fs, shards, clock)
	points := []point{s.point()}
	scan := newScanner(t, s)
	for i, line := range script {
		if i == len(script)-1 {
			if err := s.E.Save(); err != nil {
				t.Fatal(err)
			}
		}
		s.step(line)
		points = append(points, s.point())
		scan.step()
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

	scan.finish(live)
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

// step runs one line of a script: a command, "tick MS", "save", "dump COMMAND" or "fill TYPE KEY N".
func (s *Store) step(line string) {
	s.T.Helper()
	ws := strings.Fields(line)
	switch ws[0] {
	case "tick":
		s.Clock.Advance(number(s.T, ws[1]))
	case "save":
		if err := s.E.Save(); err != nil {
			s.T.Fatal(err)
		}
	case "dump":
		s.Dump(strings.TrimPrefix(line, "dump "))
	case "fill":
		s.fill(ws[1], ws[2], int(number(s.T, ws[3])))
	default:
		s.Do(line)
	}
}

func number(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fill makes or grows a value to n elements, in commands of up to 500; the integers among a set's are every third.
func (s *Store) fill(kind, key string, n int) {
	s.T.Helper()
	for from := 0; from < n && kind != "stream"; from += 500 {
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s", map[string]string{"hash": "HSET", "list": "RPUSH", "set": "SADD", "zset": "ZADD"}[kind], key)
		for i := from; i < min(from+500, n); i++ {
			switch {
			case kind == "set" && i%3 == 0:
				fmt.Fprintf(&b, " %d", i*7)
			case kind == "hash":
				fmt.Fprintf(&b, " f%d %d", i, i)
			case kind == "zset":
				fmt.Fprintf(&b, " %d.5 m%d", i%1000, i)
			default:
				fmt.Fprintf(&b, " e%d", i)
			}
		}
		s.Do(b.String())
	}
	for i := range n {
		if kind == "stream" {
			s.Do(fmt.Sprintf("XADD %s %d-1 f v%d", key, i+1, i))
		}
	}
}

func (s *Store) point() point {
	return point{cursors: s.Cursors(), digest: s.Digest(), libraries: s.Libraries(), ms: s.Clock.Now()}
}

func (s *Store) same(what string, want point) {
	s.T.Helper()
	if got := s.Digest(); got != want.digest {
		s.T.Errorf("%s: digest %q, live %q", what, got, want.digest)
	}
	if got := s.Libraries(); got != want.libraries {
		s.T.Errorf("%s: libraries %q, live %q", what, got, want.libraries)
	}
}

// feedFolded folds the log from its first frame and takes a view at every point between commands. In the end each must
// show the state of then, and rebuild it. (The snapshot has dropped generations that a FLUSHALL ended before it, and with them
// libraries that were loaded there.)
func feedFolded(t *testing.T, s *Store, points []point) {
	first := slices.IndexFunc(points, func(p point) bool {
		return p.cursors[0].Generation >= s.E.Dir().Log(0).Oldest().Generation
	})
	points = slices.Clone(points[first:])
	for i := range points {
		if first > 0 {
			points[i].libraries = ""
		}
	}
	views := make([][]*state.View, len(points))
	for i := range s.E.Shards() {
		ks := state.New(s.E.Seed())
		defer ks.Release()
		var from *log.Cursor
		for n, p := range points {
			foldTo(t, s.E.Dir().Log(i), from, p.cursors[i], ks)
			from = &p.cursors[i]
			v := ks.View()
			defer v.Close()
			views[n] = append(views[n], v)
			if err := ks.Check(); err != nil {
				t.Error(err)
			}
		}
	}
	for n, p := range points {
		sameViews(t, s, views[n], p, n == len(points)-1 || n%3 == 0 && !testing.Short())
	}
}

// sameViews compares the views of all shards, and perhaps what their effects rebuild, with the state at p.
func sameViews(t *testing.T, s *Store, views []*state.View, p point, rebuild bool) {
	t.Helper()
	var shown, rebuilt total
	for _, v := range views {
		shown.add(v.Digest(nil, p.ms))
		if !rebuild {
			continue
		}
		ks := state.New(s.E.Seed())
		v.Rebuild(func(e *effect.Effect, _ bool) bool {
			_, err := ks.Fold(e)
			if err != nil {
				t.Error(err)
			}
			return err == nil
		})
		rebuilt.add(ks.Digest(nil, p.ms))
		rebuilt.libraries += librariesOf(ks.Libraries())
		if err := ks.Check(); err != nil {
			t.Errorf("rebuilt: %v", err)
		}
		ks.Release()
	}
	if got := shown.String(); got != p.digest { // it shows no libraries
		t.Errorf("view at %v: %q, live %q", p.cursors, got, p.digest)
	}
	if got := rebuilt.String(); rebuild && (got != p.digest || rebuilt.libraries != p.libraries) {
		t.Errorf("rebuilt from the view at %v: %q, %q; live %q, %q", p.cursors, got, rebuilt.libraries, p.digest, p.libraries)
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
	var sum total
	for i := range s.E.Shards() {
		ks := state.New(s.E.Seed())
		defer ks.Release()
		from := base(i, ks)
		foldTo(t, s.E.Dir().Log(i), from, p.cursors[i], ks)
		sum.add(ks.Digest(nil, p.ms))
		sum.libraries += librariesOf(ks.Libraries())
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
	}
	if got := sum.String(); got != p.digest || sum.libraries != p.libraries {
		t.Errorf("folded to %v: %q, %q; live %q, %q", p.cursors, got, sum.libraries, p.digest, p.libraries)
	}
}

// total sums up the digests of all shards.
type total struct {
	keys      int
	digest    uint64
	libraries string
}

func (d *total) add(keys int, digest uint64) {
	d.keys += keys
	d.digest += digest
}

// String is Store.Digest's.
func (d *total) String() string {
	return fmt.Sprintf("*2\r\n:%d\r\n$16\r\n%s\r\n", d.keys, command.FormatDigest(d.digest))
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
	_, err := history.Restore(history.RestoreOptions{From: history.Source{FS: fs, Dir: Dir}, FS: fs, To: "restored", Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: fs, Dir: "restored"}})
	if err != nil {
		t.Fatal(err)
	}
	s := Over(t, e, fs, clock)
	s.same("restored", live)
	for i, c := range s.Cursors() {
		if c.Generation <= live.cursors[i].Generation || c.Offset != 0 {
			t.Errorf("shard %d restored: cursor %v, was %v: want a new generation at 0", i, c, live.cursors[i])
		}
	}
	s.Close()
}
