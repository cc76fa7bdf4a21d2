package feed

import (
	"fmt"
	"testing"
	"time"

	"github.com/kevydb/kevy/log"
)

// TestReadSealed wants the same replies from sealed segments as from raw ones: with and without filters and WITHMETA, from
// many cursors, page after page to the tail.
func TestReadSealed(t *testing.T) {
	b := newBed(t, log.Options{SegmentBytes: 100 << 10}, true)
	for i := range 4000 {
		key := fmt.Sprintf("user:%d", i%700)
		switch i % 10 {
		case 3:
			b.group("SET "+key+" a", "DEL x y", "SET order:"+fmt.Sprint(i)+" b")
		case 5:
			b.group("SET rare:"+fmt.Sprint(i%50)+" c", "SET "+key+" some-value-of-a-user")
		default:
			b.group("SET " + key + " some-value-of-a-user")
		}
		if i%100 == 0 {
			if err := b.l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.l.Sync(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for b.l.Segments() < 2 {
		if time.Now().After(deadline) {
			t.Fatal("no segment has ended")
		}
		b.group("SET more x")
		if err := b.l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for _, options := range []string{
		"", "COUNT 4096", "PREFIX rare:", "PREFIX order:39", "PREFIX user:69 PREFIX rare:4 COUNT 7", "PREFIX no", `PREFIX "" COUNT 9`,
		"WITHMETA", "PREFIX rare: WITHMETA", "PREFIX order: COUNT 3 WITHMETA", "PREFIX user:12 WITHMETA COUNT 4096",
	} {
		for off := uint64(0); off <= b.l.Appended(); off += 389 {
			lines = append(lines, fmt.Sprintf("0 GEN %d %s", off, options))
		}
	}
	raw := make([]string, len(lines))
	for i, line := range lines {
		raw[i] = b.read(line)
	}
	if n, err := b.dir.Seal(); n == 0 || err != nil {
		t.Fatalf("sealed %d: %v", n, err)
	}
	for i, line := range lines {
		if got := b.read(line); got != raw[i] {
			t.Fatalf("FEED.READ %s: sealed\n%.300s\nraw\n%.300s", line, got, raw[i])
		}
	}
}
