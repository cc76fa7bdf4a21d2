package command

import (
	"math"
	"strconv"

	"github.com/kevydb/kevy/state"
)

// A SCAN cursor is one number below 2^53: the shard above a 48-bit position in the shard's scan
// order. 0 begins and ends a scan.
const (
	positionBits = 48
	positionMask = 1<<positionBits - 1
)

// scanOptions are what SCAN asks for.
type scanOptions struct {
	cursor   uint64
	count    int64
	pattern  []byte // nil: everything
	typed    bool
	typeName []byte
}

// parseScan reads SCAN cursor [MATCH pattern] [COUNT n] [TYPE name].
func parseScan(args [][]byte) (o scanOptions, bad errorText) {
	o.count = 10
	var ok bool
	if o.cursor, ok = parseCursor(args[1]); !ok {
		return o, msgCursor
	}
	for i := 2; i < len(args); i += 2 {
		if i+1 >= len(args) {
			return o, msgSyntax
		}
		value := args[i+1]
		switch {
		case isWord(args[i], "count"):
			if o.count, bad = intArg(value); bad != "" {
				return o, bad
			}
			if o.count < 1 {
				return o, msgSyntax
			}
		case isWord(args[i], "match"):
			o.pattern = value
			if len(value) == 1 && value[0] == '*' {
				o.pattern = nil
			}
		case isWord(args[i], "type"):
			o.typed, o.typeName = true, value
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

// parseCursor reads a cursor as C's strtoul does, which Redis uses: a sign is allowed, an empty
// cursor is 0.
func parseCursor(b []byte) (uint64, bool) {
	if len(b) == 0 {
		return 0, true
	}
	digits, neg := b, b[0] == '-'
	if neg || b[0] == '+' {
		digits = b[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	var n uint64
	for _, d := range digits {
		if d < '0' || d > '9' || n > (math.MaxUint64-uint64(d-'0'))/10 {
			return 0, false
		}
		n = n*10 + uint64(d-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

func planScan(c *Ctx) {
	o, bad := parseScan(c.Args)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	var found [][]byte
	next := runScan(c, &o, func(e state.Entry) { found = append(found, e.Key()) })
	c.W.Array(2)
	var text [20]byte
	c.W.Bulk(strconv.AppendUint(text[:0], next, 10))
	c.W.Array(len(found))
	for _, key := range found {
		c.W.Bulk(key)
	}
}

// runScan calls f with the matching keys from the cursor on, looking at about o.count keys, and
// returns the next cursor. A cursor no scan ever returned is the end.
func runScan(c *Ctx, o *scanOptions, f func(state.Entry)) uint64 {
	if o.cursor>>positionBits >= uint64(len(c.Shards)) {
		return 0
	}
	shard, position := int(o.cursor>>positionBits), o.cursor&positionMask
	left := min(o.count, math.MaxInt)
	for {
		position = c.Shards[shard].Scan(position, int(left), func(e state.Entry) {
			left--
			if !c.dueMet(e) && o.matches(e) {
				f(e)
			}
		})
		if position == 0 {
			if shard++; shard == len(c.Shards) {
				return 0
			}
		}
		if left <= 0 {
			return uint64(shard)<<positionBits | position
		}
	}
}

func (o *scanOptions) matches(e state.Entry) bool {
	if o.typed && !isWord(o.typeName, e.Type().String()) {
		return false
	}
	return o.pattern == nil || glob(o.pattern, e.Key())
}

func planKeys(c *Ctx) {
	pattern := c.Args[1]
	prefix, whole := literalPrefix(pattern)
	if whole {
		if _, ok := c.Peek(pattern); ok {
			c.W.Array(1)
			c.W.Bulk(pattern)
			return
		}
		c.W.Array(0)
		return
	}
	all := len(pattern) == 1 && pattern[0] == '*'
	var found [][]byte
	for _, ks := range c.Shards {
		ks.AscendPrefix(prefix, func(e state.Entry) bool {
			if !c.due(e) && (all || glob(pattern, e.Key())) {
				found = append(found, e.Key())
			}
			return true
		})
	}
	c.W.Array(len(found))
	for _, key := range found {
		c.W.Bulk(key)
	}
}
