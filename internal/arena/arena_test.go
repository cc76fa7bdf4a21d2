package arena

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestClasses(t *testing.T) {
	last := Class(0)
	for n := 0; n <= maxClass; n++ {
		c := ClassOf(n)
		if c.Size() < n || c > 0 && (c-1).Size() >= n || c < last {
			t.Fatalf("%d bytes in class %d of %d", n, c, c.Size())
		}
		last = c
	}
	if ClassOf(maxClass+1) != Large || Large.Size() != 0 || int(last) != nClasses-1 {
		t.Error("the largest class")
	}
	for c, n := range classPages {
		if b := int(n) << pageShift; b%int(classSize[c]) > b/16 || n > maxSpan {
			t.Errorf("class %d: span of %d pages wastes %d", c, n, b%int(classSize[c]))
		}
	}
}

// owner is an owner of blocks that knows what is in them.
type owner struct {
	t    *testing.T
	a    *Arena
	rnd  *rand.Rand
	live []Ref
	size map[Ref]int
}

func newOwner(t *testing.T, seed uint64) *owner {
	return &owner{t, New(), rand.New(rand.NewPCG(seed, 1)), nil, map[Ref]int{}}
}

func (o *owner) alloc(n int) Ref {
	r := o.a.Alloc(n)
	if r == 0 || r > RefMask || o.a.Capacity(r) < n {
		o.t.Fatalf("Alloc(%d) = %#x with room for %d", n, r, o.a.Capacity(r))
	}
	o.live = append(o.live, r)
	o.size[r] = n
	b := o.a.Bytes(r, n)
	for i := range b {
		b[i] = byte(uint64(r) * 31)
	}
	return r
}

func (o *owner) intact(r Ref, n int) {
	o.t.Helper()
	if b := o.a.Bytes(r, n); bytes.Count(b, []byte{byte(uint64(r) * 31)}) != n {
		o.t.Fatalf("block %#x of %d bytes was overwritten", r, n)
	}
}

func (o *owner) free(i int) {
	r := o.live[i]
	o.intact(r, o.size[r])
	o.a.Free(r)
	o.live[i] = o.live[len(o.live)-1]
	o.live = o.live[:len(o.live)-1]
	delete(o.size, r)
}

func (o *owner) check() {
	o.t.Helper()
	if err := o.a.Check(o.live); err != nil {
		o.t.Fatal(err)
	}
}

func (o *owner) randomSize() int {
	switch o.rnd.IntN(40) {
	case 0:
		return 1 + o.rnd.IntN(1<<20)
	case 1:
		if o.rnd.IntN(10) == 0 {
			return 1 + o.rnd.IntN(14<<20)
		}
	case 2, 3, 4:
		return 1 + o.rnd.IntN(40000)
	}
	return 1 + o.rnd.IntN(400)
}

func TestRandomBlocks(t *testing.T) {
	o := newOwner(t, 1)
	for _, n := range []int{100, 3000, 10, 2000, 0} {
		for i := 0; len(o.live) != n; i++ {
			if grow := len(o.live) < n; grow == (o.rnd.IntN(3) > 0) || len(o.live) == 0 {
				o.alloc(o.randomSize())
			} else {
				o.free(o.rnd.IntN(len(o.live)))
			}
		}
		o.check()
	}
	if s := o.a.Stats(); s.Allocated != 0 || s.Blocks != 0 || s.Spans > nClasses*maxSpan<<pageShift {
		t.Errorf("empty: %+v", s)
	}
	o.a.Retire()
}

func TestLargeBlockOverSeveralChunks(t *testing.T) {
	o := newOwner(t, 1)
	for range 3 {
		a, b := o.alloc(9<<20), o.alloc(5<<20)
		o.intact(a, 9<<20)
		o.intact(b, 5<<20)
		o.check()
		o.free(0)
		o.alloc(maxClass + 1)
		o.alloc(10)
		o.check()
		for len(o.live) > 0 {
			o.free(0)
		}
		o.check()
	}
	if n := len(o.a.info); n > 8 {
		t.Errorf("%d chunk numbers used: freed ones are not used again", n)
	}
	o.a.Retire()
}

// TestPins: what exists at a pin stays as it is until the pin ends; what comes later is free at once.
func TestPins(t *testing.T) {
	o := newOwner(t, 2)
	type pin struct {
		epoch uint64
		sees  map[Ref]int
	}
	var pins []pin
	for i := range 20000 {
		switch k := o.rnd.IntN(100); {
		case k < 50 || len(o.live) < 10:
			if r := o.alloc(1 + o.rnd.IntN(2000)); o.a.Shared(r) {
				t.Fatal("a new block is shared")
			}
		case k < 98:
			o.free(o.rnd.IntN(len(o.live)))
		case k == 98 && len(pins) < 6:
			p := pin{o.a.Pin(), map[Ref]int{}}
			for r, n := range o.size {
				p.sees[r] = n
				if !o.a.Shared(r) {
					t.Fatal("a pinned block is not shared")
				}
			}
			pins = append(pins, p)
		case len(pins) > 0:
			j := o.rnd.IntN(len(pins))
			for r, n := range pins[j].sees {
				o.intact(r, n)
			}
			o.a.Unpin(pins[j].epoch)
			pins = append(pins[:j], pins[j+1:]...)
		}
		if i%500 == 0 {
			o.check()
		}
	}
	for _, p := range pins {
		o.a.Unpin(p.epoch)
	}
	for o.a.pins.ready {
		o.a.drain(1)
	}
	o.check()
	if s := o.a.Stats(); s.Deferred != 0 || o.a.Pinned() {
		t.Errorf("%+v", s)
	}
	o.a.Retire()
}

func TestRetireWaitsForPins(t *testing.T) {
	o := newOwner(t, 3)
	r := o.alloc(100)
	p, q := o.a.Pin(), o.a.Pin()
	o.a.Retire()
	o.a.Unpin(p)
	o.intact(r, 100)
	o.a.Unpin(q)
	if s := o.a.Stats(); s != (Stats{}) {
		t.Errorf("%+v", s)
	}
}

// TestFreedPagesServeOtherClasses: memory of one size comes back for another.
func TestFreedPagesServeOtherClasses(t *testing.T) {
	o := newOwner(t, 4)
	for range 5 {
		for _, n := range []int{48, 1000, 70000} {
			for range 16 << 20 / n {
				o.alloc(n)
			}
			o.check()
			for len(o.live) > 0 {
				o.free(len(o.live) - 1)
			}
		}
	}
	o.check()
	if s := o.a.Stats(); s.Mapped > 28<<20 {
		t.Errorf("%+v", s)
	}
	o.a.Retire()
}

func BenchmarkAllocFree(b *testing.B) {
	a := New()
	defer a.Retire()
	var ring [1024]Ref
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := &ring[i%len(ring)]
		if *p != 0 {
			a.Free(*p)
		}
		*p = a.Alloc(40 + i%100)
	}
}
