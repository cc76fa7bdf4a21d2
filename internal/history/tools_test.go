package history_test

import (
	"fmt"
	"hash/crc32"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("X", 2*3600)
	now := time.Date(2026, 3, 1, 10, 0, 0, 5_000_000, zone)
	for text, want := range map[string]string{
		"2026-02-28T08:42:00Z":           "2026-02-28T08:42:00.000Z",
		"2026-02-28T10:42:00.1239+01:00": "2026-02-28T10:42:00.123+01:00",
		"2026-02-28 23:59":               "2026-02-28T23:59:00.000+02:00",
		"2026-02-28 23:59:58.75":         "2026-02-28T23:59:58.750+02:00",
		"yesterday 10:42":                "2026-02-28T10:42:00.000+02:00",
		"today 09:00:01":                 "2026-03-01T09:00:01.000+02:00",
		"09:42":                          "2026-03-01T09:42:00.000+02:00",
		"10:00:00.005":                   "2026-03-01T10:00:00.005+02:00",
		"-15m":                           "2026-03-01T09:45:00.005+02:00",
		"-1h30m":                         "2026-03-01T08:30:00.005+02:00",
		"-250ms":                         "2026-03-01T09:59:59.755+02:00",
		"now":                            "2026-03-01T10:00:00.005+02:00",
	} {
		got, err := history.ParseTime(text, now)
		if err != nil || history.FormatTime(got) != want {
			t.Errorf("%q: %s, %v; want %s", text, history.FormatTime(got), err, want)
		}
	}
	for text, want := range map[string]string{
		"10:42": "after now", "2026-03-01 10:42": "after now", "15m": "want RFC 3339", "": "want RFC 3339", "-15": "want RFC 3339",
		"tomorrow 10:42": "want RFC 3339", "25:00": "want RFC 3339", "2026-02-30 10:00": "want RFC 3339", "yesterday": "want RFC 3339",
	} {
		if got, err := history.ParseTime(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestParsePoint(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 50, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"latest":                          "latest",
		"376815668242923:7":               "cursor 376815668242923:7",
		"376815668242923:7,37681566824:0": "cursor 376815668242923:7,37681566824:0",
		"before:DEL user:*":               "before the last DEL user:*",
		"since:10:42,before:FLUSHALL":     "before the first FLUSHALL since ",
		"10:42":                           "time ",
		"-5m":                             "time ",
	} {
		p, err := history.ParsePoint(text, now)
		if err != nil || !strings.HasPrefix(p.String(), want) {
			t.Errorf("%q: %q, %v; want %q", text, p, err, want)
		}
	}
	for _, text := range []string{"", "x", "7", "1:", "before:", "before:'x", "since:x,before:DEL", "1:2,3"} {
		if p, err := history.ParsePoint(text, now); err == nil {
			t.Errorf("%q: %s", text, p)
		}
	}
}

// restore restores into a new directory and opens that.
func (p *past) restore(o history.RestoreOptions) (*history.Restored, *gate.Store) {
	p.t.Helper()
	o.From, o.FS, o.Now = history.Source{FS: p.fs, Dir: gate.Dir}, p.fs, p.s.Clock.Now
	r, err := history.Restore(o)
	if err != nil {
		p.t.Fatal(err)
	}
	e, _, err := engine.Open(engine.Options{Now: p.s.Clock.Now, Log: log.Options{FS: p.fs, Dir: o.To}})
	if err != nil {
		p.t.Fatal(err)
	}
	return r, gate.Over(p.t, e, p.fs, p.s.Clock)
}

// TestRestorePrefix: keys below a prefix, whatever shape the effects had that made them.
func TestRestorePrefix(t *testing.T) {
	p := live(t, 71, 300)
	p.s.Do("MSET x:1 a y:1 b x:2 c")
	p.s.Do("DEL x:2 y:1 x:nosuch")
	want := p.s.Do("PREFIX.DIGEST x:")
	r, s := p.restore(history.RestoreOptions{To: "to", Prefix: []byte("x:")})
	if got := s.Digest(); got != want || !strings.Contains(want, r.Digest) {
		t.Errorf("digest %q (told %s), want %q", got, r.Digest, want)
	}
	s.Close()
	p.s.Close()
}

// TestKeepExpired: what is past its deadline by now goes with the start, unless it is to stay.
func TestKeepExpired(t *testing.T) {
	p := live(t, 81, 0)
	p.s.Do("SET brief v PX 100")
	p.s.Do("SET long v PX 100000000")
	p.s.Do("HSET h f 1 g 2")
	p.s.Do("HPEXPIRE h 100 FIELDS 1 f")
	at := history.At(p.s.Cursors()...)
	p.s.Clock.Advance(1000)
	for _, keep := range []bool{false, true} {
		r, s := p.restore(history.RestoreOptions{To: fmt.Sprint("to", keep), Point: at, KeepExpired: keep})
		if r.Overdue != 2 || r.Kept != keep {
			t.Errorf("%d are past their deadline, kept: %v", r.Overdue, r.Kept)
		}
		want := map[bool]string{false: ":1\r\n", true: ":2\r\n"}[keep]
		if got := s.Do("EXISTS brief long"); got != want {
			t.Errorf("keep %v: EXISTS %q", keep, got)
		}
		if got := s.Do("HLEN h"); got != want {
			t.Errorf("keep %v: HLEN %q", keep, got)
		}
		if got := s.Do("PTTL brief"); keep && got != ":-1\r\n" {
			t.Errorf("PTTL %q", got)
		}
		s.Close()
	}
	p.s.Close()
}

// TestRestoreRefuses: nothing is made of a bad request, and nothing that is there is touched.
func TestRestoreRefuses(t *testing.T) {
	p := live(t, 91, 20)
	src := history.Source{FS: p.fs, Dir: gate.Dir}
	for name, o := range map[string]history.RestoreOptions{
		"into itself":     {From: src, To: gate.Dir + "/sub"},
		"not empty":       {From: src, To: gate.Dir},
		"no such source":  {From: history.Source{FS: p.fs, Dir: "nowhere"}, To: "to"},
		"unknown cursor":  {From: src, To: "to", Point: history.At(log.Cursor{Generation: 1}, log.Cursor{}, log.Cursor{})},
		"before all time": {From: src, To: "to", Point: history.AtTime(1)},
	} {
		o.FS, o.Now = p.fs, p.s.Clock.Now
		if r, err := history.Restore(o); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := p.fs.Stat("to"); err == nil {
			t.Errorf("%s: a directory was made", name)
		}
	}
	r, err := history.Restore(history.RestoreOptions{From: src, FS: p.fs, To: "to", DryRun: true, Now: p.s.Clock.Now})
	if err != nil || r.Frames == 0 || len(r.New) != 0 {
		t.Errorf("dry run: %+v, %v", r, err)
	}
	if _, err := p.fs.Stat("to"); err == nil {
		t.Error("a dry run made a directory")
	}
	p.s.Close()
}

// TestRestoreFails: when the disk fails, nothing is left, but for the directory if it was there before.
func TestRestoreFails(t *testing.T) {
	p := live(t, 95, 60)
	for _, there := range []bool{false, true} {
		for at := 1; ; at++ {
			base := vfs.NewMem()
			if there {
				must(t, base.MkdirAll("disk/to"))
			} else {
				must(t, base.MkdirAll("disk"))
			}
			ffs := faultfs.New(base)
			n, met := 0, false
			ffs.Inject(func(op faultfs.Op) error {
				if (op.Kind == faultfs.OpWriteAt || op.Kind == faultfs.OpSync || op.Kind == faultfs.OpCreate) && strings.Contains(op.Path, "snapshots") {
					if n++; n >= at {
						met = true
						return syscall.ENOSPC
					}
				}
				return nil
			})
			_, err := history.Restore(history.RestoreOptions{From: history.Source{FS: p.fs, Dir: gate.Dir}, FS: ffs, To: "disk/to", Now: p.s.Clock.Now})
			if !met {
				must(t, err)
				break
			}
			left, stat := base.ReadDir("disk/to")
			if err == nil || len(left) > 0 || (stat == nil) != there {
				t.Fatalf("operation %d: %v; there before: %v, left are %v, %v", at, err, there, left, stat)
			}
		}
	}
	p.s.Close()
}

// TestGaps: a set whose log is gone is a point, what lies between it and the next one is a gap.
func TestGaps(t *testing.T) {
	p := live(t, 101, 30)
	p.s.E.SetSnapshotPolicy(engine.SnapshotPolicy{Keep: 3})
	var sets []instant
	for i := range 3 {
		for n := range 5 {
			p.s.Do(fmt.Sprintf("MSET g%d 1 h%d 2 i%d 3 j%d %d", n, n, n, n, i))
		}
		p.s.Clock.Advance(1000)
		if err := p.s.E.Save(); err != nil {
			t.Fatal(err)
		}
		sets = append(sets, instant{p.s.Cursors(), p.s.Clock.Now(), p.s.Digest(), true})
		p.s.Clock.Advance(1000)
		p.s.Do("FLUSHALL") // ends the segments
		p.s.Do("MSET g1 1 h1 2 i1 3 k1 1 l1 1 m1 1")
	}
	if err := p.s.E.Save(); err != nil { // drops the first set
		t.Fatal(err)
	}
	end := instant{p.s.Cursors(), p.s.Clock.Now(), p.s.Digest(), true}
	h := p.open()
	l := h.List()
	if len(l.Gaps) == 0 || len(l.Windows) == 0 || !l.Windows[len(l.Windows)-1].Latest {
		t.Errorf("windows %+v, gaps %+v", l.Windows, l.Gaps)
	}
	p.must(h, history.At(sets[2].cursors...), &sets[2])
	p.must(h, history.Latest(), &end)
	for _, g := range l.Gaps {
		for _, ms := range []int64{g.FromMS + 1, (g.FromMS + g.ToMS) / 2} {
			if ms >= g.ToMS {
				continue
			}
			if pl, err := h.Plan(history.AtTime(ms), nil); err == nil {
				t.Errorf("time %d in the gap %+v: %+v", ms, g, pl)
			}
		}
	}
	for i, s := range l.Shards {
		for _, w := range s.Windows {
			at := p.s.Cursors()
			at[i] = w.From
			if _, err := h.Plan(history.At(at...), nil); err != nil && len(l.Windows) == 1 {
				t.Errorf("shard %d: %s in the window %+v: %v", i, w.From, w, err)
			}
		}
	}
	p.s.Close()
}

// dropping is a file system on which something happens when a file is opened for the second time: after the header of a snapshot
// was read, before the rest is.
type dropping struct {
	*crashfs.FS
	name  string
	opens int
	then  func()
}

func (d *dropping) Open(name string) (vfs.File, error) {
	if name == d.name {
		if d.opens++; d.opens == 2 {
			d.then()
		}
	}
	return d.FS.Open(name)
}

// TestSetDroppedMeanwhile restores from a directory in use, which takes a snapshot and drops the one before, and the log, just then.
func TestSetDroppedMeanwhile(t *testing.T) {
	p := live(t, 111, 100)
	p.s.E.SetSnapshotPolicy(engine.SnapshotPolicy{Keep: 1})
	for i := range 3 {
		p.s.Do(fmt.Sprintf("MSET a %d b %d c %d d %d", i, i, i, i))
		p.s.Do("FLUSHALL") // ends the segments
		if err := p.s.E.Save(); err != nil {
			t.Fatal(err)
		}
	}
	p.s.Do("MSET a 1 b 2 c 3 d 4 e 5")
	d := &dropping{FS: p.fs, name: snapshot.ShardPath(snapshot.Dir(gate.Dir, p.s.E.SaveStatus().LastID), 0)}
	d.then = func() {
		p.s.Do("FLUSHALL")
		p.s.Do("MSET a 5 b 6 c 7")
		if err := p.s.E.Save(); err != nil {
			t.Error(err)
		}
	}
	r, err := history.Restore(history.RestoreOptions{From: history.Source{FS: d, Dir: gate.Dir}, FS: p.fs, To: "to", Now: p.s.Clock.Now})
	if err != nil || !strings.Contains(p.s.Digest(), r.Digest) {
		t.Errorf("%v, %+v; want %q", err, r, p.s.Digest())
	}
	p.s.Close()
}

// TestKnownDigest: a set that was written without haste has its digest on record: a dry run tells it, and verify compares.
func TestKnownDigest(t *testing.T) {
	p := live(t, 121, 100)
	r, err := history.Restore(history.RestoreOptions{From: history.Source{FS: p.fs, Dir: gate.Dir}, FS: p.fs, To: "to", Now: p.s.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	dry := func(o history.RestoreOptions) *history.Restored {
		o.From, o.FS, o.DryRun, o.Now = history.Source{FS: p.fs, Dir: "to"}, p.fs, true, p.s.Clock.Now
		o.To = "nowhere"
		d, err := history.Restore(o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := dry(history.RestoreOptions{}); d.Digest != r.Digest || d.Keys != r.Keys {
		t.Errorf("a dry run says %d keys with digest %q, restored were %d with %s", d.Keys, d.Digest, r.Keys, r.Digest)
	}
	if d := dry(history.RestoreOptions{Prefix: []byte("k")}); d.Digest != "" {
		t.Errorf("of a part of the keys it says %q", d.Digest)
	}
	sets, err := snapshot.List(p.fs, "to")
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	name := snapshot.Dir("to", sets[0]) + "/" + snapshot.SetFile
	doc := strings.Replace(string(read(t, p.fs, name)), r.Digest, strings.Repeat("0", 16), 1)
	doc = doc[:strings.LastIndex(doc, "crc32c ")]
	write(t, p.fs, name, fmt.Appendf([]byte(doc), "crc32c %08x\n", crc32.Checksum([]byte(doc), crc32.MakeTable(crc32.Castagnoli))))
	v, err := history.Verify(history.Source{FS: p.fs, Dir: "to"}, history.VerifyOptions{})
	if err != nil || len(v.Damage) != 1 || !strings.Contains(v.Damage[0].Problem, "when it was taken it was 0000") {
		t.Errorf("%v, %+v", err, v)
	}
	p.s.Close()
}

// foldInto folds a command into a built point.
func foldInto(b *history.Built, seed uint64, c []byte) error {
	argv, err := effect.DecodeArgv(c, nil)
	if err != nil {
		return err
	}
	e, err := effect.FromArgv(argv)
	if err == nil {
		shard := 0
		if key, ok := e.SingleKey(); ok && e.Op != effect.Function {
			shard = command.ShardOfHash(state.Hash(seed, key), shards)
		}
		_, err = b.Shards[shard].Fold(&e)
	}
	return err
}

// TestDiffLibraries: libraries of functions differ too, and a patch undoes it.
func TestDiffLibraries(t *testing.T) {
	p := live(t, 131, 0)
	load := func(name, result string) {
		p.s.Do(fmt.Sprintf("FUNCTION LOAD REPLACE '#!lua name=%s\nredis.register_function(\"%s\", function() return %s end)'", name, name, result))
	}
	load("gone", "1")
	load("kept", "1")
	load("other", "1")
	p.s.Do("SET k v")
	before := p.s.Cursors()
	load("other", "2")
	load("new", "1")
	p.s.Do("FUNCTION DELETE gone")
	p.s.Do("SET k w")
	h := p.open()
	build := func(at history.Point) *history.Built {
		b, err := h.Build(at, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Release)
		return b
	}
	now, then := build(history.Latest()), build(history.At(before...))
	changes := history.Diff(now, then, nil)
	var got []string
	for i := range changes {
		got = append(got, fmt.Sprintf("%s %s %v", changes[i].Kind(), changes[i].Key, changes[i].Library()))
	}
	if s := strings.Join(got, ", "); s != "changed k false, added gone true, removed new true, changed other true" {
		t.Errorf("%s", s)
	}
	if n := len(history.Diff(now, then, []byte("k"))); n != 1 {
		t.Errorf("%d changes below a prefix", n)
	}
	if n := len(history.Diff(then, then, nil)); n != 0 {
		t.Errorf("%d changes between a point and itself", n)
	}
	// The commands of the patch, folded into the first point, make it the second.
	if err := history.Patch(then, changes, func(c []byte) error { return foldInto(now, p.s.E.Seed(), c) }); err != nil {
		t.Fatal(err)
	}
	if left := history.Diff(now, then, nil); len(left) != 0 {
		t.Errorf("after the patch %d changes are left", len(left))
	}
	p.s.Close()
}
