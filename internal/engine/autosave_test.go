package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// until waits for a state of the snapshots.
func until(t *testing.T, s *gate.Store, what string, ok func(engine.SaveStatus) bool) engine.SaveStatus {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		st := s.E.SaveStatus()
		if ok(st) {
			return st
		}
		if time.Now().After(end) {
			t.Fatalf("never: %s: %+v", what, st)
		}
		time.Sleep(time.Millisecond)
	}
}

func count(n int) func(engine.SaveStatus) bool {
	return func(st engine.SaveStatus) bool { return st.Count == n && !st.Running }
}

func TestSaveRules(t *testing.T) {
	s := gate.Open(t, crashfs.New(), 2, &gate.Clock{MS: 1_800_000_000_000})
	s.E.SetSnapshotPolicy(engine.SnapshotPolicy{Rules: []engine.SaveRule{{Seconds: 60, Changes: 3}, {Seconds: 900, Changes: 1}}})
	s.Do("SET a 1")
	s.Do("SET b 1")
	s.Clock.Advance(100_000)
	if n := s.E.AutoSnapshot(); n {
		t.Error("two changes in 100 s met a rule")
	}
	s.Do("SET c 1")
	if !s.E.AutoSnapshot() {
		t.Error("three changes in 100 s met no rule")
	}
	st := until(t, s, "a snapshot by rule", count(1))
	if st.ByKind[engine.SaveData].Count != 1 || st.LastKeys != 3 || s.E.Stats().Dirty != 0 {
		t.Errorf("%+v, %d changes", st, s.E.Stats().Dirty)
	}
	s.Do("DEL c")
	s.Clock.Advance(901_000)
	if !s.E.AutoSnapshot() {
		t.Error("one change in 901 s met no rule")
	}
	until(t, s, "a second snapshot", count(2))
	s.Clock.Advance(10_000_000)
	if s.E.AutoSnapshot() {
		t.Error("a rule was met without a change")
	}
	s.Close()
}

// overwrite sets n keys to values of 900 bytes.
func overwrite(s *gate.Store, n int) {
	for i := range n {
		s.Do(fmt.Sprintf("SET k%d %s", i, strings.Repeat("v", 900)))
	}
}

// TestSnapshotByGrowth: the log's growth asks for snapshots, counts over restarts and over FLUSHALL.
func TestSnapshotByGrowth(t *testing.T) {
	fs := crashfs.New()
	clock := &gate.Clock{MS: 1_800_000_000_000}
	policy := engine.SnapshotPolicy{GrowthPercent: 100, GrowthMin: 32 << 10}
	s := gate.Open(t, fs, 2, clock)
	overwrite(s, 20)
	s.E.SetSnapshotPolicy(policy)
	if s.E.AutoSnapshot() {
		t.Error("20 KiB are less than the 32 that are the least")
	}
	s.Close()
	s = gate.Open(t, fs, 2, clock)
	grown := s.E.Stats().LogGrown
	if grown < 18<<10 || grown > 22<<10 {
		t.Errorf("after a restart the log has grown by %d bytes", grown)
	}
	s.Do("FLUSHALL")
	if n := s.E.Stats().LogGrown; n <= grown {
		t.Errorf("grown by %d bytes after FLUSHALL, %d before", n, grown)
	}
	overwrite(s, 20)
	s.E.SetSnapshotPolicy(policy)
	st := until(t, s, "a snapshot by growth", count(1))
	if st.ByKind[engine.RewriteLog].Count != 1 || st.BaseBytes < 18<<10 || s.E.Stats().LogGrown != 0 {
		t.Errorf("%+v, grown %d", st, s.E.Stats().LogGrown)
	}
	overwrite(s, 15)
	if s.E.AutoSnapshot() {
		t.Error("15 KiB are less than 100% of 20")
	}
	overwrite(s, 8)
	until(t, s, "another snapshot by growth", count(2))
	s.Close()
}

// TestSnapshotRests: for the log's growth sets take a fifth of the time at most, until it has grown four times as much.
func TestSnapshotRests(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, crashfs.New(), 2, clock)
	defer s.Close()
	slow := func(sets int) { // takes a second
		release := s.E.HoldAll()
		go func() { _ = s.E.BGSave(engine.RewriteLog) }()
		until(t, s, "a snapshot that runs", func(st engine.SaveStatus) bool { return st.Running })
		clock.Advance(1000)
		release()
		if st := until(t, s, "a slow snapshot", count(sets)); st.ByKind[engine.RewriteLog].TookMS != 1000 {
			t.Fatalf("took %d ms", st.ByKind[engine.RewriteLog].TookMS)
		}
	}
	overwrite(s, 20)
	slow(1)
	s.E.SetSnapshotPolicy(engine.SnapshotPolicy{GrowthPercent: 100, GrowthMin: 32 << 10})
	overwrite(s, 25)
	clock.Advance(3999)
	if s.E.AutoSnapshot() {
		t.Error("due amid the rest")
	}
	clock.Advance(1)
	s.E.AutoSnapshot() // unless it has been seen already
	until(t, s, "a snapshot after the rest", count(2))
	slow(3)
	overwrite(s, 75)
	if s.E.AutoSnapshot() {
		t.Error("due although the log has grown by less than four times")
	}
	overwrite(s, 30)
	s.E.AutoSnapshot()
	until(t, s, "a snapshot that can't wait", count(4))
}

// TestSnapshotByGenerations: FLUSHALLs ask for a snapshot although the log hardly grows, so that segments and the lines of the manifest, which each of them
// writes, do not become more and more.
func TestSnapshotByGenerations(t *testing.T) {
	s := gate.Open(t, crashfs.New(), 2, &gate.Clock{MS: 1_800_000_000_000})
	defer s.Close()
	s.E.SetSnapshotPolicy(engine.SnapshotPolicy{GrowthPercent: 100, GrowthMin: 1 << 40})
	const many = 50
	s.E.SetManyGenerations(many)
	for round := range 2 {
		for range many - 1 { // the first generation counts too
			s.Do("FLUSHALL")
		}
		if s.E.AutoSnapshot() || s.E.SaveStatus().Count != round {
			t.Fatal("due too early")
		}
		s.Do("FLUSHALL")
		s.Do("FLUSHALL")
		s.E.AutoSnapshot() // unless it has been seen already
		until(t, s, "a snapshot", count(round+1))
		if l := s.E.Dir().Log(0); l.Segments() > 2 {
			t.Errorf("%d segments are left", l.Segments())
		}
	}
}

// TestFailedSnapshots: a failure is shown, keeps the old set, and is tried again, later each time.
func TestFailedSnapshots(t *testing.T) {
	base := crashfs.New()
	fs := faultfs.New(base)
	s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
	s.Do("MSET a 1 b 2")
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	good := s.E.SaveStatus().LastID
	fs.Inject(faultfs.OnPath(".snap", faultfs.FailFrom(faultfs.OpSync, 1, nil)))
	s.E.SetSnapshotPolicy(engine.SnapshotPolicy{Rules: []engine.SaveRule{{Seconds: 1, Changes: 1}}})
	s.Do("SET a 3")
	var waits []int64
	for n := 1; n <= 8; n++ {
		s.Clock.Advance(400_000)
		s.E.AutoSnapshot()
		st := until(t, s, fmt.Sprintf("failure %d", n), func(st engine.SaveStatus) bool { return st.Failures >= n && !st.Running })
		if st.LastErr() == nil || st.LastID != good || st.ByKind[engine.SaveData].Err == nil {
			t.Fatalf("%+v", st)
		}
		waits = append(waits, st.RetryMS-s.Clock.Now())
		if s.E.AutoSnapshot() {
			t.Errorf("tried again at once after failure %d", n)
		}
	}
	if fmt.Sprint(waits) != "[5000 10000 20000 40000 80000 160000 300000 300000]" {
		t.Errorf("waits %v", waits)
	}
	if st := s.E.SaveStatus(); st.Sets != 1 {
		t.Errorf("failures left %d sets", st.Sets)
	}
	fs.Inject(nil)
	s.Clock.Advance(400_000)
	s.E.AutoSnapshot()
	st := until(t, s, "a good one", func(st engine.SaveStatus) bool { return st.Failures == 0 })
	if st.LastErr() != nil || st.LastID == good {
		t.Errorf("%+v", st)
	}
	s.Close()
}

// TestCollect: who asked for it is told of the start and of each try to save, good or bad.
func TestCollect(t *testing.T) {
	told := make(chan struct{}, 10)
	ffs := faultfs.New(crashfs.New())
	e, _, err := engine.Open(engine.Options{
		Now: (&gate.Clock{MS: 1_800_000_000_000}).Now, Collect: func() { told <- struct{}{} }, Log: log.Options{FS: ffs, Dir: gate.Dir},
	})
	must(t, err)
	<-told
	must(t, e.Save())
	<-told
	ffs.Inject(faultfs.OnPath(".snap", faultfs.FailFrom(faultfs.OpSync, 1, nil)))
	if err := e.Save(); err == nil {
		t.Error("saved on a disk that fails")
	}
	<-told
	must(t, e.Close(true))
}

func TestScheduledSnapshots(t *testing.T) {
	s := gate.Open(t, crashfs.New(), 1, &gate.Clock{MS: 1_800_000_000_000})
	for i := range 2000 {
		s.Do(fmt.Sprintf("SET k%d v", i))
	}
	if err := s.E.BGSave(engine.RewriteLog); err != nil {
		t.Fatal(err)
	}
	err := s.E.BGSave(engine.SaveData)
	if err != nil && !errors.Is(err, engine.ErrRewriting) {
		t.Fatal(err)
	}
	s.E.ScheduleSave(engine.SaveData)
	s.E.ScheduleSave(engine.RewriteLog)
	st := until(t, s, "scheduled snapshots", func(st engine.SaveStatus) bool {
		return st.ByKind[engine.SaveData].Count >= 1 && st.ByKind[engine.RewriteLog].Count >= 2 && !st.Running
	})
	if st.ByKind[0].Scheduled || st.ByKind[1].Scheduled {
		t.Errorf("%+v", st)
	}
	s.Close()
}

// TestCloseEndsSnapshot: Close does not wait for a snapshot to be whole, and leaves the old set in force.
func TestCloseEndsSnapshot(t *testing.T) {
	base := crashfs.New()
	ffs := faultfs.New(base)
	s := gate.Open(t, ffs, 2, &gate.Clock{MS: 1_800_000_000_000})
	for i := range 20 {
		s.Do(fmt.Sprintf("SET k%d 1", i))
	}
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
	good, want := s.E.SaveStatus().LastID, s.Digest()
	began, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ffs.Inject(faultfs.OnPath("shard-00.snap", func(op faultfs.Op) error {
		if op.Kind == faultfs.OpWriteAt {
			once.Do(func() { close(began) })
			<-goOn
		}
		return nil
	}))
	if err := s.E.BGSave(engine.SaveData); err != nil {
		t.Fatal(err)
	}
	<-began
	closing := make(chan error)
	go func() { closing <- s.E.Close(true) }()
	for !s.E.SnapshotCancelled() {
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	if err := <-closing; err != nil {
		t.Fatal(err)
	}
	ffs.Inject(nil)
	r := gate.Open(t, base, 2, s.Clock)
	if got := r.Digest(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if st := r.E.SaveStatus(); st.LastID != good || st.Sets != 1 {
		t.Errorf("%+v", st)
	}
	r.Close()
}

// saveRound changes every key, a minute later than the round before, and takes a snapshot.
func saveRound(t *testing.T, s *gate.Store) {
	t.Helper()
	s.Clock.Advance(60_000)
	for i := range 40 {
		s.Do(fmt.Sprintf("SET k%d %s%d", i, strings.Repeat("v", 4000), s.Clock.Now()))
	}
	if err := s.E.Save(); err != nil {
		t.Fatal(err)
	}
}

func TestKeptSets(t *testing.T) {
	fs := crashfs.New()
	s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
	s.E.SetSnapshotPolicy(engine.SnapshotPolicy{Keep: 3})
	for range 6 {
		saveRound(t, s)
	}
	if st := s.E.SaveStatus(); st.Sets != 3 {
		t.Errorf("%d sets, want the newest 3", st.Sets)
	}
	one := func(p *engine.SnapshotPolicy) { *p = engine.SnapshotPolicy{Keep: 1} }
	plan, err := s.E.Prune(true, one)
	if err != nil || len(plan) != 3 || !plan[2].Keep || plan[0].Keep || plan[1].Keep {
		t.Errorf("a dry prune: %+v, %v", plan, err)
	}
	if ids, _ := snapshot.List(fs, gate.Dir); len(ids) != 3 {
		t.Errorf("a dry prune removed sets: there are %d", len(ids))
	}
	for range 2 { // a plan carried out twice is carried out once
		if _, err := s.E.Prune(false, one); err != nil {
			t.Fatal(err)
		}
		if st := s.E.SaveStatus(); st.Sets != 1 {
			t.Errorf("%d sets after pruning to one", st.Sets)
		}
	}
	s.Close()
}

// TestKeptWindow: the sets that the log's window needs stay, few of them, and lead to every point of it, also after a restart.
func TestKeptWindow(t *testing.T) {
	fs := crashfs.New()
	s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
	policy := engine.SnapshotPolicy{Keep: 1, LogKeepTime: 10 * time.Minute}
	s.E.SetSnapshotPolicy(policy)
	type point struct {
		at     []log.Cursor
		digest string
		ms     int64
	}
	var points []point
	for i := range 30 {
		saveRound(t, s)
		s.Do(fmt.Sprintf("SET extra %d", i))
		points = append(points, point{s.Cursors(), s.Digest(), s.Clock.Now()})
		if i == 20 {
			s.Close()
			s = gate.Open(t, fs, 2, s.Clock)
			s.E.SetSnapshotPolicy(policy)
		}
	}
	if st := s.E.SaveStatus(); st.Sets < 2 || st.Sets > 12 {
		t.Errorf("%d sets for a window of ten of thirty", st.Sets)
	}
	now := s.Clock.Now()
	s.Close()
	n := 0
	for i, p := range points {
		if now-p.ms > policy.LogKeepTime.Milliseconds() {
			continue
		}
		n++
		res, err := history.Restore(history.RestoreOptions{
			From: history.Source{FS: fs, Dir: gate.Dir}, FS: fs, To: fmt.Sprintf("to%d", i), Point: history.At(p.at...),
		})
		if err != nil || !strings.Contains(p.digest, res.Digest) {
			t.Errorf("point %d, %d s old: %v", i, (now-p.ms)/1000, err)
		}
	}
	if n < 10 {
		t.Errorf("only %d points lie in the window", n)
	}
}

// TestSnapshotPanics: a panic while a snapshot is written is a failed snapshot, whoever asked for it, and the next one goes well.
func TestSnapshotPanics(t *testing.T) {
	fs := faultfs.New(crashfs.New())
	s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
	defer s.Close()
	s.Do("MSET a 1 b 2 c 3")
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpWriteAt && strings.HasSuffix(op.Path, ".snap") {
			panic("broken")
		}
		return nil
	})
	if err := s.E.Save(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("Save: %v", err)
	}
	fs.Inject(nil)
	if st := s.E.SaveStatus(); st.Running || st.Failures != 1 {
		t.Errorf("afterwards %+v", st)
	}
	if err := s.E.Save(); err != nil {
		t.Error(err)
	}
}
