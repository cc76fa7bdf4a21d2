package log

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// withFault makes every write after the first n fail.
func withFault(o Options, fsys vfs.FS, n int) Options {
	f := faultfs.New(fsys)
	f.Inject(stopAfter(n, errors.New("stop")))
	o.FS = f
	return o
}

// withReadFault makes the nth read of any kind fail with permission denied.
func withReadFault(o Options, fsys vfs.FS, n int) Options {
	f := faultfs.New(fsys)
	f.Inject(func(op faultfs.Op) error {
		if op.Kind.IsWrite() || op.Kind == faultfs.OpClose {
			return nil
		}
		if n--; n == -1 {
			return fs.ErrPermission
		}
		return nil
	})
	o.FS = f
	return o
}

var errDisk = errors.New("disk on fire")

// failures are the places where a disk can fail, once, and what comes across it.
type failure struct {
	inject faultfs.Injector // counts, so it is for one use
	act    func(l *Log) error
}

func failures() map[string]failure {
	return map[string]failure{
		"write":                    {faultfs.FailNth(faultfs.OpWriteAt, 1, errDisk), (*Log).Flush},
		"short write":              {faultfs.FailNth(faultfs.OpWriteAt, 1, faultfs.Short(errDisk)), (*Log).Flush},
		"fsync":                    {faultfs.FailNth(faultfs.OpSync, 1, errDisk), (*Log).Sync},
		"fsync on a full disk":     {faultfs.FailNth(faultfs.OpSync, 1, syscall.ENOSPC), (*Log).Sync},
		"mark":                     {faultfs.OnPath(markName, faultfs.FailNth(faultfs.OpWriteAt, 1, errDisk)), syncMarked},
		"preallocation":            {faultfs.FailNth(faultfs.OpPreallocate, 1, errDisk), func(l *Log) error { return l.Reserve(100 << 20) }},
		"roll: create":             {faultfs.FailNth(faultfs.OpCreate, 1, errDisk), (*Log).roll},
		"roll: header":             {faultfs.OnPath("2.seg", faultfs.FailNth(faultfs.OpWriteAt, 1, errDisk)), (*Log).roll},
		"roll: sync":               {faultfs.OnPath("2.seg", faultfs.FailNth(faultfs.OpSync, 1, errDisk)), (*Log).roll},
		"roll: dir":                {faultfs.FailNth(faultfs.OpSyncDir, 1, errDisk), (*Log).roll},
		"roll: dir on a full disk": {faultfs.FailNth(faultfs.OpSyncDir, 1, syscall.ENOSPC), (*Log).roll},
		"generation: manifest":     {faultfs.OnPath(manifestTemp, faultfs.FailNth(faultfs.OpSync, 1, errDisk)), newGen},
		"generation: rename":       {faultfs.FailNth(faultfs.OpRename, 1, errDisk), newGen},
		"generation: publish":      {faultfs.OnPath("data", faultfs.FailNth(faultfs.OpSyncDir, 2, errDisk)), newGen},
	}
}

// syncMarked is Sync when a durable mark is due.
func syncMarked(l *Log) error {
	l.markedAt = time.Time{}
	return l.Sync()
}

// TestStickyErrors fails each kind of write once: the log refuses everything from then on, wakes who
// waits, and a restart gives a prefix with all that was reported durable.
func TestStickyErrors(t *testing.T) {
	for name, c := range failures() {
		t.Run(name, func(t *testing.T) { failOnce(t, c.inject, c.act) })
	}
}

func failOnce(t *testing.T, inject faultfs.Injector, act func(*Log) error) {
	base := crashfs.New()
	fsys := faultfs.New(base)
	d, _ := mustOpen(t, testOptions(fsys))
	l := d.Log(0)
	put(t, l, 3)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	var woken atomic.Int32
	l.OnAdvance(100, func() { woken.Add(1) })
	l.OnDurable(100, func() { woken.Add(1) })
	if err := l.Reserve(100); err != nil {
		t.Fatal(err)
	}
	l.Begin(1, ByClient, 0, 0)
	l.Append(set("a", "b"))
	l.End()
	fsys.Inject(inject)
	err := act(l)
	fsys.Inject(nil)
	if err == nil || errors.Is(err, ErrDiskFull) || !errors.Is(l.Err(), ErrFailed) {
		t.Fatalf("got %v, sticky %v", err, l.Err())
	}
	if woken.Load() != 2 {
		t.Fatalf("%d woken", woken.Load())
	}
	mustStayFailed(t, fsys, l)
	durable := l.Durable()
	if err := d.Close(true); err == nil {
		t.Fatal("a failed log was closed cleanly")
	}
	d, rec := mustOpen(t, testOptions(base))
	if rec.Clean {
		t.Fatal("clean")
	}
	if n := len(history(t, d.Log(0), d.Log(0).Oldest())); n < int(durable) || n > 4 {
		t.Fatalf("%d frames, %d were durable", n, durable)
	}
}

// mustStayFailed checks that a failed log does nothing any more but serve readers.
func mustStayFailed(t *testing.T, fsys *faultfs.FS, l *Log) {
	t.Helper()
	called := false
	l.OnDurable(100, func() { called = true })
	if !called {
		t.Fatal("a failed log lets wait")
	}
	durable := l.Durable()
	syncs, writes := fsys.Count(faultfs.OpSync), fsys.Count(faultfs.OpWriteAt)
	for _, again := range []func() error{l.Flush, l.Sync, l.roll, func() error { return l.Reserve(1) }, func() error { return newGen(l) }} {
		if err := again(); !errors.Is(err, ErrFailed) {
			t.Fatalf("after the failure: %v", err)
		}
	}
	if fsys.Count(faultfs.OpSync) != syncs || fsys.Count(faultfs.OpWriteAt) != writes {
		t.Fatal("a failed log touched the disk again")
	}
	if l.Durable() != durable {
		t.Fatal("durable moved after the failure")
	}
	if n, _ := readAll(t, l, l.Oldest(), ReaderOptions{}); n < 3 {
		t.Fatalf("%d frames are readable", n)
	}
}

func newGen(l *Log) error { return l.dir.NewGeneration(CauseFlush) }

// TestDiskFull: writes are refused while the disk is full, nothing of what was accepted is lost, and
// they go on by themselves.
func TestDiskFull(t *testing.T) {
	fsys := faultfs.New(vfs.NewMem())
	o := testOptions(fsys)
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	fsys.SetFull(true)
	n, start := 0, l.Tail()
	var err error
	for range 1_000_000 {
		if err = l.Reserve(8 << 10); err != nil {
			break
		}
		l.Begin(1, ByClient, 0, 0)
		l.Append(set("key", string(make([]byte, 8000))))
		l.End()
		n++
		if err := l.Flush(); err != nil {
			t.Fatalf("frame %d was admitted, then %v", n, err)
		}
	}
	if !errors.Is(err, ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) || l.Err() != nil || !l.Stats().DiskFull {
		t.Fatalf("%v, sticky %v, told %v", err, l.Err(), l.Stats().DiskFull)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := d.NewGeneration(CauseFlush); !errors.Is(err, ErrDiskFull) || l.Err() != nil {
		t.Fatalf("new generation: %v, sticky %v", err, l.Err())
	}
	if err := l.roll(); !errors.Is(err, ErrDiskFull) || l.Err() != nil {
		t.Fatalf("roll: %v, sticky %v", err, l.Err())
	}
	fsys.SetFull(false)
	waitFor(t, func() bool { return l.Reserve(8<<10) == nil })
	waitFor(t, func() bool { return !l.Stats().DiskFull })
	put(t, l, 1)
	if err := d.NewGeneration(CauseFlush); err != nil {
		t.Fatal(err)
	}
	if got, _ := readAll(t, l, start, ReaderOptions{Follow: true}); got != n+1 {
		t.Fatalf("%d frames, want %d", got, n+1)
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, o)
}

// TestSpaceAgain: that a large write was refused is told until there is space, also where enough is reserved for smaller ones.
func TestSpaceAgain(t *testing.T) {
	fsys := faultfs.New(vfs.NewMem())
	d, _ := mustOpen(t, testOptions(fsys))
	l := d.Log(0)
	fsys.SetFull(true)
	if err := l.Reserve(1 << 30); !errors.Is(err, ErrDiskFull) || !l.Stats().DiskFull {
		t.Fatal(err, l.Stats().DiskFull)
	}
	put(t, l, 1)
	if !l.Stats().DiskFull {
		t.Fatal("told no more although there is no space")
	}
	fsys.SetFull(false)
	waitFor(t, func() bool { return !l.Stats().DiskFull })
}

// TestDiskFullAtWrite: without preallocation the full disk shows at the write, which may be short.
func TestDiskFullAtWrite(t *testing.T) {
	for _, short := range []bool{false, true} {
		base := vfs.NewMem()
		fsys := faultfs.New(base)
		d, _ := mustOpen(t, testOptions(fsys))
		l := d.Log(0)
		start := l.Tail()
		put(t, l, 2)
		var full error = syscall.ENOSPC
		if short {
			full = faultfs.Short(full)
		}
		fsys.Inject(faultfs.FailFrom(faultfs.OpWriteAt, 1, full))
		_ = l.Reserve(100)
		l.Begin(1, ByClient, 0, 0)
		l.Append(set("a", "b"))
		next := l.End()
		if err := l.Flush(); !errors.Is(err, ErrDiskFull) {
			t.Fatal(err)
		}
		if err := l.Reserve(1); !errors.Is(err, ErrDiskFull) || !l.Stats().DiskFull {
			t.Fatal(err, l.Stats().DiskFull)
		}
		if err := l.Sync(); !errors.Is(err, ErrDiskFull) || l.Durable() != 2 {
			t.Fatalf("%v, durable %d", err, l.Durable())
		}
		if l.Written() != 2 || l.Visible() != 2 || l.Appended() != next {
			t.Fatalf("written %d visible %d appended %d", l.Written(), l.Visible(), l.Appended())
		}
		done := make(chan struct{})
		l.OnAdvance(2, func() { close(done) })
		fsys.Inject(nil)
		select { // the committer tries again by itself
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatal("did not go on by itself")
		}
		waitFor(t, func() bool { return l.Reserve(100) == nil })
		put(t, l, 1)
		if got, _ := readAll(t, l, start, ReaderOptions{}); got != 4 {
			t.Fatalf("%d frames", got)
		}
		if err := d.Close(true); err != nil {
			t.Fatal(err)
		}
	}
}

func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("did not happen")
}

// TestFaultAtEveryStepOfOpen stops Open after every number of writes, crashes, and opens again.
func TestFaultAtEveryStepOfOpen(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1, 4, 2, 3}, 1, 3)
	name := segmentPath(3)
	setBytes(t, killed, name, append(fileBytes(t, killed, name), "torn"...))
	for n := range 100 {
		fsys := killed.KillClone()
		d, _, err := Open(withFault(testOptions(nil), fsys, n))
		if err == nil {
			_ = d.Close(false)
			if n < 10 {
				t.Fatalf("Open needed only %d writes", n)
			}
			return
		}
		reopen(t, fsys.KillClone(), items, len(items))
		rng := newModel(t, uint64(n), 1).rng
		for range 10 {
			reopen(t, fsys.CrashClone(rng), items, 10)
		}
	}
	t.Fatal("Open never succeeded")
}

// TestMissingParts: a group over three shards of which one part is lost is cut on the others, and so
// is every later group that hangs on it.
func TestMissingParts(t *testing.T) {
	fsys := crashfs.New()
	o := testOptions(fsys)
	o.Shards = 4
	d, _ := mustOpen(t, o)
	group := func(txn uint64, shards ...int) {
		mask := uint64(0)
		for _, i := range shards {
			mask |= 1 << i
		}
		for _, i := range shards {
			l := d.Log(i)
			l.Begin(1, ByClient, txn, mask)
			l.Append(set("k", fmt.Sprint(txn)))
			l.End()
		}
	}
	group(1, 0, 1, 2, 3)
	for i := range 4 {
		_ = d.Log(i).Sync()
	}
	group(2, 0, 1) // lost on 0
	put(t, d.Log(1), 1)
	group(3, 1, 2) // hangs on 2
	group(4, 2, 3) // hangs on 3
	put(t, d.Log(3), 1)
	for i := 1; i < 4; i++ {
		if err := d.Log(i).Sync(); err != nil {
			t.Fatal(err)
		}
	}
	after := fsys.KillClone()
	fsys.Freeze()
	_ = d.Close(false)
	name := "data/shard-00/" + segmentName(1)
	setBytes(t, after, name, fileBytes(t, after, name)[:headerBytes+int(frameBytes([]item{{value: "1"}}))-2+txnExtension])
	o.FS = after
	d, rec := mustOpen(t, o)
	for i, s := range rec.Shards {
		if s.Found.Offset != 1 {
			t.Fatalf("shard %d: %+v", i, s)
		}
		if i > 0 && (s.CutFrames == 0 || s.CutFile == "") {
			t.Fatalf("shard %d: %+v", i, s)
		}
	}
	if d.LastTxn() != 4 {
		t.Fatalf("last transaction is %d", d.LastTxn())
	}
	_ = d.Close(false)
	d, _ = mustOpen(t, o)
	if d.LastTxn() != 4 {
		t.Fatalf("last transaction is %d", d.LastTxn())
	}
}

// TestCreateInterrupted: a crash at any write while a directory is created leaves one that can be
// created again.
func TestCreateInterrupted(t *testing.T) {
	for n := range 60 {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		fsys := crashfs.New()
		o := testOptions(nil)
		o.Shards = 2
		d, _, err := Open(withFault(o, fsys, n))
		after := fsys.Crash(rng)
		if err == nil {
			_ = d.Close(false)
		}
		o.FS = after
		d, _, err = Open(o)
		if err != nil {
			t.Fatalf("after %d writes: %v", n, err)
		}
		put(t, d.Log(1), 1)
		_ = d.Close(true)
	}
}

// TestUnreadableIsNotEmpty: errors of the file system while opening are errors of Open.
func TestUnreadableIsNotEmpty(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1}, 1)
	for n := range 200 {
		fsys := killed.KillClone()
		d, _, err := Open(withReadFault(testOptions(nil), fsys, n))
		if err == nil {
			if got := history(t, d.Log(0), d.Log(0).Oldest()); len(got) != len(items) {
				t.Fatalf("read fault %d: %d frames", n, len(got))
			}
			_ = d.Close(false)
			break
		}
		if !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
		reopen(t, fsys, items, len(items))
	}
}
