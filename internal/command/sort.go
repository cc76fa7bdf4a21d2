package command

import (
	"bytes"
	"math"
	"slices"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const msgSortScores = "ERR One or more scores can't be converted into double"

// sortOptions are what SORT and SORT_RO ask for.
type sortOptions struct {
	desc, alpha  bool
	asIs         bool // BY a pattern without a star: elements stay as they come
	by           *sortPattern
	gets         []sortPattern
	offset, most int64  // LIMIT; most < 0: no limit
	store        []byte // nil: reply
}

// parseSort reads the options behind the key.
func parseSort(args [][]byte, readOnly bool) (o sortOptions, bad errorText) {
	o.most = -1
	for i := 0; i < len(args); i++ {
		left := len(args) - i - 1
		switch word := args[i]; {
		case isWord(word, "asc"):
			o.desc = false
		case isWord(word, "desc"):
			o.desc = true
		case isWord(word, "alpha"):
			o.alpha = true
		case isWord(word, "limit") && left >= 2:
			if o.offset, bad = intArg(args[i+1]); bad == "" {
				o.most, bad = intArg(args[i+2])
			}
			if bad != "" {
				return o, bad
			}
			i += 2
		case isWord(word, "store") && left >= 1 && !readOnly:
			i++
			o.store = args[i]
		case isWord(word, "by") && left >= 1:
			i++
			p := parsePattern(args[i])
			o.by = &p
			o.asIs = o.asIs || !p.star
		case isWord(word, "get") && left >= 1:
			i++
			o.gets = append(o.gets, parsePattern(args[i]))
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

// sortKeys finds the keys of SORT: the first argument, and that of the last STORE.
func sortKeys(args [][]byte, pos []int) ([]int, bool) {
	pos = append(pos, 1)
	store := 0
	for i := 2; i < len(args); i++ {
		switch {
		case isWord(args[i], "limit"):
			i += 2
		case isWord(args[i], "get"), isWord(args[i], "by"):
			i++
		case isWord(args[i], "store") && i+1 < len(args):
			store = i + 1
		}
	}
	if store > 0 {
		pos = append(pos, store)
	}
	return pos, true
}

// window returns the first element and the end of what LIMIT leaves of n sorted elements.
func (o *sortOptions) window(n int) (from, to int) {
	from = int(min(max(o.offset, 0), int64(n)))
	if o.most < 0 {
		return from, n
	}
	return from, int(min(int64(from)+min(o.most, int64(n)), int64(n)))
}

// sortItem is one element and what it is sorted by.
type sortItem struct {
	element []byte
	score   float64
	by      []byte // ALPHA
	has     bool   // by is there
}

func planSort(c *Ctx)   { runSort(c, false) }
func planSortRO(c *Ctx) { runSort(c, true) }

func runSort(c *Ctx, readOnly bool) {
	o, bad := parseSort(c.Args[2:], readOnly)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	e, there := c.Lookup(c.Args[1])
	kind := state.TypeNone
	if there {
		kind = e.Type()
	}
	switch kind {
	case state.TypeNone, state.TypeList, state.TypeSet, state.TypeZSet:
	default:
		c.W.Error(msgWrongType)
		return
	}
	if o.asIs && kind == state.TypeSet && (o.store != nil || c.InScript) { // the same order everywhere
		o.asIs, o.alpha, o.by = false, true, nil
	}
	items := sortElements(c, e, kind, &o)
	if !o.asIs {
		if !weigh(c, items, &o) {
			c.W.Error(msgSortScores)
			return
		}
		slices.SortStableFunc(items, o.compare())
		from, to := o.window(len(items))
		items = items[from:to]
	}
	if o.store != nil {
		storeSorted(c, items, &o)
		return
	}
	replySorted(c, items, &o)
}

// sortElements returns the elements of a value, and only those within LIMIT if they are not to be sorted.
func sortElements(c *Ctx, e state.Entry, kind state.Type, o *sortOptions) (items []sortItem) {
	add := func(m []byte) bool { items = append(items, sortItem{element: m}); return true }
	ks := c.Shards[c.ShardOf(c.Args[1])]
	switch kind {
	case state.TypeList:
		l := ks.List(e)
		from, to := 0, l.Len()
		if o.asIs {
			from, to = o.window(l.Len())
		}
		if from == to {
			return nil
		}
		items = make([]sortItem, 0, to-from)
		if o.asIs && o.desc {
			l.Range(l.Len()-1-from, to-from, true, add)
		} else {
			l.Range(from, to-from, false, add)
		}
	case state.TypeZSet:
		z := ks.ZSet(e)
		from, to := 0, z.Len()
		if o.asIs {
			from, to = o.window(z.Len())
		}
		items = make([]sortItem, 0, to-from)
		cur, step := z.At(from), (*state.ZCursor).Next
		if o.asIs && o.desc {
			cur, step = z.At(z.Len()-from), (*state.ZCursor).Prev
		}
		for range to - from {
			_, m, _ := step(&cur)
			add(m)
		}
	case state.TypeSet:
		s := ks.Set(e)
		items = make([]sortItem, 0, s.Len())
		var keep keeper
		s.Each(func(m []byte) bool { return add(keep.copy(m)) })
		if o.asIs {
			from, to := o.window(len(items))
			items = items[from:to]
		}
	}
	return items
}

// weigh finds what each element is sorted by; false if one is no number and should be.
func weigh(c *Ctx, items []sortItem, o *sortOptions) bool {
	var k keyBuffer
	good := true
	for i := range items {
		it := &items[i]
		it.by, it.has = it.element, true
		if o.by != nil {
			if it.by, it.has = o.by.value(c, &k, it.element); !it.has {
				continue
			}
		}
		if !o.alpha {
			var ok bool
			it.score, ok = sortScore(it.by)
			good = good && ok
		}
	}
	return good
}

// sortScore reads a number as C's strtod does: spaces before it are allowed, it ends with a zero byte, and nothing
// is zero.
func sortScore(b []byte) (float64, bool) {
	if n, ok := parseInt(b); ok {
		return float64(n), true
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 {
		return 0, true
	}
	f, exact := strtod(bytes.TrimLeft(b, " \t\n\v\f\r"))
	return f, exact && !math.IsNaN(f)
}

// compare returns the order of items.
func (o *sortOptions) compare() func(x, y sortItem) int {
	order := func(x, y sortItem) int {
		switch {
		case x.score < y.score:
			return -1
		case x.score > y.score:
			return 1
		}
		return bytes.Compare(x.element, y.element)
	}
	if o.alpha {
		order = func(x, y sortItem) int {
			switch {
			case x.has != y.has:
				return boolInt(x.has) - boolInt(y.has)
			case !x.has:
				return 0
			}
			return bytes.Compare(x.by, y.by)
		}
	}
	if o.desc {
		up := order
		return func(x, y sortItem) int { return up(y, x) }
	}
	return order
}

func replySorted(c *Ctx, items []sortItem, o *sortOptions) {
	c.W.Array(len(items) * max(1, len(o.gets)))
	var k keyBuffer
	for i := range items {
		if len(o.gets) == 0 {
			c.W.Bulk(items[i].element)
		}
		for j := range o.gets {
			if v, ok := o.gets[j].value(c, &k, items[i].element); ok {
				c.W.Bulk(v)
			} else {
				c.W.Null()
			}
		}
	}
}

// storeSorted plans that the destination becomes the list of the result.
func storeSorted(c *Ctx, items []sortItem, o *sortOptions) {
	p := storePieces{c: c, key: o.store, op: effect.RPush, drop: true}
	var k keyBuffer
	for i := range items {
		if len(o.gets) == 0 {
			p.add(items[i].element)
		}
		for j := range o.gets {
			v, _ := o.gets[j].value(c, &k, items[i].element)
			p.add(v)
		}
	}
	p.finish()
}
