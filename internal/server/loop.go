package server

import (
	"math/rand/v2"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// sampleEvery is how many data commands share one clock reading pair.
const sampleEvery = 32

// loop is what the sessions of one event loop share. Owned by the loop.
type loop struct {
	srv *Server
	ctx *command.Ctx

	tickets []*engine.Ticket // those beyond used are free
	used    int
	turn    engine.Ticket // everything the turn waits for

	calls  []uint32 // of this turn, by command id
	called []int    // ids with calls of this turn
	tick   uint32

	gate     loopGate
	patience *time.Timer // for scripts; nil until the first
	conns    int         // connections of the loop

	hits, misses uint64 // of this turn
	rng          *rand.Rand
}

func newLoop(srv *Server) *loop {
	return &loop{
		srv:   srv,
		ctx:   srv.newCtx(),
		calls: make([]uint32, len(command.All())),
		rng:   rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), //nolint:gosec // RANDOMKEY
	}
}

func (l *loop) borrowTicket() *engine.Ticket {
	if l.used == len(l.tickets) {
		l.tickets = append(l.tickets, new(engine.Ticket))
	}
	t := l.tickets[l.used]
	l.used++
	t.Reset()
	return t
}

func (l *loop) random() uint64 { return l.rng.Uint64() }

// count counts a call in the turn.
func (l *loop) count(id int) {
	if l.calls[id] == 0 {
		l.called = append(l.called, id)
	}
	l.calls[id]++
}

// flushCalls adds the turn's calls to the server's.
func (l *loop) flushCalls() {
	var total uint64
	for _, id := range l.called {
		n := uint64(l.calls[id])
		l.srv.stats.rows[id].calls.Add(n)
		total += n
		l.calls[id] = 0
	}
	l.called = l.called[:0]
	l.srv.stats.commands.Add(total)
	if l.hits|l.misses != 0 {
		l.srv.stats.hits.Add(l.hits)
		l.srv.stats.misses.Add(l.misses)
		l.hits, l.misses = 0, 0
	}
}

// sampled reports whether this call is to be measured: one of many, and the first.
func (l *loop) sampled(id int) bool {
	l.tick++
	return l.tick%sampleEvery == 0 || l.srv.stats.rows[id].samples.Load() == 0
}

func (l *loop) measure(id int, fn func()) { l.srv.stats.measure(id, fn) }

// loopOf returns the state of the event loop that carries c.
func (srv *Server) loopOf(c *resp.Conn) *loop {
	slot := c.LoopData()
	l, ok := (*slot).(*loop)
	if !ok {
		l = newLoop(srv)
		*slot = l
	}
	return l
}
