package history

import "sync/atomic"

// Meter tells how far a running operation is. It may be read while the operation runs. A nil Meter counts nothing.
type Meter struct {
	phase       atomic.Pointer[string]
	done, total atomic.Uint64
}

// Read returns what is being done, how many frames (or keys) are done, and of how many (0: not known).
func (m *Meter) Read() (phase string, done, total uint64) {
	if p := m.phase.Load(); p != nil {
		phase = *p
	}
	return phase, m.done.Load(), m.total.Load()
}

// Begin begins a phase of so many frames, keys or bytes (0: not known).
func (m *Meter) Begin(phase string, total uint64) {
	if m != nil {
		m.phase.Store(&phase)
		m.done.Store(0)
		m.total.Store(total)
	}
}

func (m *Meter) add(n uint64) {
	if m != nil {
		m.done.Add(n)
	}
}

// Set begins a phase, or goes on with it, of which so much is done.
func (m *Meter) Set(phase string, done, total uint64) {
	m.Begin(phase, total)
	m.At(done)
}

// At says how much of the phase is done.
func (m *Meter) At(n uint64) {
	if m != nil {
		m.done.Store(n)
	}
}

// tick is counted by one goroutine and handed to the meter now and then.
type tick struct {
	m *Meter
	n uint64
}

func (t *tick) one() {
	if t.n++; t.n%4096 == 0 {
		t.m.add(4096)
	}
}

func (t *tick) end() { t.m.add(t.n % 4096) }
