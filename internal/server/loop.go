package server

import (
	"math/rand/v2"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// loop is what the sessions of one event loop share. Owned by the loop.
type loop struct {
	srv *Server
	ctx *command.Ctx

	tickets []*engine.Ticket // those beyond used are free
	used    int
	turn    engine.Ticket // everything the turn waits for

	calls  []uint32 // of this turn, by command id
	called []int    // ids with calls of this turn

	gate    loopGate
	routine *scriptRoutine // nil until the first script
	conns   int            // connections of the loop

	turnAt   time.Duration // when ctx.Turn was read, since the server's start
	marked   time.Duration // when markedBy's last data command of this turn ended, since the server's start
	markedBy *session

	hits, misses uint64 // of this turn
	prefetcher   engine.Prefetcher
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

// readTurn reads the clock of the turn, unless that has been done.
func (l *loop) readTurn() {
	if l.ctx.Turn == 0 {
		l.ctx.Turn, l.turnAt = l.srv.eng.Now(), time.Since(l.srv.stats.start)
	}
}

// now returns the clock of the turn as it is when a command begins, without reading it again: unix ms.
func (l *loop) now(began time.Time) int64 {
	l.readTurn()
	return l.ctx.Turn + (began.Sub(l.srv.stats.start) - l.turnAt).Milliseconds()
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
	l.markedBy = nil
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

// clock returns the time since the server's start. Right behind another command of s that is when it ended: pipelined
// commands share their readings.
func (l *loop) clock(s *session) time.Duration {
	if l.markedBy == s {
		l.markedBy = nil
		return l.marked
	}
	return time.Since(l.srv.stats.start)
}

// mark notes the end of a command of s.
func (l *loop) mark(s *session) { l.marked, l.markedBy = time.Since(l.srv.stats.start), s }

// clock and mark are the loop's, but for commands of a transaction, which may run off the loop.
func (s *session) clock(inExec bool) time.Duration {
	if inExec {
		return time.Since(s.srv.stats.start)
	}
	return s.loop.clock(s)
}

func (s *session) mark(inExec bool) time.Duration {
	if inExec {
		return time.Since(s.srv.stats.start)
	}
	s.loop.mark(s)
	return s.loop.marked
}

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
