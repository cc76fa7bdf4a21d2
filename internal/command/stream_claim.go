package command

import (
	"math"
	"slices"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const (
	msgClaimMinIdle = "ERR Invalid min-idle-time argument for XCLAIM"
	msgClaimIdle    = "ERR Invalid IDLE option argument for XCLAIM"
	msgClaimTime    = "ERR Invalid TIME option argument for XCLAIM"
	msgClaimRetry   = "ERR Invalid RETRYCOUNT option argument for XCLAIM"
	msgAutoMinIdle  = "ERR Invalid min-idle-time argument for XAUTOCLAIM"
	msgAutoCount    = "ERR COUNT must be > 0"

	maxClaimIDs = 512 // of one frame
)

// streamClaims plans that entries are pending for a consumer: one frame for those delivered at one
// time and equally often. Nothing else may be emitted before flush.
type streamClaims struct {
	c                    *Ctx
	key, group, consumer []byte
	last                 state.StreamID // the group's last ID
	time, count          int64
	n                    int
}

func newClaims(c *Ctx, key, group, consumer []byte, last state.StreamID) streamClaims {
	c.shard(key).SetClock(c.Now)
	return streamClaims{c: c, key: key, group: group, consumer: consumer, last: last}
}

func (x *streamClaims) add(id state.StreamID, time, count int64) {
	if x.n > 0 && (x.time != time || x.count != count || x.n == maxClaimIDs) {
		x.flush()
	}
	if x.n == 0 {
		x.time, x.count = time, count
		x.c.beginEffect()
		x.c.args = append(x.c.args, x.key, x.group, x.consumer, wordZero)
	}
	x.c.addArg(x.c.idText(id))
	x.n++
}

func (x *streamClaims) flush() {
	if x.n == 0 {
		return
	}
	c := x.c
	c.args = append(c.args, wordTime, c.Int(x.time), wordRetryCount, c.Int(x.count), wordForce, wordJustID,
		wordLastID, c.idText(x.last))
	c.emitOpen(c.ShardOf(x.key), effect.XClaim)
	x.n = 0
}

// streamGroup looks up the group of a request: key, group. ok is false if it has replied an error, which
// without a group is NOGROUP.
func (c *Ctx) streamGroup(key, group []byte) (s state.Stream, g state.Group, ok bool) {
	s, found, ok := c.stream(key)
	if !ok {
		return s, g, false
	}
	if found {
		if g, ok = s.Group(group); ok {
			return s, g, true
		}
	}
	c.W.Error("NOGROUP No such key '" + cString(key) + "' or consumer group '" + cString(group) + "'")
	return s, g, false
}

// claimOptions are those of XCLAIM.
type claimOptions struct {
	minIdle, time, retry int64
	force, justID        bool
	last                 state.StreamID
	ids                  []state.StreamID
}

func streamNumber(b []byte, text errorText) (int64, errorText) {
	n, ok := parseInt(b)
	if !ok {
		return 0, text
	}
	return n, ""
}

func (o *claimOptions) parse(c *Ctx) (bad errorText) {
	args := c.Args
	if o.minIdle, bad = streamNumber(args[4], msgClaimMinIdle); bad != "" {
		return bad
	}
	o.minIdle = max(o.minIdle, 0)
	i := 5
	for ; i < len(args); i++ {
		id, bad := streamIDArg(args[i], 0)
		if bad != "" {
			break
		}
		o.ids = append(o.ids, id)
	}
	o.time, o.retry = -1, -1
	for ; i < len(args); i++ {
		more := i+1 < len(args)
		switch word := args[i]; {
		case isWord(word, "force"):
			o.force = true
		case isWord(word, "justid"):
			o.justID = true
		case isWord(word, "idle") && more:
			i++
			o.time, bad = streamNumber(args[i], msgClaimIdle)
			o.time = c.Now - o.time
		case isWord(word, "time") && more:
			i++
			o.time, bad = streamNumber(args[i], msgClaimTime)
		case isWord(word, "retrycount") && more:
			i++
			o.retry, bad = streamNumber(args[i], msgClaimRetry)
		case isWord(word, "lastid") && more:
			i++
			o.last, bad = streamIDArg(args[i], 0)
		default:
			bad = "ERR Unrecognized XCLAIM option '" + cString(word) + "'"
		}
		if bad != "" {
			return bad
		}
	}
	if o.time < 0 || o.time > c.Now {
		o.time = c.Now
	}
	return ""
}

// claimRun is a claim being planned.
type claimRun struct {
	c        *Ctx
	s        state.Stream
	g        state.Group
	key      []byte
	group    []byte
	consumer []byte
	claims   streamClaims
	gone     []state.StreamID // pending, but no longer in the stream
	n        int              // claimed
	any      bool             // some frame makes the consumer
	justID   bool
}

func newClaimRun(c *Ctx, s state.Stream, g state.Group, last state.StreamID, justID bool) claimRun {
	key, group, consumer := c.Args[1], c.Args[2], c.Args[3]
	return claimRun{
		c: c, s: s, g: g, key: key, group: group, consumer: consumer, justID: justID,
		claims: newClaims(c, key, group, consumer, last),
	}
}

// claim gives an entry that is there to the consumer and replies it.
func (r *claimRun) claim(id state.StreamID, time, count int64) {
	r.claims.add(id, time, count)
	r.any = true
	r.n++
	if r.justID {
		replyID(r.c.W, id)
	} else {
		replyOne(r.c.W, r.s, id)
	}
}

// finish plans what is left: entries that are gone, the consumer.
func (r *claimRun) finish() {
	c := r.c
	r.claims.flush()
	for ids := range slices.Chunk(r.gone, maxClaimIDs) {
		c.beginEffect()
		c.args = append(c.args, r.key, r.group)
		for _, id := range ids {
			c.addArg(c.idText(id))
		}
		c.emitOpen(c.ShardOf(r.key), effect.XAck)
	}
	switch consumer, ok := r.g.Consumer(r.consumer); {
	case ok:
		consumer.Touch(c.Now)
	case !r.any:
		c.Emit(effect.XGroup, wordCreateConsumer, r.key, r.group, r.consumer)
	}
}

// planXClaim plans XCLAIM key group consumer min-idle id... [options].
func planXClaim(c *Ctx) {
	s, g, ok := c.streamGroup(c.Args[1], c.Args[2])
	if !ok {
		return
	}
	var o claimOptions
	if bad := o.parse(c); bad != "" {
		c.W.Error(bad)
		return
	}
	last := g.LastID()
	if last.Less(o.last) {
		last = o.last
	}
	r := newClaimRun(c, s, g, last, o.justID)
	done := map[state.StreamID]state.Nack{} // only made use of with repeated IDs
	start := len(c.W.Buf)
	for _, id := range o.ids {
		p, pending := g.PendingEntry(id)
		mine, owned := p, pending
		if again, ok := done[id]; ok {
			mine, owned = again, true
		}
		if !s.Has(id) {
			if _, twice := done[id]; pending && !twice {
				r.gone = append(r.gone, id)
				done[id] = p
			}
			continue
		}
		if !owned && !o.force || owned && o.minIdle > 0 && c.Now-mine.Time < o.minIdle {
			continue
		}
		if !owned {
			mine.Count = 1
		}
		switch {
		case o.retry >= 0:
			mine.Count = o.retry
		case !o.justID:
			mine.Count++
		}
		mine.Time = o.time
		done[id] = mine
		r.claim(id, mine.Time, mine.Count)
	}
	insertCount(c.W, start, '*', r.n)
	r.finish()
	if last != g.LastID() && !r.any {
		c.Emit(effect.XGroup, wordSetID, r.key, r.group, c.idText(last), wordEntriesRead, c.Int(g.Read()))
	}
}

// autoClaimOptions are those of XAUTOCLAIM.
type autoClaimOptions struct {
	minIdle, count int64
	from           state.StreamID
	justID         bool
}

func (o *autoClaimOptions) parse(args [][]byte) (bad errorText) {
	if o.minIdle, bad = streamNumber(args[4], msgAutoMinIdle); bad != "" {
		return bad
	}
	o.minIdle = max(o.minIdle, 0)
	if o.from, bad = streamStartArg(args[5]); bad != "" {
		return bad
	}
	o.count = 100
	for i := 6; i < len(args); i++ {
		switch {
		case isWord(args[i], "count") && i+1 < len(args):
			i++
			n, ok := parseInt(args[i])
			if !ok || n < 1 || n > math.MaxInt64/16 {
				return msgAutoCount
			}
			o.count = n
		case isWord(args[i], "justid"):
			o.justID = true
		default:
			return msgSyntax
		}
	}
	return ""
}

// planXAutoClaim plans XAUTOCLAIM key group consumer min-idle start [COUNT n] [JUSTID].
func planXAutoClaim(c *Ctx) {
	var o autoClaimOptions
	if bad := o.parse(c.Args); bad != "" {
		c.W.Error(bad)
		return
	}
	s, g, ok := c.streamGroup(c.Args[1], c.Args[2])
	if !ok {
		return
	}
	r := newClaimRun(c, s, g, g.LastID(), o.justID)
	count, attempts := o.count, o.count*10
	var next state.StreamID
	c.W.Array(3)
	start := len(c.W.Buf)
	g.EachPending(o.from, func(p state.Nack) bool {
		if attempts == 0 || count == 0 {
			next = p.ID
			return false
		}
		attempts--
		switch {
		case !s.Has(p.ID):
			r.gone = append(r.gone, p.ID)
			count--
		case o.minIdle > 0 && c.Now-p.Time < o.minIdle:
		default:
			if !o.justID {
				p.Count++
			}
			r.claim(p.ID, c.Now, p.Count)
			count--
		}
		return true
	})
	insertCount(c.W, start, '*', r.n)
	insertID(c.W, start, next)
	c.W.Array(len(r.gone))
	for _, id := range r.gone {
		replyID(c.W, id)
	}
	r.finish()
}
