package command

import (
	"fmt"

	"github.com/kevydb/kevy/state"
)

// planPrefixStats plans PREFIX.STATS prefix.
func planPrefixStats(c *Ctx) {
	var sum state.PrefixStats
	for _, ks := range c.Shards {
		s := ks.Stats(c.Args[1], c.Now)
		sum.Keys += s.Keys
		sum.WithDeadline += s.WithDeadline
	}
	c.W.Map(2)
	c.W.BulkString("keys")
	c.W.Int(int64(sum.Keys))
	c.W.BulkString("expires")
	c.W.Int(int64(sum.WithDeadline))
}

// planPrefixDigest plans PREFIX.DIGEST prefix: the shards' digests add up.
func planPrefixDigest(c *Ctx) {
	if len(c.Args) > 2 {
		c.W.Error("ERR PREFIX.DIGEST at cursors is for connections to a server, outside of transactions and scripts")
		return
	}
	var keys int
	var digest uint64
	for _, ks := range c.Shards {
		n, d := ks.Digest(c.Args[1], c.Now)
		keys += n
		digest += d
	}
	c.W.Array(2)
	c.W.Int(int64(keys))
	c.W.BulkString(FormatDigest(digest))
}

// FormatDigest spells the sum of shards' digests as PREFIX.DIGEST does.
func FormatDigest(sum uint64) string { return fmt.Sprintf("%016x", sum) }
