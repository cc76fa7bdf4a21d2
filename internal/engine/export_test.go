package engine

// AutoSnapshot begins a snapshot if one is due, and reports whether it did or one is being written.
func (e *Engine) AutoSnapshot() bool {
	kind, ok := e.checkpoint.due()
	if ok {
		ok = e.BGSave(kind) == nil
	}
	return ok || e.SaveStatus().Running
}

// SnapshotCancelled reports whether Close has told the running snapshot to give up.
func (e *Engine) SnapshotCancelled() bool { return e.checkpoint.cancel.Load() }

// StopExpirer ends the expirer's goroutine: rounds are the test's own from then on, until StartExpirer.
func (e *Engine) StopExpirer() {
	e.expirer.close()
	e.expirer = newExpirer(e)
}

// StartExpirer takes StopExpirer back.
func (e *Engine) StartExpirer() { go e.expirer.run() }

// ExpireRound is one round of the expirer.
func (e *Engine) ExpireRound() { e.expirer.round() }

// ExpirerWoken reports whether the expirer is to run at once.
func (e *Engine) ExpirerWoken() bool { return len(e.expirer.wake) > 0 }

// HoldAll keeps all shards locked until release is called.
func (e *Engine) HoldAll() (release func()) {
	e.lock(e.all())
	return func() { e.unlock(e.all()) }
}

// SetManyGenerations sets how many generations ask for a snapshot.
func (e *Engine) SetManyGenerations(n int) {
	e.checkpoint.mu.Lock()
	defer e.checkpoint.mu.Unlock()
	e.checkpoint.many = n
}
