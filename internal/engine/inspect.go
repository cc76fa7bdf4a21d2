package engine

// UsedBytes returns the memory accounted to all keys: what maxmemory limits.
func (e *Engine) UsedBytes() (n int64) {
	for _, sh := range e.shards {
		sh.mu.Lock()
		n += sh.ks.UsedBytes()
		sh.mu.Unlock()
	}
	return n
}
