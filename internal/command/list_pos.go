package command

import (
	"bytes"
	"math"

	"github.com/kevydb/kevy/state"
)

const (
	msgRankZero = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
		"or use negative to start from the end of the list"
	msgCountNeg    = "ERR COUNT can't be negative"
	msgMaxLenNeg   = "ERR MAXLEN can't be negative"
	msgIndexRange  = "ERR index out of range"
	msgListNumKeys = "ERR numkeys should be greater than 0"
	msgListCount   = "ERR count should be greater than 0"
)

// positiveArg reads an integer of at least 0; text is the error for anything else.
func positiveArg(b []byte, text errorText) (int64, errorText) {
	n, ok := parseInt(b)
	if !ok || n < 0 {
		return 0, text
	}
	return n, ""
}

// posOptions are what LPOS asks for.
type posOptions struct {
	rank   int64 // 1 is the first match; negative from the end
	count  int64 // matches to reply, 0 all; -1: not given, one as a plain integer
	maxLen int64 // elements to look at, 0 all
}

// parsePos reads LPOS key element [RANK n] [COUNT n] [MAXLEN n].
func parsePos(args [][]byte) (o posOptions, bad errorText) {
	o = posOptions{rank: 1, count: -1}
	for i := 3; i < len(args); i += 2 {
		if i+1 == len(args) {
			return o, msgSyntax
		}
		switch value := args[i+1]; {
		case isWord(args[i], "rank"):
			if o.rank, bad = intArg(value); bad == "" && o.rank == 0 {
				bad = msgRankZero
			} else if o.rank == math.MinInt64 {
				bad = msgLongRange
			}
		case isWord(args[i], "count"):
			o.count, bad = positiveArg(value, msgCountNeg)
		case isWord(args[i], "maxlen"):
			o.maxLen, bad = positiveArg(value, msgMaxLenNeg)
		default:
			bad = msgSyntax
		}
		if bad != "" {
			return o, bad
		}
	}
	return o, ""
}

func planLPos(c *Ctx) {
	o, bad := parsePos(c.Args)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	l, ok := listAt(c, c.Args[1])
	if !ok {
		return
	}
	if o.count < 0 {
		o.find(&l, c.Args[2], func(i int) bool {
			c.W.Int(int64(i))
			ok = false
			return false
		})
		if ok {
			c.W.Null()
		}
		return
	}
	var found []int
	o.find(&l, c.Args[2], func(i int) bool {
		found = append(found, i)
		return int64(len(found)) != o.count
	})
	c.W.Array(len(found))
	for _, i := range found {
		c.W.Int(int64(i))
	}
}

// find calls f with the index of each match from the wanted one on, until f returns false.
func (o *posOptions) find(l *state.List, x []byte, f func(i int) bool) {
	back, skip := o.rank < 0, o.rank-1
	from, step := 0, 1
	if back {
		skip = -o.rank - 1
		from, step = l.Len()-1, -1
	}
	n := l.Len()
	if o.maxLen > 0 {
		n = int(min(int64(n), o.maxLen))
	}
	i := from
	l.Range(from, n, back, func(e []byte) bool {
		at := i
		i += step
		if !bytes.Equal(e, x) {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		return f(at)
	})
}
