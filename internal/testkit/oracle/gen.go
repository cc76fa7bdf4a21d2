package oracle

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// shortMs is the deadline of keys that shall pass during a stream, and shortWait the pause that
// makes sure of it on both servers before anything looks at the key.
const (
	shortMs   = "8"
	shortWait = 30 * time.Millisecond
)

// Gen makes streams of commands. The same seed makes the same stream.
type Gen struct {
	rng   *rand.Rand
	table []row
	total int
	id    int // of streams' entries
}

// NewGen returns a generator.
func NewGen(seed uint64) *Gen {
	g := &Gen{rng: rand.New(rand.NewPCG(seed, 0x6b657679))}
	g.table = commandTable()
	for _, r := range g.table {
		g.total += r.weight
	}
	return g
}

// Stream returns about n commands in steps, followed by a look at every key.
func (g *Gen) Stream(n int) []Step {
	var steps []Step
	for n > 0 {
		next := g.steps()
		for _, s := range next {
			n -= len(s.Cmds)
		}
		steps = append(steps, next...)
	}
	return append(steps, closing()...)
}

// closing ends any transaction and looks at every key of the alphabet.
func closing() []Step {
	var steps []Step
	for conn := range numConns {
		steps = append(steps, Step{Conn: conn, Cmds: []Command{{Args: []string{"DISCARD"}}}})
	}
	steps = append(steps, Step{Cmds: []Command{{Args: []string{"KEYS", "*"}}}})
	for _, k := range slices.Concat(keyAlphabet, mixedKeys, []string{lexKey}) {
		s := Step{Conn: 1}
		for _, verb := range []string{"TYPE", "GET", "PTTL"} {
			s.Cmds = append(s.Cmds, Command{Args: []string{verb, k}})
		}
		s.Cmds = append(s.Cmds, Command{Args: []string{"OBJECT", "ENCODING", k}})
		s.Cmds = append(s.Cmds, look(k)...)
		steps = append(steps, s)
	}
	return append(steps, Step{Cmds: []Command{{Args: []string{"DBSIZE"}}}})
}

// steps makes the next unit of a stream.
func (g *Gen) steps() []Step {
	switch p := g.rng.IntN(100); {
	case p < 12:
		return g.transaction()
	case p < 13:
		return []Step{g.shortDeadline()}
	case p < 14:
		return []Step{g.outdated()}
	case p < 35:
		return []Step{g.pipeline()}
	case p < 39:
		return []Step{g.inline()}
	case p < 40:
		return []Step{g.group()}
	case p < 41:
		return []Step{g.consumerGone()}
	case p < 45:
		return []Step{g.single(g.scan())}
	}
	return []Step{g.single(g.command())}
}

func (g *Gen) single(c Command) Step {
	return Step{Conn: g.rng.IntN(numConns), Cmds: []Command{c}}
}

func (g *Gen) pipeline() Step {
	s := Step{Conn: g.rng.IntN(numConns)}
	for range 2 + g.rng.IntN(12) {
		c := g.command()
		c.Inline = g.chance(5)
		s.Cmds = append(s.Cmds, c)
	}
	return s
}

func (g *Gen) inline() Step {
	s := g.single(g.command())
	s.Cmds[0].Inline = true
	return s
}

// transaction makes WATCH, perhaps a write by another connection, MULTI, commands, EXEC: in one
// pipeline or in many.
func (g *Gen) transaction() []Step {
	conn := g.rng.IntN(numConns)
	var cmds []Command
	add := func(args ...string) { cmds = append(cmds, Command{Args: args}) }
	var before []Step
	if g.chance(40) {
		watch := Step{Conn: conn, Cmds: []Command{{Args: []string{"WATCH", g.plainKey(), g.plainKey()}}}}
		before = append(before, watch)
		if g.chance(50) {
			before = append(before, g.single(g.command()))
		}
	}
	add("MULTI")
	for range 1 + g.rng.IntN(6) {
		cmds = append(cmds, g.command())
	}
	if g.chance(90) {
		add("EXEC")
	} else {
		add("DISCARD")
	}
	if g.chance(50) {
		return append(before, Step{Conn: conn, Cmds: cmds})
	}
	for _, c := range cmds {
		before = append(before, Step{Conn: conn, Cmds: []Command{c}})
	}
	return before
}

// shortDeadline gives a key a deadline and waits until it has passed. A transaction is ended before
// it: the deadline must not begin with a later EXEC.
func (g *Gen) shortDeadline() Step {
	k := g.key()
	forms := [][]string{
		{"PEXPIRE", k, shortMs},
		{"SET", k, g.value(), "PX", shortMs},
		{"PSETEX", k, shortMs, g.value()},
		{"GETEX", k, "PX", shortMs},
		{"PEXPIRE", k, shortMs, g.pick([]string{"NX", "XX", "GT", "LT"})},
	}
	s := g.single(Command{Args: []string{"DISCARD"}})
	s.Cmds = append(s.Cmds, Command{Args: forms[g.rng.IntN(len(forms))]})
	s.Sleep = shortWait
	return s
}

// outdated sets a key with a deadline in the past: that deletes it.
func (g *Gen) outdated() Step {
	k := g.plainKey()
	s := g.single(Command{Args: []string{"SET", k, g.value()}})
	again := []string{"SET", k, g.value(), g.pick([]string{"EXAT", "PXAT"}), "1"}
	if g.chance(50) {
		again = append(again, g.pick([]string{"GET", "XX", "NX"}))
	}
	s.Cmds = append(s.Cmds, Command{Args: again})
	return s
}

func (g *Gen) scan() Command {
	args := []string{"SCAN", "0"}
	if g.chance(50) {
		args = append(args, "MATCH", g.pattern())
	}
	if g.chance(50) {
		args = append(args, "COUNT", g.pick([]string{"1", "2", "10", "1000"}))
	}
	if g.chance(20) {
		args = append(args, "TYPE", g.pick([]string{"string", "list", "STRING", "hash", "nosuch"}))
	}
	return Command{Args: args}
}

// command makes one command, sometimes a wrong one.
func (g *Gen) command() Command {
	p := g.rng.IntN(g.total)
	for _, r := range g.table {
		if p -= r.weight; p < 0 {
			return g.spoil(Command{Args: r.make(g)}, r.fixed)
		}
	}
	panic("oracle: weights do not add up")
}

// spoil changes the command's case or arguments now and then.
func (g *Gen) spoil(c Command, fixed bool) Command {
	if g.chance(25) {
		c.Args[0] = g.recase(c.Args[0])
	}
	if fixed || !g.chance(9) {
		return c
	}
	at := g.rng.IntN(len(c.Args))
	switch g.rng.IntN(4) {
	case 0:
		if len(c.Args) > 1 {
			c.Args = c.Args[:len(c.Args)-1]
		}
	case 1:
		c.Args = append(c.Args, g.junk())
	case 2:
		c.Args = append(c.Args, c.Args[at])
	case 3:
		if at > 0 {
			c.Args[at] = g.junk()
		}
	}
	return c
}

func (g *Gen) recase(s string) string {
	if g.chance(70) {
		return strings.ToLower(s)
	}
	b := []byte(strings.ToLower(s))
	for i := range b {
		if g.chance(50) && b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}

func (g *Gen) chance(percent int) bool { return g.rng.IntN(100) < percent }

func (g *Gen) pick(from []string) string { return from[g.rng.IntN(len(from))] }

func (g *Gen) key() string {
	switch p := g.rng.IntN(100); {
	case p < 70:
		return g.plainKey()
	case p < 85:
		return g.pick(mixedKeys)
	}
	return g.pick(keyAlphabet)
}

// plainKey is a key that commands of no type prefer.
func (g *Gen) plainKey() string { return keyAlphabet[g.rng.IntN(6)] }

func (g *Gen) value() string {
	switch p := g.rng.IntN(100); {
	case p < 30:
		return g.pick(intAlphabet)
	case p < 40:
		return g.pick(floatAlphabet)
	}
	return g.pick(valueAlphabet)
}

func (g *Gen) int() string     { return g.pick(intAlphabet) }
func (g *Gen) index() string   { return g.pick(indexAlphabet) }
func (g *Gen) float() string   { return g.pick(floatAlphabet) }
func (g *Gen) pattern() string { return g.pick(patternAlphabet) }

func (g *Gen) junk() string {
	return g.pick([]string{
		"", "junk", "NX", "XX", "GT", "EX", "PX", "KEEPTTL", "GET", "0", "-1", "33177117420000", "\x01", "a",
		"REPLACE", "COUNT", "MATCH", "LEN", "IDX", "'", "\"", "not a number",
	})
}
