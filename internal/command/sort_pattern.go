package command

import (
	"bytes"

	"github.com/kevydb/kevy/state"
)

// sortPattern is the pattern of BY or GET: the key of a string, or of a hash's field, with a star for the element.
type sortPattern struct {
	element       bool // "#": the element itself
	star          bool
	before, after []byte // of the key
	field         []byte // nil: a string
}

func parsePattern(b []byte) (p sortPattern) {
	if string(b) == "#" {
		p.element = true
		return p
	}
	p.before, p.after, p.star = bytes.Cut(b, []byte("*"))
	if key, field, arrow := bytes.Cut(p.after, []byte("->")); arrow && len(field) > 0 {
		p.after, p.field = key, field
	}
	return p
}

// keyBuffer holds the key made of a pattern, each in the place of the one before.
type keyBuffer struct{ b []byte }

// value returns what the pattern says for an element, a read-only alias; ok is false if there is nothing.
func (p *sortPattern) value(c *Ctx, k *keyBuffer, element []byte) (v []byte, ok bool) {
	switch {
	case p.element:
		return element, true
	case !p.star:
		return nil, false
	}
	k.b = append(append(append(k.b[:0], p.before...), element...), p.after...)
	e, there := c.Lookup(k.b)
	switch {
	case !there:
	case p.field == nil && e.Type() == state.TypeString:
		return e.Value(), true
	case p.field != nil && e.Type() == state.TypeHash:
		h, _, _ := hashOf(c, k.b, e, true)
		f, ok := h.get(p.field)
		return f.Value, ok
	}
	return nil, false
}
