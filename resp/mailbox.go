package resp

import (
	"sync"
	"sync/atomic"
)

// Kinds of tasks.
const (
	taskPost = iota
	taskResume
	taskRelease
	taskClose
	taskLoop // fn concerns the loop, not a connection
)

// task is something another goroutine wants done on a loop.
type task struct {
	c    *Conn
	kind int
	fn   func()
}

// mailbox takes tasks for one loop, in order. put is for any goroutine, the rest is for the loop.
type mailbox struct {
	waiting atomic.Bool // tasks is not empty
	wake    func()      // makes the loop take; called with mu held, so never after close

	mu     sync.Mutex
	tasks  []task // guarded by mu
	closed bool   // guarded by mu
	spare  []task // owned by the loop: the memory of the tasks taken last
}

// put adds a task. It returns false if the loop has ended.
func (m *mailbox) put(t task) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.tasks = append(m.tasks, t)
	m.waiting.Store(true)
	m.wake()
	return true
}

// take returns all tasks. They are valid until the next take.
func (m *mailbox) take() []task {
	if !m.waiting.Load() {
		return nil
	}
	clear(m.spare)
	m.mu.Lock()
	defer m.mu.Unlock()
	got := m.tasks
	m.tasks, m.spare = m.spare[:0], got
	m.waiting.Store(false)
	return got
}

// close refuses further tasks and returns the ones not taken.
func (m *mailbox) close() []task {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	got := m.tasks
	m.tasks = nil
	m.waiting.Store(false)
	return got
}
