package command

import (
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// setOptions are what SET and its relatives ask for.
type setOptions struct {
	key, value []byte
	onlyNew    bool // NX
	onlyOld    bool // XX
	get        bool
	keepTTL    bool
	expiry     expiry
}

// parseWord reads EX, PX, EXAT or PXAT with its number at args[i]. A second one is refused
// unless it is the same word again, as in Redis.
func (x *expiry) parseWord(args [][]byte, i int) bool {
	var y expiry
	switch word := args[i]; {
	case isWord(word, "ex"):
		y = expiry{unit: unitSeconds}
	case isWord(word, "px"):
		y = expiry{unit: unitMillis}
	case isWord(word, "exat"):
		y = expiry{unit: unitSeconds, absolute: true}
	case isWord(word, "pxat"):
		y = expiry{unit: unitMillis, absolute: true}
	default:
		return false
	}
	if i+1 >= len(args) || (x.set && (x.unit != y.unit || x.absolute != y.absolute)) {
		return false
	}
	y.set, y.arg = true, args[i+1]
	*x = y
	return true
}

// parseSet reads SET key value [NX|XX] [GET] [EX|PX|EXAT|PXAT n | KEEPTTL].
func parseSet(args [][]byte) (o setOptions, bad errorText) {
	o.key, o.value = args[1], args[2]
	for i := 3; i < len(args); i++ {
		switch word := args[i]; {
		case isWord(word, "nx") && !o.onlyOld:
			o.onlyNew = true
		case isWord(word, "xx") && !o.onlyNew:
			o.onlyOld = true
		case isWord(word, "get"):
			o.get = true
		case isWord(word, "keepttl") && !o.expiry.set:
			o.keepTTL = true
		case !o.keepTTL && o.expiry.parseWord(args, i):
			i++
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

// setKeyFlags are the flags of SET's key: it is read only with GET.
func setKeyFlags(args [][]byte) []string {
	for _, a := range args[min(3, len(args)):] {
		if isWord(a, "get") { // wherever it stands
			return []string{"RW", "access", "update"}
		}
	}
	return []string{"OW", "update"}
}

func planSet(c *Ctx) {
	if len(c.Args) == 3 {
		c.Emit(effect.Set, c.Args[1], c.Args[2])
		c.W.OK()
		return
	}
	o, bad := parseSet(c.Args)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	switch runSet(c, &o) {
	case setDone:
		c.W.OK()
	case setSkipped:
		c.W.Null()
	}
}

func planSetNX(c *Ctx) {
	o := setOptions{key: c.Args[1], value: c.Args[2], onlyNew: true}
	switch runSet(c, &o) {
	case setDone:
		c.W.Int(1)
	case setSkipped:
		c.W.Int(0)
	}
}

func planSetEx(c *Ctx) { planSetUnit(c, unitSeconds) }

func planPSetEx(c *Ctx) { planSetUnit(c, unitMillis) }

func planSetUnit(c *Ctx, unit timeUnit) {
	x := expiry{set: true, unit: unit, arg: c.Args[2]}
	ms, bad := x.resolve(c)
	if bad != "" {
		c.W.Error(bad)
		return
	}
	emitSet(c, c.Args[1], c.Args[3], ms)
	c.W.OK()
}

func planGetSet(c *Ctx) {
	e, ok := c.Lookup(c.Args[1])
	if !replyString(c, e, ok) {
		return
	}
	c.Emit(effect.Set, c.Args[1], c.Args[2])
}

// setOutcome says what became of a SET and who replies.
type setOutcome uint8

const (
	setReplied setOutcome = iota // an error, or the old value: the reply is written
	setDone
	setSkipped // NX or XX did not hold
)

// runSet plans what o asks for.
func runSet(c *Ctx, o *setOptions) setOutcome {
	deadline := state.NoDeadline
	if o.expiry.set {
		ms, bad := o.expiry.resolve(c)
		if bad != "" {
			c.W.Error(bad)
			return setReplied
		}
		deadline = ms
	}
	outcome := setDone
	if o.get || o.onlyNew || o.onlyOld || o.keepTTL {
		e, ok := c.Lookup(o.key)
		if o.get {
			if !replyString(c, e, ok) {
				return setReplied
			}
			outcome = setReplied
		}
		switch {
		case (o.onlyNew && ok) || (o.onlyOld && !ok):
			if o.get {
				return setReplied
			}
			return setSkipped
		case o.keepTTL && ok:
			deadline, _ = e.Deadline()
		}
	}
	emitSet(c, o.key, o.value, deadline)
	if o.keepTTL {
		c.nameEvent("set")
	}
	return outcome
}

// emitSet plans a SET with a deadline, or none if it is state.NoDeadline. A key that would be dead
// on arrival is removed instead.
func emitSet(c *Ctx, key, value []byte, deadline int64) {
	switch {
	case deadline == state.NoDeadline:
		c.Emit(effect.Set, key, value)
	case deadline > c.Now || c.KeepExpired:
		c.Emit(effect.Set, key, value, wordPXAT, c.Int(deadline))
	default:
		if _, ok := c.Peek(key); ok {
			c.Emit(effect.Del, key)
		}
	}
}

// emitUpdate plans a new value for a key that keeps the deadline it has, if any.
func emitUpdate(c *Ctx, key, value []byte, e state.Entry, ok bool) {
	deadline := state.NoDeadline
	if ok {
		deadline, _ = e.Deadline()
	}
	emitSet(c, key, value, deadline)
}

var wordPXAT = []byte("PXAT")

func planMSet(c *Ctx) {
	if len(c.Args)%2 == 0 {
		c.W.Error(ArityError(c.Cmd))
		return
	}
	emitPairs(c, c.Args[1:])
	c.W.OK()
}

func planMSetNX(c *Ctx) {
	if len(c.Args)%2 == 0 {
		c.W.Error(ArityError(c.Cmd))
		return
	}
	for i := 1; i < len(c.Args); i += 2 {
		if _, ok := c.Lookup(c.Args[i]); ok {
			c.W.Int(0)
			return
		}
	}
	emitPairs(c, c.Args[1:])
	c.W.Int(1)
}

// emitPairs plans one MSET for every shard that has some of the pairs.
func emitPairs(c *Ctx, pairs [][]byte) {
	if len(c.Shards) == 1 {
		c.EmitOn(0, effect.MSet, pairs...)
		return
	}
	c.homes = c.homes[:0]
	for i := 0; i < len(pairs); i += 2 {
		c.homes = append(c.homes, c.ShardOf(pairs[i]))
	}
	c.eachHome(func(shard int) {
		c.beginEffect()
		for i, home := range c.homes {
			if home == shard {
				c.addArg(pairs[2*i])
				c.addArg(pairs[2*i+1])
			}
		}
		c.emitOpen(shard, effect.MSet)
	})
}
