package archive_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
)

// strideFlag says which part of the operations a sweep takes, from a random one on: all of them are 1.
var strideFlag = flag.Int("archive.stride", 23, "sweeps take one operation of so many")

// script is a short life that has every step of a pass: parts, merged parts, sealed segments, sets, retention, removal. pass is called
// where the server would work on the archive.
func script(l *life, pass func()) {
	l.t.Helper()
	step := func(commands int) {
		l.write(commands)
		l.record()
	}
	step(5)
	pass()
	step(5)
	pass()
	step(60) // segments end
	l.save()
	pass()
	step(4)
	l.s.Do("FLUSHALL")
	l.record()
	step(30)
	l.save()
	pass()
	step(3)
	l.s.Clock.Advance(2000) // retired objects may go
	l.save()
	step(1)
	pass()
}

// mutates reports whether an operation changes a file system: those between which it can crash.
func mutates(k faultfs.OpKind) bool {
	switch k {
	case faultfs.OpCreate, faultfs.OpWriteAt, faultfs.OpSync, faultfs.OpRename, faultfs.OpRemove, faultfs.OpMkdirAll, faultfs.OpSyncDir:
		return true
	default:
		return false
	}
}

// sweeps counts the operations of the script on the archive's file system.
func sweeps(t *testing.T, kinds func(faultfs.OpKind) bool) (n int) {
	t.Helper()
	ffs := faultfs.New(crashfs.New())
	ffs.Inject(func(op faultfs.Op) error {
		if kinds(op.Kind) {
			n++
		}
		return nil
	})
	l := newLife(t, 31, archive.NewFileStore(ffs, place))
	l.o = archive.Options{KeepSets: 1, Grace: 1000}
	l.restart()
	script(l, l.pass)
	return n
}

// TestFaults lets each operation on the archive fail once: what was published before stays readable, and the
// next pass makes it good.
func TestFaults(t *testing.T) {
	all := func(k faultfs.OpKind) bool { return true }
	total := sweeps(t, all)
	if total < 300 {
		t.Fatalf("the script has %d operations", total)
	}
	stride := *strideFlag
	failed := 0
	for at := 1 + rand.IntN(stride); at <= total; at += stride {
		n := 0
		ffs := faultfs.New(crashfs.New())
		ffs.Inject(func(op faultfs.Op) error {
			if n++; n == at {
				return syscall.EIO
			}
			return nil
		})
		l := newLife(t, 31, archive.NewFileStore(ffs, place))
		l.o = archive.Options{KeepSets: 1, Grace: 1000}
		l.restart()
		script(l, func() {
			if err := l.a.Pass(context.Background()); err != nil {
				failed++
				if err := l.a.Pass(context.Background()); err != nil {
					t.Fatalf("operation %d failed, and then the next pass: %v", at, err)
				}
			}
		})
		ffs.Inject(nil)
		if n := l.check(); n == 0 {
			t.Fatalf("operation %d: nothing can be restored", at)
		}
	}
	if failed < total/stride/2 {
		t.Errorf("%d of %d faults made a pass fail", failed, total/stride)
	}
}

// powerFails is a file system whose machine loses its power before operation at that changes something; after is what is left then, nil before.
func powerFails(at int) (ffs *faultfs.FS, after func() *crashfs.FS) {
	n, base := 0, crashfs.New()
	var left *crashfs.FS
	ffs = faultfs.New(base)
	ffs.Inject(func(op faultfs.Op) error {
		if mutates(op.Kind) {
			n++
		}
		if n < at {
			return nil
		}
		if left == nil {
			left = base.CrashClone(rand.New(rand.NewPCG(uint64(at), 5)))
		}
		return syscall.EIO
	})
	return ffs, func() *crashfs.FS { return left }
}

// TestCrashes lets the power of the archive's machine fail before each operation that changes something there, and the server go
// on against what is left. Whatever the manifest then names is there.
func TestCrashes(t *testing.T) {
	total, crashes := sweeps(t, mutates), 0
	stride := *strideFlag
	for at := 1 + rand.IntN(stride); at <= total; at += stride {
		ffs, after := powerFails(at)
		l := newLife(t, 31, archive.NewFileStore(ffs, place))
		l.o = archive.Options{KeepSets: 1, Grace: 1000}
		l.restart()
		crashed := false
		script(l, func() {
			err := l.a.Pass(context.Background())
			if err == nil || crashed {
				return
			}
			crashed = true
			l.store = archive.NewFileStore(after(), place)
			if _, _, err := archive.OpenFS(context.Background(), l.store); err == nil {
				l.sound()
			}
			l.kill(false) // the server with it
			l.pass()
		})
		if crashed {
			crashes++
		}
		if l.check() == 0 {
			t.Fatalf("crash at operation %d: nothing can be restored", at)
		}
	}
	if want := total / stride * 8 / 10; crashes < want { // the number of operations is not always the same
		t.Errorf("%d crashes, want %d", crashes, want)
	}
}
