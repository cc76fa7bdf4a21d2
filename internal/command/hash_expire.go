package command

import (
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// maxFieldDeadline is the latest deadline that Redis gives a field, in unix ms.
const maxFieldDeadline = 1<<46 - 1

// What the HEXPIRE family answers for a field.
const (
	fieldMissing = -2 // no such field, or no such key
	fieldNoTTL   = -1
	fieldRefused = 0 // NX, XX, GT or LT did not hold
	fieldDone    = 1
	fieldDeleted = 2 // the deadline has passed already
)

// resolveField returns a field's deadline in unix ms.
func (x expiry) resolveField(c *Ctx) (ms int64, bad errorText) {
	base := c.Now
	if x.absolute {
		base = 0
	}
	ms, bad = intArg(x.arg)
	switch {
	case bad != "":
		return 0, bad
	case ms < 0:
		return 0, msgExpireSign
	case x.unit == unitSeconds && ms > maxFieldDeadline/1000:
		return 0, expireTimeError(c.Cmd)
	}
	if x.unit == unitSeconds {
		ms *= 1000
	}
	if ms > maxFieldDeadline-base {
		return 0, expireTimeError(c.Cmd)
	}
	return ms + base, ""
}

func planHExpire(c *Ctx) { runHExpire(c, expiry{unit: unitSeconds}) }

func planHPExpire(c *Ctx) { runHExpire(c, expiry{unit: unitMillis}) }

func planHExpireAt(c *Ctx) { runHExpire(c, expiry{unit: unitSeconds, absolute: true}) }

func planHPExpireAt(c *Ctx) { runHExpire(c, expiry{unit: unitMillis, absolute: true}) }

// runHExpire plans HEXPIRE key time [NX|XX|GT|LT] FIELDS n field... and its relatives.
func runHExpire(c *Ctx, x expiry) {
	key := c.Args[1]
	h, found, ok := writeHash(c, key)
	if !ok {
		return
	}
	x.arg = c.Args[2]
	ms, bad := x.resolveField(c)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	rest := c.Args[3:]
	var when expireWhen
	one := when.add(rest[0])
	if one {
		rest = rest[1:]
	}
	names, bad := parseFields(rest, msgFieldsZero)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	c.W.Array(len(names))
	if !found {
		for range names {
			c.W.Int(fieldMissing)
		}
		return
	}
	d := fieldDeadlines{c: c, h: &h, ms: ms, when: when, names: names, r: newRepeats(names, 1)}
	c.beginEffect()
	for i := range names {
		c.W.Int(d.decide(i))
	}
	d.emit(key)
}

// fieldDeadlines works out which fields get a deadline, one after the other: repeated ones see what became of
// them the first time. Those that do are arguments of the effect under construction. A deadline that has
// passed makes it an HDEL.
type fieldDeadlines struct {
	c     *Ctx
	h     *hash
	ms    int64
	when  expireWhen
	names [][]byte
	r     repeats
	n     int // fields that get the deadline
}

// past reports whether the deadline has passed already.
func (d *fieldDeadlines) past() bool { return d.ms <= d.c.Now && (d.ms <= 0 || !d.c.KeepExpired) }

// decide returns what the client is told about field i.
func (d *fieldDeadlines) decide(i int) int64 {
	f, there := d.h.get(d.names[i])
	switch first := d.r.first(i); {
	case !there:
		return fieldMissing
	case !first:
		return d.again(&f)
	case !d.when.allows(d.ms, f.Deadline, f.Deadline != state.NoDeadline):
		return fieldRefused
	}
	if d.n++; d.n == 1 {
		d.open()
	}
	d.c.addArg(d.names[i])
	if d.past() {
		return fieldDeleted
	}
	return fieldDone
}

// again is decide about a field that came before: it has the new deadline, is gone, or was refused.
func (d *fieldDeadlines) again(f *state.Field) int64 {
	switch had := f.Deadline != state.NoDeadline; {
	case !d.when.allows(d.ms, f.Deadline, had):
		return fieldRefused
	case d.past():
		return fieldMissing
	case !d.when.allows(d.ms, d.ms, true):
		return fieldRefused
	}
	return fieldDone
}

// open begins the effect's arguments.
func (d *fieldDeadlines) open() {
	d.c.addArg(d.c.Args[1])
	if !d.past() {
		d.c.addArg(d.c.Int(d.ms))
		d.c.addArg(wordFields)
		d.c.addArg(nil) // their number
	}
}

func (d *fieldDeadlines) emit(key []byte) {
	op := effect.HDel
	if d.n > 0 && !d.past() {
		op = effect.HPExpireAt
		d.c.args[d.c.open+3] = d.c.Int(int64(d.n))
	}
	d.c.emitOpen(d.c.ShardOf(key), op)
}

func planHTTL(c *Ctx) { replyFieldDeadlines(c, c.Now, unitSeconds) }

func planHPTTL(c *Ctx) { replyFieldDeadlines(c, c.Now, unitMillis) }

func planHExpireTime(c *Ctx) { replyFieldDeadlines(c, 0, unitSeconds) }

func planHPExpireTime(c *Ctx) { replyFieldDeadlines(c, 0, unitMillis) }

// replyFieldDeadlines replies the deadlines of fields counted from base; seconds are rounded up.
func replyFieldDeadlines(c *Ctx, base int64, unit timeUnit) {
	h, found, ok := readHash(c, c.Args[1])
	if !ok {
		return
	}
	names, bad := parseFields(c.Args[2:], msgFieldNumber)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	c.W.Array(len(names))
	for _, name := range names {
		var f state.Field
		there := false
		if found {
			f, there = h.get(name)
		}
		switch {
		case !there:
			c.W.Int(fieldMissing)
		case f.Deadline == state.NoDeadline:
			c.W.Int(fieldNoTTL)
		case unit == unitSeconds:
			c.W.Int((f.Deadline + 999 - base) / 1000)
		default:
			c.W.Int(f.Deadline - base)
		}
	}
}

// planHPersist plans HPERSIST key FIELDS n field...
func planHPersist(c *Ctx) {
	h, names, found, ok := writeFields(c)
	if !ok {
		return
	}
	p := persistFields{c: c, h: &h, r: newRepeats(names, 1)}
	c.beginEffect()
	for i, name := range names {
		if !found {
			c.W.Int(fieldMissing)
			continue
		}
		c.W.Int(p.add(i, name))
	}
	p.emit()
}

// persistFields gathers the fields that lose their deadline.
type persistFields struct {
	c *Ctx
	h *hash
	r repeats
	n int
}

// add returns what the client is told about the field.
func (p *persistFields) add(i int, name []byte) int64 {
	f, there := p.h.get(name)
	switch first := p.r.first(i); {
	case !there:
		return fieldMissing
	case f.Deadline == state.NoDeadline || !first:
		return fieldNoTTL
	}
	if p.n++; p.n == 1 {
		p.c.addArg(p.c.Args[1])
		p.c.addArg(wordFields)
		p.c.addArg(nil)
	}
	p.c.addArg(name)
	return fieldDone
}

func (p *persistFields) emit() {
	if p.n > 0 {
		p.c.args[p.c.open+2] = p.c.Int(int64(p.n))
	}
	p.c.emitOpen(p.c.ShardOf(p.c.Args[1]), effect.HPersist)
}
