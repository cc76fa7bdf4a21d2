package state

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// TestBitFields sets and reads random fields, bit by bit in the model.
func TestBitFields(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, long := range []bool{false, true} {
		ks := New(1)
		size := 40
		if long { // a string with a block of its own
			size = 100_000
		}
		model := make([]bool, size*8)
		key := []byte("k")
		set := func(args ...string) {
			e := effect.Effect{Op: effect.BitField, Args: [][]byte{key}}
			for _, a := range args {
				e.Args = append(e.Args, []byte(a))
			}
			if _, err := ks.Fold(&e); err != nil {
				t.Fatal(args, err)
			}
		}
		set("SET", "u1", strconv.Itoa(size*8-1), "0")
		for range 3000 {
			f := BitType{Signed: r.IntN(2) == 0, Bits: 1 + r.IntN(63)}
			off, v := int64(r.IntN(size*8-f.Bits)), int64(r.Uint64())
			name := "u"
			if f.Signed {
				name = "i"
			}
			set("SET", name+strconv.Itoa(f.Bits), strconv.FormatInt(off, 10), strconv.FormatInt(v, 10))
			for i := range f.Bits {
				model[off+int64(i)] = v>>(f.Bits-1-i)&1 != 0
			}
			e, _ := ks.Lookup(key)
			want := v << (64 - f.Bits)
			if f.Signed {
				want >>= 64 - f.Bits
			} else {
				want = int64(uint64(want) >> (64 - f.Bits))
			}
			if got := BitField(e.Value(), f, off); got != want {
				t.Fatalf("%v at %d is %d, want %d", f, off, got, want)
			}
		}
		e, _ := ks.Lookup(key)
		for i, want := range model {
			if got := e.Value()[i/8]>>(7-i%8)&1 == 1; got != want {
				t.Fatalf("bit %d is %v", i, got)
			}
		}
		if len(e.Value()) != size {
			t.Errorf("%d bytes", len(e.Value()))
		}
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestBitsRefuse(t *testing.T) {
	ks := New(1)
	for _, args := range [][]string{
		{"SET", "u1", "0", "1", "SET"},
		{"GET", "u1", "0", "1"},
		{"SET", "u64", "0", "1"},
		{"SET", "i8", "-1", "1"},
		{"SET", "i8", strconv.Itoa(MaxBits - 7), "1"},
		{"SET", "i8", "0", "x"},
	} {
		e := effect.Effect{Op: effect.BitField, Args: [][]byte{[]byte("k")}}
		for _, a := range args {
			e.Args = append(e.Args, []byte(a))
		}
		if _, err := ks.Fold(&e); err == nil {
			t.Errorf("%q is folded", args)
		}
	}
	if ks.Len() != 0 {
		t.Error("a key was made")
	}
}

func BenchmarkSetBitLarge(b *testing.B) {
	ks := New(1)
	args := [][]byte{[]byte("k"), []byte("80000000"), []byte("1")}
	e := effect.Effect{Op: effect.SetBit, Args: args}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		args[2] = []byte("01")[i&1 : i&1+1]
		if _, err := ks.Fold(&e); err != nil {
			b.Fatal(err)
		}
	}
}
