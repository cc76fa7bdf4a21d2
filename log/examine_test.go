package log

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
)

// TestExamine damages a shard of five segments in every way and wants of Examine the place, and of
// a reader the frames before it and the same place.
func TestExamine(t *testing.T) {
	groups := []int{3, 3, 3, 3, 3}
	for name, tc := range map[string]struct {
		damage func(t *testing.T, fsys *crashfs.FS)
		file   string // the damage names it
		before int    // frames that can be read
	}{
		"missing":        {func(t *testing.T, fsys *crashfs.FS) { remove(t, fsys, 3) }, segmentPath(3), 6},
		"missing oldest": {func(t *testing.T, fsys *crashfs.FS) { remove(t, fsys, 1) }, segmentPath(1), 0},
		"header":         {func(t *testing.T, fsys *crashfs.FS) { flip(t, fsys, 3, 20) }, segmentPath(3), 6},
		"newest header":  {func(t *testing.T, fsys *crashfs.FS) { flip(t, fsys, 5, 20) }, segmentPath(5), 12},
		"swapped": {func(t *testing.T, fsys *crashfs.FS) {
			a, b := fileBytes(t, fsys, segmentPath(2)), fileBytes(t, fsys, segmentPath(4))
			setBytes(t, fsys, segmentPath(2), b)
			setBytes(t, fsys, segmentPath(4), a)
		}, segmentPath(2), 3},
		"shorter": {func(t *testing.T, fsys *crashfs.FS) {
			b := fileBytes(t, fsys, segmentPath(2))
			setBytes(t, fsys, segmentPath(2), b[:len(b)-5])
		}, segmentPath(2), 5},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, items := build(t, groups, 0, 1, 2, 3)
			tc.damage(t, fsys)
			mustRefuse(t, fsys, ErrCorrupt)
			d, rec, err := Examine(fsys, "data")
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close(false) //nolint:errcheck // only read
			if damage := rec.Shards[0].Damage; len(damage) == 0 || !strings.Contains(damage[0].Error(), tc.file) {
				t.Fatalf("damage %v, want %s", damage, tc.file)
			}
			l := d.Log(0)
			r, err := l.NewReader(Cursor{l.Lineage()[0].Generation, 0}, ReaderOptions{Limit: LimitWritten, Follow: true})
			n := 0
			for ; err == nil; n++ {
				_, err = r.Next()
			}
			if n = max(0, n-1); n != tc.before {
				t.Errorf("%d of %d frames read, want %d: %v", n, len(items), tc.before, err)
			}
			if name != "newest header" && (err == io.EOF || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrGone)) { //nolint:errorlint // the reader's own
				t.Errorf("the reader ended with %v", err)
			}
		})
	}
}

func remove(t *testing.T, fsys *crashfs.FS, n uint64) {
	t.Helper()
	if err := fsys.Remove(segmentPath(n)); err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, fsys *crashfs.FS, n uint64, at int) {
	t.Helper()
	b := fileBytes(t, fsys, segmentPath(n))
	b[at] ^= 0x10
	setBytes(t, fsys, segmentPath(n), b)
}
