package command

import (
	"math"
	"strconv"

	"github.com/kevydb/kevy/state"
)

func planHGet(c *Ctx) {
	h, found, ok := readHash(c, c.Args[1])
	if ok {
		replyField(c, &h, found, c.Args[2])
	}
}

// replyField replies a field's value, or null without one.
func replyField(c *Ctx, h *hash, found bool, name []byte) {
	if found {
		if f, ok := h.get(name); ok {
			c.W.Bulk(f.Value)
			return
		}
	}
	c.W.Null()
}

func planHMGet(c *Ctx) {
	h, found, ok := readHash(c, c.Args[1])
	if !ok {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		replyField(c, &h, found, name)
	}
}

func planHExists(c *Ctx) {
	h, found, ok := readHash(c, c.Args[1])
	if !ok {
		return
	}
	if found {
		if _, there := h.get(c.Args[2]); there {
			c.W.Int(1)
			return
		}
	}
	c.W.Int(0)
}

func planHStrLen(c *Ctx) {
	h, found, ok := readHash(c, c.Args[1])
	if !ok {
		return
	}
	n := 0
	if found {
		if f, there := h.get(c.Args[2]); there {
			n = len(f.Value)
		}
	}
	c.W.Int(int64(n))
}

func planHLen(c *Ctx) {
	h, found, ok := readHash(c, c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Int(0)
	default:
		c.W.Int(int64(h.length()))
	}
}

func planHGetAll(c *Ctx) {
	h, found, ok := readHash(c, c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Map(0)
	default:
		c.W.Map(h.length())
		h.each(func(f *state.Field) {
			c.W.Bulk(f.Name)
			c.W.Bulk(f.Value)
		})
	}
}

func planHKeys(c *Ctx) { replyParts(c, func(f *state.Field) []byte { return f.Name }) }

func planHVals(c *Ctx) { replyParts(c, func(f *state.Field) []byte { return f.Value }) }

// replyParts replies an array of one part of every field.
func replyParts(c *Ctx, part func(*state.Field) []byte) {
	h, found, ok := readHash(c, c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Array(0)
	default:
		c.W.Array(h.length())
		h.each(func(f *state.Field) { c.W.Bulk(part(f)) })
	}
}

// hscanOptions are what HSCAN asks for.
type hscanOptions struct {
	count    int64
	pattern  []byte // nil: everything
	noValues bool
}

// parseHScan reads [MATCH pattern] [COUNT n] [NOVALUES].
func parseHScan(args [][]byte) (o hscanOptions, bad errorText) {
	o.count = 10
	for i := 0; i < len(args); i++ {
		switch more := i+1 < len(args); {
		case isWord(args[i], "count") && more:
			i++
			if o.count, bad = intArg(args[i]); bad != "" {
				return o, bad
			}
			if o.count < 1 {
				return o, msgSyntax
			}
		case isWord(args[i], "match") && more:
			i++
			if o.pattern = args[i]; len(o.pattern) == 1 && o.pattern[0] == '*' {
				o.pattern = nil
			}
		case isWord(args[i], "novalues"):
			o.noValues = true
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

// planHScan plans HSCAN key cursor [MATCH pattern] [COUNT n] [NOVALUES]. A cursor is a position in the order
// of the fields' hashes, as SCAN's; the options of a key that is not there are not looked at.
func planHScan(c *Ctx) {
	cursor, good := parseCursor(c.Args[2])
	if !good {
		c.W.Error(msgCursor)
		return
	}
	h, found, ok := readHash(c, c.Args[1])
	if !ok {
		return
	}
	var o hscanOptions
	if found {
		var bad errorText
		if o, bad = parseHScan(c.Args[3:]); bad != "" {
			c.W.Error(bad)
			return
		}
	}
	var shown []state.Field
	next := uint64(0)
	if found && cursor <= positionMask {
		next = h.Scan(cursor, int(min(o.count, math.MaxInt32)), func(f *state.Field) {
			if h.live(f) && (o.pattern == nil || glob(o.pattern, f.Name)) {
				shown = append(shown, *f)
			}
		})
	}
	c.W.Array(2)
	var text [20]byte
	c.W.Bulk(strconv.AppendUint(text[:0], next, 10))
	if o.noValues {
		c.W.Array(len(shown))
	} else {
		c.W.Array(2 * len(shown))
	}
	for i := range shown {
		c.W.Bulk(shown[i].Name)
		if !o.noValues {
			c.W.Bulk(shown[i].Value)
		}
	}
}
