package snapshot

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

var testHeader = Header{
	Shard: 1, Shards: 2, Set: 7, Cursor: log.Cursor{Generation: 42, Offset: 9}, TimeMS: 1_800_000_000_000, HashSeed: 3,
}

// source emits n keys.
func source(n int) Source {
	return func(emit func(*effect.Effect) error, done func() error) error {
		for i := range n {
			e := effect.Effect{Op: effect.Set, Args: [][]byte{fmt.Appendf(nil, "key:%06d", i), fmt.Append(nil, i)}}
			if err := emit(&e); err != nil {
				return err
			}
			if err := done(); err != nil {
				return err
			}
		}
		return nil
	}
}

func write(t testing.TB, fs vfs.FS, n int) string {
	t.Helper()
	if _, err := WriteShard(fs, "s.snap", testHeader, source(n)); err != nil {
		t.Fatal(err)
	}
	return "s.snap"
}

// loadLines returns the effects of a file, one a line.
func loadLines(fs vfs.FS, name string) (h Header, lines []string, err error) {
	h, _, err = Load(fs, name, func(e *effect.Effect) error {
		lines = append(lines, fmt.Sprintf("%s %s", e.Op, e.Args))
		return nil
	})
	return h, lines, err
}

func bytesOf(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func fileOf(t testing.TB, b []byte) (vfs.FS, string) {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Create("x.snap")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return fs, "x.snap"
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 100_000} {
		fs := vfs.NewMem()
		name := write(t, fs, n)
		h, lines, err := loadLines(fs, name)
		if err != nil || h != testHeader || len(lines) != n {
			t.Fatalf("%d keys: header %+v, %d effects, %v", n, h, len(lines), err)
		}
		if n > 0 && lines[n-1] != fmt.Sprintf("SET [key:%06d %d]", n-1, n-1) {
			t.Errorf("last effect %q", lines[n-1])
		}
	}
}

func TestReadCursor(t *testing.T) {
	name := filepath.ToSlash(filepath.Join(t.TempDir(), "s.snap"))
	if _, err := WriteShard(vfs.OS(), name, testHeader, source(3)); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadCursor(name); c != testHeader.Cursor || err != nil {
		t.Errorf("ReadCursor = %v, %v", c, err)
	}
	if err := os.Truncate(name, headerSize); err != nil { // the header alone is enough
		t.Fatal(err)
	}
	if c, err := ReadCursor(name); c != testHeader.Cursor || err != nil {
		t.Errorf("ReadCursor of a header alone = %v, %v", c, err)
	}
}

// golden reads a file of testdata that hex.Dump has written.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for line := range strings.Lines(string(dump)) {
		digits, err := hex.DecodeString(strings.ReplaceAll(line[9:min(59, len(line))], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, digits...)
	}
	return b
}

// TestGolden keeps the format as it is: a file of version 2 opens for ever. What is written may differ in how blocks
// are compressed, in nothing else.
func TestGolden(t *testing.T) {
	const n = 40
	fs := vfs.NewMem()
	written := bytesOf(t, fs, write(t, fs, n))
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(filepath.Join("testdata", "v2.hex"), []byte(hex.Dump(written)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := golden(t, "v2.hex")
	fs2, name := fileOf(t, want)
	h, lines, err := loadLines(fs2, name)
	if err != nil || h != testHeader || len(lines) != n || lines[n-1] != fmt.Sprintf("SET [key:%06d %d]", n-1, n-1) {
		t.Errorf("version 2: %+v, %d effects, %v", h, len(lines), err)
	}
	if !bytes.Equal(written[:headerSize], want[:headerSize]) {
		t.Errorf("the header has changed: %x, was %x", written[:headerSize], want[:headerSize])
	}
}

// TestVersion1IsRefused: no kevy that keeps data has written it.
func TestVersion1IsRefused(t *testing.T) {
	fs, name := fileOf(t, golden(t, "v1.hex"))
	if _, _, err := loadLines(fs, name); !errors.Is(err, ErrVersion) || errors.Is(err, ErrCorrupt) {
		t.Errorf("a file of version 1: %v", err)
	}
}

func TestUnknownVersionIsNotCorrupt(t *testing.T) {
	fs := vfs.NewMem()
	b := bytesOf(t, fs, write(t, fs, 1))
	h := testHeader.encode()
	le.PutUint32(h[8:], version+1)
	copy(b, fixHeader(h))
	fs2, name := fileOf(t, b)
	if _, _, err := loadLines(fs2, name); !errors.Is(err, ErrVersion) || errors.Is(err, ErrCorrupt) {
		t.Errorf("version %d: %v", version+1, err)
	}
}

// TestDamage flips bits, cuts and extends: every damage is found, and named with its file.
func TestDamage(t *testing.T) {
	fs := vfs.NewMem()
	whole := bytesOf(t, fs, write(t, fs, 200))
	rng := rand.New(rand.NewPCG(1, 2))
	try := func(what string, b []byte) {
		t.Helper()
		fs, name := fileOf(t, b)
		_, _, err := loadLines(fs, name)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 400 {
		b := append([]byte(nil), whole...)
		bit := rng.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		try(fmt.Sprintf("bit %d", bit), b)
	}
	for range 100 {
		n := rng.IntN(len(whole))
		try(fmt.Sprintf("cut at %d", n), whole[:n])
	}
	try("a byte more", append(append([]byte(nil), whole...), 0))
	try("twice", append(append([]byte(nil), whole...), whole...))
}

func TestWriteErrorLeavesNothing(t *testing.T) {
	fs := vfs.NewMem()
	boom := errors.New("boom")
	_, err := WriteShard(fs, "s.snap", testHeader, func(func(*effect.Effect) error, func() error) error { return boom })
	if !errors.Is(err, boom) {
		t.Errorf("WriteShard = %v", err)
	}
	if _, err := fs.Stat("s.snap"); err == nil {
		t.Error("a failed snapshot left its file")
	}
}

func TestSets(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint64{3, 20} {
		tmp, err := Begin(fs, "data", FormatID(id))
		if err != nil {
			t.Fatal(err)
		}
		set := Set{ID: FormatID(id), Shards: []ShardSet{{Generation: id, Offset: 1}}}
		if err := Publish(fs, "data", tmp, set); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Begin(fs, "data", "left"); err != nil { // an interrupted one is no set
		t.Fatal(err)
	}
	ids, err := List(fs, "data")
	if err != nil || len(ids) != 2 || ids[1] != FormatID(20) {
		t.Fatalf("List = %q, %v", ids, err)
	}
	set, err := ReadSet(fs, "data", ids[1])
	if err != nil || set.Cursors()[0] != (log.Cursor{Generation: 20, Offset: 1}) {
		t.Errorf("ReadSet = %+v, %v", set, err)
	}
	if err := Remove(fs, "data", ids[0]); err != nil {
		t.Fatal(err)
	}
	if ids, err = List(fs, "data"); err != nil || len(ids) != 1 {
		t.Errorf("after Remove: %q, %v", ids, err)
	}
}

// FuzzLoad loads any bytes: damage is an error, never a panic or an allocation of what a length
// claims, and what loads is what was written.
func FuzzLoad(f *testing.F) {
	fs := vfs.NewMem()
	f.Add(bytesOf(f, fs, write(f, fs, 3)))
	f.Add(testHeader.encode())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		fs, name := fileOf(t, b)
		h, lines, err := loadLines(fs, name)
		if err == nil && (h.Validate() != nil || len(lines) > len(b)) {
			t.Errorf("loaded %+v with %d effects", h, len(lines))
		}
	})
}

// TestLargeValues: frames that are longer than many blocks, and groups of many frames, come back as they were.
func TestLargeValues(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(3, 4))
	big := make([]byte, 9<<20)
	for i := range big {
		big[i] = byte(rng.IntN(4))
	}
	var want []string
	src := func(emit func(*effect.Effect) error, done func() error) error {
		for i := range 6 {
			for part := range 1 + 40*(i%2) {
				e := effect.Effect{Op: effect.RPush, Args: [][]byte{fmt.Appendf(nil, "k%d", i), big[part*1000 : part*1000+len(big)/(1+5*part)]}}
				want = append(want, fmt.Sprintf("%s %s", e.Op, e.Args))
				if err := emit(&e); err != nil {
					return err
				}
			}
			if err := done(); err != nil {
				return err
			}
		}
		return nil
	}
	info, err := WriteShard(fs, "s.snap", testHeader, src)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := loadLines(fs, "s.snap")
	if err != nil || info.Keys != 6 || info.Bytes >= info.FrameBytes || !slices.Equal(got, want) {
		t.Errorf("%d effects of %d, %+v, %v", len(got), len(want), info, err)
	}
}
