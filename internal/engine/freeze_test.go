package engine_test

import (
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// TestFrozenLeavesWhenSafe: what a frozen shard shows may leave only when it is as safe as the policy promises: when Close returns, it is;
// when it never will be, Close says so, and later freezes are refused.
func TestFrozenLeavesWhenSafe(t *testing.T) {
	for _, policy := range []log.Policy{log.EverySec, log.Always} {
		t.Run(policy.String(), func(t *testing.T) {
			fs := faultfs.New(crashfs.New())
			s := gate.Open(t, fs, 2, &gate.Clock{MS: 1_800_000_000_000})
			defer func() { _ = s.E.Close(false) }()
			s.E.SetPolicy(policy)
			s.Do("SET safe 1")
			shard := 0
			if s.Cursors()[1].Offset > 0 {
				shard = 1
			}
			f, err := s.E.Freeze(nil, shard)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			l := s.E.Dir().Log(shard)
			if l.Visible() < f.Cursor().Offset || policy == log.Always && l.Durable() < f.Cursor().Offset {
				t.Errorf("closed at %s: visible %d, durable %d", f.Cursor(), l.Visible(), l.Durable())
			}
			op := faultfs.OpWriteAt
			if policy == log.Always {
				op = faultfs.OpSync
			}
			fs.Inject(faultfs.OnPath(".seg", faultfs.FailNth(op, 1, nil)))
			// The write's own reply is refused as well; the frozen view may have been taken before.
			frozen := make(chan error, 1)
			if _, err := s.TryBefore("SET safe 2", func() {
				f, err := s.E.Freeze(nil, shard)
				if err != nil {
					frozen <- err
					return
				}
				f.RebuildFrom(nil, func(e *effect.Effect, _ bool) bool {
					if string(e.Args[1]) != "2" {
						t.Errorf("shows %q", e.Args)
					}
					return true
				})
				frozen <- f.Close()
			}); err == nil {
				t.Error("the write was acknowledged")
			}
			if err := <-frozen; err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
				t.Errorf("a view of a write that was lost left with %v", err)
			}
			if _, err := s.E.Freeze(nil, shard); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
				t.Errorf("after the failure: %v", err)
			}
		})
	}
}
