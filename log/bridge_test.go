package log

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/log/effect"
)

// TestRollAmidBridge: a roll that was due in the old generation comes between the beginning of the new one and its first group, whose frames are in the file
// already and must stay: the group is there after a crash.
func TestRollAmidBridge(t *testing.T) {
	fs := crashfs.New()
	d, _ := mustOpen(t, testOptions(fs))
	l := d.Log(0)
	put(t, l, 3)
	behind := func(begin func(int64, FrameCause, uint64, uint64), add func(*effect.Effect)) {
		begin(2000, ByClient, 0, 0)
		add(set("a", "behind"))
		add(set("b", "behind"))
	}
	err := d.BridgeGeneration(CauseFlush, &Bridge{
		Before: func() {
			l.Begin(2000, ByClient, 0, 0)
			l.Append(set("a", "before"))
			l.End()
		},
		After: func(_ int, enc *Encoder) {
			behind(enc.Begin, enc.Append)
			enc.End()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	begun := Cursor{l.Generation(), 0}
	segments := l.Segments()
	if err := l.roll(); err != nil || l.Segments() != segments {
		t.Errorf("rolled: %d segments, %d before: %v", l.Segments(), segments, err)
	}
	after, _ := mustOpen(t, testOptions(fs.KillClone()))
	if n, _ := readAll(t, after.Log(0), begun, ReaderOptions{}); n != 2 {
		t.Errorf("%d frames of the group are left", n)
	}
	behind(l.Begin, l.Append)
	l.End()
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _ := readAll(t, l, begun, ReaderOptions{}); n != 2 {
		t.Errorf("%d frames in the log", n)
	}
	if err := l.roll(); err != nil || l.Segments() != segments+1 {
		t.Errorf("a segment with frames: %d segments, %v", l.Segments(), err)
	}
}

// TestRollForwardCrash: a process is killed when the first part of a bridge is written but in no fsync, and then recovery loses its power, before
// each of its writes: the group is there, or it is not.
func TestRollForwardCrash(t *testing.T) {
	fs := crashfs.New()
	faulty := faultfs.New(fs)
	d, _ := mustOpen(t, testOptions(faulty))
	l := d.Log(0)
	put(t, l, 3)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	old := l.w.seg.path()
	var killed *crashfs.FS
	err := d.BridgeGeneration(CauseFlush, &Bridge{
		Before: func() {
			l.Begin(2000, ByClient, 0, 0)
			l.Append(set("a", strings.Repeat("before", 100)))
			l.End()
			faulty.Inject(func(op faultfs.Op) error {
				if op.Kind == faultfs.OpSync && op.Path == old {
					killed = fs.KillClone()
					return errStop
				}
				return nil
			})
		},
		After: func(_ int, enc *Encoder) {
			enc.Begin(2000, ByClient, 0, 0)
			enc.Append(set("b", "behind"))
			enc.End()
		},
	})
	if err == nil || killed == nil {
		t.Fatalf("the log was not synced: %v", err)
	}
	whole := 0
	for at := range 40 {
		for seed := range uint64(4) {
			fs := killed.KillClone()
			faulty := faultfs.New(fs)
			faulty.Inject(stopAfter(at, errStop))
			d, _, err := Open(testOptions(faulty))
			after := fs.Crash(rand.New(rand.NewPCG(uint64(at), seed)))
			if err == nil {
				_ = d.Close(false)
			}
			r, _ := mustOpen(t, testOptions(after))
			switch n := len(history(t, r.Log(0), r.Log(0).Oldest())); n {
			case 5:
				whole++
			case 3:
			default:
				t.Errorf("power lost before write %d: %d frames", at, n)
			}
		}
	}
	if whole < 80 {
		t.Errorf("the group was there %d times", whole)
	}
}

// TestRollOfNothing: a roll that was due in the old generation leaves the first segment of a new one alone: two segments that begin at one cursor
// could not be told apart by a floor.
func TestRollOfNothing(t *testing.T) {
	d, _ := mustOpen(t, testOptions(crashfs.New()))
	l := d.Log(0)
	put(t, l, 3)
	if err := d.NewGeneration(CauseFlush); err != nil {
		t.Fatal(err)
	}
	for _, frames := range []int{0, 1, 0, 1} {
		if frames > 0 {
			put(t, l, frames)
		}
		before := l.Segments()
		if err := l.roll(); err != nil || l.Segments() != before+frames {
			t.Errorf("%d frames: %d segments, then %d: %v", frames, before, l.Segments(), err)
		}
	}
}
