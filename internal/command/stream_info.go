package command

import "github.com/kevydb/kevy/state"

// hasTombstones reports whether an entry from an ID on may have been deleted by XDEL.
func hasTombstones(s *state.Stream, from state.StreamID) bool {
	deleted := s.MaxDeletedID()
	if s.Len() == 0 || deleted.IsZero() || deleted.Less(s.FirstID()) {
		return false
	}
	return !deleted.Less(from)
}

// readUpTo returns how many entries were ever added up to an ID, -1 if nobody can tell.
func readUpTo(s *state.Stream, id state.StreamID) int64 {
	added, last := s.Added(), s.LastID()
	switch {
	case added == 0:
		return 0
	case s.Len() == 0 && !last.Less(id), id == last:
		return added
	case last.Less(id):
		return -1
	}
	first, deleted := s.FirstID(), s.MaxDeletedID()
	if deleted.IsZero() || deleted.Less(first) {
		switch {
		case id.Less(first):
			return added - int64(s.Len())
		case id == first:
			return added - int64(s.Len()) + 1
		}
	}
	return -1
}

// replyLag replies how many entries a group has yet to read, null if nobody can tell.
func replyLag(c *Ctx, s *state.Stream, g *state.Group) {
	read := g.Read()
	switch {
	case s.Added() == 0:
		c.W.Int(0)
		return
	case read != -1 && !hasTombstones(s, g.LastID()):
	default:
		read = readUpTo(s, g.LastID())
	}
	if read == -1 {
		c.W.Null()
		return
	}
	c.W.Int(s.Added() - read)
}

func replyRead(c *Ctx, g *state.Group) {
	if g.Read() == -1 {
		c.W.Null()
		return
	}
	c.W.Int(g.Read())
}

var xinfoHelp = []string{
	"CONSUMERS <key> <groupname>",
	"    Show consumers of <groupname>.",
	"GROUPS <key>",
	"    Show the stream consumer groups.",
	"STREAM <key> [FULL [COUNT <count>]",
	"    Show information about the stream.",
}

func planXInfoHelp(c *Ctx) { ReplyHelp(c.W, c.Args[0], xinfoHelp) }

// xinfo looks up the key of an XINFO request; ok is false if it has replied an error.
func (c *Ctx) xinfo() (s state.Stream, ok bool) {
	s, found, ok := c.stream(c.Args[2])
	if ok && !found {
		c.W.Error(msgNoKey)
	}
	return s, ok && found
}

func planXInfoGroups(c *Ctx) {
	s, ok := c.xinfo()
	if !ok {
		return
	}
	c.W.Array(s.NumGroups())
	s.EachGroup(func(g state.Group) bool {
		c.W.Map(6)
		c.W.BulkString("name")
		c.W.Bulk(g.Name())
		c.W.BulkString("consumers")
		c.W.Int(int64(g.NumConsumers()))
		c.W.BulkString("pending")
		c.W.Int(int64(g.Pending()))
		c.W.BulkString("last-delivered-id")
		replyID(c.W, g.LastID())
		c.W.BulkString("entries-read")
		replyRead(c, &g)
		c.W.BulkString("lag")
		replyLag(c, &s, &g)
		return true
	})
}

func planXInfoConsumers(c *Ctx) {
	s, ok := c.xinfo()
	if !ok {
		return
	}
	g, ok := s.Group(c.Args[3])
	if !ok {
		c.W.Error(noGroupError(c.Args[3], c.Args[2]))
		return
	}
	c.W.Array(g.NumConsumers())
	g.EachConsumer(func(x state.Consumer) bool {
		c.W.Map(4)
		c.W.BulkString("name")
		c.W.Bulk(x.Name())
		c.W.BulkString("pending")
		c.W.Int(int64(x.Pending()))
		c.W.BulkString("idle")
		c.W.Int(max(c.Now-seenTime(c, x), 0))
		c.W.BulkString("inactive")
		if x.Active() == 0 {
			c.W.Int(-1)
		} else {
			c.W.Int(c.Now - x.Active())
		}
		return true
	})
}

// seenTime returns when a consumer was last seen; now, if that was before the start.
func seenTime(c *Ctx, x state.Consumer) int64 {
	if x.Seen() == 0 {
		return c.Now
	}
	return x.Seen()
}

// planXInfoStream plans XINFO STREAM key [FULL [COUNT n]].
func planXInfoStream(c *Ctx) {
	s, ok := c.xinfo()
	if !ok {
		return
	}
	opts := c.Args[3:]
	count, bad := int64(10), ""
	switch {
	case len(opts) == 0:
		replyStreamInfo(c, &s, 10)
		replyStreamEnds(c, &s)
		return
	case len(opts) != 1 && len(opts) != 3, !isWord(opts[0], "full"), len(opts) == 3 && !isWord(opts[1], "count"):
		bad = subcommandSyntaxError(c)
	case len(opts) == 3:
		if count, bad = intArg(opts[2]); count < 0 {
			count = 10
		}
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	replyStreamInfo(c, &s, 9)
	c.W.BulkString("entries")
	replyEntries(c.W, s, state.StreamID{}, state.MaxStreamID, count, false)
	c.W.BulkString("groups")
	c.W.Array(s.NumGroups())
	s.EachGroup(func(g state.Group) bool { replyGroupFull(c, &s, &g, count); return true })
}

// replyStreamInfo replies the map of n entries that both forms begin with.
func replyStreamInfo(c *Ctx, s *state.Stream, n int) {
	c.W.Map(n)
	chunks := int64(s.Chunks())
	c.W.BulkString("length")
	c.W.Int(int64(s.Len()))
	c.W.BulkString("radix-tree-keys")
	c.W.Int(chunks)
	c.W.BulkString("radix-tree-nodes")
	c.W.Int(chunks + 1)
	c.W.BulkString("last-generated-id")
	replyID(c.W, s.LastID())
	c.W.BulkString("max-deleted-entry-id")
	replyID(c.W, s.MaxDeletedID())
	c.W.BulkString("entries-added")
	c.W.Int(s.Added())
	c.W.BulkString("recorded-first-entry-id")
	replyID(c.W, s.FirstID())
}

func replyStreamEnds(c *Ctx, s *state.Stream) {
	c.W.BulkString("groups")
	c.W.Int(int64(s.NumGroups()))
	c.W.BulkString("first-entry")
	if s.Len() == 0 || !replyOne(c.W, *s, s.FirstID()) {
		c.W.Null()
	}
	c.W.BulkString("last-entry")
	if s.Len() == 0 || !replyOne(c.W, *s, s.TopID()) {
		c.W.Null()
	}
}

func replyGroupFull(c *Ctx, s *state.Stream, g *state.Group, count int64) {
	c.W.Map(7)
	c.W.BulkString("name")
	c.W.Bulk(g.Name())
	c.W.BulkString("last-delivered-id")
	replyID(c.W, g.LastID())
	c.W.BulkString("entries-read")
	replyRead(c, g)
	c.W.BulkString("lag")
	replyLag(c, s, g)
	c.W.BulkString("pel-count")
	c.W.Int(int64(g.Pending()))
	c.W.BulkString("pending")
	start, n := len(c.W.Buf), 0
	g.EachPending(state.StreamID{}, func(p state.Nack) bool {
		c.W.Array(4)
		replyID(c.W, p.ID)
		c.W.Bulk(p.Consumer)
		c.W.Int(p.Time)
		c.W.Int(p.Count)
		n++
		return int64(n) != count
	})
	insertCount(c.W, start, '*', n)
	c.W.BulkString("consumers")
	c.W.Array(g.NumConsumers())
	g.EachConsumer(func(x state.Consumer) bool { replyConsumerFull(c, g, x, count); return true })
}

func replyConsumerFull(c *Ctx, g *state.Group, x state.Consumer, count int64) {
	c.W.Map(5)
	c.W.BulkString("name")
	c.W.Bulk(x.Name())
	c.W.BulkString("seen-time")
	c.W.Int(seenTime(c, x))
	c.W.BulkString("active-time")
	if x.Active() == 0 {
		c.W.Int(-1)
	} else {
		c.W.Int(x.Active())
	}
	c.W.BulkString("pel-count")
	c.W.Int(int64(x.Pending()))
	c.W.BulkString("pending")
	start, n := len(c.W.Buf), 0
	g.EachPendingOf(x, state.StreamID{}, func(p state.Nack) bool {
		c.W.Array(3)
		replyID(c.W, p.ID)
		c.W.Int(p.Time)
		c.W.Int(p.Count)
		n++
		return int64(n) != count
	})
	insertCount(c.W, start, '*', n)
}
