package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/pubsub"
)

// clients is the registry of open sessions.
type clients struct {
	mu   sync.RWMutex
	byID map[uint64]*session
}

func (r *clients) add(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[s.id] = s
}

// remove takes a session out; it reports whether it was there.
func (r *clients) remove(s *session) bool {
	r.mu.Lock()
	_, ok := r.byID[s.id]
	delete(r.byID, s.id)
	r.mu.Unlock()
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	s.pub.leave(&s.srv.evictor)
	return ok
}

func (r *clients) find(id uint64) *session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

func (r *clients) len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byID)
}

// all returns the sessions in the order of their ids.
func (r *clients) all() []*session {
	r.mu.RLock()
	out := make([]*session, 0, len(r.byID))
	for _, s := range r.byID {
		out = append(out, s)
	}
	r.mu.RUnlock()
	slices.SortFunc(out, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return out
}

// clientInfo is what CLIENT LIST shows of a session.
type clientInfo struct {
	id              uint64
	addr, laddr     string
	fd              int
	created, active time.Time
	name            string
	libName, libVer string
	user            string
	cmd             *command.Command
	proto           int
	multi           int // queued commands, -1 outside MULTI
	multiBytes      int
	argvBytes       int
	queryUsed       int
	queryFree       int
	output          int
	extra           int // bytes of what is in no buffer
	noEvict         bool
	subs            [3]int // channels, patterns, shard channels
	track           tracked
	monitor         bool
	replica         bool
	noTouch         bool
	watchDirty      bool
	blocked         bool
	closing         bool
}

// setInfo changes what CLIENT LIST shows. Any goroutine.
func (s *session) setInfo(fn func(*clientInfo)) {
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	fn(&s.pub.clientInfo)
}

// info returns what CLIENT LIST shows. Any goroutine.
func (s *session) info() clientInfo {
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	return s.pub.clientInfo
}

// publish brings what others see of the session up to date. On the loop.
func (s *session) publish() {
	if s.offLoop {
		return
	}
	args, used, free := s.conn.QueryBuffer()
	active := s.conn.LastActive()
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	if s.pub.gone {
		return // its connection closed in this turn: another goroutine may be giving up what it holds
	}
	i := &s.pub.clientInfo
	i.argvBytes, i.queryUsed, i.queryFree = args, used, free
	i.output = s.conn.Unsent()
	i.active = active
	i.blocked = s.conn.Parked()
	i.closing = s.conn.IsClosed()
	i.proto = s.conn.W.Proto
	s.publishState(i)
	s.pub.count(&s.srv.evictor)
}

// publishState is the part of publish that needs no connection.
func (s *session) publishState(i *clientInfo) {
	i.cmd, i.user = s.cmd, s.user
	if s.outer != nil {
		i.cmd = s.outer
	}
	i.noEvict, i.noTouch = s.noEvict, s.noTouch
	i.monitor = s.monitor
	if i.track = (tracked{}); s.track.on {
		i.track = s.srv.tracking.brief(s)
	}
	for k := range i.subs {
		i.subs[k] = s.subs.Len(pubsub.Kind(k)) //nolint:gosec // three kinds
	}
	i.multi, i.multiBytes = -1, 0
	if s.multi.on {
		i.multi, i.multiBytes = len(s.multi.queue), s.multi.bytes
	}
	i.extra = s.extraMemory()
	i.watchDirty = s.multi.watch != nil && s.multi.watch.Dirty()
}

// own returns what CLIENT LIST shows of the session that runs it: with the request that is being
// executed counted in.
func (s *session) own() clientInfo {
	i := s.info()
	s.publishState(&i)
	i.blocked = false
	i.proto = s.w.Proto
	if !s.multi.running {
		i.queryUsed += requestSize(s.args)
	}
	for _, a := range s.args {
		i.argvBytes += len(a)
	}
	i.output = 0
	i.active = time.Now()
	return i
}

// requestSize is the number of bytes a request takes on the wire.
func requestSize(args [][]byte) int {
	digits := func(n int) int { return len(fmt.Sprint(n)) }
	n := 1 + digits(len(args)) + 2
	for _, a := range args {
		n += 1 + digits(len(a)) + 2 + len(a) + 2
	}
	return n
}

func (i *clientInfo) unix() bool { return strings.HasSuffix(i.laddr, ":0") }

func (i *clientInfo) subscriber() bool { return i.subs != [3]int{} }

// kind is the class of the client, as in CLIENT LIST TYPE.
func (i *clientInfo) kind() int {
	if i.replica {
		return typeReplica
	}
	if i.subscriber() {
		return typePubSub
	}
	return typeNormal
}

func (i *clientInfo) flags() string {
	var b strings.Builder
	for _, f := range []struct {
		on   bool
		name byte
	}{
		{i.replica, 'S'},
		{i.monitor, 'O'},
		{i.subscriber(), 'P'},
		{i.multi >= 0, 'x'},
		{i.blocked, 'b'},
		{i.watchDirty, 'd'},
		{i.closing, 'c'},
		{i.unix(), 'U'},
		{i.track.on, 't'},
		{i.track.broken, 'R'},
		{i.track.bcast, 'B'},
		{i.noEvict, 'e'},
		{i.noTouch, 'T'},
	} {
		if f.on {
			b.WriteByte(f.name)
		}
	}
	if b.Len() == 0 {
		return "N"
	}
	return b.String()
}

// line is a client's line in CLIENT LIST, without the line break.
func (i *clientInfo) line(now time.Time) string {
	cmd := "NULL"
	if i.cmd != nil {
		cmd = i.cmd.Name
	}
	obl, oll, omem := i.output, 0, 0
	if i.output > staticReply {
		obl, oll, omem = 0, (i.output+staticReply-1)/staticReply, i.output
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d "+
		"ssub=%d multi=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=0 rbp=0 obl=%d oll=%d omem=%d "+
		"tot-mem=%d events=r cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s",
		i.id, i.addr, i.laddr, i.fd, i.name, seconds(now.Sub(i.created)), seconds(now.Sub(i.active)),
		i.flags(), i.subs[pubsub.Channel], i.subs[pubsub.Pattern], i.subs[pubsub.Shard], i.multi, i.queryUsed, i.queryFree, i.argvBytes, i.multiBytes, obl, oll, omem,
		i.memory(), cmd, i.user, i.track.redirects(), max(2, i.proto), i.libName, i.libVer)
}

func seconds(d time.Duration) int64 { return max(0, int64(d/time.Second)) }
