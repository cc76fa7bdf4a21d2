package engine

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// TestSettleDoesNotStall lets a sync hang: the Settle that began it returns without it, others do not even wait, and
// all is safe when it ends.
func TestSettleDoesNotStall(t *testing.T) {
	release := make(chan struct{})
	var stall atomic.Bool
	fs := faultfs.New(vfs.NewMem())
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpSync && strings.HasSuffix(op.Path, ".seg") && stall.Load() {
			<-release
		}
		return nil
	})
	e, _, err := Open(Options{Log: log.Options{FS: fs, Dir: "data", Shards: 2, Policy: log.Always}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(true); err != nil {
			t.Error(err)
		}
	}()
	set := func() *Ticket {
		tick, w := new(Ticket), resp.Writer{}
		c := e.NewCtx()
		c.Cmd, c.Args, c.W = command.Lookup([]byte("set")), [][]byte{[]byte("set"), []byte("k"), []byte("v")}, &w
		if e.Run(c, tick); string(w.Buf) != "+OK\r\n" {
			t.Fatalf("%q", w.Buf)
		}
		return tick
	}
	for done := false; !done; { // the machine may be busy
		if done, err = e.Settle(set()); err != nil {
			t.Fatal(err)
		}
	}
	stall.Store(true)
	var safe [3]chan error
	for i := range safe {
		tick := set()
		if done, err := e.Settle(tick); done || err != nil {
			t.Fatalf("Settle during the stall: %v, %v", done, err)
		}
		safe[i] = make(chan error, 1)
		e.OnSafe(tick, func(err error) { safe[i] <- err })
	}
	if n := e.quick.late.Load(); n > 1 {
		t.Errorf("%d syncers are late, want 1", n)
	}
	stall.Store(false)
	close(release)
	for _, c := range safe {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
}
