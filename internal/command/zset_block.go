package command

import "github.com/kevydb/kevy/state"

func planBZPopMin(c *Ctx) { planBZPop(c, false) }
func planBZPopMax(c *Ctx) { planBZPop(c, true) }

// planBZPop plans BZPOPMIN and BZPOPMAX key... timeout.
func planBZPop(c *Ctx, fromTop bool) {
	last := len(c.Args) - 1
	deadline, bad := secondsArg(c.Args[last], c.Now)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	keys := c.Args[1:last]
	for _, key := range keys {
		z, found, ok := peekZSet(c, key)
		if !ok {
			return
		}
		if found {
			c.W.Array(3)
			c.W.Bulk(key)
			popElements(c, key, &z, 1, fromTop, false)
			return
		}
	}
	waitForZSet(c, keys, deadline)
}

// planBZMPop plans BZMPOP timeout numkeys key... MIN|MAX [COUNT n].
func planBZMPop(c *Ctx) {
	p, bad := parseMPop(c.Args[2:])
	deadline := int64(0)
	if bad == "" {
		deadline, bad = secondsArg(c.Args[1], c.Now)
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	if !runMPop(c, &p) {
		waitForZSet(c, p.keys, deadline)
	}
}

func waitForZSet(c *Ctx, keys [][]byte, deadline int64) {
	if !c.Block(Wait{Kind: state.TypeZSet, Keys: keys, Deadline: deadline}) {
		c.W.NullArray()
	}
}
