package state

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/kevydb/kevy/internal/arena"
)

// crafted is an index whose hashes the test chooses: the hash is the key's first eight bytes.
type crafted struct {
	*Keyspace
	t    *testing.T
	refs map[uint64][]arena.Ref // by hash
}

func newCrafted(t *testing.T) *crafted {
	c := &crafted{New(0), t, map[uint64][]arena.Ref{}}
	c.idx.hash = binary.BigEndian.Uint64
	t.Cleanup(c.Release)
	return c
}

func (c *crafted) key(h uint64, n int) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, h), uint32(n))
}

func (c *crafted) insert(h uint64) {
	ct := content{kind: byte(TypeString), key: c.key(h, len(c.refs[h]))}
	r := c.alloc(&ct, ct.size())
	c.idx.insert(h, r)
	c.refs[h] = append(c.refs[h], r)
}

func (c *crafted) remove(h uint64) {
	rs := c.refs[h]
	r := rs[len(rs)-1]
	c.idx.remove(h, r)
	c.a.Free(r)
	if c.refs[h] = rs[:len(rs)-1]; len(rs) == 1 {
		delete(c.refs, h)
	}
}

func (c *crafted) check() {
	c.t.Helper()
	ck := checker{ks: c.Keyspace}
	if err := ck.index(); err != nil {
		c.t.Fatal(err)
	}
	n := 0
	for h, rs := range c.refs {
		for i, r := range rs {
			n++
			if c.idx.find(h, c.key(h, i)) != r {
				c.t.Fatalf("hash %#x: record %d not found", h, i)
			}
		}
		if c.idx.find(h, c.key(h, len(rs))) != 0 {
			c.t.Fatalf("hash %#x: found too much", h)
		}
	}
	if n != c.Len() {
		c.t.Fatalf("%d records, want %d", c.Len(), n)
	}
	last, seen := uint64(0), 0
	for cur, first := uint64(0), true; first || cur != 0; first = false {
		next := c.Scan(cur, 10, func(e Entry) {
			h := binary.BigEndian.Uint64(e.Key()) >> positionShift
			if h < last || h < cur {
				c.t.Fatalf("scan: position %#x after %#x, cursor %#x", h, last, cur)
			}
			seen++
		})
		if next != 0 && next <= cur {
			c.t.Fatalf("scan: cursor %#x after %#x", next, cur)
		}
		cur, last = next, cur
	}
	if seen != n {
		c.t.Fatalf("scan: %d records, want %d", seen, n)
	}
}

func TestIndexOfCraftedHashes(t *testing.T) {
	shapes := map[string]func(r *rand.Rand) uint64{
		"even":          func(r *rand.Rand) uint64 { return r.Uint64() },
		"all equal":     func(*rand.Rand) uint64 { return 0x123456789abcdef0 },
		"all zero":      func(*rand.Rand) uint64 { return 0 },
		"all ones":      func(*rand.Rand) uint64 { return ^uint64(0) },
		"few":           func(r *rand.Rand) uint64 { return r.Uint64N(5) * 0x3333333333333333 },
		"low bits":      func(r *rand.Rand) uint64 { return r.Uint64() >> 40 },
		"one prefix":    func(r *rand.Rand) uint64 { return 0xabcdef<<40 | r.Uint64()>>24 },
		"high end":      func(r *rand.Rand) uint64 { return ^(r.Uint64() >> 20) },
		"two clusters":  func(r *rand.Rand) uint64 { return r.Uint64N(2)<<63 | r.Uint64()>>9 },
		"mixed lengths": func(r *rand.Rand) uint64 { return r.Uint64() >> r.UintN(64) },
	}
	for name, hash := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			c := newCrafted(t)
			var all []uint64
			for _, n := range []int{100, 1500, 6000} {
				for len(all) < n {
					h := hash(r)
					c.insert(h)
					all = append(all, h)
				}
				c.check()
			}
			if len(c.idx.dir) > 1<<13 {
				t.Errorf("directory of %d", len(c.idx.dir))
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, n := range []int{3000, 300, 0} {
				for len(all) > n {
					c.remove(all[len(all)-1])
					all = all[:len(all)-1]
				}
				c.check()
			}
			if len(c.idx.dir) > 8 {
				t.Errorf("empty: directory of %d", len(c.idx.dir))
			}
		})
	}
}

func TestIndexGrowsAndShrinksEvenly(t *testing.T) {
	c := newCrafted(t)
	r := rand.New(rand.NewPCG(3, 4))
	var all []uint64
	for range 150000 { // depth 9 and more: tags are refilled from the records
		h := r.Uint64()
		c.insert(h)
		all = append(all, h)
	}
	c.check()
	if c.idx.depth < 9 || c.idx.depth > 11 {
		t.Errorf("depth %d", c.idx.depth)
	}
	for i, h := range all {
		c.remove(h)
		if i%30000 == 0 {
			c.check()
		}
	}
	c.check()
	if got := c.Memory().Allocated; got > 64<<10 {
		t.Errorf("empty: %d bytes allocated", got)
	}
}
