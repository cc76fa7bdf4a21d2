package state

import (
	"bytes"
	"fmt"

	"github.com/kevydb/kevy/internal/arena"
)

// Check verifies the whole keyspace: index, order, deadlines, accounting and arena against each other. It
// costs as much as reading everything. REQUIRES: no bulk load.
func (ks *Keyspace) Check() error {
	c := checker{ks: ks}
	for _, step := range []func() error{c.index, c.order, c.deadlines, c.fields, c.memory} {
		if err := step(); err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	return nil
}

type checker struct {
	ks    *Keyspace
	live  []arena.Ref // every block that belongs to the keyspace
	bytes int64
	dues  int
	// hashes with a field that has a deadline
	hashes int
}

func (c *checker) index() error {
	x := &c.ks.idx
	if len(x.dir) != 1<<x.depth || x.shift != 64-x.depth {
		return fmt.Errorf("index: directory of %d, depth %d, shift %d", len(x.dir), x.depth, x.shift)
	}
	var byDepth [maxDepth + 1]int
	n := 0
	for i := 0; i < len(x.dir); {
		e := x.dir[i]
		d := entryDepth(e)
		if d > uint(x.depth) {
			return fmt.Errorf("index: entry %d is of depth %d", i, d)
		}
		byDepth[d]++
		c.live = append(c.live, arena.Ref(e&arena.RefMask))
		run := 1 << (uint(x.depth) - d)
		for k := range run {
			if i%run != 0 || x.dir[i+k] != e {
				return fmt.Errorf("index: entries of table at %d differ", i)
			}
		}
		m, err := c.table(e, uint64(i)<<(x.shift&63))
		if err != nil {
			return fmt.Errorf("index: table at %d: %w", i, err)
		}
		n += m
		i += run
	}
	if n != x.n || byDepth != x.byDepth {
		return fmt.Errorf("index: %d records, counted %d; tables %v, counted %v", n, x.n, byDepth, x.byDepth)
	}
	return nil
}

// table checks one table whose hashes begin with prefix, and its records.
func (c *checker) table(e, prefix uint64) (n int, err error) {
	x := &c.ks.idx
	w, d := x.words(e), entryDepth(e)
	gap, last := -1, uint64(0)
	for i, s := range w[:len(w)-1] {
		if s == 0 {
			gap = i
			continue
		}
		t, r := s>>tagPos, arena.Ref(s&arena.RefMask)
		if at := home(t, len(w)); at > i || at <= gap || t < last || i >= len(w)-spareHigh {
			return n, fmt.Errorf("slot %d: tag %#x, home %d, gap at %d, tag before %#x", i, t, at, gap, last)
		}
		last = t
		n++
		h := x.hash(keyOf(c.ks.a, r))
		if d > 0 && (h^prefix)>>(64-d) != 0 || tagOf(h, d) != t {
			return n, fmt.Errorf("slot %d: tag %#x for hash %#x", i, t, h)
		}
		if x.find(h, keyOf(c.ks.a, r)) != r {
			return n, fmt.Errorf("slot %d: another record has the key", i)
		}
		c.record(r)
	}
	if uint64(n) != w[len(w)-1] {
		return n, fmt.Errorf("%d slots, counted %d", n, w[len(w)-1])
	}
	return n, nil
}

func (c *checker) record(r arena.Ref) {
	a := c.ks.a
	b := a.Tail(r)
	c.live = append(c.live, r)
	c.bytes += int64(a.Capacity(r))
	if b[offFlags]&flagOwn != 0 {
		block, _ := c.ks.own(r, b)
		c.block(block)
		if v := valueAt(a, r); v.head != 0 {
			v.kind.ops().blocks(v, c.block)
		}
	}
	if ms := deadlineOf(b); ms != NoDeadline {
		c.dues++
	}
	if fieldDeadline(a, r) != NoDeadline {
		c.hashes++
	}
}

func (c *checker) block(r arena.Ref) {
	c.live = append(c.live, r)
	c.bytes += int64(c.ks.a.Capacity(r))
}

func (c *checker) order() (err error) {
	o := &c.ks.ord
	var fences []fence
	o.t.Ascend(func(f fence) bool { fences = append(fences, f); return true })
	var last []byte
	n := 0
	for i, f := range fences {
		c.live = append(c.live, f.leaf)
		hi, bounded := fence{}, i+1 < len(fences)
		if bounded {
			hi = fences[i+1]
		}
		w := o.words(f.leaf)
		if p := prefixOf(f.sep, hi, bounded); p != leafPrefix(w) || (i == 0) != (f.sep == "") {
			return fmt.Errorf("order: leaf %q has prefix %d, not %d", f.sep, leafPrefix(w), p)
		}
		for _, e := range w[1 : leafLen(w)+1] {
			key := keyOf(o.a, refOf(e))
			if n > 0 && bytes.Compare(last, key) >= 0 || string(key) < f.sep || bounded && string(key) >= hi.sep {
				return fmt.Errorf("order: %q after %q in leaf %q to %q", key, last, f.sep, hi.sep)
			}
			if window(key, leafPrefix(w)) != e>>arena.RefBits {
				return fmt.Errorf("order: window of %q", key)
			}
			if c.ks.idx.find(Hash(c.ks.seed, key), key) != refOf(e) {
				return fmt.Errorf("order: %q is not the record of the index", key)
			}
			last = key
			n++
		}
	}
	if n != c.ks.idx.n {
		return fmt.Errorf("order: %d keys, the index has %d", n, c.ks.idx.n)
	}
	return nil
}

func (c *checker) deadlines() error {
	return c.dueIndex(&c.ks.dl, c.dues, func(r arena.Ref) int64 { return deadlineOf(c.ks.a.Tail(r)) })
}

func (c *checker) fields() error {
	return c.dueIndex(&c.ks.fields, c.hashes, func(r arena.Ref) int64 { return fieldDeadline(c.ks.a, r) })
}

// dueIndex checks an index of want records by the deadline that of finds.
func (c *checker) dueIndex(d *deadlines, want int, of func(arena.Ref) int64) error {
	var bounds []bound
	d.t.Ascend(func(b bound) bool { bounds = append(bounds, b); return true })
	n, last := 0, lowest
	for i, b := range bounds {
		c.live = append(c.live, b.leaf)
		w := d.words(b.leaf)
		if (i == 0) != (b.due == lowest) || w[0] == 0 && len(bounds) > 1 {
			return fmt.Errorf("deadlines: leaf %d of %d at %v has %d pairs", i, len(bounds), b.due, w[0])
		}
		for k := range int(w[0]) {
			p := dueAt(w, k)
			if !last.less(p) || p.less(b.due) || i+1 < len(bounds) && !p.less(bounds[i+1].due) {
				return fmt.Errorf("deadlines: %v after %v in leaf at %v", p, last, b.due)
			}
			key := keyOf(c.ks.a, p.ref)
			if c.ks.idx.find(Hash(c.ks.seed, key), key) != p.ref || of(p.ref) != p.ms {
				return fmt.Errorf("deadlines: %v of %q", p, key)
			}
			if n++; n == 1 && p.ms != d.next {
				return fmt.Errorf("deadlines: the first is %d, next says %d", p.ms, d.next)
			}
			last = p
		}
	}
	if n != want || n != d.n || n == 0 && d.next != NoDeadline {
		return fmt.Errorf("deadlines: %d, counted %d, the records have %d; next is %d", n, d.n, want, d.next)
	}
	return nil
}

func (c *checker) memory() error {
	for _, t := range c.ks.trash {
		c.block(t.head)
		c.trash(t)
	}
	if c.bytes != c.ks.bytes {
		return fmt.Errorf("%d bytes of records, counted %d", c.bytes, c.ks.bytes)
	}
	return c.ks.a.Check(c.live)
}

// trash counts the blocks of a large value that is being freed. Its head is as it was; the copy of its
// words shows what is left.
func (c *checker) trash(t trash) {
	head := c.ks.a.Alloc(8 * len(t.w))
	copy(c.ks.a.Words(head, len(t.w)), t.w)
	t.kind.ops().blocks(value{a: c.ks.a, kind: t.kind, head: head}, c.block)
	c.ks.a.Free(head)
}
