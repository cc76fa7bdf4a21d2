package arena

// drainStep put-off frees are worked off by each allocation and free, drainUnpin by Unpin.
const (
	drainStep  = 4
	drainUnpin = 256
	batchSize  = 1 << 12
)

// pins are the open pins and the frees they put off.
//
// Invariant: a block freed in epoch E may be seen by pins of epochs <= E only, so it is released
// once the oldest open pin is newer. Epochs in the queue never decrease.
type pins struct {
	epoch uint64   // of the newest pin ever
	open  []uint64 // epochs of the open pins, ascending
	queue []*batch
	ready bool // the head of the queue may be released
}

type batch struct {
	epoch uint64
	done  int
	n     int
	refs  [batchSize]Ref
}

// Pin freezes the blocks that exist now until Unpin is called with its result.
func (a *Arena) Pin() uint64 {
	p := &a.pins
	p.epoch++
	p.open = append(p.open, p.epoch)
	return p.epoch
}

// Unpin ends a pin. Pins may end in any order.
func (a *Arena) Unpin(epoch uint64) {
	p := &a.pins
	for i, e := range p.open {
		if e == epoch {
			p.open = append(p.open[:i], p.open[i+1:]...)
			break
		}
	}
	if a.retired {
		if len(p.open) == 0 {
			a.unmapAll()
		}
		return
	}
	a.updateReady()
	if p.ready {
		a.drain(drainUnpin)
	}
}

// Pinned reports whether a pin is open.
func (a *Arena) Pinned() bool { return len(a.pins.open) > 0 }

// Shared reports whether an open pin may cover the block: it must not be changed then.
func (a *Arena) Shared(r Ref) bool {
	open := a.pins.open
	if len(open) == 0 {
		return false
	}
	p := a.home(r)
	u := r & (pageUnits - 1)
	return p.fresh == nil || p.epoch < open[len(open)-1] || p.fresh[u/64]&(1<<(u%64)) == 0
}

func (a *Arena) markFresh(r Ref) {
	p := a.home(r)
	if p.fresh == nil {
		p.fresh = new([pageUnits / 64]uint64)
	}
	if p.epoch != a.pins.epoch {
		p.epoch = a.pins.epoch
		clear(p.fresh[:])
	}
	u := r & (pageUnits - 1)
	p.fresh[u/64] |= 1 << (u % 64)
}

func (a *Arena) deferFree(r Ref) {
	p := &a.pins
	var b *batch
	if n := len(p.queue); n > 0 {
		b = p.queue[n-1]
	}
	if b == nil || b.epoch != p.epoch || b.n == batchSize {
		b = &batch{epoch: p.epoch}
		p.queue = append(p.queue, b)
	}
	b.refs[b.n] = r
	b.n++
	a.stats.Deferred += int64(a.Capacity(r))
}

func (a *Arena) updateReady() {
	p := &a.pins
	p.ready = len(p.queue) > 0 && (len(p.open) == 0 || p.queue[0].epoch < p.open[0])
}

// drain releases at most n blocks whose pins are gone.
func (a *Arena) drain(n int) {
	p := &a.pins
	for ; n > 0 && p.ready; n-- {
		b := p.queue[0]
		r := b.refs[b.done]
		b.done++
		if b.done == b.n {
			p.queue[0] = nil
			p.queue = p.queue[1:]
			a.updateReady()
		}
		a.stats.Deferred -= int64(a.Capacity(r))
		a.release(r)
	}
}
