package command

import (
	"bytes"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// planDel plans DEL and UNLINK: one DEL for every shard, naming every live key once.
func planDel(c *Ctx) {
	if len(c.Args) == 2 {
		if _, ok := c.Peek(c.Args[1]); ok {
			c.Emit(effect.Del, c.Args[1])
			c.W.Int(1)
			return
		}
		c.W.Int(0)
		return
	}
	keys := c.Args[1:]
	seen := newKeySet(keys)
	c.homes = c.homes[:0]
	removed := 0
	for i, key := range keys {
		home := -1
		if _, ok := c.Peek(key); ok && seen.add(i) {
			home = c.ShardOf(key)
			removed++
		}
		c.homes = append(c.homes, home)
	}
	c.eachHome(func(shard int) {
		c.beginEffect()
		for i, home := range c.homes {
			if home == shard {
				c.addArg(keys[i])
			}
		}
		c.emitOpen(shard, effect.Del)
	})
	c.W.Int(int64(removed))
}

// eachHome calls f, which plans an effect, with every shard in c.homes once, in the order in which they first appear
// there: the effects of a command follow its arguments as far as shards allow.
func (c *Ctx) eachHome(f func(shard int)) {
	var done uint64
	at := len(c.planned)
	for _, home := range c.homes {
		if home < 0 || done>>home&1 != 0 {
			continue
		}
		done |= 1 << home
		f(home)
	}
	if planned := c.planned[at:]; len(planned) > 1 {
		for i := range planned {
			planned[i].Whole = c.Args
		}
	}
}

// keySet tells repeated keys of one request apart. Few keys are compared, many are hashed.
type keySet struct {
	keys [][]byte
	m    map[string]struct{}
}

func newKeySet(keys [][]byte) *keySet {
	s := &keySet{keys: keys}
	if len(keys) > 16 {
		s.m = make(map[string]struct{}, len(keys))
	}
	return s
}

// add reports whether key i is not the same as one before it (with a map: one added before it).
func (s *keySet) add(i int) bool {
	key := s.keys[i]
	if s.m != nil {
		n := len(s.m)
		s.m[string(key)] = struct{}{}
		return len(s.m) > n
	}
	for _, k := range s.keys[:i] {
		if bytes.Equal(k, key) {
			return false
		}
	}
	return true
}

func planExists(c *Ctx) {
	n := int64(0)
	for _, key := range c.Args[1:] {
		if _, ok := c.Glance(key); ok {
			n++
		}
	}
	c.W.Int(n)
}

func planTouch(c *Ctx) {
	n := int64(0)
	for _, key := range c.Args[1:] {
		if _, ok := c.Lookup(key); ok {
			n++
		}
	}
	c.W.Int(n)
}

func planType(c *Ctx) {
	e, ok := c.Glance(c.Args[1])
	if !ok {
		c.W.Simple(state.TypeNone.String())
		return
	}
	c.W.Simple(e.Type().String())
}

func planRename(c *Ctx) {
	if runRename(c, false) {
		c.W.OK()
	}
}

func planRenameNX(c *Ctx) {
	if runRename(c, true) {
		c.W.Int(1)
	}
}

// runRename plans a rename; it reports false when it has replied already.
func runRename(c *Ctx, onlyNew bool) bool {
	from, to := c.Args[1], c.Args[2]
	e, ok := c.Lookup(from)
	if !ok {
		c.W.Error(msgNoKey)
		return false
	}
	if bytes.Equal(from, to) {
		if onlyNew {
			c.W.Int(0)
			return false
		}
		return true
	}
	if onlyNew {
		if _, ok := c.Peek(to); ok {
			c.W.Int(0)
			return false
		}
	}
	emitCopy(c, e, from, to)
	c.Emit(effect.Del, from)
	return true
}

// emitCopy plans the effects that make the key to equal the live key from, whatever to held before.
func emitCopy(c *Ctx, e state.Entry, from, to []byte) {
	if e.Type() != state.TypeString { // SET replaces any value by itself
		if _, _, there := c.find(to); there {
			c.Emit(effect.Del, to)
		}
	}
	shard := c.ShardOf(to)
	c.Shards[c.ShardOf(from)].Rebuild(e, func(r effect.Effect) {
		c.beginEffect()
		at := r.Op.KeyAt()
		c.args = append(append(append(c.args, r.Args[:at]...), to), r.Args[at+1:]...)
		c.emitOpen(shard, r.Op)
	})
	if e.Type() != state.TypeString {
		c.mark(encodingHint(c.Shards[c.ShardOf(from)].Hint(e)))
	}
	if e.Type() == state.TypeStream {
		if times := timesOf(c.Shards[c.ShardOf(from)].Stream(e)); times != nil {
			c.mark(times)
		}
	}
}

// encodingHint is a Mark: what OBJECT ENCODING goes by.
type encodingHint byte

// Set implements Mark.
func (h encodingHint) Set(ks *state.Keyspace, e *effect.Effect) {
	if entry, ok := ks.Lookup(e.Args[e.Op.KeyAt()]); ok {
		ks.SetHint(entry, byte(h))
	}
}

// copyOptions are what COPY asks for.
type copyOptions struct{ replace bool }

// parseCopy reads the options behind the two keys: [DB n] [REPLACE].
func parseCopy(args [][]byte) (o copyOptions, bad errorText) {
	for i := 0; i < len(args); i++ {
		switch {
		case isWord(args[i], "replace"):
			o.replace = true
		case isWord(args[i], "db") && i+1 < len(args):
			i++
			if bad = dbArg(args[i]); bad != "" {
				return o, bad
			}
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

func planCopy(c *Ctx) {
	from, to := c.Args[1], c.Args[2]
	o, bad := parseCopy(c.Args[3:])
	switch {
	case bad != "":
		c.W.Error(bad)
		return
	case bytes.Equal(from, to):
		c.W.Error(msgSameObject)
		return
	}
	e, ok := c.Lookup(from)
	if !ok {
		c.W.Int(0)
		return
	}
	if _, there := c.Peek(to); there && !o.replace {
		c.W.Int(0)
		return
	}
	emitCopy(c, e, from, to)
	c.W.Int(1)
}

// planMove plans MOVE: with one database, there is nowhere to move a key to.
func planMove(c *Ctx) {
	if bad := dbArg(c.Args[2]); bad != "" {
		c.W.Error(bad)
		return
	}
	c.W.Error(msgSameObject)
}
