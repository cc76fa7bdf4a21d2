package log

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
)

// TestTakeBackCrash takes a log back, into raw and sealed segments, with a crash before every step: what is found then ends at the one place or the
// other, holds all frames up to there, and can be taken back further.
func TestTakeBackCrash(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		for part := 1; part <= 5; part++ { // of five of the log
			takeBackCrash(t, sealed, part)
		}
	}
}

func takeBackCrash(t *testing.T, sealed bool, part int) {
	rng := rand.New(rand.NewPCG(uint64(part), 5))
	base := crashfs.New()
	o, frames := sealable(t, base)
	ffs := faultfs.New(base)
	o.FS, o.Follower = ffs, true
	d, _ := mustOpen(t, o)
	if err := d.Follow(); err != nil {
		t.Fatal(err)
	}
	if sealed {
		if n, err := d.Seal(); n == 0 || err != nil {
			t.Fatalf("%d sealed: %v", n, err)
		}
	}
	n := wholeFrames(frames, len(frames)*part/5-3)
	clones := clonesAtWrites(ffs, base, rng)
	next, aside, err := d.TakeBack(&Back{To: []Cursor{behind(frames[n-1])}})
	ffs.Inject(nil)
	if err != nil || len(aside) == 0 {
		t.Fatalf("kept %v: %v", aside, err)
	}
	same(t, "taken back", frames[:n], mustRead(t, next.Log(0), frames[0].cursor, ReaderOptions{Follow: true}))
	if err := next.Close(true); err != nil {
		t.Fatal(err)
	}
	before := 0
	for _, c := range append(clones(), base.KillClone()) {
		if takenBack(t, o, c, frames, n, sealed) {
			before++
		}
	}
	if before == 0 || before == len(clones())+1 {
		t.Errorf("%d crashes, the log is as before after %d", len(clones())+1, before)
	}
}

// takenBack checks what a crash has left of taking a log back to the first n frames, and reports whether it is as before.
func takenBack(t *testing.T, o Options, c *crashfs.FS, frames []seen, n int, sealed bool) (before bool) {
	t.Helper()
	if r, _, err := OpenReadOnly(c, o.Dir); err == nil {
		if got := mustRead(t, r.Log(0), frames[0].cursor, ReaderOptions{Limit: LimitWritten, Follow: true}); len(got) != n {
			same(t, "as a tool sees it", frames, got)
		}
		_ = r.Close(false)
	} else if !sealed { // a segment is to be made raw again first
		t.Errorf("a tool: %v", err)
	}
	o.FS = c
	d, _ := mustOpen(t, o)
	got := mustRead(t, d.Log(0), frames[0].cursor, ReaderOptions{Limit: LimitWritten, Follow: true})
	if before = len(got) != n; before {
		same(t, "before", frames, got)
		_ = d.Close(false)
		return true
	}
	same(t, "after", frames[:n], got)
	names, err := c.ReadDir("data/shard-00")
	if err != nil || slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(s, tempSuffix) }) {
		t.Errorf("files %v: %v", names, err)
	}
	further := wholeFrames(frames, n/2)
	d, _, err = d.TakeBack(&Back{To: []Cursor{behind(frames[further-1])}})
	if err != nil {
		t.Fatal(err)
	}
	tail := d.Log(0).Tail()
	child := Lineage{Generation: tail.Generation + 1<<20, Cause: CausePromotion, Parent: tail.Generation, ParentOffset: tail.Offset}
	if err := d.FollowGenerations([]Lineage{child}, nil); err != nil {
		t.Fatal(err)
	}
	put(t, d.Log(0), 3)
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	d, rec := mustOpen(t, o)
	got = mustRead(t, d.Log(0), frames[0].cursor, ReaderOptions{Limit: LimitWritten, Follow: true})
	if !rec.Clean || len(got) != further+3 {
		t.Fatalf("clean %v, %d frames, want %d", rec.Clean, len(got), further+3)
	}
	same(t, "taken back further", frames[:further], got[:further])
	_ = d.Close(false)
	return false
}

// wholeFrames returns the least number of frames, from n on, that tears no group.
func wholeFrames(frames []seen, n int) int {
	for n = max(n, 1); !frames[n-1].last; n++ {
	}
	return n
}

func behind(s seen) Cursor { return Cursor{s.cursor.Generation, s.cursor.Offset + 1} }
