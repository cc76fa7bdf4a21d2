package migrate

import (
	"bytes"
	"slices"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// TestRecord: a record is taken once; one that is changed or cut anywhere is none.
func TestRecord(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	want := position{Replid: "abc", Offset: 7, DB: 2, Tails: []log.Cursor{{Generation: 5, Offset: 9}}}
	take := func() position {
		t.Helper()
		p, err := takeRecord(fs, "d")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := take(); p.Replid != "" {
		t.Errorf("without a record: %+v", p)
	}
	for range 2 { // the second one replaces the first
		if err := want.write(fs, "d"); err != nil {
			t.Fatal(err)
		}
	}
	good, err := vfs.ReadFile(fs, "d/SOURCE", maxRecord)
	if err != nil {
		t.Fatal(err)
	}
	if p := take(); p.Offset != 7 || p.DB != 2 || !p.at(want.Tails) || p.at(nil) || p.at([]log.Cursor{{Generation: 5, Offset: 8}}) {
		t.Errorf("%+v", p)
	}
	if hasRecord(fs, "d") {
		t.Error("it is still there")
	}
	for i := range good {
		flipped := slices.Clone(good)
		flipped[i] ^= 1
		for _, bad := range [][]byte{flipped, good[:i]} {
			if err := vfs.WriteFile(fs, "d/SOURCE", bad); err != nil {
				t.Fatal(err)
			}
			if p := take(); p.Replid != "" {
				t.Fatalf("%q is taken: %+v", bytes.TrimSpace(bad), p)
			}
		}
	}
}
