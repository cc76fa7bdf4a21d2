package log

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// blockSamples are raw contents of several sizes, some of which do not compress.
func blockSamples() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 70_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	return [][]byte{
		{7},
		noise[:100], noise, bytes.Repeat([]byte("SET user:1 "), 9000), make([]byte, MaxBlock),
		append(bytes.Repeat([]byte("x"), 3000), noise[:3000]...),
	}
}

func TestBlockRoundTrip(t *testing.T) {
	for _, dense := range []bool{false, true} {
		e := NewBlockEncoder(dense, 1, MaxBlock)
		for i, raw := range blockSamples() {
			at := BlockPlace{File: uint64(i), Pos: int64(i * 1000)}
			b := e.Append([]byte("before"), raw, at)[6:]
			stored, n, err := BlockSize(b)
			if err != nil || stored != len(b) || n != len(raw) || stored > len(raw)+BlockHeader {
				t.Fatalf("sample %d: %d bytes in %d: BlockSize says %d, %d, %v", i, len(raw), len(b), n, stored, err)
			}
			got, err := DecodeBlock([]byte("kept"), b, at)
			if err != nil || !bytes.Equal(got, append([]byte("kept"), raw...)) {
				t.Fatalf("sample %d: decoded %d bytes, %v", i, len(got), err)
			}
			// Blocks one after the other into a buffer that has room: no copy of what was there.
			room := make([]byte, 3, 2*MaxBlock)
			if out, err := DecodeBlock(room, b, at); err != nil || cap(out) != cap(room) || &out[0] != &room[0] {
				t.Fatalf("sample %d: decoded elsewhere, %v", i, err)
			}
		}
	}
}

// Every flipped bit, every shortened block and every other place is refused, with dst as it was.
func TestBlockDamage(t *testing.T) {
	raw := append(bytes.Repeat([]byte("frames "), 40), blockSamples()[1]...)
	at := BlockPlace{3, 4096}
	b := NewBlockEncoder(true, 1, MaxBlock).Append(nil, raw, at)
	refuse := func(what string, i int, block []byte, at BlockPlace) {
		t.Helper()
		got, err := DecodeBlock([]byte("kept"), block, at)
		if !errors.Is(err, ErrCorrupt) || string(got) != "kept" {
			t.Fatalf("%s %d: %q, %v", what, i, got, err)
		}
	}
	for i := range len(b) * 8 {
		bad := bytes.Clone(b)
		bad[i/8] ^= 1 << (i % 8)
		refuse("bit", i, bad, at)
	}
	for i := range b {
		refuse("length", i, b[:i], at)
	}
	refuse("longer", 0, append(bytes.Clone(b), 0), at)
	refuse("file", 4, b, BlockPlace{4, 4096})
	refuse("place", 4097, b, BlockPlace{3, 4097})
}

// A block whose checksum is right but whose zstd frame holds more than it announces is refused, and takes no memory
// for what it would hold.
func TestBlockBomb(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, announced := range []uint32{200_000, MaxBlock} {
		frame := enc.EncodeAll(make([]byte, 256<<20), nil)
		b := append(make([]byte, BlockHeader), frame...)
		le.PutUint32(b[4:], announced)
		le.PutUint32(b[8:], uint32(len(frame)))
		le.PutUint32(b, BlockPlace{}.sum(b))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeBlock(nil, b, BlockPlace{})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("announced %d: %v", announced, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 3*MaxBlock {
			t.Errorf("announced %d: %d bytes allocated", announced, used)
		}
	}
}

func TestBlockConcurrent(t *testing.T) {
	e := NewBlockEncoder(false, 2, MaxBlock)
	var wg sync.WaitGroup
	for i, raw := range blockSamples() {
		wg.Go(func() {
			for pos := range int64(20) {
				at := BlockPlace{uint64(i), pos}
				if got, err := DecodeBlock(nil, e.Append(nil, raw, at), at); err != nil || !bytes.Equal(got, raw) {
					t.Errorf("sample %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzBlock(f *testing.F) {
	e := NewBlockEncoder(true, 1, MaxBlock)
	for _, raw := range blockSamples()[:4] {
		f.Add(e.Append(nil, raw, BlockPlace{}), raw)
	}
	f.Fuzz(func(t *testing.T, block, raw []byte) {
		if len(block) >= 4 {
			fixed := bytes.Clone(block)
			le.PutUint32(fixed, BlockPlace{}.sum(fixed))
			if out, err := DecodeBlock(nil, fixed, BlockPlace{}); err == nil {
				if again, err := DecodeBlock(nil, e.Append(nil, out, BlockPlace{}), BlockPlace{}); err != nil || !bytes.Equal(again, out) {
					t.Errorf("what was decoded does not come back: %v", err)
				}
			}
		}
		if len(raw) > 0 && len(raw) <= MaxBlock {
			if out, err := DecodeBlock(nil, e.Append(nil, raw, BlockPlace{}), BlockPlace{}); err != nil || !bytes.Equal(out, raw) {
				t.Errorf("%d bytes do not come back: %v", len(raw), err)
			}
		}
	})
}
