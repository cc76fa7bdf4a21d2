package effect

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Op is the code of an effect's verb in a frame header. The numbers are wire format: never
// renumber, never reuse; add new ones at the end.
type Op uint8

// The effects of strings, keys and expiry.
const (
	Invalid   Op = 0
	Set       Op = 1 // SET key value [PXAT ms]
	Del       Op = 2 // DEL key...            only keys that existed
	PExpireAt Op = 3 // PEXPIREAT key ms
	Persist   Op = 4 // PERSIST key
	Append    Op = 5 // APPEND key value
	SetRange  Op = 6 // SETRANGE key offset value
	MSet      Op = 7 // MSET key value...
	FlushAll  Op = 8 // FLUSHALL              last frame of its generation
	// 16 to 23 hashes, 24 to 35 lists, 40 to 43 sorted sets, 44 to 59 streams, 60 to 67 bits and
	// HyperLogLog, 68 to 71 functions.
	LPush   Op = 24 // LPUSH key element...
	RPush   Op = 25 // RPUSH key element...
	LPop    Op = 26 // LPOP key [count]
	RPop    Op = 27 // RPOP key [count]
	LSet    Op = 28 // LSET key index element
	LInsert Op = 29 // LINSERT key BEFORE|AFTER pivot element
	LRem    Op = 30 // LREM key count element
	LTrim   Op = 31 // LTRIM key start stop

	HSet       Op = 16 // HSET key field value...          ends the fields' deadlines
	HDel       Op = 17 // HDEL key field...
	HPExpireAt Op = 18 // HPEXPIREAT key ms FIELDS n field...
	HPersist   Op = 19 // HPERSIST key FIELDS n field...

	SAdd Op = 36 // SADD key member...
	SRem Op = 37 // SREM key member...
	ZAdd Op = 40 // ZADD key score member...   final scores
	ZRem Op = 41 // ZREM key member...

	XAdd   Op = 44 // XADD key id field value...
	XDel   Op = 45 // XDEL key id...
	XTrim  Op = 46 // XTRIM key MINID|MAXLEN = id|count
	XSetID Op = 47 // XSETID key id ENTRIESADDED n MAXDELETEDID id
	XGroup Op = 48 // XGROUP CREATE|SETID|DESTROY|CREATECONSUMER|DELCONSUMER key group ...
	XAck   Op = 49 // XACK key group id...
	XClaim Op = 50 // XCLAIM key group consumer 0 id... TIME ms RETRYCOUNT n FORCE JUSTID LASTID id
	// FUNCTION LOAD REPLACE code | DELETE library | FLUSH: no key; shard 0 keeps the libraries
	Function Op = 68
	SetBit   Op = 60 // SETBIT key offset bit
	BitField Op = 61 // BITFIELD key SET type offset value...
	PFAdd    Op = 62 // PFADD key element...
	// -- add new effects here --
)

// KeyLayout says where the keys of an effect stand in its arguments.
type KeyLayout uint8

// The layouts.
const (
	NoKeys    KeyLayout = iota // FLUSHALL: concerns every key
	FirstKey                   // the first argument
	AllKeys                    // every argument
	PairKeys                   // every second argument, from the first
	Keyless                    // FUNCTION: concerns no key at all; shard 0 logs it
	SecondKey                  // the second argument: the first is a subcommand
)

type spec struct {
	verb    string
	layout  KeyLayout
	minArgs int
	maxArgs int // -1: any
}

var specs = [...]spec{
	Set:        {"SET", FirstKey, 2, 4},
	Del:        {"DEL", AllKeys, 1, -1},
	PExpireAt:  {"PEXPIREAT", FirstKey, 2, 2},
	Persist:    {"PERSIST", FirstKey, 1, 1},
	Append:     {"APPEND", FirstKey, 2, 2},
	SetRange:   {"SETRANGE", FirstKey, 3, 3},
	MSet:       {"MSET", PairKeys, 2, -1},
	FlushAll:   {"FLUSHALL", NoKeys, 0, 0},
	LPush:      {"LPUSH", FirstKey, 2, -1},
	RPush:      {"RPUSH", FirstKey, 2, -1},
	LPop:       {"LPOP", FirstKey, 1, 2},
	RPop:       {"RPOP", FirstKey, 1, 2},
	LSet:       {"LSET", FirstKey, 3, 3},
	LInsert:    {"LINSERT", FirstKey, 4, 4},
	LRem:       {"LREM", FirstKey, 3, 3},
	LTrim:      {"LTRIM", FirstKey, 3, 3},
	HSet:       {"HSET", FirstKey, 3, -1},
	HDel:       {"HDEL", FirstKey, 2, -1},
	HPExpireAt: {"HPEXPIREAT", FirstKey, 5, -1},
	HPersist:   {"HPERSIST", FirstKey, 4, -1},
	SetBit:     {"SETBIT", FirstKey, 3, 3},
	BitField:   {"BITFIELD", FirstKey, 5, -1},
	PFAdd:      {"PFADD", FirstKey, 1, -1},
	SAdd:       {"SADD", FirstKey, 2, -1},
	SRem:       {"SREM", FirstKey, 2, -1},
	ZAdd:       {"ZADD", FirstKey, 3, -1},
	ZRem:       {"ZREM", FirstKey, 2, -1},
	XAdd:       {"XADD", FirstKey, 4, -1},
	XDel:       {"XDEL", FirstKey, 2, -1},
	XTrim:      {"XTRIM", FirstKey, 4, 4},
	XSetID:     {"XSETID", FirstKey, 6, 6},
	XGroup:     {"XGROUP", SecondKey, 3, 7},
	XAck:       {"XACK", FirstKey, 3, -1},
	XClaim:     {"XCLAIM", FirstKey, 13, -1},
	Function:   {"FUNCTION", Keyless, 1, 3},
}

var byVerb = func() map[string]Op {
	m := make(map[string]Op, len(specs))
	for op, s := range specs {
		if s.verb != "" {
			m[s.verb] = Op(op)
		}
	}
	return m
}()

// verbs are what the payloads of effects have between the count and the arguments, by Op.
var verbs = func() (v [math.MaxUint8 + 1][]byte) {
	for op, s := range specs {
		if s.verb != "" {
			v[op] = append(append(appendHeader(nil, '$', len(s.verb)), s.verb...), "\r\n"...)
		}
	}
	return v
}()

// ErrUnknown is the class of "no such effect": a frame or an argv whose verb this version does
// not know. ErrMalformed is a known effect with arguments it cannot have.
var (
	ErrUnknown   = errors.New("effect: unknown verb")
	ErrMalformed = errors.New("effect: malformed")
)

// Ops returns every effect this version knows, in wire order.
func Ops() []Op {
	var ops []Op
	for op, s := range specs {
		if s.verb != "" {
			ops = append(ops, Op(op))
		}
	}
	return ops
}

// Known reports whether op is an effect of this version.
func (op Op) Known() bool { return int(op) < len(specs) && specs[op].verb != "" }

// String returns the verb.
func (op Op) String() string {
	if !op.Known() {
		return "effect(" + strconv.Itoa(int(op)) + ")"
	}
	return specs[op].verb
}

// Keys returns where the keys of the effect stand.
func (op Op) Keys() KeyLayout { return specs[op].layout }

// KeyAt returns which argument is the first key. REQUIRES: the effect has keys.
func (op Op) KeyAt() int {
	if specs[op].layout == SecondKey {
		return 1
	}
	return 0
}

// Effect is one effect: its verb and the arguments after the verb. The slices belong to whoever
// made the effect; nobody keeps them beyond the call they were passed to.
type Effect struct {
	Op   Op
	Args [][]byte
}

// Validate reports whether the argument count fits the verb. It does not look into values: the
// fold does, and refuses what it cannot apply.
func (e *Effect) Validate() error {
	if !e.Op.Known() {
		return fmt.Errorf("%w: code %d", ErrUnknown, e.Op)
	}
	s := &specs[e.Op]
	n := len(e.Args)
	if n < s.minArgs || (s.maxArgs >= 0 && n > s.maxArgs) || (s.layout == PairKeys && n%2 != 0) {
		return fmt.Errorf("%w: %s with %d arguments", ErrMalformed, s.verb, n)
	}
	return nil
}

// SingleKey returns the key when the effect has the plain single-key shape, the only shape a
// prefix filter may test: every other frame is always delivered.
func (e *Effect) SingleKey() ([]byte, bool) {
	//exhaustive:enforce
	switch specs[e.Op].layout {
	case FirstKey:
		return e.Args[0], true
	case SecondKey:
		return e.Args[1], true
	case AllKeys:
		if len(e.Args) == 1 {
			return e.Args[0], true
		}
	case PairKeys, NoKeys, Keyless:
	}
	return nil, false
}

// EachKey calls f with every key of the effect.
func (e *Effect) EachKey(f func(key []byte)) {
	//exhaustive:enforce
	switch specs[e.Op].layout {
	case FirstKey:
		f(e.Args[0])
	case SecondKey:
		f(e.Args[1])
	case AllKeys:
		for _, k := range e.Args {
			f(k)
		}
	case PairKeys:
		for i := 0; i < len(e.Args); i += 2 {
			f(e.Args[i])
		}
	case NoKeys, Keyless:
	}
}

// AppendPayload appends the effect's argv in RESP to dst and returns it, together with the
// position of the single key inside the payload (0 when the effect has none).
// REQUIRES: e.Validate() == nil.
func AppendPayload(dst []byte, e *Effect) (out []byte, keyPos int) {
	start := len(dst)
	dst = appendHeader(dst, '*', len(e.Args)+1)
	dst = append(dst, verbs[e.Op]...)
	_, single := e.SingleKey()
	at := e.Op.KeyAt()
	for i, a := range e.Args {
		dst = appendHeader(dst, '$', len(a))
		if i == at && single {
			keyPos = len(dst) - start
		}
		dst = append(dst, a...)
		dst = append(dst, '\r', '\n')
	}
	return dst, keyPos
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	if n < 10 {
		return append(dst, kind, byte('0'+n), '\r', '\n')
	}
	if n < 100 {
		return append(dst, kind, byte('0'+n/10), byte('0'+n%10), '\r', '\n')
	}
	dst = append(dst, kind)
	dst = strconv.AppendUint(dst, uint64(n), 10)
	return append(dst, '\r', '\n')
}

// Decode parses a payload written by AppendPayload into e, reusing e.Args. The arguments alias
// the payload. The verb is looked for as the one that e has, first. It is strict: anything AppendPayload would not have written is ErrMalformed.
func Decode(payload []byte, e *Effect) error {
	n, rest, err := header(payload, '*')
	if err != nil {
		return err
	}
	if n < 1 || n > len(payload) {
		return fmt.Errorf("%w: argument count %d", ErrMalformed, n)
	}
	if same := verbs[e.Op]; len(same) > 0 && bytes.HasPrefix(rest, same) {
		rest = rest[len(same):]
	} else {
		var verb []byte
		if verb, rest, err = bulk(rest); err != nil {
			return err
		}
		op, ok := byVerb[string(verb)]
		if !ok {
			return fmt.Errorf("%w: %.20q", ErrUnknown, verb)
		}
		e.Op = op
	}
	e.Args = e.Args[:0]
	for range n - 1 {
		var a []byte
		if a, rest, err = bulk(rest); err != nil {
			return err
		}
		e.Args = append(e.Args, a)
	}
	if len(rest) != 0 {
		return fmt.Errorf("%w: %d bytes after the last argument", ErrMalformed, len(rest))
	}
	return e.Validate()
}

// DecodeArgv parses a payload into its argv, verb included, appending to argv. The elements alias
// the payload. It accepts verbs this version does not know.
func DecodeArgv(payload []byte, argv [][]byte) ([][]byte, error) {
	n, rest, err := header(payload, '*')
	if err != nil {
		return argv, err
	}
	if n < 1 || n > len(payload) {
		return argv, fmt.Errorf("%w: argument count %d", ErrMalformed, n)
	}
	for range n {
		var a []byte
		if a, rest, err = bulk(rest); err != nil {
			return argv, err
		}
		argv = append(argv, a)
	}
	if len(rest) != 0 {
		return argv, fmt.Errorf("%w: %d bytes after the last argument", ErrMalformed, len(rest))
	}
	return argv, nil
}

// FromArgv makes an effect of an argv as FEED.READ delivers it: the verb first. The effect aliases
// the argv.
func FromArgv(argv [][]byte) (Effect, error) {
	if len(argv) == 0 {
		return Effect{}, fmt.Errorf("%w: empty argv", ErrMalformed)
	}
	op, ok := byVerb[string(bytes.ToUpper(argv[0]))]
	if !ok {
		return Effect{}, fmt.Errorf("%w: %.20q", ErrUnknown, argv[0])
	}
	e := Effect{Op: op, Args: argv[1:]}
	return e, e.Validate()
}

// header parses a length behind its kind: lengths of one and two digits, which most are, without a loop.
func header(b []byte, kind byte) (n int, rest []byte, err error) {
	if len(b) < 4 || b[0] != kind {
		return 0, nil, fmt.Errorf("%w: expected %q", ErrMalformed, kind)
	}
	if d := b[1] - '0'; d <= 9 && b[2] == '\r' && b[3] == '\n' {
		return int(d), b[4:], nil
	} else if e := b[2] - '0'; len(b) > 4 && d-1 <= 8 && e <= 9 && b[3] == '\r' && b[4] == '\n' {
		return 10*int(d) + int(e), b[5:], nil
	}
	i := 1
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i > 10 || n > (math.MaxInt32-9)/10 {
			return 0, nil, fmt.Errorf("%w: length too long", ErrMalformed)
		}
		n = n*10 + int(b[i]-'0')
	}
	if i == 1 || (b[1] == '0' && i > 2) || i+2 > len(b) || b[i] != '\r' || b[i+1] != '\n' {
		return 0, nil, fmt.Errorf("%w: bad length", ErrMalformed)
	}
	return n, b[i+2:], nil
}

func bulk(b []byte) (arg, rest []byte, err error) {
	n, rest, err := header(b, '$')
	if err != nil {
		return nil, nil, err
	}
	if n+2 > len(rest) || rest[n] != '\r' || rest[n+1] != '\n' {
		return nil, nil, fmt.Errorf("%w: bad argument", ErrMalformed)
	}
	return rest[:n:n], rest[n+2:], nil
}
