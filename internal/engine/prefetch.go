package engine

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/state"
)

// Prefetcher brings what coming commands will read into the processor's caches, see state.Keyspace.PrefetchIndex.
// The zero value is ready. Not safe for concurrent use.
type Prefetcher struct{ keys []prefetchKey }

type prefetchKey struct {
	hash  uint64
	shard int
}

// Prefetch asks for the records of keys. What is no key does no harm.
func (p *Prefetcher) Prefetch(e *Engine, keys [][]byte) {
	seed, mask := e.Seed(), uint64(0)
	p.keys = p.keys[:0]
	for _, key := range keys {
		h := state.Hash(seed, key)
		k := prefetchKey{h, command.ShardOfHash(h, len(e.shards))}
		p.keys = append(p.keys, k)
		mask |= 1 << k.shard
	}
	p.each(e, mask, (*state.Keyspace).PrefetchIndex)
	p.each(e, mask, (*state.Keyspace).PrefetchRecord)
}

// each calls f for the keys, by shard, with the shard's lock held.
func (p *Prefetcher) each(e *Engine, mask uint64, f func(*state.Keyspace, uint64)) {
	for ; mask != 0; mask &= mask - 1 {
		id := lowest(mask)
		sh := e.shards[id]
		sh.mu.Lock()
		for i := range p.keys {
			if p.keys[i].shard == id {
				f(sh.ks, p.keys[i].hash)
			}
		}
		sh.mu.Unlock()
	}
}
