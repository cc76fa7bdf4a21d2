package state

import (
	"fmt"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// Fold applies an effect. It is a pure function of the state and the effect: no clock, no randomness.
// When it returns an error (ErrFold) the state is unchanged. Applying an effect to a state that already
// has it must not fail: a missing key is not an error.
//
// The arguments are copied. They must not alias records of the keyspace, except that an argument may
// alias the value of the one key the effect is about.
func (ks *Keyspace) Fold(e *effect.Effect) (Change, error) {
	if err := e.Validate(); err != nil {
		return Change{}, fmt.Errorf("%w: %w", ErrFold, err)
	}
	c, err := ks.fold(e)
	ks.sought.root = 0
	return c, err
}

func (ks *Keyspace) fold(e *effect.Effect) (Change, error) {
	switch e.Op {
	case effect.Set:
		return ks.foldSet(e)
	case effect.Del:
		return ks.foldDel(e.Args), nil
	case effect.PExpireAt:
		return ks.foldDeadline(e)
	case effect.Persist:
		ks.setDeadline(e.Args[0], NoDeadline)
		return Change{}, nil
	case effect.Append:
		return ks.foldAppend(e)
	case effect.SetRange:
		return ks.foldSetRange(e)
	case effect.MSet:
		return ks.foldMSet(e)
	case effect.FlushAll:
		return ks.foldFlushAll(), nil
	case effect.Function:
		return ks.foldFunction(e)
	}
	return ks.foldCollection(e)
}

// foldCollection folds the effects of the collection types.
func (ks *Keyspace) foldCollection(e *effect.Effect) (Change, error) {
	switch e.Op {
	case effect.LPush, effect.RPush:
		return ks.foldPush(e)
	case effect.LPop, effect.RPop:
		return ks.foldPop(e)
	case effect.LSet:
		return ks.foldLSet(e)
	case effect.LInsert:
		return ks.foldLInsert(e)
	case effect.LRem:
		return ks.foldLRem(e)
	case effect.LTrim:
		return ks.foldLTrim(e)
	case effect.SetBit, effect.BitField:
		return ks.foldBits(e)
	case effect.PFAdd:
		return ks.foldPFAdd(e)
	case effect.SAdd:
		return ks.foldSAdd(e)
	case effect.SRem:
		return ks.foldSRem(e)
	case effect.HSet:
		return ks.foldHSet(e)
	case effect.HDel:
		return ks.foldHDel(e)
	case effect.HPExpireAt:
		return ks.foldHPExpireAt(e)
	case effect.HPersist:
		return ks.foldHPersist(e)
	case effect.ZAdd:
		return ks.foldZAdd(e)
	case effect.ZRem:
		return ks.foldZRem(e)
	}
	return ks.foldStream(e)
}

// foldStream folds the effects of streams.
func (ks *Keyspace) foldStream(e *effect.Effect) (Change, error) {
	switch e.Op {
	case effect.XAdd:
		return ks.foldXAdd(e)
	case effect.XDel:
		return ks.foldXDel(e)
	case effect.XTrim:
		return ks.foldXTrim(e)
	case effect.XSetID:
		return ks.foldXSetID(e)
	case effect.XGroup:
		return ks.foldXGroup(e)
	case effect.XAck:
		return ks.foldXAck(e)
	case effect.XClaim:
		return ks.foldXClaim(e)
	}
	return Change{}, fail(e, "unknown verb")
}

func fail(e *effect.Effect, what string) error { return fmt.Errorf("%w: %s: %s", ErrFold, e.Op, what) }

// fits reports whether key and value are within the limits.
func fits(key []byte, n int) bool { return len(key) <= MaxValue && n <= MaxValue }

func (ks *Keyspace) foldSet(e *effect.Effect) (Change, error) {
	a := e.Args
	deadline := NoDeadline
	if len(a) != 2 {
		var ok bool
		if len(a) != 4 || !isPXAT(a[2]) {
			return Change{}, fail(e, "options")
		}
		if deadline, ok = parseDeadline(a[3]); !ok {
			return Change{}, fail(e, "deadline")
		}
	}
	if !fits(a[0], len(a[1])) {
		return Change{}, fail(e, "too long")
	}
	return Change{Created: ks.set(a[0], a[1], deadline)}, nil
}

func (ks *Keyspace) foldMSet(e *effect.Effect) (c Change, err error) {
	a := e.Args
	for i := 0; i < len(a); i += 2 {
		if !fits(a[i], len(a[i+1])) {
			return c, fail(e, "too long")
		}
	}
	for i := 0; i < len(a); i += 2 {
		c.Created += ks.set(a[i], a[i+1], NoDeadline)
	}
	return c, nil
}

func (ks *Keyspace) foldDel(keys [][]byte) (c Change) {
	for _, k := range keys {
		h := Hash(ks.seed, k)
		if r := ks.idx.find(h, k); r != 0 {
			ks.drop(h, r)
			c.Removed++
		}
	}
	return c
}

func (ks *Keyspace) foldDeadline(e *effect.Effect) (Change, error) {
	ms, ok := parseDeadline(e.Args[1])
	if !ok {
		return Change{}, fail(e, "deadline")
	}
	ks.setDeadline(e.Args[0], ms)
	return Change{}, nil
}

func (ks *Keyspace) foldAppend(e *effect.Effect) (Change, error) {
	key, suffix := e.Args[0], e.Args[1]
	h := Hash(ks.seed, key)
	r := ks.idx.find(h, key)
	if r == 0 {
		if !fits(key, len(suffix)) {
			return Change{}, fail(e, "too long")
		}
		ks.create(h, key, suffix, NoDeadline, byte(TypeString))
		return Change{Created: 1}, nil
	}
	if !ks.isString(r) {
		return Change{}, fail(e, wrongType)
	}
	n := len(valueOf(ks.a, r))
	if !fits(key, n+len(suffix)) {
		return Change{}, fail(e, "too long")
	}
	ks.patch(h, r, n, suffix)
	return Change{}, nil
}

func (ks *Keyspace) foldSetRange(e *effect.Effect) (Change, error) {
	key, data := e.Args[0], e.Args[2]
	off, ok := parseInt(e.Args[1])
	if !ok || off < 0 || off > MaxValue || !fits(key, int(off)+len(data)) {
		return Change{}, fail(e, "offset")
	}
	if len(data) == 0 {
		return Change{}, nil
	}
	h := Hash(ks.seed, key)
	if r := ks.idx.find(h, key); r != 0 {
		if !ks.isString(r) {
			return Change{}, fail(e, wrongType)
		}
		ks.patch(h, r, int(off), data)
		return Change{}, nil
	}
	ks.patch(h, ks.create(h, key, nil, NoDeadline, byte(TypeString)), int(off), data)
	return Change{Created: 1}, nil
}

// foldFlushAll swaps in an empty keyspace. The old one's memory goes back in the background, once the last
// view is closed.
func (ks *Keyspace) foldFlushAll() Change {
	c := Change{Removed: ks.Len(), Flushed: true}
	old := ks.a
	ks.reset()
	old.Retire()
	return c
}

const wrongType = "the key has another type"

func (ks *Keyspace) isString(r arena.Ref) bool {
	return Type(ks.a.Tail(r)[offFlags]&typeMask) == TypeString
}

func isPXAT(b []byte) bool {
	return len(b) == 4 && b[0]|0x20 == 'p' && b[1]|0x20 == 'x' && b[2]|0x20 == 'a' && b[3]|0x20 == 't'
}

// parseDeadline parses a deadline: unix milliseconds, greater than zero.
func parseDeadline(b []byte) (ms int64, ok bool) {
	ms, ok = parseInt(b)
	return ms, ok && ms > 0
}

// parseInt parses a canonical decimal int64: what formatting the number would give.
func parseInt(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && (len(b) > 1 || neg) {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if neg {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// drop removes a record.
func (ks *Keyspace) drop(h uint64, r arena.Ref) {
	b := ks.a.Tail(r)
	ks.idx.remove(h, r)
	if ks.bulk {
		ks.arrived.move(r, 0)
	} else {
		ks.ord.remove(keyOf(ks.a, r), r)
		ks.dl.change(deadlineOf(b), r, NoDeadline, 0)
	}
	kind, block := Type(b[offFlags]&typeMask), ks.detach(r, b)
	if kind == TypeHash {
		ks.moveFields(fieldDeadline(ks.a, r), r, NoDeadline, 0)
	}
	ks.bytes -= int64(capacity(ks.a, r, b))
	ks.a.Free(r)
	ks.discard(kind, block)
}
