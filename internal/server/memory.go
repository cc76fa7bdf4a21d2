package server

import (
	"runtime/metrics"
	"sync"
)

// memory watches what the process uses, for INFO and maxmemory.
type memory struct {
	srv *Server

	mu      sync.Mutex
	limit   int64 // maxmemory, 0: none
	used    int64 // at the last look
	peak    int64
	startup int64
	total   int64 // of the machine, 0 if unknown
}

func (m *memory) init(srv *Server) {
	m.srv = srv
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

// check looks at the memory in use and decides whether commands that need more are refused.
// It takes the shard locks for a moment.
func (m *memory) check() { m.note(m.srv.eng.Stats().UsedBytes) }

// note is check with the engine's share known.
func (m *memory) note(records int64) (used int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = records + heapBytes()
	m.peak = max(m.peak, m.used)
	m.decide()
	return m.used
}

// decide sets the gate. REQUIRES: m.mu held.
func (m *memory) decide() { m.srv.setGate(gateMemory, m.limit > 0 && m.used > m.limit) }

// setLimit changes maxmemory; it counts from the next command on.
func (m *memory) setLimit(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = n
	m.decide()
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
