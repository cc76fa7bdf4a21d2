package migrate

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// TestSettleFails: what could not be written is not taken for safe when it is asked for again, as the end of a link does.
func TestSettleFails(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	e, _, err := engine.Open(engine.Options{Log: log.Options{FS: fs, Dir: "d"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(false) //nolint:errcheck // it has failed
	to := newStore(e)
	if err := to.apply(log.ByClient, [][][]byte{{[]byte("SET"), []byte("k"), []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpWriteAt {
			return errors.New("the disk is broken")
		}
		return nil
	})
	for range 2 {
		if to.settle() == nil {
			t.Error("it is safe although it was not written")
		}
	}
}

// unsafe is a target on which nothing becomes safe.
type unsafe struct{ groups int }

func (u *unsafe) apply(log.FrameCause, [][][]byte) error { u.groups++; return nil }

func (u *unsafe) settle() error { return syscall.ENOSPC }

// TestTrackerKeepsBoth: what is applied and not safe is not acknowledged, and not asked for again: it would be applied twice.
func TestTrackerKeepsBoth(t *testing.T) {
	own, other := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, other) }() // acknowledgements
	var offset atomic.Int64
	offset.Store(7)
	to := new(unsafe)
	const incr = "*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n"
	go func() { _, _ = io.WriteString(other, incr+incr+"*1\r\n$5\r\nMULTI\r\n"+incr) }()
	in := bufio.NewReader(own)
	if _, err := in.Peek(1); err != nil { // all has come: nothing is settled before
		t.Fatal(err)
	}
	tr := &tracker{
		link: &link{nc: own, in: in}, s: &stream{to: to}, to: to, offset: &offset,
		settled: func() { t.Error("nothing is settled") }, rest: func(int64) error { return nil },
	}
	err := tr.run(t.Context())
	if want := int64(7 + 2*len(incr)); to.groups != 2 || tr.applied != want || offset.Load() != 7 {
		t.Errorf("%d groups; applied %d, want %d; acknowledged %d", to.groups, tr.applied, want, offset.Load())
	}
	if isLost(err) || isLost(errors.Join(io.EOF, err)) || !isLost(io.EOF) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("taken for a lost connection: %v", err)
	}
}
