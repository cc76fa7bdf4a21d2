package command

import (
	"math"

	"github.com/kevydb/kevy/state"
)

func planZPopMin(c *Ctx) { planZPop(c, false) }
func planZPopMax(c *Ctx) { planZPop(c, true) }

// planZPop plans ZPOPMIN and ZPOPMAX key [count].
func planZPop(c *Ctx, fromTop bool) {
	if len(c.Args) > 3 {
		c.W.Error(msgSyntax)
		return
	}
	count, nested := int64(1), false
	if len(c.Args) == 3 {
		var ok bool
		if count, ok = parseInt(c.Args[2]); !ok || count < 0 {
			c.W.Error(msgNotPositive)
			return
		}
		nested = c.W.RESP3()
	}
	z, found, ok := peekZSet(c, c.Args[1])
	switch {
	case !ok:
		return
	case !found || count == 0:
		c.W.Array(0)
		return
	}
	n := int(min(count, int64(z.Len())))
	if nested {
		c.W.Array(n)
	} else {
		c.W.Array(2 * n)
	}
	popElements(c, c.Args[1], &z, n, fromTop, nested)
}

// popElements plans the removal of n elements from one end and writes them.
func popElements(c *Ctx, key []byte, z *state.ZSet, n int, fromTop, nested bool) {
	write := func(score float64, m []byte) {
		if nested {
			c.W.Array(2)
		}
		c.W.Bulk(m)
		c.W.Double(score)
	}
	if !fromTop {
		cur := z.At(0)
		for range n {
			score, m, _ := cur.Next()
			write(score, m)
		}
		emitZRem(c, key, z, 0, n)
		c.nameEvent("zpopmin")
		return
	}
	size := z.Len()
	cur := z.At(size)
	for range n {
		score, m, _ := cur.Prev()
		write(score, m)
	}
	emitZRem(c, key, z, size-n, size)
	c.nameEvent("zpopmax")
}

// mpop is what ZMPOP and BZMPOP ask for.
type mpop struct {
	keys    [][]byte
	fromTop bool
	count   int64
}

// parseMPop reads numkeys key... MIN|MAX [COUNT n].
func parseMPop(args [][]byte) (p mpop, bad errorText) {
	n, ok := parseInt(args[0])
	if !ok || n < 1 {
		return p, msgNumKeys
	}
	if n > int64(len(args)-2) {
		return p, msgSyntax
	}
	p.keys, args = args[1:1+n], args[1+n:]
	switch {
	case isWord(args[0], "min"):
	case isWord(args[0], "max"):
		p.fromTop = true
	default:
		return p, msgSyntax
	}
	for i := 1; i < len(args); i += 2 {
		if p.count != 0 || !isWord(args[i], "count") || i+1 == len(args) {
			return p, msgSyntax
		}
		if p.count, ok = parseInt(args[i+1]); !ok || p.count < 1 {
			return p, msgCountPositive
		}
	}
	p.count = max(1, p.count)
	return p, ""
}

func planZMPop(c *Ctx) {
	p, bad := parseMPop(c.Args[1:])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	if !runMPop(c, &p) {
		c.W.NullArray()
	}
}

// runMPop pops from the first key that is there. It is false, and has replied nothing, if there is none.
func runMPop(c *Ctx, p *mpop) (replied bool) {
	for _, key := range p.keys {
		z, found, ok := peekZSet(c, key)
		if !ok {
			return true
		}
		if !found {
			continue
		}
		n := int(min(p.count, int64(z.Len()), math.MaxInt32))
		c.W.Array(2)
		c.W.Bulk(key)
		c.W.Array(n)
		popElements(c, key, &z, n, p.fromTop, true)
		return true
	}
	return false
}
