package command

import (
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// keyCount is the number of keys of all shards, due ones included.
func keyCount(c *Ctx) int {
	n := 0
	for _, ks := range c.Shards {
		n += ks.Len()
	}
	return n
}

func planDBSize(c *Ctx) { c.W.Int(int64(keyCount(c))) }

// planFlushAll plans FLUSHALL and FLUSHDB [ASYNC|SYNC]. The effect is planned for an empty keyspace
// too: a flush begins a new generation.
func planFlushAll(c *Ctx) {
	if len(c.Args) > 2 || (len(c.Args) == 2 && !isWord(c.Args[1], "sync") && !isWord(c.Args[1], "async")) {
		c.W.Error(msgSyntax)
		return
	}
	c.Emit(effect.FlushAll)
	c.W.OK()
}

// randomTries bounds how often RANDOMKEY draws again because the key drawn is due.
const randomTries = 100

func planRandomKey(c *Ctx) {
	total := keyCount(c)
	if total == 0 {
		c.W.Null()
		return
	}
	draw := c.Rand
	for range randomTries {
		if e, ok := drawKey(c, draw, total); ok && !c.dueMet(e) {
			c.W.Bulk(e.Key())
			return
		}
		draw = mix(draw)
	}
	for _, ks := range c.Shards {
		if e, ok := firstLive(c, ks); ok {
			c.W.Bulk(e.Key())
			return
		}
	}
	c.W.Null()
}

// drawKey picks a shard by its share of the keys, then a key of it.
func drawKey(c *Ctx, draw uint64, total int) (state.Entry, bool) {
	n := int(draw % uint64(total))
	for _, ks := range c.Shards {
		if n < ks.Len() {
			return ks.Random(mix(draw))
		}
		n -= ks.Len()
	}
	return state.Entry{}, false
}

// firstLive returns the first key of a keyspace that is not due.
func firstLive(c *Ctx, ks *state.Keyspace) (first state.Entry, ok bool) {
	ks.AscendPrefix(nil, func(e state.Entry) bool {
		if !c.due(e) {
			first, ok = e, true
		}
		return !ok
	})
	return first, ok
}

// mix is one step of splitmix64: the next of a sequence of random numbers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
