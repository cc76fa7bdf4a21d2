package command

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// Error texts of streams, byte for byte those of Redis 7.2.
const (
	msgStreamID        = "ERR Invalid stream ID specified as stream command argument"
	msgStreamZero      = "ERR The ID specified in XADD must be greater than 0-0"
	msgStreamFull      = "ERR The stream has exhausted the last possible ID, unable to add more items"
	msgStreamSmall     = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
	msgStreamLarge     = "ERR Elements are too large to be stored"
	msgStreamStart     = "ERR invalid start ID for the interval"
	msgStreamEnd       = "ERR invalid end ID for the interval"
	msgTrimBoth        = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
	msgTrimMaxLen      = "ERR The MAXLEN argument must be >= 0."
	msgTrimLimit       = "ERR The LIMIT argument must be >= 0."
	msgTrimNoStrategy  = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
	msgTrimNone        = "ERR syntax error, XTRIM must be called with a trimming strategy"
	msgTrimExact       = "ERR syntax error, LIMIT cannot be used without the special ~ option"
	msgSetIDAdded      = "ERR entries_added must be positive"
	msgSetIDDeleted    = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
	msgSetIDBelow      = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
	msgSetIDTop        = "ERR The ID specified in XSETID is smaller than the target stream top item"
	msgSetIDLength     = "ERR The entries_added specified in XSETID is smaller than the target stream length"
	maxStreamEntrySize = 1 << 30
)

// streamIDArg reads an ID as clients give it: ms or ms-seq. bare is the number of one without seq.
func streamIDArg(b []byte, bare uint64) (id state.StreamID, bad errorText) {
	id, _, bad = streamAutoIDArg(b, bare, false)
	return id, bad
}

// streamAutoIDArg is streamIDArg that, with auto, also reads ms-*: hasSeq is false then.
func streamAutoIDArg(b []byte, bare uint64, auto bool) (id state.StreamID, hasSeq bool, bad errorText) {
	if len(b) > 127 {
		return id, false, msgStreamID
	}
	b = clip(b, len(b))
	ms, seq, both := bytes.Cut(b, []byte("-"))
	var ok bool
	if id.Ms, ok = parseUnsigned(ms); !ok {
		return id, false, msgStreamID
	}
	if !both {
		id.Seq = bare
		return id, true, ""
	}
	if auto && len(seq) == 1 && seq[0] == '*' {
		return id, false, ""
	}
	if id.Seq, ok = parseUnsigned(seq); !ok {
		return id, false, msgStreamID
	}
	return id, true, ""
}

// parseUnsigned reads a number as Redis does with strtoull: in other than canonical form a sign, spaces
// before and zeros are allowed.
func parseUnsigned(b []byte) (uint64, bool) {
	if n, ok := parseInt(b); ok {
		return uint64(n), n >= 0
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	neg := len(b) > 0 && b[0] == '-'
	if neg || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	for len(b) > 1 && b[0] == '0' {
		b = b[1:]
	}
	n, ok := state.ParseUint64(b)
	if neg {
		n = -n
	}
	return n, ok
}

// streamRangeArg reads an end of a range: an ID, - or +, or an ID behind "(". bare is the number of one
// without seq.
func streamRangeArg(b []byte, bare uint64) (id state.StreamID, open bool, bad errorText) {
	if len(b) > 1 && b[0] == '(' {
		id, bad = streamIDArg(b[1:], bare)
		return id, true, bad
	}
	switch string(clip(b, len(b))) {
	case "-":
		return id, false, ""
	case "+":
		return state.MaxStreamID, false, ""
	}
	id, bad = streamIDArg(b, bare)
	return id, false, bad
}

// streamStartArg reads the beginning of a range, as the first ID in it.
func streamStartArg(b []byte) (state.StreamID, errorText) {
	id, open, bad := streamRangeArg(b, 0)
	if bad == "" && open {
		var ok bool
		if id, ok = id.Next(); !ok {
			bad = msgStreamStart
		}
	}
	return id, bad
}

// streamEndArg reads the end of a range, as the last ID in it.
func streamEndArg(b []byte) (state.StreamID, errorText) {
	id, open, bad := streamRangeArg(b, math.MaxUint64)
	if bad == "" && open {
		var ok bool
		if id, ok = id.Prev(); !ok {
			bad = msgStreamEnd
		}
	}
	return id, bad
}

// streamIDArgs reads whole IDs.
func streamIDArgs(args [][]byte) (ids []state.StreamID, bad errorText) {
	ids = make([]state.StreamID, len(args))
	for i, b := range args {
		if ids[i], bad = streamIDArg(b, 0); bad != "" {
			return nil, bad
		}
	}
	return ids, ""
}

// uniqueIDs sorts IDs and drops repeated ones.
func uniqueIDs(ids []state.StreamID) []state.StreamID {
	slices.SortFunc(ids, func(x, y state.StreamID) int {
		switch {
		case x.Less(y):
			return -1
		case x == y:
			return 0
		}
		return 1
	})
	return slices.Compact(ids)
}

// idText formats an ID into memory that lives as long as the planned effects.
func (c *Ctx) idText(id state.StreamID) []byte {
	const most = 41
	if cap(c.scratch)-len(c.scratch) < most {
		c.scratch = make([]byte, 0, max(256, 2*cap(c.scratch)))
	}
	start := len(c.scratch)
	c.scratch = id.Append(c.scratch)
	return c.scratch[start:len(c.scratch):len(c.scratch)]
}

// stream looks up a stream; found is false without one. ok is false if the key holds something else,
// which has been replied then.
func (c *Ctx) stream(key []byte) (s state.Stream, found, ok bool) {
	e, found := c.Lookup(key)
	if !found {
		return s, false, true
	}
	if e.Type() != state.TypeStream {
		c.W.Error(msgWrongType)
		return s, false, false
	}
	return c.shard(key).Stream(e), true, true
}

func (c *Ctx) shard(key []byte) *state.Keyspace { return c.Shards[c.ShardOf(key)] }

func replyID(w *resp.Writer, id state.StreamID) {
	var text [41]byte
	w.Bulk(id.Append(text[:0]))
}

// replyEntry replies the iterator's entry: its ID and its fields.
func replyEntry(w *resp.Writer, it *state.StreamIter) {
	w.Array(2)
	replyID(w, it.ID())
	n := it.NumFields()
	w.Array(2 * n)
	for range n {
		name, value := it.Field()
		w.Bulk(name)
		w.Bulk(value)
	}
}

// replyOne replies the entry with an ID; false if there is none.
func replyOne(w *resp.Writer, s state.Stream, id state.StreamID) bool {
	var it state.StreamIter
	it.Seek(s, id, id, false)
	if !it.Next() {
		return false
	}
	replyEntry(w, &it)
	return true
}

// replyEntries replies at most count entries of a range, 0 being all.
func replyEntries(w *resp.Writer, s state.Stream, from, to state.StreamID, count int64, rev bool) {
	var it state.StreamIter
	start, n := len(w.Buf), 0
	for it.Seek(s, from, to, rev); it.Next(); {
		replyEntry(w, &it)
		if n++; int64(n) == count {
			break
		}
	}
	insertCount(w, start, '*', n)
}

// insertCount puts the header of an aggregate of n before what has been written since start.
func insertCount(w *resp.Writer, start int, kind byte, n int) {
	var head [24]byte
	text := append(strconv.AppendInt(append(head[:0], kind), int64(n), 10), '\r', '\n')
	w.Buf = slices.Insert(w.Buf, start, text...)
}

// insertID puts an ID before what has been written since start.
func insertID(w *resp.Writer, start int, id state.StreamID) {
	end := len(w.Buf)
	replyID(w, id)
	text := slices.Clone(w.Buf[end:])
	w.Buf = slices.Insert(w.Buf[:end], start, text...)
}

func planXLen(c *Ctx) {
	s, found, ok := c.stream(c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Int(0)
	default:
		c.W.Int(int64(s.Len()))
	}
}

func planXRange(c *Ctx)    { streamRange(c, c.Args[2], c.Args[3], false) }
func planXRevRange(c *Ctx) { streamRange(c, c.Args[3], c.Args[2], true) }

func streamRange(c *Ctx, start, end []byte, rev bool) {
	count := int64(-1)
	from, bad := streamStartArg(start)
	var to state.StreamID
	if bad == "" {
		to, bad = streamEndArg(end)
	}
	for i := 4; i < len(c.Args) && bad == ""; i += 2 {
		if !isWord(c.Args[i], "count") || i+1 >= len(c.Args) {
			bad = msgSyntax
			break
		}
		count, bad = intArg(c.Args[i+1])
		count = max(count, 0)
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	s, found, ok := c.stream(c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Array(0)
	case count == 0:
		c.W.NullArray()
	default:
		replyEntries(c.W, s, from, to, max(count, 0), rev)
	}
}

// planXDel plans XDEL: one frame with the entries that are there.
func planXDel(c *Ctx) {
	key := c.Args[1]
	s, found, ok := c.stream(key)
	if !ok {
		return
	}
	if !found {
		c.W.Int(0)
		return
	}
	ids, bad := streamIDArgs(c.Args[2:])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	n := 0
	c.beginEffect()
	for _, id := range uniqueIDs(ids) {
		if !s.Has(id) {
			continue
		}
		if n++; n == 1 {
			c.addArg(key)
		}
		c.addArg(c.idText(id))
	}
	c.emitOpen(c.ShardOf(key), effect.XDel)
	c.W.Int(int64(n))
}

// planXSetID plans XSETID key id [ENTRIESADDED n] [MAXDELETEDID id].
func planXSetID(c *Ctx) {
	id, bad := streamIDArg(c.Args[2], 0)
	added := int64(-1)
	var deleted state.StreamID
	for i := 3; i < len(c.Args) && bad == ""; i += 2 {
		switch {
		case isWord(c.Args[i], "entriesadded") && i+1 < len(c.Args):
			if added, bad = intArg(c.Args[i+1]); bad == "" && added < 0 {
				bad = msgSetIDAdded
			}
		case isWord(c.Args[i], "maxdeletedid") && i+1 < len(c.Args):
			if deleted, bad = streamIDArg(c.Args[i+1], 0); bad == "" && id.Less(deleted) {
				bad = msgSetIDDeleted
			}
		default:
			bad = msgSyntax
		}
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	key := c.Args[1]
	s, found, ok := c.stream(key)
	switch {
	case !ok:
		return
	case !found:
		bad = msgNoKey
	case id.Less(s.MaxDeletedID()):
		bad = msgSetIDBelow
	case s.Len() > 0 && id.Less(s.TopID()):
		bad = msgSetIDTop
	case s.Len() > 0 && added != -1 && int64(s.Len()) > added:
		bad = msgSetIDLength
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	c.W.OK()
	if added == -1 {
		added = s.Added()
	}
	if deleted.IsZero() {
		deleted = s.MaxDeletedID()
	}
	if id != s.LastID() || added != s.Added() || deleted != s.MaxDeletedID() {
		c.Emit(effect.XSetID, key, c.idText(id), wordEntriesAdded, c.Int(added), wordMaxDeletedID, c.idText(deleted))
	}
}

// The words of effects.
var (
	wordEntriesAdded   = []byte("ENTRIESADDED")
	wordMaxDeletedID   = []byte("MAXDELETEDID")
	wordEntriesRead    = []byte("ENTRIESREAD")
	wordMinID          = []byte("MINID")
	wordMaxLen         = []byte("MAXLEN")
	wordEqual          = []byte("=")
	wordZero           = []byte("0")
	wordCreate         = []byte("CREATE")
	wordSetID          = []byte("SETID")
	wordDestroy        = []byte("DESTROY")
	wordCreateConsumer = []byte("CREATECONSUMER")
	wordDelConsumer    = []byte("DELCONSUMER")
	wordMkStream       = []byte("MKSTREAM")
	wordTime           = []byte("TIME")
	wordRetryCount     = []byte("RETRYCOUNT")
	wordForce          = []byte("FORCE")
	wordJustID         = []byte("JUSTID")
	wordLastID         = []byte("LASTID")
)
