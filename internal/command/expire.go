package command

import (
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// expireWhen is the set of conditions of the EXPIRE family.
type expireWhen struct{ nx, xx, gt, lt bool }

// add adds a condition; false if the word is none.
func (w *expireWhen) add(word []byte) bool {
	switch {
	case isWord(word, "nx"):
		w.nx = true
	case isWord(word, "xx"):
		w.xx = true
	case isWord(word, "gt"):
		w.gt = true
	case isWord(word, "lt"):
		w.lt = true
	default:
		return false
	}
	return true
}

// parseExpireWhen reads the options behind the time.
func parseExpireWhen(args [][]byte) (w expireWhen, bad errorText) {
	for _, word := range args {
		if !w.add(word) {
			return w, unsupportedOption(word)
		}
	}
	switch {
	case w.nx && (w.xx || w.gt || w.lt):
		return w, msgExpireNX
	case w.gt && w.lt:
		return w, msgExpireGTLT
	}
	return w, ""
}

// allows reports whether a key whose deadline is current (if has) may get the deadline ms.
func (w expireWhen) allows(ms, current int64, has bool) bool {
	switch {
	case w.nx && has, w.xx && !has, w.gt && (!has || ms <= current), w.lt && has && ms >= current:
		return false
	}
	return true
}

func planExpire(c *Ctx) { runExpire(c, expiry{unit: unitSeconds}) }

func planPExpire(c *Ctx) { runExpire(c, expiry{unit: unitMillis}) }

func planExpireAt(c *Ctx) { runExpire(c, expiry{unit: unitSeconds, absolute: true}) }

func planPExpireAt(c *Ctx) { runExpire(c, expiry{unit: unitMillis, absolute: true}) }

func runExpire(c *Ctx, x expiry) {
	when, bad := parseExpireWhen(c.Args[3:])
	if bad != "" {
		c.W.Error(bad)
		return
	}
	x.arg = c.Args[2]
	ms, bad := x.resolveSigned(c)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	e, ok := c.Lookup(c.Args[1])
	if !ok {
		c.W.Int(0)
		return
	}
	current, has := e.Deadline()
	if !when.allows(ms, current, has) {
		c.W.Int(0)
		return
	}
	emitDeadline(c, c.Args[1], ms)
	c.W.Int(1)
}

// emitDeadline plans a deadline for a live key: its removal if the deadline has passed.
func emitDeadline(c *Ctx, key []byte, ms int64) {
	if ms <= c.Now && (ms <= 0 || !c.KeepExpired) {
		c.Emit(effect.Del, key)
		return
	}
	c.Emit(effect.PExpireAt, key, c.Int(ms))
}

// emitPersist plans the end of a live key's deadline and reports whether it has one.
func emitPersist(c *Ctx, key []byte, e state.Entry) bool {
	if _, has := e.Deadline(); !has {
		return false
	}
	c.Emit(effect.Persist, key)
	return true
}

func planPersist(c *Ctx) {
	e, ok := c.Lookup(c.Args[1])
	if ok && emitPersist(c, c.Args[1], e) {
		c.W.Int(1)
		return
	}
	c.W.Int(0)
}

func planTTL(c *Ctx) { replyDeadline(c, c.Now, unitSeconds) }

func planPTTL(c *Ctx) { replyDeadline(c, c.Now, unitMillis) }

func planExpireTime(c *Ctx) { replyDeadline(c, 0, unitSeconds) }

func planPExpireTime(c *Ctx) { replyDeadline(c, 0, unitMillis) }

// replyDeadline replies the key's deadline counted from base, -1 without one, -2 without a key.
func replyDeadline(c *Ctx, base int64, unit timeUnit) {
	e, ok := c.Glance(c.Args[1])
	if !ok {
		c.W.Int(-2)
		return
	}
	ms, has := e.Deadline()
	if !has {
		c.W.Int(-1)
		return
	}
	ms = max(0, ms-base)
	if unit == unitSeconds { // rounded to the nearest second
		ms = ms/1000 + ms%1000/500
	}
	c.W.Int(ms)
}
