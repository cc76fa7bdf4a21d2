package arena

import (
	"fmt"
	"maps"
)

// Check verifies the arena against its owner's list of live blocks: each is allocated and named once, and
// nothing else is in use.
func (a *Arena) Check(live []Ref) error {
	used := make(map[Ref]bool, len(live))
	for _, r := range live {
		if used[r] {
			return fmt.Errorf("arena: block %#x has two owners", uint64(r))
		}
		used[r] = true
	}
	var deferred int64
	for _, b := range a.pins.queue {
		for _, r := range b.refs[b.done:b.n] {
			if used[r] {
				return fmt.Errorf("arena: block %#x is live and freed", uint64(r))
			}
			used[r] = true
			deferred += int64(a.Capacity(r))
		}
	}
	if deferred != a.stats.Deferred {
		return fmt.Errorf("arena: %d bytes put off, counted %d", deferred, a.stats.Deferred)
	}
	return a.checkUsed(used)
}

func (a *Arena) checkUsed(used map[Ref]bool) error {
	var sum Stats
	rest := maps.Clone(used)
	for i := range a.info {
		in := &a.info[i]
		if in.large > 0 {
			r := Ref(i) << (chunkShift - unitShift)
			if !rest[r] {
				return fmt.Errorf("arena: large block %#x leaked", uint64(r))
			}
			delete(rest, r)
			sum.Allocated += int64(in.large)
			sum.Spans += int64(in.large)
			sum.Mapped += int64(in.large)
			sum.Blocks++
			continue
		}
		if in.pages == nil {
			continue
		}
		sum.Mapped += 1 << chunkShift
		if err := a.checkChunk(i, used, rest, &sum); err != nil {
			return err
		}
	}
	for r := range rest {
		return fmt.Errorf("arena: block %#x is not allocated", uint64(r))
	}
	sum.Deferred = a.stats.Deferred
	if sum != a.stats {
		return fmt.Errorf("arena: counted %+v, found %+v", a.stats, sum)
	}
	return nil
}

func (a *Arena) checkChunk(i int, used, rest map[Ref]bool, sum *Stats) error {
	in := &a.info[i]
	if in.dirty&^in.freeMask != 0 {
		return fmt.Errorf("arena: chunk %d: dirty pages in use", i)
	}
	for at := range uint32(chunkPages) {
		p := &in.pages[at]
		if free := in.freeMask>>at&1 == 1; free == p.span {
			return fmt.Errorf("arena: chunk %d page %d: free %v, span %v", i, at, free, p.span)
		}
		if !p.span || p.back != 0 {
			continue
		}
		if err := a.checkSpan(uint32(i*chunkPages)+at, p, used, rest, sum); err != nil {
			return err
		}
	}
	return nil
}

func (a *Arena) checkSpan(id uint32, p *page, used, rest map[Ref]bool, sum *Stats) error {
	units := classSize[p.class] >> unitShift
	free := map[uint32]bool{}
	for h := p.head; h != 0; h = uint32(a.Words(spanRef(id, h-1), 1)[0]) {
		if h-1 >= p.bump || (h-1)%units != 0 || free[h-1] {
			return fmt.Errorf("arena: span %d: bad free list at unit %d", id, h-1)
		}
		free[h-1] = true
	}
	n := uint32(0)
	if id == 0 {
		n = 1 // the block that would be Ref 0
	}
	for u := uint32(0); u < p.bump; u += units {
		r := spanRef(id, u)
		if r == 0 {
			continue
		}
		if free[u] == used[r] {
			return fmt.Errorf("arena: block %#x: free %v, owned %v", uint64(r), free[u], used[r])
		}
		if !free[u] {
			n++
			sum.Allocated += int64(classSize[p.class])
			sum.Blocks++
			delete(rest, r)
		}
	}
	full := p.head == 0 && p.bump+units > uint32(classPages[p.class])*pageUnits
	if n != p.used || full == p.listed {
		return fmt.Errorf("arena: span %d: %d of %d blocks found, listed %v", id, n, p.used, p.listed)
	}
	sum.Spans += int64(classPages[p.class]) << pageShift
	return nil
}
