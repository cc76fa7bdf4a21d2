package archive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

const shards = 2

// place is where the archives of tests over file systems in memory are.
const place = "/mnt/archive"

// instant is a point of a life, and what was there.
type instant struct {
	cursors []log.Cursor
	ms      int64
	digest  string
}

// life is a store that is archived. The directory keeps as little as it can: what is restored comes from the archive.
type life struct {
	t        testing.TB
	rng      *rand.Rand
	fs       *crashfs.FS // of the data
	store    archive.Store
	o        archive.Options
	s        *gate.Store
	a        *archive.Archiver
	instants []instant
	n        int
}

func newLife(t testing.TB, seed uint64, store archive.Store) *life {
	t.Helper()
	l := &life{t: t, rng: rand.New(rand.NewPCG(seed, 3)), fs: crashfs.New(), store: store}
	l.s = &gate.Store{Clock: &gate.Clock{MS: 1_800_000_000_000}}
	l.open()
	t.Cleanup(func() { _ = l.s.E.Close(false) })
	return l
}

// open opens the directory as a start of the server does.
func (l *life) open() {
	l.t.Helper()
	e, _, err := engine.Open(engine.Options{
		Now: l.s.Clock.Now, Snapshots: &engine.SnapshotPolicy{Keep: 1}, HoldFor: archive.Floor,
		Log: log.Options{FS: l.fs, Dir: gate.Dir, Shards: shards, SegmentBytes: 66 << 10, Window: 1, Policy: log.EverySec},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	e.SetActiveExpire(false)
	l.s = gate.Over(l.t, e, l.fs, l.s.Clock)
	l.o.Store = l.store
	l.a = archive.New(archive.Source{FS: l.fs, Dir: e.DirAfter, Cut: e.Cut, Now: l.s.Clock.Now}, l.o)
}

func (l *life) restart() {
	l.t.Helper()
	l.s.Close()
	l.open()
}

// kill ends the store as SIGKILL does, or a power failure.
func (l *life) kill(power bool) {
	l.t.Helper()
	next := l.fs.KillClone()
	if power {
		next = l.fs.CrashClone(l.rng)
	}
	l.fs.Freeze()
	_ = l.s.E.Close(false)
	l.fs = next
	l.open()
	l.instants = slices.DeleteFunc(l.instants, func(x instant) bool { return !l.has(&x) })
}

// has reports whether an instant is in the history, which a power failure may have cut.
func (l *life) has(x *instant) bool {
	for i, c := range x.cursors {
		lineage := l.s.E.Dir().Lineage(i)
		at := slices.IndexFunc(lineage, func(g log.Lineage) bool { return g.Generation == c.Generation })
		if at >= 0 && at+1 < len(lineage) && c.Offset > lineage[at+1].ParentOffset {
			return false
		}
	}
	return true
}

func (l *life) save() {
	l.t.Helper()
	if err := l.s.E.Save(); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) pass() {
	l.t.Helper()
	if err := l.a.Pass(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) command() string {
	l.n++
	k, n := fmt.Sprintf("k%d", l.rng.IntN(60)), l.n
	forms := []string{
		"SET %s v%d", "INCR c%.0s%d", "APPEND a:%s %d", "SET %s brief%d PX 2", "MSET %[1]s m%[2]d x:%[1]s m y:%[1]s m",
		"MULTI ; INCR n:%s ; RPUSH l:%[1]s e%[2]d ; SADD s m%[2]d", "DEL %s x:%[1]s l:k%[2]d", "HSET h:%s f%d 1", "ZADD z:%s %d m",
		"XADD st:%s * n %d", "RENAME x:%s r%d", "SPOP s %.0s%d", "SET big:%s %030000d", "SET huge:%s %030000d",
		"EVAL 'redis.call(\"INCR\",KEYS[1]) redis.call(\"SADD\",KEYS[2],ARGV[1])' 2 n:%s s2 %d",
	}
	return fmt.Sprintf(forms[l.rng.IntN(len(forms))], k, n)
}

// write runs some commands.
func (l *life) write(commands int) {
	l.t.Helper()
	for range commands {
		l.s.Do(l.command())
		l.s.Clock.Advance(int64(l.rng.IntN(3)))
	}
}

// record remembers what is there now.
func (l *life) record() {
	l.instants = append(l.instants, instant{l.s.Cursors(), l.s.Clock.Now(), l.s.Digest()})
	l.s.Clock.Advance(1)
}

// read opens the archive alone.
func read(t testing.TB, s archive.Store) *history.History {
	t.Helper()
	fsys, dir, err := archive.OpenFS(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(history.Source{FS: fsys, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		fsys.Close()
	})
	return h
}

// check restores from the archive to every instant that it claims to have, by cursor and by time, and returns how many these are.
func (l *life) check() (restored int) {
	l.t.Helper()
	h := read(l.t, l.store)
	for i := range l.instants {
		x := &l.instants[i]
		for _, p := range []history.Point{history.At(x.cursors...), history.AtTime(x.ms)} {
			b, err := h.Build(p, nil, nil)
			if errors.Is(err, history.ErrNoPoint) {
				continue
			}
			if err != nil {
				l.t.Fatalf("instant %d, %s: %v", i, p, err)
			}
			if _, sum := b.Digest(nil, x.ms); !strings.Contains(x.digest, sum) {
				l.t.Errorf("instant %d, %s from %q: digest %s, was %q", i, p, b.Plan.Set, sum, x.digest)
			} else if len(b.Found) > 0 {
				l.t.Errorf("instant %d, %s: %v", i, p, b.Found)
			}
			restored++
			b.Release()
		}
	}
	l.sound()
	return restored
}

// sound verifies the archive by itself.
func (l *life) sound() {
	l.t.Helper()
	fsys, dir, err := archive.OpenFS(context.Background(), l.store)
	if err != nil {
		l.t.Fatal(err)
	}
	defer fsys.Close()
	v, err := history.Verify(history.Source{FS: fsys, Dir: dir}, history.VerifyOptions{Deep: true})
	if err != nil || len(v.Damage) > 0 || len(v.Notes) > 0 && !strings.Contains(v.Notes[0], "not compared") {
		l.t.Fatalf("verify: %v, %+v", err, v)
	}
}

// live does steps of everything.
func (l *life) live(steps int) (events map[string]int) {
	l.t.Helper()
	events = map[string]int{}
	for range steps {
		l.write(1 + l.rng.IntN(12))
		l.record()
		name := ""
		switch l.rng.IntN(15) {
		case 0:
			name = "flush"
			l.s.Do("FLUSHALL")
			l.record()
		case 1:
			name = "restart"
			l.restart()
		case 2:
			name = "kill"
			l.kill(false)
		case 14:
			name = "power"
			l.kill(true)
		case 3, 4:
			name = "snapshot"
			l.save()
		case 5, 6, 7, 8:
			name = "pass"
			l.pass()
		}
		events[name]++
	}
	l.pass()
	return events
}

func TestExact(t *testing.T) {
	for seed := range uint64(4) {
		l := newLife(t, seed, archive.NewFileStore(vfs.NewMem(), place))
		events := l.live(150)
		n := l.check()
		if n != 2*len(l.instants) {
			t.Errorf("%d of %d points were restored: the archive has the whole history", n, 2*len(l.instants))
		}
		t.Logf("seed %d: %v, %+v", seed, events, l.a.Status())
	}
}
