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
