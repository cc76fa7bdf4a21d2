package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// Under always a loop waits a moment for the sync that its turn needs, if syncs have been short lately. Going on at once would
// serve the clients that come next, about half of them, in a turn whose sync only begins when the first has ended:
// twice as many syncs, and those are most of what a command costs under always. But a loop never waits for
// long: a disk may stall.
const (
	quickSync     = 500 * time.Microsecond // syncs are short if they take less on average
	quickPatience = 2 * quickSync
)

// quickSyncs are the goroutines that sync while a loop waits.
type quickSyncs struct {
	mu     sync.Mutex
	free   []*quickSyncer
	closed bool
	late   atomic.Int32 // those that nobody waits for any more
	wg     sync.WaitGroup
}

// quickSyncer syncs logs for who waits for it. Owned by that caller, then by its goroutine until it has ended.
type quickSyncer struct {
	ask   chan uint64 // shards; closed at the end
	done  chan struct{}
	timer *time.Timer
	left  atomic.Bool // the first of waiter and syncer that sets it decides whether done is sent
}

// syncQuickly makes what is appended to the logs of the shards in mask durable, or gives up waiting for that: their errors
// are sticky, and OnSafe waits for what is missing.
func (e *Engine) syncQuickly(mask uint64) {
	q := e.quick.take(e)
	if q == nil {
		return
	}
	q.left.Store(false)
	q.ask <- mask
	q.timer.Reset(quickPatience)
	select {
	case <-q.done:
		q.timer.Stop()
		e.quick.put(q)
	case <-q.timer.C:
		e.quick.late.Add(1)
		if q.left.Swap(true) { // it has ended just now
			<-q.done
			e.quick.late.Add(-1)
			e.quick.put(q)
		}
	}
}

// take returns a syncer, nil if the disk is stalling or the store closes.
func (x *quickSyncs) take(e *Engine) *quickSyncer {
	if x.late.Load() > 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	if n := len(x.free); n > 0 {
		q := x.free[n-1]
		x.free = x.free[:n-1]
		return q
	}
	q := &quickSyncer{ask: make(chan uint64, 1), done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	q.timer.Stop()
	x.wg.Go(func() { e.runQuickSyncer(q) })
	return q
}

func (x *quickSyncs) put(q *quickSyncer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		close(q.ask)
		return
	}
	x.free = append(x.free, q)
}

// close ends the syncers, after what they do.
func (x *quickSyncs) close() {
	x.mu.Lock()
	x.closed = true
	for _, q := range x.free {
		close(q.ask)
	}
	x.free = nil
	x.mu.Unlock()
	x.wg.Wait()
}

func (e *Engine) runQuickSyncer(q *quickSyncer) {
	for mask := range q.ask {
		for m := mask; m != 0; m &= m - 1 {
			_ = e.shards[lowest(m)].log().Sync() // sticky, or a full disk
		}
		if !q.left.Swap(true) {
			q.done <- struct{}{}
			continue
		}
		e.quick.late.Add(-1)
		e.quick.put(q)
	}
}
