package archive_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
)

// TestResume lets a pass fail when all but the manifest is there: the next one, of another process, sends nothing again, but what
// was damaged meanwhile.
func TestResume(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		ffs := faultfs.New(vfs.NewMem())
		l := newLife(t, 61, archive.NewFileStore(ffs, place))
		l.write(1)
		l.pass()
		l.write(400) // several segments
		ffs.Inject(func(op faultfs.Op) error {
			if op.Kind == faultfs.OpCreate && strings.HasSuffix(op.Path, "ARCHIVE.put") {
				return syscall.EIO
			}
			return nil
		})
		if err := l.a.Pass(context.Background()); err == nil {
			t.Fatal("the manifest can't be put, and the pass succeeds")
		}
		sent := l.a.Status().Shipped
		ffs.Inject(nil)
		l.restart()
		if damaged {
			name, size := "", 0
			for _, n := range names(t, l.store) { // the largest
				if b := content(t, l.store, n); len(b) > size {
					name, size = n, len(b)
				}
			}
			b := content(t, l.store, name)
			b[len(b)/3] ^= 1
			if err := l.store.Put(t.Context(), name, strings.NewReader(string(b)), int64(len(b))); err != nil {
				t.Fatal(err)
			}
		}
		l.pass()
		again := l.a.Status().Shipped
		if sent < 10_000 || damaged == (again == 0) || again > sent {
			t.Errorf("damaged %v: %d bytes were sent, and then %d", damaged, sent, again)
		}
		l.record()
		l.pass()
		if l.check() == 0 {
			t.Error("nothing can be restored")
		}
	}
}

// TestRun ships in the background, backs off while the store fails, and catches up.
func TestRun(t *testing.T) {
	ffs := faultfs.New(vfs.NewMem())
	ffs.Inject(func(faultfs.Op) error { return syscall.EIO })
	l := newLife(t, 62, archive.NewFileStore(ffs, place))
	l.o.Interval = 1
	l.restart()
	l.write(30)
	l.record()
	ctx, quit := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.a.Run(ctx) }()
	for l.a.Status().Failures == 0 { // it has begun
		runtime.Gosched()
	}
	if st := l.a.Status(); st.Err == nil || st.LagMS != -1 {
		t.Errorf("while the store fails: %+v", st)
	}
	ffs.Inject(nil)
	for st := l.a.Status(); st.LagMS != 0 || st.Err != nil; st = l.a.Status() {
		runtime.Gosched() // a second: the first retry
	}
	quit()
	<-done
	l.check()
}

// TestDroppedAtTheEnd: a segment that the directory has dropped, because nothing held it meanwhile, is not missed if the archive had all its frames; if it
// had not, the archiver says which one is missing.
func TestDroppedAtTheEnd(t *testing.T) {
	for _, all := range []bool{true, false} {
		l := newLife(t, 63, archive.NewFileStore(vfs.NewMem(), place))
		first := l.s.E.Dir().Log(0)
		big := onFirst(l.s) + strings.Repeat("x", 70_000)
		if !all {
			l.s.Do(onFirst(l.s) + "1")
			l.pass()
		}
		l.s.Do(big)
		l.record()
		for first.Segments() == 1 { // it is long enough
			runtime.Gosched()
		}
		if all {
			l.pass()
		}
		l.s.Do(onFirst(l.s) + "2")
		l.record()
		l.save()
		must(t, l.s.E.Dir().ClearFloor(archive.Floor))
		_, err := l.s.E.Dir().DropUnneeded()
		if must(t, err); first.SegmentList()[0].Number != 2 {
			t.Fatal("nothing was dropped")
		}
		if err := l.a.Pass(t.Context()); all != (err == nil) || err != nil && !strings.Contains(err.Error(), "segment 1 is not on disk") {
			t.Fatalf("all was there %v: %v", all, err)
		}
		if !all {
			l.sound()
		} else if n := l.check(); n != 2*len(l.instants) {
			t.Errorf("%d of %d points were restored", n, 2*len(l.instants))
		}
	}
}

// onFirst is a SET of a key on the first shard, without the value.
func onFirst(s *gate.Store) string {
	c := s.E.NewCtx()
	for i := 0; ; i++ {
		if k := fmt.Sprint("k", i); c.ShardOf([]byte(k)) == 0 {
			return "SET " + k + " "
		}
	}
}
