package log

import (
	"sync"
	"sync/atomic"
)

// generation holds the watermarks of one generation. Once it is no longer the current one they all
// stand at its end. Invariant: written <= appended, durable <= written, visible <= written.
type generation struct {
	id       uint64
	appended atomic.Uint64 // written under Log.mu
	written  atomic.Uint64 // written under Log.wmu
	durable  atomic.Uint64 // written under Log.smu
	visible  atomic.Uint64 // written under watermarks.mu; never falls
}

func newGenerationAt(id, tail uint64) *generation {
	g := &generation{id: id}
	g.appended.Store(tail)
	g.written.Store(tail)
	g.durable.Store(tail)
	g.visible.Store(tail)
	return g
}

// noHold is the hold that holds nothing back.
const noHold = ^uint64(0)

// watermarks decides what is visible and wakes who waits for it.
type watermarks struct {
	policy atomic.Int64 // Policy

	mu      sync.Mutex
	hold    uint64
	visible waiters
	durable waiters
}

// advance recomputes what is visible in g and wakes those who wait for less.
func (w *watermarks) advance(g *generation) {
	w.mu.Lock()
	fire := w.show(g)
	fire = append(fire, w.durable.take(g.durable.Load()+1)...)
	w.mu.Unlock()
	call(fire)
}

// show recomputes what is visible in g and returns those who have waited for that. REQUIRES: mu held.
func (w *watermarks) show(g *generation) (fire []func()) {
	v := g.written.Load()
	if Policy(w.policy.Load()) == Always {
		v = g.durable.Load()
	}
	if v = min(v, w.hold); v > g.visible.Load() {
		g.visible.Store(v)
	} else {
		v = g.visible.Load()
	}
	return w.visible.take(v)
}

// wakeAll wakes everybody: the log failed, closed or changed its generation.
func (w *watermarks) wakeAll() {
	w.mu.Lock()
	fire := w.visible.take(noHold)
	fire = append(fire, w.durable.take(noHold)...)
	w.mu.Unlock()
	call(fire)
}

func call(fns []func()) {
	for _, fn := range fns {
		fn()
	}
}

// waiters are functions to call once when a watermark passes an offset.
type waiters struct {
	list []*waiter
	min  uint64 // lowest offset waited for; valid when list is not empty
}

type waiter struct {
	off uint64
	fn  func()
	at  int // index in list, -1: no longer in it
}

func (w *waiters) add(off uint64, fn func()) *waiter {
	x := &waiter{off, fn, len(w.list)}
	if len(w.list) == 0 || off < w.min {
		w.min = off
	}
	w.list = append(w.list, x)
	return x
}

func (w *waiters) remove(x *waiter) {
	if x.at < 0 {
		return
	}
	last := len(w.list) - 1
	w.list[x.at] = w.list[last]
	w.list[x.at].at = x.at
	w.list[last] = nil
	w.list = w.list[:last]
	x.at = -1
}

// take removes and returns those that wait for an offset below mark, or everybody for noHold.
func (w *waiters) take(mark uint64) (fire []func()) {
	if len(w.list) == 0 || (w.min >= mark && mark != noHold) {
		return nil
	}
	lowest := noHold
	for i := 0; i < len(w.list); {
		x := w.list[i]
		if x.off < mark || mark == noHold {
			fire = append(fire, x.fn)
			w.remove(x)
			continue
		}
		lowest = min(lowest, x.off)
		i++
	}
	w.min = lowest
	return fire
}

// OnAdvance calls fn once: as soon as a frame at or after off is visible in the current generation
// (Visible() > off), or the log fails, closes or begins a new generation. If that is so already, fn
// is called before OnAdvance returns; otherwise by whichever goroutine advances the log. fn must
// not block, and must not call into the log beyond asking for watermarks: locks of it are held. cancel makes a call that has not begun
// not happen. Who is called looks at Err before waiting again: a log that failed has nothing to
// wait for, and calls at once.
//
// The offset belongs to the generation that is current now. Who waits with a cursor it got
// earlier uses OnAdvanceFrom, which can't mistake a new generation's offsets for the old one's.
func (l *Log) OnAdvance(off uint64, fn func()) (cancel func()) {
	return l.OnAdvanceFrom(Cursor{l.Generation(), off}, fn)
}

// OnAdvanceFrom is OnAdvance for an offset of c's generation: if that is not current, fn is called
// at once.
func (l *Log) OnAdvanceFrom(c Cursor, fn func()) (cancel func()) {
	return l.wait(c.Generation, fn, func(g *generation) *waiter {
		if g.visible.Load() > c.Offset {
			return nil
		}
		return l.marks.visible.add(c.Offset, fn)
	}, &l.marks.visible)
}

// OnDurable calls fn once: as soon as everything below off is durable (Durable() >= off) in the
// current generation, or the log fails, closes or begins a new generation. Otherwise as OnAdvance.
func (l *Log) OnDurable(off uint64, fn func()) (cancel func()) {
	return l.OnDurableTo(Cursor{l.Generation(), off}, fn)
}

// OnDurableTo is OnDurable for an offset of c's generation: if that is not current, fn is called at
// once. (A new generation begins only after all of the old one is durable.)
func (l *Log) OnDurableTo(c Cursor, fn func()) (cancel func()) {
	return l.wait(c.Generation, fn, func(g *generation) *waiter {
		if g.durable.Load() >= c.Offset {
			return nil
		}
		return l.marks.durable.add(c.Offset, fn)
	}, &l.marks.durable)
}

// wait registers fn under the watermarks' lock, so that it can't miss an advance: advance stores
// the watermark before it takes that lock.
func (l *Log) wait(gen uint64, fn func(), register func(*generation) *waiter, in *waiters) (cancel func()) {
	w := &l.marks
	w.mu.Lock()
	var x *waiter
	if g := l.gen.Load(); g.id == gen && l.Err() == nil {
		x = register(g)
	}
	w.mu.Unlock()
	if x == nil {
		fn()
		return func() {}
	}
	return func() {
		w.mu.Lock()
		in.remove(x)
		w.mu.Unlock()
	}
}

// SetHold caps what is visible: no frame at or after off is, until the hold is moved. It holds back
// a group over several shards until it is as safe on all of them. ^uint64(0) holds nothing. It calls those who wait for frames
// to be visible, but nobody who waits for them to be durable: that one may need a lock that SetHold's caller holds.
//
// REQUIRES: the hold is set before the frame at off is appended (what is visible stays visible).
func (l *Log) SetHold(off uint64) {
	l.marks.mu.Lock()
	l.marks.hold = off
	fire := l.marks.show(l.gen.Load())
	l.marks.mu.Unlock()
	call(fire)
}

// Generation returns the current generation.
func (l *Log) Generation() uint64 { return l.gen.Load().id }

// Appended returns the offset the next frame will get.
func (l *Log) Appended() uint64 { return l.gen.Load().appended.Load() }

// Written returns the offset below which every frame has reached the file: it survives the process.
func (l *Log) Written() uint64 { return l.gen.Load().written.Load() }

// Durable returns the offset below which every frame is covered by an fsync: it survives a power loss.
func (l *Log) Durable() uint64 { return l.gen.Load().durable.Load() }

// Visible returns the offset below which consumers may see every frame.
func (l *Log) Visible() uint64 { return l.gen.Load().visible.Load() }

// Tail returns the cursor of the next frame: the current generation and its appended tail.
func (l *Log) Tail() Cursor {
	g := l.gen.Load()
	return Cursor{g.id, g.appended.Load()}
}

// DurableTail returns the current generation and its durable watermark.
func (l *Log) DurableTail() Cursor {
	g := l.gen.Load()
	return Cursor{g.id, g.durable.Load()}
}

// VisibleTail returns the current generation and its visible watermark.
func (l *Log) VisibleTail() Cursor {
	g := l.gen.Load()
	return Cursor{g.id, g.visible.Load()}
}

// Policy returns the policy in force.
func (l *Log) Policy() Policy { return Policy(l.marks.policy.Load()) }

// SetPolicy changes the policy. Frames that are visible stay visible.
func (l *Log) SetPolicy(p Policy) {
	l.marks.policy.Store(int64(p))
	l.marks.advance(l.gen.Load())
	l.kick()
}

// WrittenTail returns the current generation and its written watermark.
func (l *Log) WrittenTail() Cursor {
	g := l.gen.Load()
	return Cursor{g.id, g.written.Load()}
}
