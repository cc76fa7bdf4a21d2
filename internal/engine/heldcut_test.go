package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// tails returns where the logs of a role end.
func (r *role) tails() []log.Cursor {
	_, at := r.e.Tails()
	return at
}

// holds checks which cut is held.
func (r *role) holds(when string, want []log.Cursor) {
	r.t.Helper()
	if got, _ := r.e.HeldCut(); !slices.Equal(got, want) {
		r.t.Errorf("%s: holds %v, want %v", when, got, want)
	}
}

// hold offers a cut, of which the logs have all, or not.
func (r *role) hold(at []log.Cursor, want bool) {
	r.t.Helper()
	if held, err := r.e.HoldCut(at); err != nil || held != want {
		r.t.Errorf("%v: %v, %v", at, held, err)
	}
}

// moved returns cursors with another offset on a shard.
func moved(at []log.Cursor, shard, by int) []log.Cursor {
	at = slices.Clone(at)
	at[shard].Offset += uint64(by) //nolint:gosec // may wrap, and back
	return at
}

// following opens a store with some frames that follows, and returns where its logs end.
func following(t *testing.T, fs vfs.FS) (*role, []log.Cursor) {
	t.Helper()
	r := openRole(t, fs)
	for i := range 50 {
		r.client(fmt.Sprintf("SET key:%d v", i))
	}
	if err := r.e.Follow(); err != nil {
		t.Fatal(err)
	}
	return r, r.tails()
}

// TestHeldCut: the newest cut that the logs have is held, also after a restart, and no older one takes its place.
func TestHeldCut(t *testing.T) {
	fs := vfs.NewMem()
	r, end := following(t, fs)
	r.holds("before any", nil)
	r.hold(moved(end, 1, 1), false)
	r.holds("after one that is ahead", nil)
	older, newer := moved(end, 0, -2), moved(end, 2, -1)
	_, news := r.e.HeldCut()
	r.hold(older, true)
	select {
	case <-news:
	default:
		t.Error("who waits for a cut is not told")
	}
	r.hold(moved(older, 1, -1), true)
	r.holds("after one before it", older)
	r.hold(newer, true)
	r.holds("after one that is not behind it", older)
	r.close()
	r = openRole(t, fs)
	r.holds("after a restart", older)
	r.hold(end, true)
	r.holds("at the end", end)
	if err := errors.Join(r.e.Promote(), r.e.Follow()); err != nil {
		t.Fatal(err)
	}
	r.holds("after a promotion", nil)
	r.close()
	r = openRole(t, fs)
	r.holds("after a promotion and a restart", nil)
	r.close()
}

// TestHeldCutFits: what is taken from the log, or put in its place, leaves no cut that is not there.
func TestHeldCutFits(t *testing.T) {
	fs := vfs.NewMem()
	r, end := following(t, fs)
	r.hold(moved(end, 0, -3), true)
	back := moved(moved(end, 0, -1), 1, -2)
	if _, err := r.e.Rewind(back); err != nil {
		t.Fatal(err)
	}
	want := moved(moved(end, 0, -3), 1, -2)
	r.holds("after a rewind", want)
	r.close()
	r = openRole(t, fs)
	r.holds("after a rewind and a restart", want)
	l, err := r.e.NewLoader()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(log.Cursor{Generation: 1}); err != nil {
		t.Fatal(err)
	}
	r.holds("with another history", nil)
	r.close()
	r = openRole(t, fs)
	r.holds("with another history, after a restart", nil)
	r.close()
}

// TestHeldCutDamaged: a file that is no cut is none.
func TestHeldCutDamaged(t *testing.T) {
	fs := vfs.NewMem()
	r, end := following(t, fs)
	r.hold(end, true)
	r.close()
	whole, err := vfs.ReadFile(fs, "data/CUT", 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		t.Helper()
		if err := errors.Join(fs.RemoveAll("data/CUT"), vfs.WriteFile(fs, "data/CUT", b)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range whole {
		for _, b := range [][]byte{whole[:i], append(slices.Clone(whole[:i]), append([]byte{whole[i] ^ 4}, whole[i+1:]...)...)} {
			put(b)
			r := openRole(t, fs)
			r.holds(fmt.Sprintf("%d bytes, damaged at %d", len(b), i), nil)
			r.close()
		}
	}
	put(whole)
	r = openRole(t, fs)
	r.holds("whole", end)
	r.close()
}
