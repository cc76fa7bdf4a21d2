package state

import (
	"strconv"

	"github.com/kevydb/kevy/log/effect"
)

// argTexts makes arguments that stay as they are.
type argTexts []byte

func (t *argTexts) room(n int) {
	if cap(*t)-len(*t) < n {
		*t = make([]byte, 0, max(n, 4096))
	}
}

func (t *argTexts) id(id StreamID) []byte {
	t.room(maxIDText)
	at := len(*t)
	*t = id.Append(*t)
	return (*t)[at:len(*t):len(*t)]
}

func (t *argTexts) int(n int64) []byte {
	t.room(20)
	at := len(*t)
	*t = strconv.AppendInt(*t, n, 10)
	return (*t)[at:len(*t):len(*t)]
}

// keep copies what may be a formatted number.
func (t *argTexts) keep(s []byte) []byte {
	if len(s) > 20 {
		return s
	}
	t.room(20)
	at := len(*t)
	*t = append(*t, s...)
	return (*t)[at:len(*t):len(*t)]
}

// streamRebuild emits the effects that make a stream.
type streamRebuild struct {
	key  []byte
	emit func(*effect.Effect) bool
	t    argTexts
}

func (x *streamRebuild) do(op effect.Op, args ...[]byte) bool {
	return x.emit(&effect.Effect{Op: op, Args: args})
}

func rebuildStream(v value, key []byte, emit func(*effect.Effect) bool) bool {
	s := streamValue(v)
	x := streamRebuild{key: key, emit: emit}
	return x.entries(s) &&
		x.do(effect.XSetID, key, x.t.id(s.LastID()), []byte("ENTRIESADDED"), x.t.int(s.Added()),
			[]byte("MAXDELETEDID"), x.t.id(s.MaxDeletedID())) &&
		s.EachGroup(x.group)
}

// entries emits an XADD for each entry. A stream without any gets one that is trimmed away.
func (x *streamRebuild) entries(s Stream) bool {
	if s.Len() == 0 {
		id := s.LastID()
		if id.IsZero() {
			id.Seq = 1
		}
		how, arg := []byte("MINID"), []byte("0")
		if next, ok := id.Next(); ok {
			arg = x.t.id(next)
		} else {
			how = []byte("MAXLEN")
		}
		return x.do(effect.XAdd, x.key, x.t.id(id), []byte("x"), []byte("y")) &&
			x.do(effect.XTrim, x.key, how, []byte("="), arg)
	}
	var it StreamIter
	for it.Seek(s, StreamID{}, MaxStreamID, false); it.Next(); {
		args := append(make([][]byte, 0, 2+2*it.NumFields()), x.key, x.t.id(it.ID()))
		for range it.NumFields() {
			name, val := it.Field()
			args = append(args, x.t.keep(name), x.t.keep(val))
		}
		if !x.do(effect.XAdd, args...) {
			return false
		}
	}
	return true
}

func (x *streamRebuild) group(g Group) bool {
	last := x.t.id(g.LastID())
	return x.do(effect.XGroup, []byte("CREATE"), x.key, g.Name(), last, []byte("ENTRIESREAD"), x.t.int(g.Read())) &&
		g.EachConsumer(func(c Consumer) bool {
			return x.do(effect.XGroup, []byte("CREATECONSUMER"), x.key, g.Name(), c.Name()) &&
				x.pending(&g, c, last)
		})
}

// pending emits what a consumer has pending: one XCLAIM for those delivered at one time.
func (x *streamRebuild) pending(g *Group, c Consumer, last []byte) bool {
	var args [][]byte
	var first Nack
	flush := func() bool {
		if args == nil {
			return true
		}
		all := append(args, claimTail[0], x.t.int(first.Time), claimTail[2], x.t.int(first.Count),
			claimTail[4], claimTail[5], claimTail[6], last)
		args = nil
		return x.do(effect.XClaim, all...)
	}
	ok := true
	g.EachPendingOf(c, StreamID{}, func(n Nack) bool {
		if args != nil && (n.Time != first.Time || n.Count != first.Count || len(args) >= rebuildElements) {
			ok = flush()
		}
		if args == nil {
			first = n
			args = append(args, x.key, g.Name(), c.Name(), []byte("0"))
		}
		args = append(args, x.t.id(n.ID))
		return ok
	})
	return ok && flush()
}
