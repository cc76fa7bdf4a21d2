package command

import "github.com/kevydb/kevy/state"

// lcsOptions are what LCS asks for.
type lcsOptions struct {
	length   bool
	index    bool
	withLen  bool
	minMatch int64
}

// parseLCS reads the options behind the two keys.
func parseLCS(args [][]byte) (o lcsOptions, bad errorText) {
	for i := 0; i < len(args); i++ {
		switch {
		case isWord(args[i], "idx"):
			o.index = true
		case isWord(args[i], "len"):
			o.length = true
		case isWord(args[i], "withmatchlen"):
			o.withLen = true
		case isWord(args[i], "minmatchlen") && i+1 < len(args):
			i++
			if o.minMatch, bad = intArg(args[i]); bad != "" {
				return o, bad
			}
		default:
			return o, msgSyntax
		}
	}
	if o.length && o.index {
		return o, msgLCSBoth
	}
	return o, ""
}

// planLCS plans LCS key1 key2 [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN].
func planLCS(c *Ctx) {
	a, okA := lcsValue(c, c.Args[1])
	b, okB := lcsValue(c, c.Args[2])
	if !okA || !okB {
		c.W.Error(msgLCSType)
		return
	}
	o, bad := parseLCS(c.Args[3:])
	switch {
	case bad != "":
		c.W.Error(bad)
		return
	case int64(len(a)+1)*int64(len(b)+1)*4 > c.maxBulk():
		c.W.Error(msgLCSMemory)
		return
	case o.length:
		c.W.Int(int64(lcsLength(a, b)))
		return
	}
	t := newLCSTable(a, b)
	if !o.index {
		c.W.Bulk(t.common())
		return
	}
	replyMatches(c, t, &o)
}

func lcsValue(c *Ctx, key []byte) (value []byte, ok bool) {
	e, ok := c.Lookup(key)
	if !ok {
		return nil, true
	}
	if e.Type() != state.TypeString {
		return nil, false
	}
	return e.Value(), true
}

func replyMatches(c *Ctx, t *lcsTable, o *lcsOptions) {
	matches := t.matches()
	shown := matches[:0]
	for _, m := range matches {
		if o.minMatch <= 0 || int64(m.n) >= o.minMatch {
			shown = append(shown, m)
		}
	}
	c.W.Map(2)
	c.W.BulkString("matches")
	c.W.Array(len(shown))
	for _, m := range shown {
		if o.withLen {
			c.W.Array(3)
		} else {
			c.W.Array(2)
		}
		replyRange(c, m.a, m.n)
		replyRange(c, m.b, m.n)
		if o.withLen {
			c.W.Int(int64(m.n))
		}
	}
	c.W.BulkString("len")
	c.W.Int(int64(t.at(len(t.a), len(t.b))))
}

func replyRange(c *Ctx, start, n int) {
	c.W.Array(2)
	c.W.Int(int64(start))
	c.W.Int(int64(start + n - 1))
}

// lcsTable holds the length of the longest common subsequence of every pair of prefixes.
type lcsTable struct {
	a, b  []byte
	cells []uint32
}

func newLCSTable(a, b []byte) *lcsTable {
	t := &lcsTable{a: a, b: b, cells: make([]uint32, (len(a)+1)*(len(b)+1))}
	width := len(b) + 1
	for i := 1; i <= len(a); i++ {
		lcsRow(t.cells[(i-1)*width:i*width], t.cells[i*width:(i+1)*width], a[i-1], b)
	}
	return t
}

// lcsRow fills the row of a prefix that ends in ch from the row of the prefix before it.
func lcsRow(above, row []uint32, ch byte, b []byte) {
	for j := 1; j <= len(b); j++ {
		if b[j-1] == ch {
			row[j] = above[j-1] + 1
		} else {
			row[j] = max(above[j], row[j-1])
		}
	}
}

// lcsLength computes the length alone, with two rows.
func lcsLength(a, b []byte) uint32 {
	above, row := make([]uint32, len(b)+1), make([]uint32, len(b)+1)
	for _, ch := range a {
		lcsRow(above, row, ch, b)
		above, row = row, above
	}
	return above[len(b)]
}

func (t *lcsTable) at(i, j int) uint32 { return t.cells[i*(len(t.b)+1)+j] }

// walk calls match for every matched pair of bytes, last first, and gap for every step without a match.
func (t *lcsTable) walk(match func(i, j int), gap func()) {
	for i, j := len(t.a), len(t.b); i > 0 && j > 0; {
		switch {
		case t.a[i-1] == t.b[j-1]:
			i, j = i-1, j-1
			match(i, j)
		case t.at(i-1, j) > t.at(i, j-1):
			i--
			gap()
		default:
			j--
			gap()
		}
	}
}

// common returns the longest common subsequence.
func (t *lcsTable) common() []byte {
	n := t.at(len(t.a), len(t.b))
	out := make([]byte, n)
	t.walk(func(i, _ int) {
		n--
		out[n] = t.a[i]
	}, func() {})
	return out
}

// lcsMatch is a run of n bytes common to both strings.
type lcsMatch struct{ a, b, n int }

// matches returns the runs the subsequence is made of, last first.
func (t *lcsTable) matches() []lcsMatch {
	var all []lcsMatch
	open := false // the last run may still grow towards the front
	t.walk(func(i, j int) {
		if open {
			if last := &all[len(all)-1]; last.a == i+1 && last.b == j+1 {
				last.a, last.b, last.n = i, j, last.n+1
				return
			}
		}
		all = append(all, lcsMatch{i, j, 1})
		open = true
	}, func() { open = false })
	return all
}
