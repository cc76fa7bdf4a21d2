package engine

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/state"
)

// Prefetcher brings what coming commands will read into the processor's caches, see state.Keyspace.PrefetchIndex.
// The zero value is ready. Not safe for concurrent use.
type Prefetcher struct{ keys []prefetchKey }

type prefetchKey struct {
	hash    uint64
	shard   int
	element []byte // that the command will look up in a collection; nil: none is known
	place   state.Place
}

// Prefetch asks for what requests will look up: the records of their keys, and elements of large collections. It goes by how
// commands look that are common: a wrong guess does no harm.
func (p *Prefetcher) Prefetch(e *Engine, requests [][][]byte) {
	seed, mask, elements := e.Seed(), uint64(0), uint64(0)
	p.keys = p.keys[:0]
	for _, args := range requests {
		key, element := aim(args)
		if key == nil {
			continue
		}
		h := state.Hash(seed, key)
		k := prefetchKey{hash: h, shard: command.ShardOfHash(h, len(e.shards)), element: element}
		p.keys = append(p.keys, k)
		mask |= 1 << k.shard
		if element != nil {
			elements |= 1 << k.shard
		}
	}
	p.each(e, mask, func(ks *state.Keyspace, k *prefetchKey) { ks.PrefetchIndex(k.hash) })
	p.each(e, mask, func(ks *state.Keyspace, k *prefetchKey) { ks.PrefetchRecord(k.hash) })
	p.each(e, elements, func(ks *state.Keyspace, k *prefetchKey) {
		if k.element != nil {
			k.place = ks.PrefetchLeaf(k.hash, k.element)
		}
	}, func(ks *state.Keyspace, k *prefetchKey) { ks.PrefetchElement(k.place) })
}

// aim guesses which key a request will look up, and which element of its value. Letters of the command's name are enough: finding its
// row takes longer than what a wrong guess costs.
func aim(args [][]byte) (key, element []byte) {
	if len(args) < 2 || len(args[0]) < 2 {
		return nil, nil
	}
	if key = args[1]; len(args) == 2 {
		return key, nil
	}
	switch second := args[0][1] | 0x20; args[0][0] | 0x20 {
	case 'h':
		return key, args[2] // HSET key field value
	case 's':
		if second != 'e' { // SADD key member, but not SET
			return key, args[2]
		}
	case 'z':
		return key, args[len(args)-1] // ZADD key score member
	case 'e', 'f':
		if (second == 'v' || second == 'c') && len(args) > 3 {
			return args[3], nil // EVAL script numkeys key, FCALL
		}
	}
	return key, nil
}

// each calls the functions for the keys, one after the other, by shard, with the shard's lock held.
func (p *Prefetcher) each(e *Engine, mask uint64, fs ...func(*state.Keyspace, *prefetchKey)) {
	for ; mask != 0; mask &= mask - 1 {
		id := lowest(mask)
		sh := e.shards[id]
		sh.mu.Lock()
		for _, f := range fs {
			for i := range p.keys {
				if p.keys[i].shard == id {
					f(sh.ks, &p.keys[i])
				}
			}
		}
		sh.mu.Unlock()
	}
}
