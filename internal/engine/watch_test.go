package engine_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
)

// busyFor returns how much CPU this process has used: what else the machine does is not in it.
func busyFor(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestWatchManyKeys: what a key costs does not grow with the keys watched before it.
func TestWatchManyKeys(t *testing.T) {
	const few, many = 8000, 128_000
	s := gate.Open(t, crashfs.New(), 2, &gate.Clock{MS: 1_800_000_000_000})
	defer s.Close()
	watch := func(n int) time.Duration {
		w := s.E.NewWatch()
		began := busyFor(t)
		for i := range n {
			w.Add(fmt.Appendf(nil, "key:%d", i))
			w.Add(fmt.Appendf(nil, "key:%d", i/2)) // there already
		}
		took := busyFor(t) - began
		if got := w.Memory(1) - w.Memory(0); got != n {
			t.Fatalf("%d keys are watched, want %d", got, n)
		}
		w.Clear()
		return took
	}
	small := watch(few)
	for range 4 {
		small = min(small, watch(few))
	}
	// 16 times as many keys take 16 times as long, or 256 times if each looks at all before it.
	if large := watch(many); large > 100*small {
		t.Errorf("%d keys take %v, %d take %v", few, small, many, large)
	}
}
