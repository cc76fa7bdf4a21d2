package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/acl"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/pubsub"
	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/internal/script"
	"github.com/kevydb/kevy/resp"
)

// Reasons why a session's next command takes the slow path through admit.
const (
	gateAuth       = 1 << iota // not authenticated
	gateMulti                  // inside MULTI
	gateReply                  // CLIENT REPLY OFF or SKIP
	gateSubscriber             // has subscriptions
	gateTracking               // has CLIENT TRACKING on

	// gateHears are those of a session that is told of things beside its replies.
	gateHears = gateSubscriber | gateTracking
)

// Reply modes (CLIENT REPLY).
const (
	replyOn = iota
	replyOff
	replySkipNext // the command after this one is not answered
	replySkip     // this one is not answered
)

// session is the state of one connection. Owned by the connection's loop, but for pub and work.
type session struct {
	srv  *Server
	conn *resp.Conn
	loop *loop
	// w takes replies: conn.W, or a job's buffer while the session's transaction runs off the loop.
	w    *resp.Writer
	id   uint64
	gate uint32

	cmd     *command.Command // the last one
	outer   *command.Command // the EXEC or the script that runs cmd, nil: none
	args    [][]byte         // its arguments, while it runs
	began   time.Time        // when it began, if it has no planner
	user    string           // authenticated as
	account atomic.Pointer[acl.Account]
	reply   uint8
	noTouch bool
	noEvict bool

	link    *replica.Link // a replica's for frames, nil for others
	stock   stockReplica
	replica bool // it is one of a replica's two connections

	multi multi
	spans []span         // replies of this turn that acknowledge something logged
	tick  *engine.Ticket // of this turn, nil if there is none; borrowed from the loop

	subs    pubsub.Subscriptions
	inbox   inbox
	track   tracked
	claimed atomic.Bool            // a command that waited is being served: out-of-band messages wait for its reply
	monitor bool                   // gets what MONITOR shows
	jobRuns bool                   // a command runs on a goroutine and has yet to reply: out-of-band messages wait
	offLoop bool                   // the transaction runs on a goroutine
	pending func(shard int) uint64 // frames the running transaction has planned, nil outside
	after   []func()               // to do on the loop, without shard locks, when the transaction is over

	inGroup      *command.Ctx // of the transaction or script that runs, nil outside
	host         *script.Host // made for the first script
	scriptFailed bool         // the running script's error is its own, not that of a command it called

	pub  published
	work work
}

// span is a reply's place in the reply buffer.
type span struct{ start, end int }

// published is what other goroutines may read of a session (CLIENT LIST).
type published struct {
	mu sync.Mutex
	clientInfo

	counted   int64 // of memory, in the sums of all clients
	evictable bool  // it counts for maxmemory-clients
	gone      bool  // it counts no more
}

// work tells a connection's end and the end of its goroutine apart.
type work struct {
	mu      sync.Mutex
	running bool
	gone    bool              // the connection is closed
	cancel  func(cause error) // ends a waiting command, nil if none waits
	wait    *engine.Waiter    // the command waits in the engine
}

func newSession(srv *Server, c *resp.Conn, l *loop) *session {
	s := &session{srv: srv, conn: c, loop: l, id: c.ID(), user: defaultUser}
	s.w = &c.W
	c.W.Proto = srv.defaultProto()
	s.subs = srv.hub.Of(s)
	s.inbox.drain = s.drainInbox
	s.pub.clientInfo = clientInfo{
		id: s.id, addr: c.RemoteAddr(), laddr: c.LocalAddr(), fd: c.FD(), created: c.Created(),
		active: c.Created(), user: defaultUser, proto: c.W.Proto, multi: -1,
	}
	s.beginAs()
	return s
}

func (s *session) requireAuth() {
	s.gate |= gateAuth
	s.conn.SetAuthenticated(false)
}

// ticket returns the session's ticket of this turn.
func (s *session) ticket() *engine.Ticket {
	if s.tick == nil {
		s.tick = s.loop.borrowTicket()
		s.tick.Client = s.id
	}
	return s.tick
}

// onLoop runs fn on the session's loop and outside shard locks: now, or when the transaction that
// the session is running is over.
func (s *session) onLoop(fn func()) {
	if s.multi.running {
		s.after = append(s.after, fn)
		return
	}
	fn()
}

// runAfter runs what onLoop has put off.
func (s *session) runAfter() {
	after := s.after
	s.after = nil
	for _, fn := range after {
		fn()
	}
}

// closeAfterReply closes the connection once the replies have left.
func (s *session) closeAfterReply() {
	s.onLoop(func() { s.conn.CloseAfterReply() })
}

// release gives up what the session holds in the engine. It comes once, after the connection has
// closed and no goroutine works for it.
func (s *session) release() {
	if s.multi.watch != nil {
		s.multi.watch.Clear()
	}
	s.multi = multi{}
	if s.link != nil {
		s.link.Close()
		s.link = nil
	}
	s.subs.Clear()
	s.srv.monitors.set(s, false)
	if s.srv.tracking.state(s).on {
		s.srv.tracking.disable(s)
		s.srv.applyWanted()
	}
}

// begin notes that a goroutine works for the session.
func (k *work) begin(cancel func(error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running, k.cancel = true, cancel
}

// end notes the goroutine's end and reports whether the connection has closed meanwhile.
func (k *work) end() (gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running, k.cancel = false, nil
	return k.gone
}

// close notes the connection's end and reports whether a goroutine still works for it.
func (k *work) close() (running bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone = true
	if k.cancel != nil {
		k.cancel(errGone)
	}
	return k.running
}

// interrupt ends the command the session waits in; it reports whether there was one.
func (k *work) interrupt(cause error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel == nil {
		return false
	}
	k.cancel(cause)
	return true
}
