package command

import (
	"bytes"
	"slices"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Error texts of XREAD and XREADGROUP.
const (
	msgReadGroupOption = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
	msgReadNoAck       = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."
	msgReadNoGroup     = "ERR Missing GROUP option for XREADGROUP"
	msgReadDollar      = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of " +
		"this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return " +
		"an empty result set."
	msgReadNew = "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
)

// streamRead are the options of XREAD and XREADGROUP.
type streamRead struct {
	group          bool // XREADGROUP
	name, consumer []byte
	count          int64 // 0: all
	block          bool
	deadline       int64 // of block, 0: never
	noAck          bool
	keys, ids      [][]byte
	streamsAt      int // position of the first key
	streams        []streamReadFrom
}

// streamReadFrom is what one key is read from.
type streamReadFrom struct {
	s      state.Stream
	found  bool
	g      state.Group
	after  state.StreamID
	news   bool // XREADGROUP with >
	last   bool // XREAD with $
	read   int64
	served bool
}

func (o *streamRead) parse(c *Ctx) (bad errorText) {
	args := c.Args
	for i := 1; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case isWord(args[i], "block") && more > 0:
			if c.InScript {
				return "ERR " + cString(args[0]) + " command is not allowed with BLOCK option from scripts"
			}
			i++
			ms, bad := timeoutArg(args[i], c.Now)
			if bad != "" {
				return bad
			}
			o.block, o.deadline = true, 0
			if ms > 0 {
				o.deadline = c.Now + ms
			}
		case isWord(args[i], "count") && more > 0:
			i++
			if o.count, bad = intArg(args[i]); bad != "" {
				return bad
			}
			o.count = max(o.count, 0)
		case isWord(args[i], "streams") && more > 0:
			return o.parseStreams(c, i+1)
		case isWord(args[i], "group") && more > 1:
			if !o.group {
				return msgReadGroupOption
			}
			o.name, o.consumer = args[i+1], args[i+2]
			i += 2
		case isWord(args[i], "noack"):
			if !o.group {
				return msgReadNoAck
			}
			o.noAck = true
		default:
			return msgSyntax
		}
	}
	return msgSyntax
}

func (o *streamRead) parseStreams(c *Ctx, at int) errorText {
	n := len(c.Args) - at
	if n%2 != 0 {
		symbol := "$"
		if o.group {
			symbol = ">"
		}
		return "ERR Unbalanced '" + c.Cmd.Name + "' list of streams: for each stream key an ID or '" + symbol +
			"' must be specified."
	}
	o.streamsAt, o.keys, o.ids = at, c.Args[at:at+n/2], c.Args[at+n/2:]
	if o.group && o.name == nil {
		return msgReadNoGroup
	}
	return ""
}

// streamKeys finds the keys of XREAD and XREADGROUP, as Redis also where the planner will reply an error.
func streamKeys(args [][]byte, pos []int) ([]int, bool) {
	for i := 1; i < len(args); i++ {
		switch {
		case isWord(args[i], "block"), isWord(args[i], "count"):
			i++
		case isWord(args[i], "group"):
			i += 2
		case isWord(args[i], "streams"):
			n := (len(args) - i - 1) / 2
			for k := range n {
				pos = append(pos, i+1+k)
			}
			return pos, n > 0
		}
	}
	return pos, false
}

// open looks up the streams and groups and reads the IDs; false if it has replied an error.
func (o *streamRead) open(c *Ctx) bool {
	for i, key := range o.keys {
		var x streamReadFrom
		var ok bool
		if x.s, x.found, ok = c.stream(key); !ok {
			return false
		}
		if o.group {
			if x.found {
				x.g, ok = x.s.Group(o.name)
			}
			if !x.found || !ok {
				c.W.Error("NOGROUP No such key '" + cString(key) + "' or consumer group '" + cString(o.name) +
					"' in XREADGROUP with GROUP option")
				return false
			}
			x.read = x.g.Read()
		}
		var bad errorText
		switch id := cString(o.ids[i]); {
		case id == "$" && o.group:
			bad = msgReadDollar
		case id == "$":
			x.last = true
			if x.found {
				x.after = x.s.LastID()
			}
		case id == ">" && !o.group:
			bad = msgReadNew
		case id == ">":
			x.news = true
			x.after = x.g.LastID()
		default:
			x.after, bad = streamIDArg(o.ids[i], 0)
			if o.group && x.after == state.MaxStreamID { // what > is, to Redis
				x.news, x.after = true, x.g.LastID()
			}
		}
		if bad != "" {
			c.W.Error(bad)
			return false
		}
		o.streams = append(o.streams, x)
	}
	return true
}

// cString is what C prints of b.
func cString(b []byte) string { return string(clip(b, len(b))) }

func planXRead(c *Ctx)      { runStreamRead(c, streamRead{}) }
func planXReadGroup(c *Ctx) { runStreamRead(c, streamRead{group: true}) }

func runStreamRead(c *Ctx, o streamRead) {
	if bad := o.parse(c); bad != "" {
		c.W.Error(bad)
		return
	}
	if !o.open(c) {
		return
	}
	start, served := len(c.W.Buf), 0
	for i := range o.streams {
		if o.serve(c, i) {
			served++
		}
	}
	if served > 0 {
		if c.W.RESP3() {
			insertCount(c.W, start, '%', served)
		} else {
			insertCount(c.W, start, '*', served)
		}
		o.createMissing(c)
		return
	}
	o.createMissing(c) // also for a client that is going to wait
	if o.block && c.Block(o.wait(c)) {
		return
	}
	c.W.NullArray()
}

// serve replies what there is of stream i; false if nothing is to be replied.
func (o *streamRead) serve(c *Ctx, i int) bool {
	x := &o.streams[i]
	if !x.found {
		return false
	}
	if o.group && !x.news {
		o.replyKey(c, i)
		o.serveHistory(c, i)
		x.served = true
		return true
	}
	for k := range i { // the same key again goes on where it was
		if y := &o.streams[k]; y.news && bytes.Equal(o.keys[k], o.keys[i]) {
			x.after, x.read = y.after, y.read
		}
	}
	if x.s.Len() == 0 || !x.after.Less(x.s.TopID()) {
		return false
	}
	o.replyKey(c, i)
	from, _ := x.after.Next()
	if !o.group {
		replyEntries(c.W, x.s, from, state.MaxStreamID, o.count, false)
		return true
	}
	o.serveNew(c, i, from)
	x.served = !o.noAck
	return true
}

func (o *streamRead) replyKey(c *Ctx, i int) {
	if !c.W.RESP3() {
		c.W.Array(2)
	}
	c.W.Bulk(o.keys[i])
}

// serveNew delivers entries to the consumer.
func (o *streamRead) serveNew(c *Ctx, i int, from state.StreamID) {
	x, key := &o.streams[i], o.keys[i]
	cl := newClaims(c, key, o.name, o.consumer, x.after)
	var it state.StreamIter
	start, n := len(c.W.Buf), 0
	for it.Seek(x.s, from, state.MaxStreamID, false); it.Next(); {
		id := it.ID()
		if x.read = entriesRead(x.s, x.read, id); x.after.Less(id) {
			x.after = id
		}
		replyEntry(c.W, &it)
		if !o.noAck {
			cl.last = x.after
			cl.add(id, c.Now, 1)
		}
		if n++; int64(n) == o.count {
			break
		}
	}
	cl.flush()
	insertCount(c.W, start, '*', n)
	if o.noAck || x.read != x.g.Read() {
		c.Emit(effect.XGroup, wordSetID, key, o.name, c.idText(x.after), wordEntriesRead, c.Int(x.read))
	}
}

// entriesRead returns the group's counter after it has read entry id.
func entriesRead(s state.Stream, read int64, id state.StreamID) int64 {
	switch {
	case read != -1 && !hasTombstones(&s, id):
		return read + 1
	case s.Added() != 0:
		return readUpTo(&s, id)
	}
	return read
}

// serveHistory replies what the consumer has pending, and counts a delivery of each entry that is still there.
func (o *streamRead) serveHistory(c *Ctx, i int) {
	x, key := &o.streams[i], o.keys[i]
	consumer, ok := x.g.Consumer(o.consumer)
	if !ok {
		c.W.Array(0)
		return
	}
	cl := newClaims(c, key, o.name, o.consumer, x.g.LastID())
	from, more := x.after.Next()
	if !more {
		from = state.StreamID{}
	}
	start, n := len(c.W.Buf), 0
	x.g.EachPendingOf(consumer, from, func(p state.Nack) bool {
		if replyOne(c.W, x.s, p.ID) {
			cl.add(p.ID, c.Now, p.Count+1)
		} else {
			c.W.Array(2)
			replyID(c.W, p.ID)
			c.W.NullArray()
		}
		n++
		return int64(n) != o.count
	})
	cl.flush()
	insertCount(c.W, start, '*', n)
}

// createMissing notes that the consumer was here, and plans it where it is new and no claim makes it.
func (o *streamRead) createMissing(c *Ctx) {
	if !o.group {
		return
	}
	for i, key := range o.keys {
		x := &o.streams[i]
		c.shard(key).SetClock(c.Now)
		switch consumer, ok := x.g.Consumer(o.consumer); {
		case ok:
			consumer.Touch(c.Now)
		case x.news && x.served, slices.ContainsFunc(o.keys[:i], func(k []byte) bool { return bytes.Equal(k, key) }):
		default:
			c.Emit(effect.XGroup, wordCreateConsumer, key, o.name, o.consumer)
		}
	}
}

// wait returns what the client waits for. $ is the last ID of now, also when it is planned again.
func (o *streamRead) wait(c *Ctx) Wait {
	w := Wait{Kind: state.TypeStream, Keys: o.keys, Deadline: o.deadline, AnyChange: o.group}
	if slices.ContainsFunc(o.streams, func(x streamReadFrom) bool { return x.last }) {
		w.Args = slices.Clone(c.Args)
		for i := range o.streams {
			if o.streams[i].last {
				w.Args[o.streamsAt+len(o.keys)+i] = c.idText(o.streams[i].after)
			}
		}
	}
	return w
}
