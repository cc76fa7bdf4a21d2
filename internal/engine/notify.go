package engine

import (
	"slices"
	"sync"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Changes are what a group did, as listeners see it. All of it is owned by the listener.
type Changes struct {
	Client  uint64          // whose command it was (Ticket.Client), 0 nobody's
	Events  []command.Event // keyspace notifications of the wanted classes, in order
	Keys    []string        // keys changed, in order; only if WantKeys
	Held    any             // the listener's own, for what Touched leaves to Committed
	Flushed bool            // all keys went; only if WantKeys
}

// Listener is told of every group after it is logged and folded, before the locks of its shards are released; under
// always when it is durable. Committed must not block and must not use the engine.
type Listener interface {
	Committed(*Changes)
	// Touched is called behind each command of a group that changed keys, from at on in Keys, before the next reads them.
	// The group may still fail; then Committed follows without events and keys.
	Touched(c *Changes, at int)
}

// WantKeys asks, beside classes of events, for Changes.Keys.
const WantKeys = 1 << 31

// Listen sets who is told. REQUIRES: nothing runs yet.
func (e *Engine) Listen(l Listener) { e.listener = l }

// SetWanted says what the listener wants to know: classes of events, WantKeys. Nothing costs nothing.
func (e *Engine) SetWanted(bits uint32) { e.wanted.Store(bits) }

// notes gathers what a group does. nil if nobody wants to know.
type notes struct {
	e       *Engine
	want    uint32
	touches []command.Touch // of the command that runs
	whole   [][]byte        // its Planned.Whole
	changes Changes
}

// newNotes returns where to note a group of a client, or nil.
func (e *Engine) newNotes(client uint64) *notes {
	want := e.wanted.Load()
	if want == 0 || e.listener == nil {
		return nil
	}
	return &notes{e: e, want: want, changes: Changes{Client: client}}
}

// around notes an effect on one shard that fold applies. REQUIRES: the shard's lock is held.
func (n *notes) around(sh *shard, p *command.Planned, cause log.FrameCause, fold func()) {
	if p.Effect.Op == effect.FlushAll {
		n.changes.Flushed = n.want&WantKeys != 0
		fold()
		return
	}
	at := len(n.touches)
	n.whole = p.Whole
	p.Effect.EachKey(func(key []byte) {
		t := command.Touch{
			Cmd: p.Cmd, Op: p.Effect.Op, Event: p.Event, Key: string(key),
			Expired: p.Expired || cause == log.ByExpiry, Evicts: cause == log.ByEviction,
		}
		entry, ok := sh.ks.Lookup(key)
		t.Before = ok
		switch p.Effect.Op {
		case effect.Set:
			t.SetsDeadline = setsDeadline(p, ok)
		case effect.XClaim:
			t.NewConsumer = ok && newConsumer(sh, entry, p.Effect.Args)
		case effect.XGroup:
			t.Word = string(p.Effect.Args[0])
		}
		n.touches = append(n.touches, t)
	})
	fold()
	for i := at; i < len(n.touches); i++ {
		t := &n.touches[i]
		_, t.After = sh.ks.Lookup([]byte(t.Key))
	}
}

// newConsumer reports whether an XCLAIM makes its consumer.
func newConsumer(sh *shard, entry state.Entry, args [][]byte) bool {
	if entry.Type() != state.TypeStream {
		return false
	}
	s := sh.ks.Stream(entry)
	g, ok := s.Group(args[1])
	if !ok {
		return false
	}
	_, there := g.Consumer(args[2])
	return !there
}

// setsDeadline reports whether a SET gives a key a deadline that it did not have.
func setsDeadline(p *command.Planned, ok bool) bool {
	if len(p.Effect.Args) < 4 || p.Cmd == nil {
		return false
	}
	switch p.Cmd.Name {
	case "setex", "psetex":
		return true
	case "set":
		return p.Event == "" || !ok
	}
	return false
}

// commandEnds derives the events of the command that has just run.
func (n *notes) commandEnds() {
	if n == nil || len(n.touches) == 0 {
		return
	}
	if n.whole != nil {
		sortTouches(n.touches, n.whole)
	}
	command.SortTouches(n.touches)
	if n.want&WantKeys != 0 {
		at := len(n.changes.Keys)
		for i := range n.touches {
			n.changes.Keys = append(n.changes.Keys, n.touches[i].Key)
		}
		n.e.listener.Touched(&n.changes, at)
	}
	if n.want&^WantKeys != 0 {
		command.Events(n.touches, n.event)
	}
	n.touches = n.touches[:0]
}

// sortTouches puts the touches of a command's keys into the order in which its request names them, each time that it does.
func sortTouches(touches []command.Touch, request [][]byte) {
	named := make(map[string][]int, len(touches))
	for _, i := range command.KeyPositions(touches[0].Cmd, request, nil) {
		named[string(request[i])] = append(named[string(request[i])], i)
	}
	at := make(map[*command.Touch]int, len(touches))
	order := make([]*command.Touch, len(touches))
	for i := range touches {
		t := &touches[i]
		order[i] = t
		if places := named[t.Key]; len(places) > 0 {
			at[t], named[t.Key] = places[0], places[1:]
		}
	}
	slices.SortStableFunc(order, func(a, b *command.Touch) int { return at[a] - at[b] })
	sorted := make([]command.Touch, len(touches))
	for i, t := range order {
		sorted[i] = *t
	}
	copy(touches, sorted)
}

func (n *notes) event(ev command.Event) {
	if n.want&uint32(ev.Class) != 0 {
		n.changes.Events = append(n.changes.Events, ev)
	}
}

// deliver tells the listener. REQUIRES: the group is appended and folded, its shards of mask are locked.
func (n *notes) deliver(mask uint64) {
	if n == nil {
		return
	}
	n.commandEnds()
	c := n.changes
	n.changes = Changes{Client: c.Client}
	if len(c.Events) == 0 && len(c.Keys) == 0 && !c.Flushed {
		return
	}
	n.e.tell(&c, mask)
}

// abandon gives the listener back what it holds: the group has failed.
func (n *notes) abandon() {
	if n != nil && n.changes.Held != nil {
		n.e.listener.Committed(&Changes{Client: n.changes.Client, Held: n.changes.Held})
	}
}

func (e *Engine) tell(c *Changes, mask uint64) {
	if e.Policy() != log.Always {
		e.listener.Committed(c)
		return
	}
	var t Ticket
	for m := mask; m != 0; m &= m - 1 {
		t.note(e.shards[lowest(m)])
	}
	n := e.untold.add(c)
	e.OnSafe(&t, func(err error) { e.untold.settle(n, err == nil, e.listener) })
}

// untold are groups that listeners are told of when they are safe, in the order in which they were logged: a sync
// makes many of them safe at once.
type untold struct {
	mu   sync.Mutex
	list []*news
}

// news is one of them. Guarded by untold.mu.
type news struct {
	changes       *Changes
	settled, safe bool
}

func (u *untold) add(c *Changes) *news {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := &news{changes: c}
	u.list = append(u.list, n)
	return n
}

// settle notes what has become of n, and tells l of all that is safe with nothing unsettled before it.
func (u *untold) settle(n *news, safe bool, l Listener) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n.settled, n.safe = true, safe
	for len(u.list) > 0 && u.list[0].settled {
		if first := u.list[0]; first.safe {
			l.Committed(first.changes)
		}
		u.list[0] = nil
		u.list = u.list[1:]
	}
}

// missed tells of keys that a command has not found.
func (e *Engine) missed(c *command.Ctx, t *Ticket) {
	if len(c.Missed()) == 0 || e.listener == nil {
		return
	}
	n := notes{e: e, want: uint32(command.EventMiss), changes: Changes{Client: t.Client}}
	n.missed(c)
	e.listener.Committed(&n.changes)
}

// missed notes keys that a command of the group has not found.
func (n *notes) missed(c *command.Ctx) {
	if n == nil {
		return
	}
	for _, key := range c.Missed() {
		n.event(command.Event{Class: command.EventMiss, Name: "keymiss", Key: string(key)})
	}
}

// noteMisses has c remember keys that a command looks for in vain, if someone wants to know.
func (e *Engine) noteMisses(c *command.Ctx) {
	c.NoteMisses = e.wanted.Load()&uint32(command.EventMiss) != 0 && c.Reads()
}
