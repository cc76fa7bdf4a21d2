package server

import (
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/engine"
)

// memory watches what the process uses, for INFO and maxmemory. What counts is what the process used
// before it had data, the memory accounted to the keys, and the clients' buffers. Logs, their buffers and what
// the collector has yet to reclaim do not.
type memory struct {
	srv *Server

	limit   atomic.Int64 // maxmemory, 0: none
	clients atomic.Int64 // bytes of clients' buffers, as of the last look
	full    atomic.Bool  // the last try to make room failed: scripts that need memory are refused
	kick    chan struct{}

	startup int64 // set by init
	total   int64 // of the machine, 0 if unknown

	mu   sync.Mutex
	used int64 // at the last look
	peak int64
	// exceeded is since when the limit is exceeded, exceededFor how long it was in all before.
	exceeded    time.Time
	exceededFor time.Duration
}

func (m *memory) init(srv *Server) {
	m.srv = srv
	m.kick = make(chan struct{}, 1)
	m.total = systemMemory()
	m.startup = heapBytes()
	m.check()
}

// heapBytes returns the live bytes of the Go heap.
func heapBytes() int64 {
	return readMetric("/memory/classes/heap/objects:bytes")
}

func readMetric(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64()) //nolint:gosec // sizes fit
}

// check looks at the memory in use. It takes the shard locks for a moment.
func (m *memory) check() {
	m.clients.Store(m.srv.evictor.all.Load())
	m.note(m.srv.eng.UsedBytes())
	if m.limit.Load() > 0 && !m.hasRoom() {
		m.wake()
	}
}

// note returns the memory in use with the keys' share known, and remembers the most there was.
func (m *memory) note(records int64) (used int64) {
	used = m.startup + records + m.clients.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used, m.peak = used, max(m.peak, used)
	return used
}

// setLimit changes maxmemory; it counts from the next command on.
func (m *memory) setLimit(n int64) {
	if n > 0 {
		m.srv.eng.MeasureMemory(true)
	}
	m.limit.Store(n)
	m.srv.setGate(gateMemory, n > 0)
	if n == 0 {
		m.srv.eng.MeasureMemory(false)
		m.settled(engine.EvictDone)
	}
	m.wake()
}

// hasRoom reports whether the limit is kept.
func (m *memory) hasRoom() bool {
	limit := m.limit.Load()
	return limit <= 0 || m.startup+m.clients.Load()+m.srv.eng.UsedNow() <= limit
}

// room makes room before a command, evicting keys for as long as one command may take for it; what is
// left is done in the background. It reports false if there is none and nothing may go. REQUIRES: no shard's lock is held.
func (m *memory) room(t *engine.Ticket) bool {
	if m.hasRoom() || m.srv.eng.Following() {
		m.settled(engine.EvictDone)
		return true
	}
	if m.srv.gate.Load()&(gatePauseAll|gatePauseWrite) != 0 {
		return true // nothing changes during a pause
	}
	out := m.srv.eng.Evict(t, func() bool { return !m.hasRoom() })
	m.settled(out)
	if out == engine.EvictRunning {
		m.wake()
	}
	return out != engine.EvictFailed
}

// settled notes what came of making room.
func (m *memory) settled(out engine.Outcome) {
	m.full.Store(out == engine.EvictFailed)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case out != engine.EvictDone && m.exceeded.IsZero():
		m.exceeded = time.Now()
	case out == engine.EvictDone && !m.exceeded.IsZero():
		m.exceededFor += time.Since(m.exceeded)
		m.exceeded = time.Time{}
	}
}

// wake has the background make room.
func (m *memory) wake() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// background makes room that no command waits for. It ends with the server.
func (m *memory) background() {
	for {
		select {
		case <-m.srv.ctx.Done():
			return
		case <-m.kick:
		}
		if m.hasRoom() || m.srv.gate.Load()&gateScript != 0 {
			continue
		}
		var t engine.Ticket
		m.room(&t)
		if _, err := m.srv.eng.Settle(&t); err != nil {
			m.srv.log.Warn("evicting keys failed", "error", err)
		}
	}
}

func (m *memory) resetPeak() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peak = m.used
}

// figures returns peak, what the process used before it had data, and the machine's memory.
func (m *memory) figures() (peak, startup, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak, m.startup, m.total
}

// exceededTimes returns for how long the limit has been exceeded, in all and now.
func (m *memory) exceededTimes() (total, current time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.exceeded.IsZero() {
		current = time.Since(m.exceeded)
	}
	return m.exceededFor + current, current
}
