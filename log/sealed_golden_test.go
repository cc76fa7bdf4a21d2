package log

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

var rewriteSealed = flag.Bool("log.rewrite", false, "write testdata/sealed-v2.hex anew: only for a format that nobody has stored yet")

const sealedGolden = "testdata/sealed-v2.hex"

// goldenLog makes a log whose first segment is of known content: two chunks, with a group over several shards, frames
// without a single key, and a frame in parts.
func goldenLog(t *testing.T) (*Dir, vfs.FS) {
	t.Helper()
	fsys := vfs.NewMem()
	o := testOptions(fsys)
	o.sealSizes = sealSizes{chunk: 400, bucket: 60, bigFrame: 300, part: 200, least: 1}
	o.Now, o.Rand = func() int64 { return 1_800_000_000_000 }, func() uint64 { return 77 }
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	for i := range 12 {
		l.Begin(int64(1_800_000_000_000+i), ByClient, uint64(i%4/3*(i+1)), uint64(i%4/3))
		l.Append(set(fmt.Sprintf("user:%d", i%5), fmt.Sprintf("value-%d", i)))
		if i%4 == 1 {
			l.Append(&effect.Effect{Op: effect.Del, Args: [][]byte{[]byte("a"), []byte("b")}})
		}
		if i == 7 {
			l.Append(set("large", strings.Repeat("x", 450)))
		}
		l.End()
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := l.roll(); err != nil {
		t.Fatal(err)
	}
	return d, fsys
}

// TestSealedGolden reads a sealed segment that was written when its format was decided.
func TestSealedGolden(t *testing.T) {
	d, fsys := goldenLog(t)
	l := d.Log(0)
	frames := mustRead(t, l, l.Oldest(), ReaderOptions{})
	if *rewriteSealed {
		mustSeal(t, d)
		text := hex.AppendEncode(nil, fileBytes(t, fsys, sealedPath(1)))
		if err := os.WriteFile(sealedGolden, wrapped(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(sealedGolden)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	_ = fsys.Remove(segmentPath(1))
	setBytes(t, fsys, sealedPath(1), stored)
	d, _ = mustOpen(t, testOptions(fsys))
	l = d.Log(0)
	same(t, "golden", frames, mustRead(t, l, l.Oldest(), ReaderOptions{}))
	for _, p := range []string{"user:3", "large", "no"} {
		checkFiltered(t, l, frames, [][]byte{[]byte(p)}, true)
	}
	if st := l.Stats(); st.Sealed != 1 {
		t.Errorf("%+v", st)
	}
}

// wrapped breaks text into lines of 96.
func wrapped(text []byte) (lines []byte) {
	for len(text) > 0 {
		n := min(96, len(text))
		lines = append(append(lines, text[:n]...), '\n')
		text = text[n:]
	}
	return lines
}
