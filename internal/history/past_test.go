package history_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
)

const shards = 3

// instant is a point of a past, and what was there.
type instant struct {
	cursors []log.Cursor
	ms      int64
	digest  string // reply of PREFIX.DIGEST ""
	last    bool   // of its millisecond
}

func (p *instant) String() string { return fmt.Sprint(p.cursors, " at ", p.ms) }

// past is a store that has lived, and what is known of it.
type past struct {
	t        testing.TB
	rng      *rand.Rand
	fs       *crashfs.FS
	s        *gate.Store
	instants []instant
	n        int // commands
}

// live makes a past of steps commands: all kinds of groups, deadlines, snapshots, flushes, clean and unclean ends.
func live(t testing.TB, seed uint64, steps int) *past {
	t.Helper()
	p := &past{t: t, rng: rand.New(rand.NewPCG(seed, 1)), fs: crashfs.New()}
	p.s = &gate.Store{Clock: &gate.Clock{MS: 1_800_000_000_000}}
	p.reopen(nil)
	for range steps {
		p.step()
	}
	return p
}

func (p *past) step() {
	p.t.Helper()
	switch r := p.rng.IntN(300); {
	case r == 0:
		p.s.Do("FLUSHALL")
	case r == 1:
		p.reopen(p.s.E.Close(true))
	case r == 2:
		p.fs = p.fs.KillClone() // everything was written: nothing is lost
		p.reopen(nil)
	case r < 6:
		if err := p.s.E.Save(); err != nil {
			p.t.Fatal(err)
		}
	default:
		p.s.Do(p.command())
	}
	p.instants = append(p.instants, instant{p.s.Cursors(), p.s.Clock.Now(), p.s.Digest(), false})
	if ms := int64(p.rng.IntN(3)); ms > 0 {
		p.instants[len(p.instants)-1].last = true
		p.s.Clock.Advance(ms)
	}
}

func (p *past) reopen(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	e, _, err := engine.Open(engine.Options{
		Now: p.s.Clock.Now, Snapshots: &engine.SnapshotPolicy{Keep: 100, LogKeepBytes: 1 << 30},
		Log: log.Options{FS: p.fs, Dir: gate.Dir, Shards: shards, SegmentBytes: 66 << 10, Policy: log.Always},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	e.SetActiveExpire(false)
	p.s = gate.Over(p.t, e, p.fs, p.s.Clock)
}

func (p *past) command() string {
	p.n++
	k, n := fmt.Sprintf("k%d", p.rng.IntN(60)), p.n
	forms := []string{
		"SET %s v%d", "INCR c%.0s%d", "APPEND a:%s %d", "SET %s brief%d PX 2", "MSET %[1]s m%[2]d x:%[1]s m y:%[1]s m",
		"MULTI ; INCR n:%s ; RPUSH l:%[1]s e%[2]d ; SADD s m%[2]d", "DEL %s x:%[1]s l:k%[2]d", "HSET h:%s f%d 1", "ZADD z:%s %d m",
		"XADD st:%s * n %d", "EXPIRE %s %d", "RENAME x:%s r%d", "SPOP s %.0s%d", "SET big:%s %030000d", "SET huge:%s %030000d",
		"EVAL 'redis.call(\"INCR\",KEYS[1]) redis.call(\"SADD\",KEYS[2],ARGV[1])' 2 n:%s s2 %d",
	}
	return fmt.Sprintf(forms[p.rng.IntN(len(forms))], k, n)
}

// seal seals all segments that have ended, and wants some to be long enough.
func (p *past) seal() {
	p.t.Helper()
	n, err := p.s.E.Dir().Seal()
	for i := range shards {
		for _, s := range p.s.E.Dir().Log(i).SegmentList() {
			if s.Sealed {
				n++
			}
		}
	}
	if err != nil || n == 0 {
		p.t.Fatalf("%d sealed segments: %v", n, err)
	}
}

// open opens the past's directory as it is now.
func (p *past) open() *history.History {
	p.t.Helper()
	return open(p.t, p.fs)
}

func open(t testing.TB, fs *crashfs.FS) *history.History {
	t.Helper()
	h, err := history.Open(history.Source{FS: fs, Dir: gate.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// is reports whether a built point is an instant.
func (p *instant) is(b *history.Built) bool {
	_, sum := b.Digest(nil, p.ms)
	return strings.Contains(p.digest, sum)
}

func (p *past) must(h *history.History, pt history.Point, want *instant) *history.Plan {
	p.t.Helper()
	b, err := h.Build(pt, nil, nil)
	if err != nil {
		p.t.Fatalf("%s, %s: %v", pt, want, err)
	}
	defer b.Release()
	if !want.is(b) {
		_, sum := b.Digest(nil, want.ms)
		p.t.Errorf("%s, %s: digest %s, was %q (from set %q)", pt, want, sum, want.digest, b.Plan.Set)
	}
	return b.Plan
}
