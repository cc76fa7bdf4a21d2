package engine

import (
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// Waiter is a client that waits for a key (BLPOP and the like). It stands in a queue of each of its keys.
// Whoever folds an effect on such a key serves the waiters before it lets the shard go: it plans their
// commands again, in the order in which the keys became ready and the clients came, each as a group of its own.
//
// What ends a wait comes first or not at all: mu and over decide between a served command, the timeout and
// a client that goes. A command is planned, logged and folded only while the waiter is not over, and then
// its reply is delivered; so nothing is taken out for a client that has gone.
//
// Lock order: shard locks, then mu.
type Waiter struct {
	// W takes the reply. REQUIRES: W.Proto is set by who makes the Waiter.
	W resp.Writer
	// Ticket has what must be safe before the reply leaves.
	Ticket Ticket
	// Claim, if set, tells whether the client is there to take a reply, and makes sure that it gets the one that
	// follows: Done, or Unclaim if there is none yet. They are called with shard locks held.
	Claim   func() bool
	Unclaim func()
	// Permit, if set, is asked before the command is planned again; what it returns is the reply of one that must not
	// run any more. It is called with shard locks held.
	Permit func(cmd *command.Command, args [][]byte) string
	// Done is called once when there is a reply, from any goroutine, without locks. It must not block.
	Done func(*Waiter)

	e         *Engine
	cmd       *command.Command
	args      [][]byte
	noTouch   bool
	kind      state.Type
	anyChange bool
	mask      uint64 // shards of all keys of the command
	timer     *time.Timer

	mu   sync.Mutex
	over bool // guarded by mu

	places []*place // guarded by the locks of mask
}

// place is a waiter's place in the queue of a key.
type place struct {
	w          *Waiter
	sh         *shard
	q          *waitQueue
	prev, next *place
}

// waitQueue are the waiters of one key, first come first served. Guarded by its shard's lock.
type waitQueue struct {
	key         string
	first, last *place
	n           int
	anyChange   int    // waiters that want to know of any change
	ready       bool   // in the shard's list of ready keys
	since       uint64 // orders ready keys over shards
}

// waits is a shard's part in waiting. Guarded by the shard's lock.
type waits struct {
	queues map[string]*waitQueue
	ready  []*waitQueue
	needs  [MaxShards]int // waiters here whose commands need another shard
	mask   uint64         // shards with needs
}

// RunBlocking is Run for a client that can be made to wait: then it returns the waiter that newWaiter made,
// there is no reply yet, and Done will be called. Otherwise it returns nil.
func (e *Engine) RunBlocking(c *command.Ctx, t *Ticket, newWaiter func() *Waiter) *Waiter {
	mask, locked := e.begin(c)
	c.CanBlock = true
	defer e.finish(locked, c.Now)
	e.plan(c, mask, t)
	if c.Waits() == nil {
		return nil
	}
	w := newWaiter()
	e.enter(w, c, mask)
	return w
}

// lockWide locks the shards of mask, and those that the commands of waiters on them need. It returns what it
// has locked.
func (e *Engine) lockWide(mask uint64) uint64 {
	for {
		e.lock(mask)
		need := e.needs(mask)
		if need == mask {
			return mask
		}
		e.unlock(mask)
		mask = need
	}
}

// needs returns mask and the shards that the commands of waiters there need. REQUIRES: the locks of mask.
func (e *Engine) needs(mask uint64) (need uint64) {
	need = mask
	for m := mask; m != 0; m &= m - 1 {
		need |= e.shards[lowest(m)].waits.mask
	}
	return need
}

// finish serves the waiters of keys that became ready and releases the locks of mask. Whoever changes keys
// takes them with lockWide, so that nobody comes between the change and the waiters.
func (e *Engine) finish(mask uint64, now int64) {
	if e.firstReady(mask) != nil && e.needs(mask) != mask {
		e.unlock(mask) // a read has met a key past its deadline
		mask = e.lockWide(mask)
	}
	var done []*Waiter
	defer func() {
		e.unlock(mask)
		for _, w := range done {
			w.Done(w)
		}
	}()
	for {
		sh := e.firstReady(mask)
		if sh == nil {
			return
		}
		q := sh.waits.ready[0]
		sh.waits.ready = sh.waits.ready[1:]
		q.ready = false
		done = e.serveKey(sh, q, now, done)
	}
}

// firstReady returns the shard with the key that became ready first, nil if there is none.
func (e *Engine) firstReady(mask uint64) (first *shard) {
	for m := mask; m != 0; m &= m - 1 {
		sh := e.shards[lowest(m)]
		if len(sh.waits.ready) > 0 && (first == nil || sh.waits.ready[0].since < first.waits.ready[0].since) {
			first = sh
		}
	}
	return first
}

// serveKey serves the waiters that stand in q now, as long as there is something for them.
func (e *Engine) serveKey(sh *shard, q *waitQueue, now int64, done []*Waiter) []*Waiter {
	p := q.first
	for n := q.n; n > 0 && p != nil; n-- {
		next := p.next
		kind := state.TypeNone
		if entry, ok := sh.ks.Lookup([]byte(q.key)); ok {
			if ms, has := entry.Deadline(); !has || ms > now {
				kind = entry.Type()
			}
		}
		if kind == state.TypeNone && q.anyChange == 0 {
			break
		}
		if (kind == p.w.kind || p.w.anyChange) && e.serve(p.w, now) {
			done = append(done, p.w)
		}
		p = next
	}
	return done
}

// serve plans a waiter's command again. It reports whether there is a reply now. REQUIRES: the locks of w.mask.
func (e *Engine) serve(w *Waiter, now int64) (served bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave()
	if w.over {
		return false
	}
	if w.Claim != nil && !w.Claim() {
		w.end()
		return false
	}
	if w.Permit != nil {
		if bad := w.Permit(w.cmd, w.args); bad != "" {
			w.W.Error(bad)
			w.end()
			return true
		}
	}
	c := e.takeCtx()
	defer e.giveCtx(c)
	failed := true
	defer func() {
		if failed { // a panic, which goes on: it must not leave the client waiting
			w.end()
			w.W.Error("ERR internal error")
			go w.Done(w)
		}
	}()
	c.Reset()
	c.Seed = e.Seed()
	c.Cmd, c.Args, c.W, c.NoTouch = w.cmd, w.args, &w.W, w.noTouch
	c.Now, c.MaxBulk = now, e.maxBulk.Load()
	c.CanBlock, c.Waited = true, true
	e.plan(c, w.mask, &w.Ticket)
	failed = false
	if c.Waits() != nil {
		w.join()
		if w.Unclaim != nil {
			w.Unclaim()
		}
		return false
	}
	w.end()
	return true
}

// end marks the wait as over. REQUIRES: w.mu held.
func (w *Waiter) end() {
	if !w.over && w.timer != nil {
		w.timer.Stop()
		w.e.waitTimed.Add(-1)
	}
	w.over = true
}

// enter begins a wait. REQUIRES: the locks of mask.
func (e *Engine) enter(w *Waiter, c *command.Ctx, mask uint64) {
	x := c.Waits()
	args := x.Args
	if args == nil {
		args = c.Args
	}
	w.e, w.cmd, w.args, w.noTouch, w.mask = e, c.Cmd, copyArgs(args), c.NoTouch, mask
	w.kind, w.anyChange = x.Kind, x.AnyChange
	for _, key := range x.Keys {
		w.addPlace(key)
	}
	w.join()
	if x.Deadline != 0 {
		e.waitTimed.Add(1)
		w.mu.Lock()
		w.timer = time.AfterFunc(untilMS(c.Now, x.Deadline), w.timeout)
		w.mu.Unlock()
	}
}

func untilMS(now, deadline int64) time.Duration {
	const most = 1 << 43 // ms: as a Duration it does not overflow
	return time.Duration(min(max(deadline-now, 1), most)) * time.Millisecond
}

func copyArgs(args [][]byte) [][]byte {
	e := copyEffect(&effect.Effect{Args: args})
	return e.Args
}

// addPlace prepares w's place in the queue of key, once for each key.
func (w *Waiter) addPlace(key []byte) {
	for _, p := range w.places {
		if p.q.key == string(key) {
			return
		}
	}
	sh := w.e.shards[w.e.shardOf(key)]
	w.places = append(w.places, &place{w: w, sh: sh, q: &waitQueue{key: string(key)}})
}

// join puts w at the end of all its queues. REQUIRES: the locks of w.mask.
func (w *Waiter) join() {
	for _, p := range w.places {
		x := &p.sh.waits
		if have := x.queues[p.q.key]; have != nil {
			p.q = have
		} else {
			if x.queues == nil {
				x.queues = make(map[string]*waitQueue)
			}
			p.q = &waitQueue{key: p.q.key}
			x.queues[p.q.key] = p.q
		}
		q := p.q
		p.prev, p.next = q.last, nil
		if q.last == nil {
			q.first = p
		} else {
			q.last.next = p
		}
		q.last = p
		q.n++
		if w.anyChange {
			q.anyChange++
		}
		x.need(w.mask, 1)
	}
}

// leave takes w out of all its queues, if it is in them. REQUIRES: the locks of w.mask.
func (w *Waiter) leave() {
	for _, p := range w.places {
		q := p.q
		if p.prev == nil && q.first != p {
			continue // not in the queue
		}
		if p.prev == nil {
			q.first = p.next
		} else {
			p.prev.next = p.next
		}
		if p.next == nil {
			q.last = p.prev
		} else {
			p.next.prev = p.prev
		}
		p.prev, p.next = nil, nil
		q.n--
		if w.anyChange {
			q.anyChange--
		}
		if q.n == 0 {
			delete(p.sh.waits.queues, q.key)
		}
		p.sh.waits.need(w.mask, -1)
	}
}

// need adds waiters that need the shards of mask.
func (x *waits) need(mask uint64, n int) {
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		if x.needs[i] += n; x.needs[i] > 0 {
			x.mask |= 1 << i
		} else {
			x.mask &^= 1 << i
		}
	}
}

// serves reports whether an effect can make a key ready. What it leaves out adds no element: planning the waiters' commands
// again for it would only move them to the ends of their queues.
func serves(e *effect.Effect) bool {
	switch e.Op {
	case effect.XAck, effect.XClaim, effect.XDel, effect.XTrim, effect.XSetID, effect.PExpireAt, effect.Persist:
		return false
	case effect.XGroup: // readers of a group that is gone get an error
		sub := string(e.Args[0])
		return sub == "CREATE" || sub == "DESTROY"
	}
	return true
}

// noteReady notes the keys of an effect that somebody waits for. REQUIRES: sh.mu held.
func (sh *shard) noteReady(e *effect.Effect) {
	if !serves(e) {
		return
	}
	if e.Op.Keys() == effect.NoKeys {
		for _, q := range sh.waits.queues {
			if q.anyChange > 0 {
				sh.markReady(q)
			}
		}
		return
	}
	e.EachKey(func(key []byte) {
		if q := sh.waits.queues[string(key)]; q != nil && (e.Op != effect.Del || q.anyChange > 0) {
			sh.markReady(q)
		}
	})
}

func (sh *shard) markReady(q *waitQueue) {
	if !q.ready {
		q.ready, q.since = true, sh.readyClock.Add(1)
		sh.waits.ready = append(sh.waits.ready, q)
	}
}

func (w *Waiter) timeout() { w.answer(func(r *resp.Writer) { r.NullArray() }) }

// Timeout ends the wait as its timeout does (CLIENT UNBLOCK id TIMEOUT). It reports false if it was over.
func (w *Waiter) Timeout() bool { return w.answer(func(r *resp.Writer) { r.NullArray() }) }

// Fail ends the wait with an error. It reports false if it was over.
func (w *Waiter) Fail(text string) bool { return w.answer(func(r *resp.Writer) { r.Error(text) }) }

// Cancel ends the wait without a reply: the client has gone. When it returns, the command has either been
// done before or will never be. It reports false if it was over.
func (w *Waiter) Cancel() bool {
	w.mu.Lock()
	was := w.over
	w.end()
	w.mu.Unlock()
	if was {
		return false
	}
	w.e.lock(w.mask)
	defer w.e.unlock(w.mask)
	w.leave()
	return true
}

func (w *Waiter) answer(reply func(*resp.Writer)) bool {
	if !w.Cancel() {
		return false
	}
	reply(&w.W)
	w.Done(w)
	return true
}

// takeCtx lends a context to a waiter's command.
func (e *Engine) takeCtx() *command.Ctx {
	if c, ok := e.ctxs.Get().(*command.Ctx); ok {
		return c
	}
	return e.NewCtx()
}

func (e *Engine) giveCtx(c *command.Ctx) {
	c.Reset()
	c.W, c.Args, c.Cmd = nil, nil, nil
	e.ctxs.Put(c)
}
