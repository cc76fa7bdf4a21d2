package engine

import (
	"crypto/sha1" //nolint:gosec // DEBUG DIGEST-VALUE has 40 digits, as in Redis
	"encoding/hex"
	"strings"
)

// ValueDigest returns 40 hex digits that depend on a key's type, value and on whether it expires
// (DEBUG DIGEST-VALUE); zeros if there is no such key.
func (e *Engine) ValueDigest(key []byte) string {
	sh := e.shards[e.shardOf(key)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	entry, ok := sh.ks.Lookup(key)
	if !ok {
		return strings.Repeat("0", 2*sha1.Size)
	}
	h := sha1.New() //nolint:gosec // see the import
	_, _ = h.Write([]byte(entry.Type().String()))
	_, _ = h.Write(entry.Value())
	if _, expires := entry.Deadline(); expires {
		_, _ = h.Write([]byte("expires"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// UsedBytes returns the memory accounted to all keys: what maxmemory limits.
func (e *Engine) UsedBytes() (n int64) {
	for _, sh := range e.shards {
		sh.mu.Lock()
		n += sh.ks.UsedBytes()
		sh.mu.Unlock()
	}
	return n
}
