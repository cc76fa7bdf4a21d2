package server

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/resp"
)

// outputBounds are client-output-buffer-limit by class. There are no replicas to be bounded.
type outputBounds struct{ normal, pubsub resp.OutputBounds }

func (b *outputBounds) set(o *config.OutputLimits) {
	b.normal.Set(o.Normal.Hard, o.Normal.Soft, o.Normal.SoftSeconds)
	b.pubsub.Set(o.PubSub.Hard, o.PubSub.Soft, o.PubSub.SoftSeconds)
}

func (b *outputBounds) of(subscriber bool) *resp.OutputBounds {
	if subscriber {
		return &b.pubsub
	}
	return &b.normal
}

// leastClientMemory is the least that maxmemory-clients can be, so that a client can still say something.
const leastClientMemory = 128 << 10

// largeRequest is the size from which the arguments of a request count before it runs; smaller ones come and go too fast.
const largeRequest = 32 << 10

// evictor closes clients, the largest first, while those that may be closed take as much as maxmemory-clients.
type evictor struct {
	limit   atomic.Int64 // bytes, 0: none
	all     atomic.Int64 // bytes of all clients, as they were last published
	total   atomic.Int64 // of those that may be closed
	evicted atomic.Uint64
}

// clientLimit is maxmemory-clients in bytes, 0 for none.
func clientLimit(cfg *config.Config) int64 {
	text, _ := cfg.Get("maxmemory-clients")
	number, percent := strings.CutSuffix(text, "%")
	n, _ := strconv.ParseInt(number, 10, 64) // config knows it as a number
	switch {
	case n == 0, percent && cfg.MaxMemory == 0:
		return 0
	case percent:
		n = int64(float64(cfg.MaxMemory) * float64(n) / 100)
	}
	return max(n, leastClientMemory)
}

func (e *evictor) setLimit(srv *Server, n int64) {
	e.limit.Store(n)
	srv.setGate(gateClients, n > 0)
	e.check(srv)
}

// evictedBy counts the arguments of a large request, and reports whether that was too much for its client to stay.
func (s *session) evictedBy(args [][]byte) bool {
	n := 0
	for _, a := range args {
		n += len(a)
	}
	if n < largeRequest || s.offLoop {
		return false
	}
	s.pub.mu.Lock()
	s.pub.argvBytes, s.pub.queryUsed, s.pub.queryFree = n, 0, 0
	s.pub.count(&s.srv.evictor)
	s.pub.mu.Unlock()
	s.srv.evictor.check(s.srv)
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	return s.pub.gone
}

// check closes clients if there is need. Any goroutine.
func (e *evictor) check(srv *Server) {
	limit := e.limit.Load()
	if limit == 0 || e.total.Load() < limit {
		return
	}
	type candidate struct {
		s    *session
		size int64
	}
	var list []candidate
	for _, s := range srv.clients.all() {
		s.pub.mu.Lock()
		if s.pub.evictable {
			list = append(list, candidate{s, s.pub.counted})
		}
		s.pub.mu.Unlock()
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.size, a.size) })
	for _, c := range list {
		if e.total.Load() < limit {
			return
		}
		if !srv.clients.remove(c.s) {
			continue
		}
		e.evicted.Add(1)
		i := c.s.info()
		srv.log.Info("evicting client", "client", i.line(time.Now()))
		c.s.conn.Close()
		c.s.work.stopWaiting() // nothing is taken out for it from now on
	}
}

// Unsent implements resp.OutputObserver: what the session leaves unread has changed.
func (h handler) Unsent(c *resp.Conn) {
	s, ok := c.Data.(*session)
	if !ok {
		return
	}
	s.pub.mu.Lock()
	s.pub.output = c.Unsent()
	s.pub.count(&h.srv.evictor)
	s.pub.mu.Unlock()
	h.srv.evictor.check(h.srv)
}

// count brings the sums of all clients up to date with this one. REQUIRES: mu held.
func (p *published) count(e *evictor) {
	if p.gone {
		return
	}
	p.set(e, int64(p.memory()), !p.noEvict)
}

// leave takes the client out of the sums, for good. REQUIRES: mu held.
func (p *published) leave(e *evictor) {
	p.set(e, 0, false)
	p.gone = true
}

func (p *published) set(e *evictor, n int64, evictable bool) {
	if p.counted != n {
		e.all.Add(n - p.counted)
	}
	before, after := int64(0), int64(0)
	if p.evictable {
		before = p.counted
	}
	if evictable {
		after = n
	}
	if before != after {
		e.total.Add(after - before)
	}
	p.counted, p.evictable = n, evictable
}

// What one more of them takes, in bytes, about.
const (
	sessionBytes = 1500     // a session with its connection
	watchBytes   = 72       // a watched key, without its name
	subBytes     = 88       // a subscription, without its name
	prefixBytes  = 96       // a prefix of CLIENT TRACKING, without its name
	queuedBytes  = 48       // a queued command
	argumentSize = 24       // an argument, without its bytes
	staticReply  = 16 << 10 // replies up to here are shown as obl, beyond as a list
)

// memory is what the client takes: tot-mem of CLIENT LIST.
func (i *clientInfo) memory() int {
	return sessionBytes + i.queryUsed + i.queryFree + i.output + i.argvBytes + i.multiBytes + i.extra
}

// extraMemory is what the session takes besides buffers and arguments.
func (s *session) extraMemory() int {
	n := s.subs.Memory(subBytes) + s.track.memory
	if w := s.multi.watch; w != nil {
		n += w.Memory(watchBytes)
	}
	for i := range s.multi.queue {
		n += queuedBytes + argumentSize*len(s.multi.queue[i].Args)
	}
	return n
}
