package kevy_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// TestFailedLogIsErrorReply: a write whose fsync fails gets the reply that a client would get, and so do all later ones, alone
// or in a transaction or a script; reads go on, and Close tells.
func TestFailedLogIsErrorReply(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	s := must[*kevy.Store](t)(kevy.Open(kevy.DefaultConfig().WithDir("data").WithFsync(log.Always).OnFSForTesting(fs)))
	t.Cleanup(func() {
		if s.Close() == nil {
			t.Error("closed cleanly")
		}
	})
	if err := s.Set("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	fs.Inject(faultfs.OnPath(".seg", faultfs.FailNth(faultfs.OpSync, 1, syscall.EIO)))
	for i, write := range []func() error{
		func() error { return s.Update(func(tx *kevy.Tx) error { return tx.Set("a", []byte("2")) }) },
		func() error { return s.Set("a", []byte("2")) },
		func() error { return s.Update(func(tx *kevy.Tx) error { return tx.Set("a", []byte("2")) }) },
		func() error { return s.FlushAll() },
		func() error { return s.Update(func(tx *kevy.Tx) error { return tx.FlushAll() }) },
		func() error { _, err := s.Do("EVAL", "return redis.call('set', 'a', '2')", 0); return err },
		func() error { _, err := s.Do("EVAL", "return redis.pcall('set', 'a', '2')", 0); return err },
		func() error {
			return s.Update(func(tx *kevy.Tx) error { _, err := tx.Do("EVAL", "return redis.call('set', 'a', '2')", 0); return err })
		},
	} {
		err := write()
		reply, ok := errors.AsType[kevy.Error](err)
		if !ok || !strings.HasPrefix(string(reply), "MISCONF ") {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if v, _, err := s.Get("a"); string(v) != "1" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}
