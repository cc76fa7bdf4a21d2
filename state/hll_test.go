package state

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

func TestHLLEstimates(t *testing.T) {
	h := NewHLL()
	var r Registers
	for n := 1; n <= 200_000; n++ {
		element := fmt.Appendf(nil, "element %d", n)
		if _, valid := h.Add(element); !valid {
			t.Fatal("damaged")
		}
		if n == 10 || n == 1000 || n == 50_000 || n == 200_000 {
			got, ok := h.Count()
			if e := math.Abs(float64(got) - float64(n)); !ok || e > 1+0.03*float64(n) {
				t.Errorf("%d elements: %d", n, got)
			}
			if !r.Merge(h) || r.Count() != got {
				t.Errorf("%d elements: registers say %d, not %d", n, r.Count(), got)
			}
		}
	}
	if h.Sparse() {
		t.Error("still sparse")
	}
}

// TestHLLForms raises random registers in both forms and compares them with a plain array.
func TestHLLForms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		sparse, dense := NewHLL(), NewHLL()
		if !dense.ToDense() {
			t.Fatal("damaged")
		}
		var want Registers
		near := r.IntN(hllRegisters)
		for range 1 + r.IntN(2000) {
			i, v := (near+r.IntN(300)*r.IntN(50))%hllRegisters, byte(1+r.IntN(3+r.IntN(60)))
			changed := v > want[i]
			want[i] = max(want[i], v)
			for _, h := range []*HLL{&sparse, &dense} {
				if got, valid := h.raise(i, v); got != changed || !valid {
					t.Fatalf("register %d to %d: %v %v, want %v", i, v, got, valid, changed)
				}
			}
		}
		for _, h := range []HLL{sparse, dense} {
			var got Registers
			if !got.Merge(h) || got != want {
				t.Fatal("registers differ")
			}
		}
		if sparse.Sparse() && len(sparse.Bytes()) > HLLSparseMax {
			t.Fatalf("%d bytes", len(sparse.Bytes()))
		}
		if !sparse.ToDense() || !bytes.Equal(sparse.Bytes(), dense.Bytes()) {
			t.Fatal("made dense, they differ")
		}
	}
}

// FuzzHLL gives anything to every method that takes a client's bytes.
func FuzzHLL(f *testing.F) {
	h := NewHLL()
	for i := range 50 {
		h.Add(fmt.Append(nil, i))
	}
	f.Add(h.Bytes(), []byte("x"))
	f.Add(h.Bytes()[:20], []byte("y"))
	f.Add(append(bytes.Clone(h.Bytes()), 0x7f, 0xff), []byte("z"))
	h.ToDense()
	f.Add(h.Bytes(), []byte("x"))
	f.Fuzz(func(t *testing.T, b, element []byte) {
		h, ok := ParseHLL(b)
		if !ok {
			return
		}
		var r Registers
		_, whole := h.Count()
		if r.Merge(h) != whole {
			t.Fatal("Merge and Count differ about damage")
		}
		h.Decode()
		c := h.Clone()
		_, valid := c.Add(element)
		if whole && !valid {
			t.Fatal("Add finds damage that Count does not")
		}
		if _, ok := ParseHLL(c.Bytes()); !ok {
			t.Fatal("no HyperLogLog any more")
		}
		if _, ok := c.Count(); whole && !ok {
			t.Fatal("damaged by Add")
		}
		d := h.Clone()
		changed, valid := d.Raise(&r)
		if whole && (changed || !valid || !d.ToDense()) {
			t.Fatal("Raise or ToDense find damage, or Raise something to raise")
		}
	})
}

func BenchmarkHLLCount(b *testing.B) {
	h := NewHLL()
	for i := range 100_000 {
		h.Add(fmt.Append(nil, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		h.Count()
	}
}

func BenchmarkPFAddDense(b *testing.B) {
	ks := New(1)
	args := [][]byte{[]byte("k"), nil}
	e := effect.Effect{Op: effect.PFAdd, Args: args}
	b.ReportAllocs()
	var text [20]byte
	for i := 0; b.Loop(); i++ {
		args[1] = strconv.AppendInt(text[:0], int64(i), 10)
		if _, err := ks.Fold(&e); err != nil {
			b.Fatal(err)
		}
	}
}
