package kevy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy"
)

// TestSnapshotsByThemselves: a store's log does not grow for ever, unless that is asked for.
func TestSnapshotsByThemselves(t *testing.T) {
	defer kevy.SetSnapshotMinForTesting(64 << 10)()
	for _, growth := range []int{0, -1} {
		cfg := kevy.DefaultConfig().WithDir(t.TempDir())
		cfg.SnapshotGrowth = growth
		s, err := kevy.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := s.Set(fmt.Sprint(i), []byte(strings.Repeat("x", 2000))); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(20 * time.Second); growth == 0 && s.SnapshotsForTesting() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no snapshot was taken")
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n := s.SnapshotsForTesting(); growth < 0 && n != 0 {
			t.Errorf("%d snapshots were taken", n)
		}
	}
	if err := (kevy.Config{SnapshotKeep: -1}).Validate(); err == nil || !strings.Contains(err.Error(), "SnapshotKeep") {
		t.Errorf("SnapshotKeep = -1: %v", err)
	}
}
