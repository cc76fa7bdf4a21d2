package command

import (
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// streamAdd are the options of XADD and XTRIM.
type streamAdd struct {
	trims      bool
	trim       state.StreamTrim
	noMkStream bool
	auto       bool // no ID given
	hasSeq     bool // the ID given has its number
	id         state.StreamID
	at         int // position of the ID
}

// parseStreamAdd reads the options of XADD up to the ID, or those of XTRIM.
func parseStreamAdd(c *Ctx, xadd bool) (o streamAdd, bad errorText) {
	limit, limited := int64(0), false
	args := c.Args
	i := 2
loop:
	for ; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case xadd && len(args[i]) > 0 && args[i][0] == '*' && len(clip(args[i], 2)) == 1:
			o.auto = true
			break loop
		case more && isWord(args[i], "maxlen"), more && isWord(args[i], "minid"):
			if i, bad = o.parseTrim(args, i); bad != "" {
				return o, bad
			}
		case more && isWord(args[i], "limit"):
			i++
			if limit, bad = intArg(args[i]); bad == "" && limit < 0 {
				bad = msgTrimLimit
			}
			if bad != "" {
				return o, bad
			}
			limited = true
		case xadd && isWord(args[i], "nomkstream"):
			o.noMkStream = true
		case xadd:
			if o.id, o.hasSeq, bad = streamAutoIDArg(args[i], 0, true); bad != "" {
				return o, bad
			}
			break loop
		default:
			return o, msgSyntax
		}
	}
	o.at = i
	switch {
	case limit != 0 && !o.trims:
		return o, msgTrimNoStrategy
	case !xadd && !o.trims:
		return o, msgTrimNone
	case limited && !o.trim.Approx:
		return o, msgTrimExact
	}
	node := c.Shards[0].Limits.StreamEntries
	o.trim.Node = node
	switch {
	case limited:
		o.trim.Limit = int(limit)
	case node <= 0:
		o.trim.Limit = 10_000
	default:
		o.trim.Limit = min(100*node, 1_000_000)
	}
	return o, ""
}

// parseTrim reads MAXLEN or MINID at position i and returns the position of its last argument.
func (o *streamAdd) parseTrim(args [][]byte, i int) (last int, bad errorText) {
	if o.trims {
		return i, msgTrimBoth
	}
	o.trims = true
	o.trim.ByID = isWord(args[i], "minid")
	i++
	if i+1 < len(args) && len(args[i]) == 1 && (args[i][0] == '~' || args[i][0] == '=') {
		o.trim.Approx = args[i][0] == '~'
		i++
	}
	if o.trim.ByID {
		o.trim.MinID, bad = streamIDArg(args[i], 0)
		return i, bad
	}
	n, bad := intArg(args[i])
	if bad == "" && n < 0 {
		bad = msgTrimMaxLen
	}
	o.trim.MaxLen = int(n)
	return i, bad
}

// planXAdd plans XADD: the entry with its ID, and what the trim removes.
func planXAdd(c *Ctx) {
	o, bad := parseStreamAdd(c, true)
	fields := c.Args[min(o.at+1, len(c.Args)):]
	switch {
	case bad != "":
	case len(fields) < 2 || len(fields)%2 != 0:
		bad = ArityError(c.Cmd)
	case !o.auto && o.hasSeq && o.id.IsZero():
		bad = msgStreamZero
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	key := c.Args[1]
	s, found, ok := c.stream(key)
	if !ok {
		return
	}
	if !found && o.noMkStream {
		c.W.Null()
		return
	}
	var last state.StreamID
	if found {
		last = s.LastID()
	} else {
		c.DropExpired(key)
	}
	id, bad := o.newID(last, c.Now)
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	if bad == "" && size > maxStreamEntrySize {
		bad = msgStreamLarge
	}
	if bad != "" {
		c.DropPlanned()
		c.W.Error(bad)
		return
	}
	text := c.idText(id)
	shard := c.ShardOf(key)
	c.beginEffect()
	c.args = append(append(c.args, key, text), fields...)
	c.emitOpen(shard, effect.XAdd)
	if o.trims {
		emitTrim(c, key, s, o.trim, id)
	}
	c.W.Bulk(text)
}

// newID returns the ID of the entry to be added behind last.
func (o *streamAdd) newID(last state.StreamID, now int64) (id state.StreamID, bad errorText) {
	if last == state.MaxStreamID {
		return id, msgStreamFull
	}
	ok := true
	switch {
	case o.auto && uint64(now) > last.Ms:
		id.Ms = uint64(now)
	case o.auto:
		id, ok = last.Next()
	case o.hasSeq:
		id = o.id
	case o.id.Ms == last.Ms:
		id, ok = last.Next()
		ok = ok && id.Ms == last.Ms
	default:
		id = o.id
	}
	if !ok || !last.Less(id) {
		return id, msgStreamSmall
	}
	return id, ""
}

// emitTrim plans a trim of s, to which the entry extra is about to be added if it is not 0-0, and returns how
// many entries go.
func emitTrim(c *Ctx, key []byte, s state.Stream, t state.StreamTrim, extra state.StreamID) int {
	cut, removed := s.Trim(t, extra)
	switch {
	case removed == 0:
	case cut == state.MaxStreamID && !t.ByID && t.MaxLen == 0: // there is no ID behind the last entry's
		c.Emit(effect.XTrim, key, wordMaxLen, wordEqual, wordZero)
	default:
		c.Emit(effect.XTrim, key, wordMinID, wordEqual, c.idText(cut))
	}
	return removed
}

func planXTrim(c *Ctx) {
	o, bad := parseStreamAdd(c, false)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	s, found, ok := c.stream(c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Int(0)
	default:
		c.W.Int(int64(emitTrim(c, c.Args[1], s, o.trim, state.StreamID{})))
	}
}
