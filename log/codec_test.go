package log

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

func TestCRCUint64(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		crc, v := rng.Uint32(), rng.Uint64()
		var b [8]byte
		le.PutUint64(b[:], v)
		if got, want := crcUint64(crc, v), crc32.Update(crc, castagnoli, b[:]); got != want {
			t.Fatalf("%08x %016x: %08x, want %08x", crc, v, got, want)
		}
	}
}

// TestGoldenBytes fixes the formats: these bytes must be readable for ever.
func TestGoldenBytes(t *testing.T) {
	e := NewEncoder(3, Cursor{0x1122334455667, 0x0807060504030201}, 0)
	e.Begin(0x0102030405, ByScript, 0x99, 0x0a)
	e.Append(set("key", "v"))
	e.Append(&effect.Effect{Op: effect.Del, Args: [][]byte{[]byte("a"), []byte("b")}})
	e.End()
	h := segmentHeader{
		shard: 3, number: 7, generation: 0x1122334455667, base: 0x0807060504030201,
		parent: 0x1122334455667, parentOff: 0x0807060504030201, prev: 6, prevSize: 0x1000, prevCRC: 0xaabbccdd,
		cause: CauseFlush, createdMS: 0x0102030405, lastTxn: 0x98, lastTimeMS: 0x0102030404,
	}
	var m [markBytes]byte
	mark{Cursor{0x1122334455667, 0x0807060504030201}, 7}.put(&m)
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"frames": {e.Buf, goldenFrames},
		"header": {h.encode(), goldenHeader},
		"mark":   {m[:], goldenMark},
	} {
		if want := strings.ReplaceAll(strings.ReplaceAll(tt.want, "\n", ""), " ", ""); hex.EncodeToString(tt.got) != want {
			t.Errorf("%s:\n%s", name, hex.Dump(tt.got))
		}
	}
	if got, err := decodeHeader(h.encode()); err != nil || got != h {
		t.Errorf("%+v %v", got, err)
	}
	if got := decodeMark(m[:]); got.cursor != h.start() || got.segment != 7 {
		t.Errorf("%+v", got)
	}
	m[20] ^= 1
	if got := decodeMark(m[:]); got != (mark{}) {
		t.Errorf("%+v", got)
	}
}

func TestHeaderRefuses(t *testing.T) {
	good := segmentHeader{shard: 1, number: 2, generation: 10, base: 5, parent: 10, parentOff: 5, prev: 1, prevSize: 128}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(h *segmentHeader){
		func(h *segmentHeader) { h.shard = 64 },
		func(h *segmentHeader) { h.number = 0 },
		func(h *segmentHeader) { h.generation = 0 },
		func(h *segmentHeader) { h.generation = 1 << 53 },
		func(h *segmentHeader) { h.parentOff = 4 },
		func(h *segmentHeader) { h.prev = 2 },
		func(h *segmentHeader) { h.prev = 0 },
		func(h *segmentHeader) { h.prevSize = 127 },
		func(h *segmentHeader) { h.parent = 9 },
		func(h *segmentHeader) { h.parent, h.base = 11, 0 },
		func(h *segmentHeader) { h.seal = &sealedInfo{rawSize: headerBytes, indexPos: 500} },
		func(h *segmentHeader) { h.seal = &sealedInfo{rawSize: 500, indexPos: headerBytes} },
	} {
		h := good
		change(&h)
		if err := h.validate(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d: %v", i, err)
		}
		if _, err := decodeHeader(h.encode()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d: %v", i, err)
		}
	}
	b := good.encode()
	b[8] = sealedVersion + 1
	if _, err := decodeHeader(b); !errors.Is(err, ErrVersion) || errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

func TestManifestRefuses(t *testing.T) {
	good := func() *manifest {
		return &manifest{Version: 1, Clean: true, Shards: []shardManifest{
			{FirstLive: 1, End: &shardEnd{1, 128, Cursor{5, 0}}, Lineage: []Lineage{{Generation: 5, Cause: CauseCreate}}},
		}}
	}
	b, err := good().encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeManifest(b); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(m *manifest){
		func(m *manifest) { m.Shards = nil },
		func(m *manifest) { m.Shards = make([]shardManifest, 65) },
		func(m *manifest) { m.Clean = false },
		func(m *manifest) { m.Shards[0].FirstLive = 0 },
		func(m *manifest) { m.Shards[0].Lineage = nil },
		func(m *manifest) { m.Shards[0].Lineage[0].Parent = 5 },
		func(m *manifest) { m.Shards[0].Lineage = append(m.Shards[0].Lineage, m.Shards[0].Lineage[0]) },
		func(m *manifest) { m.Snapshot = &snapshotRef{"x", nil} },
		func(m *manifest) { m.Snapshot = &snapshotRef{"", []Cursor{{}}} },
	} {
		m := good()
		change(m)
		if _, err := m.encode(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 0x10
		if _, err := decodeManifest(c); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if _, err := decodeManifest(b[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

// TestStreamSizes reads frames around every buffer size, small reads in between.
func TestStreamSizes(t *testing.T) {
	sizes := []int{0, 1, bufferBytes - 100, bufferBytes, bufferBytes + 1, 3, firstReadSize, keepBytes/2 - 40, keepBytes, keepBytes + 1, 5, keepBytes / 2}
	e := NewEncoder(0, Cursor{9, 100}, 0)
	for _, n := range sizes {
		e.Begin(1, ByClient, 0, 0)
		e.Append(set("key", string(bytes.Repeat([]byte{'x'}, n))))
		e.Append(set("key", "y"))
		e.End()
	}
	for _, skipFirst := range []int{0, 1, 5} {
		s := NewStream(bytes.NewReader(e.Buf), "buffer", 0, Cursor{9, 100}, 0, int64(len(e.Buf)))
		for range skipFirst {
			if err := s.skip(); err != nil {
				t.Fatal(err)
			}
		}
		for i := skipFirst; i < 2*len(sizes); i++ {
			f, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			var x effect.Effect
			if err := effect.Decode(f.Payload, &x); err != nil {
				t.Fatal(err)
			}
			want := 1
			if i%2 == 0 {
				want = sizes[i/2]
			}
			if len(x.Args[1]) != want || f.Cursor.Offset != 100+uint64(i) || f.Group != 100+uint64(i/2*2) {
				t.Fatalf("frame %d: %d bytes, want %d: %v group %d", i, len(x.Args[1]), want, f.Cursor, f.Group)
			}
			if len(s.buf) > keepBytes && want < keepBytes-100 {
				t.Fatalf("frame %d: buffer of %d bytes is kept", i, len(s.buf))
			}
		}
		if _, err := s.Next(); err != io.EOF {
			t.Fatal(err)
		}
		s.Close()
	}
}

// TestUnknownOps: the reader hands on what it does not know; the fold decides.
func TestUnknownOps(t *testing.T) {
	e := NewEncoder(0, Cursor{9, 0}, 0)
	e.Begin(1, ByClient, 0, 0)
	e.Append(set("key", "v"))
	e.End()
	e.Buf[posOp] = 200
	e.seal(0, 0)
	s := NewStream(bytes.NewReader(e.Buf), "buffer", 0, Cursor{9, 0}, 0, int64(len(e.Buf)))
	defer s.Close()
	f, err := s.Next()
	if err != nil || f.Op != 200 || !bytes.Contains(f.Payload, []byte("key")) {
		t.Fatalf("%+v %v", f, err)
	}
}

// TestNoAllocations: the paths that must not allocate do not.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d, _ := mustOpen(t, testOptions(vfs.NewMem()))
	l := d.Log(0)
	x := set("key", "value")
	add := func() {
		if l.Reserve(100) != nil {
			t.Fatal("full")
		}
		l.Begin(1, ByClient, 0, 0)
		l.Append(x)
		l.End()
	}
	for range 100_000 {
		add()
	}
	_ = l.Flush()
	if n := testing.AllocsPerRun(10_000, add); n != 0 {
		t.Errorf("append: %v", n)
	}
	_ = l.Flush()
	r, err := l.NewReader(Cursor{l.Generation(), 0}, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(50_000, func() { _, err = r.Next() }); n != 0 || err != nil {
		t.Errorf("read: %v %v", n, err)
	}
}
