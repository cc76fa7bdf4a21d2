package rdb

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// compressible returns n bytes of few letters, with parts that come again.
func compressible(rng *rand.Rand, n int) []byte {
	out := make([]byte, 0, n)
	letters := 1 + rng.IntN(256)
	for len(out) < n {
		if at := len(out); at > 0 && rng.IntN(4) == 0 {
			from := rng.IntN(at)
			out = append(out, out[from:min(at, from+rng.IntN(400))]...)
			continue
		}
		for range 1 + rng.IntN(40) {
			out = append(out, byte(rng.IntN(letters)))
		}
	}
	return out[:n]
}

// TestPack: what is compressed is shorter and expands to what it was, whatever was compressed before.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	packed := 0
	for i := range 3000 {
		in := compressible(rng, rng.IntN([]int{30, 600, 20000}[i%3]))
		b := pack(in)
		if b == nil {
			continue
		}
		packed++
		if len(b) > len(in)-4 {
			t.Fatalf("%d bytes become %d", len(in), len(b))
		}
		if out, ok := unpack(b, uint64(len(in))); !ok || !bytes.Equal(out, in) {
			t.Fatalf("%d bytes %.100q expand to %.100q", len(in), in, out)
		}
	}
	if packed < 1000 {
		t.Errorf("%d of 3000 were compressed", packed)
	}
}

// TestPackForgets: after 4 GiB the positions of former strings begin anew.
func TestPackForgets(t *testing.T) {
	m := lzfMatchers.Get().(*lzfMatcher)
	m.base = 1<<32 - 100
	lzfMatchers.Put(m)
	in := bytes.Repeat([]byte("abcdefgh"), 50)
	want := pack(in)
	for range 5 {
		if got := pack(in); !bytes.Equal(got, want) {
			t.Fatalf("%q, then %q", want, got)
		}
	}
	if out, ok := unpack(want, uint64(len(in))); !ok || !bytes.Equal(out, in) {
		t.Errorf("%q", out)
	}
}

// FuzzPack: nothing breaks it, and what it makes expands to what it was.
func FuzzPack(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabcabcabcabcabc"))
	f.Add(bytes.Repeat([]byte{0}, 1000))
	f.Fuzz(func(t *testing.T, in []byte) {
		if b := pack(in); b != nil {
			if out, ok := unpack(b, uint64(len(in))); !ok || !bytes.Equal(out, in) {
				t.Fatalf("%q expands to %q", in, out)
			}
		}
	})
}
