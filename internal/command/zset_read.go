package command

import (
	"math"
	"strconv"

	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

func planZCard(c *Ctx) {
	if z, found, ok := lookupZSet(c, c.Args[1]); ok {
		n := 0
		if found {
			n = z.Len()
		}
		c.W.Int(int64(n))
	}
}

func planZScore(c *Ctx) {
	z, found, ok := lookupZSet(c, c.Args[1])
	if !ok {
		return
	}
	if found {
		if score, there := z.Score(c.Args[2]); there {
			c.W.Double(score)
			return
		}
	}
	c.W.Null()
}

func planZMScore(c *Ctx) { replyScores(c, c.W.Double, c.W.Null) }

// replyScores replies an element for each member, the arguments from 2 on: show of its score, none if it is not there.
func replyScores(c *Ctx, show func(score float64), none func()) {
	z, found, ok := lookupZSet(c, c.Args[1])
	if !ok {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, m := range c.Args[2:] {
		score, there := 0.0, false
		if found {
			score, there = z.Score(m)
		}
		if there {
			show(score)
		} else {
			none()
		}
	}
}

func planZRank(c *Ctx)    { runZRank(c, false) }
func planZRevRank(c *Ctx) { runZRank(c, true) }

func runZRank(c *Ctx, reverse bool) {
	withScore := false
	switch {
	case len(c.Args) > 4:
		c.W.Error(ArityError(c.Cmd))
		return
	case len(c.Args) == 4:
		if withScore = isWord(c.Args[3], "withscore"); !withScore {
			c.W.Error(msgSyntax)
			return
		}
	}
	z, found, ok := lookupZSet(c, c.Args[1])
	if !ok {
		return
	}
	if found {
		if rank, score, there := z.Rank(c.Args[2]); there {
			if reverse {
				rank = z.Len() - 1 - rank
			}
			if withScore {
				c.W.Array(2)
			}
			c.W.Int(int64(rank))
			if withScore {
				c.W.Double(score)
			}
			return
		}
	}
	if withScore {
		c.W.NullArray()
		return
	}
	c.W.Null()
}

func planZCount(c *Ctx) {
	lo, ok1 := parseScoreBound(c.Args[2])
	hi, ok2 := parseScoreBound(c.Args[3])
	if !ok1 || !ok2 {
		c.W.Error(msgMinMaxFloat)
		return
	}
	if z, found, ok := lookupZSet(c, c.Args[1]); ok {
		n := 0
		if found {
			n = max(0, hi.rank(&z, true)-lo.rank(&z, false))
		}
		c.W.Int(int64(n))
	}
}

func planZLexCount(c *Ctx) {
	lo, ok1 := parseLexBound(c.Args[2])
	hi, ok2 := parseLexBound(c.Args[3])
	if !ok1 || !ok2 {
		c.W.Error(msgMinMaxLex)
		return
	}
	if z, found, ok := lookupZSet(c, c.Args[1]); ok {
		n := 0
		if found {
			n = max(0, hi.rank(&z, true)-lo.rank(&z, false))
		}
		c.W.Int(int64(n))
	}
}

// planZRandMember plans ZRANDMEMBER key [count [WITHSCORES]].
func planZRandMember(c *Ctx) {
	if len(c.Args) == 2 {
		z, found, ok := lookupZSet(c, c.Args[1])
		switch {
		case !ok:
		case !found:
			c.W.Null()
		default:
			cur := z.At(int(mix(c.Rand) % uint64(z.Len())))
			_, m, _ := cur.Next()
			c.W.Bulk(m)
		}
		return
	}
	n, bad := intArg(c.Args[2])
	if bad == "" && n == math.MinInt64 {
		bad = msgLongRange
	}
	scores := len(c.Args) == 4
	switch {
	case bad != "":
	case len(c.Args) > 4 || scores && !isWord(c.Args[3], "withscores"):
		bad = msgSyntax
	case scores && (n < -math.MaxInt64/2 || n > math.MaxInt64/2):
		bad = "ERR value is out of range"
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	z, found, ok := lookupZSet(c, c.Args[1])
	switch {
	case !ok:
	case !found || n == 0:
		c.W.Array(0)
	case n < -maxDraws:
		c.W.Error("ERR value is out of range")
	case n < 0:
		writeDraws(c, &z, -n, scores)
	default:
		writeSample(c, &z, int(min(n, int64(z.Len()))), scores)
	}
}

// writeDraws writes n independent random elements.
func writeDraws(c *Ctx, z *state.ZSet, n int64, scores bool) {
	size := uint64(z.Len())
	pairsHeader(c.W, int(n), scores)
	draw := c.Rand
	for range n {
		draw = mix(draw)
		cur := z.At(int(draw % size))
		score, m, _ := cur.Next()
		writeScored(c.W, m, score, scores)
	}
}

// writeSample writes n different random elements, in descending order if they are all or many, else in
// random order.
func writeSample(c *Ctx, z *state.ZSet, n int, scores bool) {
	size := z.Len()
	pairsHeader(c.W, n, scores)
	draw := c.Rand
	if 3*n > size {
		cur := z.At(size)
		for left := size; n > 0; left-- {
			score, m, _ := cur.Prev()
			if draw = mix(draw); int(draw%uint64(left)) < n {
				writeScored(c.W, m, score, scores)
				n--
			}
		}
		return
	}
	seen := make(map[int]struct{}, n)
	for len(seen) < n {
		draw = mix(draw)
		rank := int(draw % uint64(size))
		if _, again := seen[rank]; again {
			continue
		}
		seen[rank] = struct{}{}
		cur := z.At(rank)
		score, m, _ := cur.Next()
		writeScored(c.W, m, score, scores)
	}
}

// planZScan plans ZSCAN key cursor [MATCH pattern] [COUNT n].
func planZScan(c *Ctx) {
	cursor, ok := parseCursor(c.Args[2])
	if !ok {
		c.W.Error(msgCursor)
		return
	}
	e, there := c.Lookup(c.Args[1])
	z, found, ok := zsetOf(c, c.Args[1], e, there)
	if !ok {
		return
	}
	o := scanOptions{count: 10}
	if !found {
		writeScanEnd(c.W)
		return
	}
	for i := 3; i < len(c.Args); i++ {
		var bad errorText
		switch {
		case isWord(c.Args[i], "count") && i+1 < len(c.Args):
			if o.count, bad = intArg(c.Args[i+1]); bad == "" && o.count < 1 {
				bad = msgSyntax
			}
		case isWord(c.Args[i], "match") && i+1 < len(c.Args):
			if o.pattern = c.Args[i+1]; string(o.pattern) == "*" {
				o.pattern = nil
			}
		default:
			bad = msgSyntax
		}
		if bad != "" {
			c.W.Error(bad)
			return
		}
		i++
	}
	large := c.Shards[c.ShardOf(c.Args[1])].Encoding(e) == "skiplist"
	var items []scored
	next := z.Scan(cursor, int(min(o.count, math.MaxInt32)), func(score float64, m []byte) {
		if o.pattern == nil || glob(o.pattern, m) {
			items = append(items, scored{m, score})
		}
	})
	c.W.Array(2)
	var text [40]byte
	c.W.Bulk(strconv.AppendUint(text[:0], next, 10))
	c.W.Array(2 * len(items))
	for _, it := range items {
		c.W.Bulk(it.member)
		if large {
			c.W.Bulk(appendLongDigits(text[:0], it.score))
		} else {
			c.W.Bulk(resp.AppendDouble(text[:0], it.score))
		}
	}
}

// writeScanEnd replies the end of a scan that found nothing.
func writeScanEnd(w *resp.Writer) {
	w.Array(2)
	w.BulkString("0")
	w.Array(0)
}

// appendLongDigits formats a score with 17 digits, as C's %.17g: what ZSCAN replies for large sorted sets.
func appendLongDigits(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) {
		return resp.AppendDouble(dst, f)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}
