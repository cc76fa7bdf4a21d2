package command

import (
	"math"
	"strconv"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const (
	msgCardKeys  = "ERR numkeys should be greater than 0"
	msgCardArgs  = "ERR Number of keys can't be greater than number of args"
	msgCardLimit = "ERR LIMIT can't be negative"
)

// setResult calls f with each member of a result until f returns false.
type setResult func(f func(m []byte) bool) bool

// loadSets finds the sets of keys; missing keys are empty sets. It replies WRONGTYPE and returns !ok if one has
// another type.
func loadSets(c *Ctx, keys [][]byte) (sets []*state.Set, missing, ok bool) {
	all := make([]state.Set, len(keys))
	sets = make([]*state.Set, len(keys))
	for i, key := range keys {
		s, found, ok := lookupSet(c, key)
		if !ok {
			return nil, false, false
		}
		missing = missing || !found
		all[i], sets[i] = s, &all[i]
	}
	return sets, missing, true
}

func interSets(c *Ctx, keys [][]byte) (setResult, bool) {
	sets, missing, ok := loadSets(c, keys)
	if missing {
		return func(func([]byte) bool) bool { return true }, ok
	}
	return func(f func([]byte) bool) bool { return state.Inter(sets, f) }, ok
}

func unionSets(c *Ctx, keys [][]byte) (setResult, bool) {
	sets, _, ok := loadSets(c, keys)
	return func(f func([]byte) bool) bool { return state.Union(sets, f) }, ok
}

func diffSets(c *Ctx, keys [][]byte) (setResult, bool) {
	sets, _, ok := loadSets(c, keys)
	return func(f func([]byte) bool) bool { return state.Diff(sets[0], sets[1:], f) }, ok
}

func planSInter(c *Ctx) { replyMembers(c, interSets) }
func planSUnion(c *Ctx) { replyMembers(c, unionSets) }
func planSDiff(c *Ctx)  { replyMembers(c, diffSets) }

func planSInterStore(c *Ctx) { storeMembers(c, interSets) }
func planSUnionStore(c *Ctx) { storeMembers(c, unionSets) }
func planSDiffStore(c *Ctx)  { storeMembers(c, diffSets) }

func replyMembers(c *Ctx, op func(*Ctx, [][]byte) (setResult, bool)) {
	each, ok := op(c, c.Args[1:])
	if !ok {
		return
	}
	n, start := 0, len(c.W.Buf)
	each(func(m []byte) bool {
		c.W.Bulk(m)
		n++
		return true
	})
	body := len(c.W.Buf)
	c.W.Set(n)
	headerFirst(c.W.Buf, start, body)
}

// headerFirst moves what stands behind body before what stands behind start.
func headerFirst(b []byte, start, body int) {
	var head [64]byte
	n := copy(head[:], b[body:])
	copy(b[start+n:], b[start:body])
	copy(b[start:], head[:n])
}

// storeMembers plans that the destination becomes the set of the result, whatever it was.
func storeMembers(c *Ctx, op func(*Ctx, [][]byte) (setResult, bool)) {
	dst := c.Args[1]
	each, ok := op(c, c.Args[2:])
	if !ok {
		return
	}
	p := storePieces{c: c, key: dst, op: effect.SAdd, drop: true}
	each(func(m []byte) bool { p.add(m); return true })
	p.finish()
}

// planSInterCard plans SINTERCARD numkeys key [key ...] [LIMIT n].
func planSInterCard(c *Ctx) {
	numKeys, ok := parseInt(c.Args[1])
	switch {
	case !ok || numKeys < 1:
		c.W.Error(msgCardKeys)
		return
	case numKeys > int64(len(c.Args)-2):
		c.W.Error(msgCardArgs)
		return
	}
	keys, options := c.Args[2:2+numKeys], c.Args[2+numKeys:]
	limit := int64(0)
	for ; len(options) > 0; options = options[2:] {
		if len(options) == 1 || !isWord(options[0], "limit") {
			c.W.Error(msgSyntax)
			return
		}
		if limit, ok = parseInt(options[1]); !ok || limit < 0 {
			c.W.Error(msgCardLimit)
			return
		}
	}
	sets, missing, ok := loadSets(c, keys)
	switch {
	case !ok:
	case missing:
		c.W.Int(0)
	default:
		c.W.Int(int64(state.InterCard(sets, int(min(limit, math.MaxInt)))))
	}
}

// pieceMembers is the most members of one effect of a large result.
const pieceMembers = 512

// storePieces plans effects on a collection, of bounded size each. It copies the members: they may lie in a
// buffer, or in a record that an effect before theirs changes.
type storePieces struct {
	c     *Ctx
	key   []byte
	op    effect.Op
	drop  bool // the key becomes what is added: what it was goes first
	n     int  // members of the effect begun last
	size  int  // bytes of them
	total int
	keeper
}

func (p *storePieces) add(m []byte) {
	if p.n == pieceMembers || p.size > 1<<20 {
		p.end()
	}
	if p.n == 0 {
		if p.drop && p.total == 0 {
			dropKey(p.c, p.key)
		}
		p.c.beginEffect()
		p.c.addArg(p.key)
		p.size = 0
	}
	p.c.addArg(p.copy(m))
	p.n++
	p.size += len(m)
	p.total++
}

// end plans what has been added.
func (p *storePieces) end() {
	if p.n > 0 {
		p.c.emitOpen(p.c.ShardOf(p.key), p.op)
		p.n = 0
	}
}

// finish ends a store: without members the key goes away. It replies their number.
func (p *storePieces) finish() {
	p.end()
	if p.total == 0 {
		if _, there := p.c.Peek(p.key); there {
			p.c.Emit(effect.Del, p.key)
		}
	}
	p.c.W.Int(int64(p.total))
}

// keeper copies strings that are needed until the command ends.
type keeper struct{ chunk []byte }

func (k *keeper) copy(m []byte) []byte {
	if cap(k.chunk)-len(k.chunk) < len(m) {
		k.chunk = make([]byte, 0, max(len(m), min(2*cap(k.chunk), 1<<20), 256))
	}
	at := len(k.chunk)
	k.chunk = append(k.chunk, m...)
	return k.chunk[at:len(k.chunk):len(k.chunk)]
}

// dropKey plans the removal of a key's record, if there is one, live or not.
func dropKey(c *Ctx, key []byte) {
	if _, _, there := c.find(key); there {
		if _, live := c.Peek(key); live {
			c.Emit(effect.Del, key)
			return
		}
		c.DropExpired(key)
	}
}

// writeScan replies what a scan of a collection's members finds; scan calls write for each and returns the cursor
// to go on from.
func writeScan(c *Ctx, scan func(write func([]byte)) uint64) {
	n, start := 0, len(c.W.Buf)
	next := scan(func(m []byte) {
		c.W.Bulk(m)
		n++
	})
	body := len(c.W.Buf)
	var text [20]byte
	c.W.Array(2)
	c.W.Bulk(strconv.AppendUint(text[:0], next, 10))
	c.W.Array(n)
	headerFirst(c.W.Buf, start, body)
}
