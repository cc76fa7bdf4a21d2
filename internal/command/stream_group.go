package command

import (
	"strconv"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

const (
	msgGroupNoKey = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use " +
		"the MKSTREAM option to create an empty stream automatically."
	msgGroupBusy = "BUSYGROUP Consumer Group name already exists"
	msgGroupRead = "ERR value for ENTRIESREAD must be positive or -1"
)

// subcommandSyntaxError is the text for a container's subcommand with arguments it does not know.
func subcommandSyntaxError(c *Ctx) errorText {
	return "ERR unknown subcommand or wrong number of arguments for '" + string(clip(c.Args[1], 128)) + "'. Try " +
		upper(c.Args[0]) + " HELP."
}

func noGroupError(group, key []byte) errorText {
	return "NOGROUP No such consumer group '" + cString(group) + "' for key name '" + cString(key) + "'"
}

// groupOptions are those of XGROUP CREATE and SETID.
type groupOptions struct {
	mkStream bool
	read     int64
}

func parseGroupOptions(c *Ctx, create bool) (o groupOptions, bad errorText) {
	o.read = -1
	for i := 5; i < len(c.Args); i++ {
		switch {
		case create && isWord(c.Args[i], "mkstream"):
			o.mkStream = true
		case isWord(c.Args[i], "entriesread") && i+1 < len(c.Args):
			i++
			if o.read, bad = intArg(c.Args[i]); bad == "" && o.read < -1 {
				bad = msgGroupRead
			}
			if bad != "" {
				return o, bad
			}
		default:
			return o, subcommandSyntaxError(c)
		}
	}
	return o, ""
}

// xgroup looks up key and group of an XGROUP request; ok is false if it has replied an error: a key that
// is missing or, with need, a group.
func (c *Ctx) xgroup(need bool) (s state.Stream, g state.Group, has, ok bool) {
	s, found, ok := c.stream(c.Args[2])
	if !ok {
		return s, g, false, false
	}
	if !found {
		c.W.Error(msgGroupNoKey)
		return s, g, false, false
	}
	if g, has = s.Group(c.Args[3]); !has && need {
		c.W.Error(noGroupError(c.Args[3], c.Args[2]))
		return s, g, false, false
	}
	return s, g, has, true
}

func planXGroupCreate(c *Ctx) {
	o, bad := parseGroupOptions(c, true)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	key, group := c.Args[2], c.Args[3]
	s, found, ok := c.stream(key)
	if !ok {
		return
	}
	if !found && !o.mkStream {
		c.W.Error(msgGroupNoKey)
		return
	}
	if len(c.Args) > 8 {
		c.W.Error(subcommandSyntaxError(c))
		return
	}
	var id state.StreamID
	if cString(c.Args[4]) != "$" {
		id, bad = streamIDArg(c.Args[4], 0)
	} else if found {
		id = s.LastID()
	}
	if bad == "" && found {
		if _, there := s.Group(group); there {
			bad = msgGroupBusy
		}
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	c.W.OK()
	if found {
		c.Emit(effect.XGroup, wordCreate, key, group, c.idText(id), wordEntriesRead, c.Int(o.read))
		return
	}
	c.DropExpired(key)
	c.Emit(effect.XGroup, wordCreate, key, group, c.idText(id), wordEntriesRead, c.Int(o.read), wordMkStream)
}

func planXGroupSetID(c *Ctx) {
	o, bad := parseGroupOptions(c, false)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	s, g, _, ok := c.xgroup(true)
	if !ok {
		return
	}
	if len(c.Args) != 5 && len(c.Args) != 7 {
		c.W.Error(subcommandSyntaxError(c))
		return
	}
	id := s.LastID()
	switch cString(c.Args[4]) {
	case "$":
	case "-", "+":
		id, _, _ = streamRangeArg(c.Args[4], 0)
	default:
		if id, bad = streamIDArg(c.Args[4], 0); bad != "" {
			c.W.Error(bad)
			return
		}
	}
	c.W.OK()
	if id != g.LastID() || o.read != g.Read() {
		c.Emit(effect.XGroup, wordSetID, c.Args[2], c.Args[3], c.idText(id), wordEntriesRead, c.Int(o.read))
	}
}

func planXGroupDestroy(c *Ctx) {
	_, _, has, ok := c.xgroup(false)
	switch {
	case !ok:
	case !has:
		c.W.Int(0)
	default:
		c.Emit(effect.XGroup, wordDestroy, c.Args[2], c.Args[3])
		c.W.Int(1)
	}
}

// consumerTimes is a Mark: when the consumers of a stream were last here.
type consumerTimes []consumerTime

// consumerTime is when a consumer last asked for something, and when it last got something; unix ms, 0 for never.
type consumerTime struct {
	group, consumer []byte
	seen, active    int64
}

// timesOf returns the times of all consumers; the names alias s.
func timesOf(s state.Stream) (all consumerTimes) {
	s.EachGroup(func(g state.Group) bool {
		return g.EachConsumer(func(x state.Consumer) bool {
			all = append(all, consumerTime{g.Name(), x.Name(), x.Seen(), x.Active()})
			return true
		})
	})
	return all
}

// Set implements Mark.
func (t consumerTimes) Set(ks *state.Keyspace, e *effect.Effect) {
	entry, ok := ks.Lookup(e.Args[e.Op.KeyAt()])
	if !ok || entry.Type() != state.TypeStream {
		return
	}
	s := ks.Stream(entry)
	for _, x := range t {
		if g, ok := s.Group(x.group); ok {
			if consumer, ok := g.Consumer(x.consumer); ok {
				consumer.SetTimes(x.seen, x.active)
			}
		}
	}
}

func planXGroupCreateConsumer(c *Ctx) {
	_, g, _, ok := c.xgroup(true)
	if !ok {
		return
	}
	if _, there := g.Consumer(c.Args[4]); there {
		c.W.Int(0)
		return
	}
	c.shard(c.Args[2]).SetClock(c.Now)
	c.Emit(effect.XGroup, wordCreateConsumer, c.Args[2], c.Args[3], c.Args[4])
	c.W.Int(1)
}

func planXGroupDelConsumer(c *Ctx) {
	_, g, _, ok := c.xgroup(true)
	if !ok {
		return
	}
	x, there := g.Consumer(c.Args[4])
	if !there {
		c.W.Int(0)
		return
	}
	c.Emit(effect.XGroup, wordDelConsumer, c.Args[2], c.Args[3], c.Args[4])
	c.W.Int(int64(x.Pending()))
}

var xgroupHelp = []string{
	"CREATE <key> <groupname> <id|$> [option]",
	"    Create a new consumer group. Options are:",
	"    * MKSTREAM",
	"      Create the empty stream if it does not exist.",
	"    * ENTRIESREAD entries_read",
	"      Set the group's entries_read counter (internal use).",
	"CREATECONSUMER <key> <groupname> <consumer>",
	"    Create a new consumer in the specified group.",
	"DELCONSUMER <key> <groupname> <consumer>",
	"    Remove the specified consumer.",
	"DESTROY <key> <groupname>",
	"    Remove the specified group.",
	"SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
	"    Set the current group ID and entries_read counter.",
}

func planXGroupHelp(c *Ctx) { ReplyHelp(c.W, c.Args[0], xgroupHelp) }

// planXAck plans XACK: one frame with the entries that are pending.
func planXAck(c *Ctx) {
	key, group := c.Args[1], c.Args[2]
	s, found, ok := c.stream(key)
	if !ok {
		return
	}
	var g state.Group
	if found {
		g, found = s.Group(group)
	}
	if !found {
		c.W.Int(0)
		return
	}
	ids, bad := streamIDArgs(c.Args[3:])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	n := 0
	c.beginEffect()
	for _, id := range uniqueIDs(ids) {
		if _, pending := g.PendingEntry(id); !pending {
			continue
		}
		if n++; n == 1 {
			c.args = append(c.args, key, group)
		}
		c.addArg(c.idText(id))
	}
	c.emitOpen(c.ShardOf(key), effect.XAck)
	c.W.Int(int64(n))
}

// pendingOptions are those of XPENDING with a range.
type pendingOptions struct {
	minIdle, count int64
	from, to       state.StreamID
	consumer       []byte
}

func (o *pendingOptions) parse(args [][]byte) (bad errorText) {
	at := 3
	if isWord(args[3], "idle") {
		if o.minIdle, bad = intArg(args[4]); bad != "" {
			return bad
		}
		if len(args) < 8 {
			return msgSyntax
		}
		at = 5
	}
	if o.count, bad = intArg(args[at+2]); bad != "" {
		return bad
	}
	if o.from, bad = streamStartArg(args[at]); bad != "" {
		return bad
	}
	if o.to, bad = streamEndArg(args[at+1]); bad != "" {
		return bad
	}
	if at+3 < len(args) {
		o.consumer = args[at+3]
	}
	return ""
}

// planXPending plans XPENDING key group [[IDLE ms] start end count [consumer]].
func planXPending(c *Ctx) {
	n := len(c.Args)
	if n != 3 && (n < 6 || n > 9) {
		c.W.Error(msgSyntax)
		return
	}
	var o pendingOptions
	if n > 3 {
		if bad := o.parse(c.Args); bad != "" {
			c.W.Error(bad)
			return
		}
	}
	_, g, ok := c.streamGroup(c.Args[1], c.Args[2])
	if !ok {
		return
	}
	if n == 3 {
		replyPending(c.W, g)
		return
	}
	left := max(o.count, 0)
	reply := func(p state.Nack) bool {
		if left == 0 || o.to.Less(p.ID) {
			return false
		}
		if o.minIdle != 0 && c.Now-p.Time < o.minIdle {
			return true
		}
		left--
		c.W.Array(4)
		replyID(c.W, p.ID)
		c.W.Bulk(p.Consumer)
		c.W.Int(max(c.Now-p.Time, 0))
		c.W.Int(p.Count)
		return true
	}
	start := len(c.W.Buf)
	if o.consumer == nil {
		g.EachPending(o.from, reply)
	} else if x, ok := g.Consumer(o.consumer); ok {
		g.EachPendingOf(x, o.from, reply)
	}
	insertCount(c.W, start, '*', int(max(o.count, 0)-left))
}

// replyPending replies what a group has pending in all.
func replyPending(w *resp.Writer, g state.Group) {
	w.Array(4)
	w.Int(int64(g.Pending()))
	if g.Pending() == 0 {
		w.Null()
		w.Null()
		w.NullArray()
		return
	}
	g.EachPending(state.StreamID{}, func(p state.Nack) bool {
		replyID(w, p.ID)
		return false
	})
	replyID(w, g.LastPending())
	start, n := len(w.Buf), 0
	g.EachConsumer(func(x state.Consumer) bool {
		if x.Pending() > 0 {
			w.Array(2)
			w.Bulk(x.Name())
			w.BulkString(strconv.Itoa(x.Pending()))
			n++
		}
		return true
	})
	insertCount(w, start, '*', n)
}
