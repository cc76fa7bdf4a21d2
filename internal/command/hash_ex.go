package command

import (
	"bytes"
	"math"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// hsetexOptions are what HSETEX asks for.
type hsetexOptions struct {
	ifNone, ifAll bool // FNX, FXX
	keepTTL       bool
	expiry        expiry
	ms            int64
	pairs         [][]byte
}

// parse reads [FNX|FXX] [EX|PX|EXAT|PXAT n | KEEPTTL] FIELDS n field value...
func (o *hsetexOptions) parse(c *Ctx, args [][]byte) (bad errorText) {
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case isWord(word, "fields"):
			return o.parsePairs(c, args[i+1:])
		case isWord(word, "keepttl"):
			if o.keepTTL || o.expiry.set {
				return msgOneExpiry
			}
			o.keepTTL = true
		case isWord(word, "fnx"), isWord(word, "fxx"):
			if o.ifNone || o.ifAll {
				return msgOneCondition
			}
			o.ifAll = isWord(word, "fxx")
			o.ifNone = !o.ifAll
		default:
			x, ok := expiryWord(word)
			switch {
			case !ok:
				return "ERR unknown argument: " + string(bytes.TrimRight(clip(word, len(word)), "\r\n"))
			case o.keepTTL || o.expiry.set:
				return msgOneExpiry
			case i == len(args)-1:
				return msgExpireNone
			}
			i++
			x.arg = args[i]
			if o.ms, bad = x.resolveField(c); bad != "" {
				return bad
			}
			o.expiry = x
		}
	}
	return msgNoFields
}

// expiryWord reads EX, PX, EXAT or PXAT.
func expiryWord(word []byte) (x expiry, ok bool) {
	x.set = true
	switch {
	case isWord(word, "ex"):
	case isWord(word, "px"):
		x.unit = unitMillis
	case isWord(word, "exat"):
		x.absolute = true
	case isWord(word, "pxat"):
		x.unit, x.absolute = unitMillis, true
	default:
		return expiry{}, false
	}
	return x, true
}

// parsePairs reads n field value... behind FIELDS.
func (o *hsetexOptions) parsePairs(c *Ctx, args [][]byte) (bad errorText) {
	if len(args) < 3 {
		return ArityError(c.Cmd)
	}
	n, ok := parseInt(args[0])
	if !ok || n < 1 || n > math.MaxInt32 {
		return msgFieldCount
	}
	if o.pairs = args[1:]; len(o.pairs)%2 != 0 || n != int64(len(o.pairs)/2) {
		return ArityError(c.Cmd)
	}
	return ""
}

func planHSetEx(c *Ctx) {
	var o hsetexOptions
	if bad := o.parse(c, c.Args[2:]); bad != "" {
		c.W.Error(bad)
		return
	}
	h, found, ok := writeHash(c, c.Args[1])
	switch {
	case !ok:
	case !o.allows(&h, found):
		c.W.Int(0)
	default:
		o.plan(c, &h, found)
		c.W.Int(1)
	}
}

// allows reports whether FNX or FXX holds.
func (o *hsetexOptions) allows(h *hash, found bool) bool {
	if !o.ifNone && !o.ifAll {
		return true
	}
	for i := 0; i < len(o.pairs); i += 2 {
		there := false
		if found {
			_, there = h.get(o.pairs[i])
		}
		if there == o.ifNone {
			return false
		}
	}
	return true
}

func (o *hsetexOptions) plan(c *Ctx, h *hash, found bool) {
	key := c.Args[1]
	names := make([][]byte, 0, len(o.pairs)/2)
	r := newRepeats(o.pairs, 2)
	for i := 0; i < len(o.pairs); i += 2 {
		if r.first(i) {
			names = append(names, o.pairs[i])
		}
	}
	switch {
	case o.expiry.set && o.ms <= c.Now && (o.ms <= 0 || !c.KeepExpired):
		if found {
			emitHDel(c, key, h, names)
		}
		return
	case o.expiry.set:
		emitHSet(c, key, found, o.pairs...)
		emitFieldDeadline(c, key, o.ms, names)
		return
	}
	emitHSet(c, key, found, o.pairs...)
	if !o.keepTTL || !found {
		return
	}
	for _, name := range names {
		if f, there := h.get(name); there && f.Deadline != state.NoDeadline {
			c.Emit(effect.HPExpireAt, key, c.Int(f.Deadline), wordFields, wordOne, name)
		}
	}
}

// emitFieldDeadline plans a deadline for fields.
func emitFieldDeadline(c *Ctx, key []byte, ms int64, names [][]byte) {
	c.beginEffect()
	c.addArg(key)
	c.addArg(c.Int(ms))
	c.addArg(wordFields)
	c.addArg(c.Int(int64(len(names))))
	c.args = append(c.args, names...)
	c.emitOpen(c.ShardOf(key), effect.HPExpireAt)
}

// planHGetEx plans HGETEX key [EX|PX|EXAT|PXAT n | PERSIST] FIELDS n field...
func planHGetEx(c *Ctx) {
	h, found, ok := writeHash(c, c.Args[1])
	if !ok {
		return
	}
	rest := c.Args[2:]
	x, _ := expiryWord(rest[0])
	ms, bad := int64(0), errorText("")
	persist := isWord(rest[0], "persist")
	switch {
	case x.set:
		x.arg = rest[1]
		ms, bad = x.resolveField(c)
		rest = rest[2:]
	case persist:
		rest = rest[1:]
	}
	var names [][]byte
	if bad == "" {
		names, bad = parseFields(rest, msgFieldNumber)
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	d := fieldDeadlines{c: c, h: &h, ms: ms, names: names, r: newRepeats(names, 1)}
	p := persistFields{c: c, h: &h, r: newRepeats(names, 1)}
	c.W.Array(len(names))
	c.beginEffect()
	for i, name := range names {
		switch {
		case !found:
			c.W.Null()
			continue
		case x.set && d.decide(i) == fieldMissing: // none, or deleted by its first mention
			c.W.Null()
			continue
		case persist:
			p.add(i, name)
		}
		replyField(c, &h, true, name)
	}
	if x.set {
		d.emit(c.Args[1])
	} else {
		p.emit()
	}
}
