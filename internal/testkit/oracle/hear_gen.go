package oracle

import (
	"slices"
	"strings"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// hearGen makes streams of clients that hear of each other. It has the pools of Gen and a table of its own.
type hearGen struct {
	*Gen
	rows  []row
	begin []Step              // of every stream
	step  func(*hearGen) Step // but for the rows'
	rest  int                 // percentage of steps that step makes
	apart []string            // commands that are in no transaction
	lone  func(Command) bool  // which ones are a step by themselves
}

// hearLen is the number of steps in one stream.
const hearLen = 150

func (g *hearGen) stream() []Step {
	steps := slices.Clone(g.begin)
	for range hearLen {
		steps = append(steps, g.next())
	}
	return steps
}

// next makes a step.
func (g *hearGen) next() Step {
	if g.chance(g.rest) {
		return g.step(g)
	}
	return g.byRows()
}

// byRows makes a step of the table's commands.
func (g *hearGen) byRows() Step {
	conn := g.rng.IntN(numHearing)
	switch p := g.rng.IntN(100); {
	case p < 15:
		s := Step{Conn: conn}
		for range 2 + g.rng.IntN(4) {
			if cmds := g.own(); !slices.ContainsFunc(cmds, g.lone) {
				s.Cmds = append(s.Cmds, cmds...)
			}
		}
		if len(s.Cmds) > 0 {
			return s
		}
	case p < 20:
		return Step{Conn: conn, Cmds: g.wrapped(g.queued)}
	}
	return Step{Conn: conn, Cmds: g.own()}
}

// kills reports whether a command ends other connections: kevy's loops let their subscriptions go a moment later.
func kills(c Command) bool { return c.Sub() == "KILL" }

// turnsTracking reports whether a command shows whom its client redirects to, or changes who is told what of keys with a prefix: Redis tells of those when its
// event loop has done all that was sent, kevy behind each command.
func turnsTracking(c Command) bool {
	switch c.Name() {
	case "RESET", "HELLO", "SUBSCRIBE", "UNSUBSCRIBE":
		return true
	}
	return kills(c) || c.Sub() == "GETREDIR" || c.Sub() == "TRACKINGINFO" || c.Sub() == "TRACKING" && (slices.Contains(c.Args, "OFF") || slices.Contains(c.Args, "BCAST"))
}

// queued makes a command for a transaction: one with one reply.
func (g *hearGen) queued() Command {
	for {
		c := g.from(g.rows)
		one := len(c.Args) == 2 || !slices.Contains(changeWords, strings.ToLower(c.Name()))
		if one && !slices.Contains(g.apart, c.Name()) && !g.lone(c) {
			return c
		}
	}
}

// own makes a command of the table, behind CLIENT CACHING also one that it is for.
func (g *hearGen) own() []Command {
	c := g.from(g.rows)
	if c.Name() == "CLIENT" && c.Sub() == "CACHING" {
		return []Command{c, g.from(g.rows)}
	}
	return []Command{c}
}

// wrapped is a transaction in one pipeline: no connection has one open when the next step begins.
func (g *Gen) wrapped(next func() Command) []Command {
	cmds := []Command{{Args: []string{"MULTI"}}}
	for range 1 + g.rng.IntN(5) {
		cmds = append(cmds, next())
	}
	return append(cmds, Command{Args: []string{"EXEC"}})
}

// data makes a command on keys, or any other that leaves the connection as it is.
func (g *Gen) data() Command {
	for {
		c := g.command()
		switch c.Name() {
		case "MULTI", "EXEC", "DISCARD", "WATCH", "RESET", "HELLO", "CLIENT", "AUTH":
		case "SORT": // the order in which it looks for keys is left open
			if !slices.ContainsFunc(c.Args, func(a string) bool { return strings.EqualFold(a, "GET") || strings.EqualFold(a, "BY") }) {
				return c
			}
		case "SET": // one whose deadline has passed is an event before Redis finds that
			if !slices.Contains(c.Args, "1") || !slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasSuffix(strings.ToUpper(a), "XAT") }) {
				return c
			}
		case "LTRIM", "PFMERGE", "XSETID": // one that removes, raises or moves nothing is an event in Redis only
		case "XGROUP":
			if c.Sub() != "SETID" {
				return c
			}
		case "LMOVE", "BLMOVE", "RPOPLPUSH", "BRPOPLPUSH": // so is one that moves nothing
			if len(c.Args) < 3 || c.Args[1] != c.Args[2] {
				return c
			}
		default:
			return c
		}
	}
}

// dataStep makes what a client does that hears nothing.
func (g *Gen) dataStep() Step {
	conn := numHearing/2 + g.rng.IntN(numHearing/2)
	switch p := g.rng.IntN(100); {
	case p < 5:
		s := g.shortDeadline()
		return Step{Conn: conn, Cmds: s.Cmds[1:], Sleep: s.Sleep}
	case p < 15:
		return Step{Conn: conn, Cmds: g.wrapped(g.data)}
	case p < 25:
		s := Step{Conn: conn}
		for range 2 + g.rng.IntN(6) {
			s.Cmds = append(s.Cmds, g.data())
		}
		return s
	case p < 27:
		s := g.group()
		s.Conn = conn
		return s
	}
	return Step{Conn: conn, Cmds: []Command{g.data()}}
}

var hearPools = map[string][]string{
	"C":  {"news", "news", "a", "b", "k:1", "", "\x00\xff", "with space", "{tag}x"},
	"CP": {"*", "n*", "news", "[ab]", "?", "k:?", "", "nosuch*", "\\a"},
	"@":  {"@0", "@1", "@2", "@3", "@4", "@5", "0", "999999", "x"},
	"KN": {"KEA", "KEA", "KEA", "AKE", "K$", "Elg", "Kx", "Ex", "KEg$lshzxetd", "KEm", "KEAm", "KEn", "KEg$n", "A", "", "KEq", "lE"},
	"TP": {"", "k", "k:", "a", "h", "l1", "x", "user:"},
	"TK": {"a", "b", "k:1", "k:2", "h1", "l1", "user:*"},
}

// publishScript publishes to both kinds of channels.
const publishScript = "redis.call('SPUBLISH', KEYS[1], ARGV[1]) return redis.call('PUBLISH', KEYS[1], ARGV[1])"

var pubsubForms = []form{
	{12, false, "SUBSCRIBE C"},
	{6, false, "SUBSCRIBE C C C"},
	{5, false, "UNSUBSCRIBE C C"},
	{3, true, "UNSUBSCRIBE"},
	{8, false, "PSUBSCRIBE CP"},
	{3, false, "PSUBSCRIBE CP CP"},
	{3, false, "PUNSUBSCRIBE CP"},
	{2, true, "PUNSUBSCRIBE"},
	{7, false, "SSUBSCRIBE C C"},
	{3, false, "SUNSUBSCRIBE C"},
	{2, true, "SUNSUBSCRIBE"},
	{40, false, "PUBLISH C v"},
	{15, false, "SPUBLISH C v"},
	{4, false, "PUBSUB CHANNELS"},
	{4, false, "PUBSUB CHANNELS CP"},
	{1, false, "PUBSUB CHANNELS CP CP"},
	{4, false, "PUBSUB NUMSUB C C C"},
	{1, false, "PUBSUB NUMSUB"},
	{3, false, "PUBSUB NUMPAT"},
	{3, false, "PUBSUB SHARDCHANNELS CP"},
	{2, false, "PUBSUB SHARDCHANNELS"},
	{3, false, "PUBSUB SHARDNUMSUB C C"},
	{1, false, "PUBSUB foo C"},
	{4, false, "PING"},
	{3, false, "PING v"},
	{3, false, "SET k v"},
	{3, false, "GET k"},
	{2, false, "ECHO v"},
	{2, true, "RESET"},
	{2, true, "QUIT"},
	{2, true, "HELLO 2"},
	{2, true, "HELLO 3"},
	{4, false, "CLIENT INFO"},
	{1, true, "CLIENT KILL TYPE pubsub"},
	{2, true, "CLIENT KILL ID @"},
}

// unqueued are the commands that transactions do not have: those that run at once, and beside 7.0 those that publish, as
// it puts a message to the client itself amid the reply of EXEC.
func unqueued(seventh bool) []string {
	if seventh {
		return []string{"RESET", "QUIT", "HELLO", "PUBLISH", "SPUBLISH", "EVAL"}
	}
	return []string{"RESET", "QUIT", "HELLO"}
}

func newPubSubGen(seed uint64, seventh bool) *hearGen {
	g := &hearGen{Gen: NewGen(seed), rows: formRows(pubsubForms), apart: unqueued(seventh), lone: kills}
	g.rows = append(g.rows, row{weight: 4, fixed: true, make: func(g *Gen) []string {
		return []string{"EVAL", publishScript, "1", g.pick(pools["C"]), g.value()}
	}})
	return g
}

var notifyForms = []form{
	{6, false, "CONFIG SET notify-keyspace-events KN"},
	{2, false, "CONFIG GET notify-keyspace-events"},
}

func newNotifyGen(seed uint64) *hearGen {
	listen := func(conn int, args ...string) Step { return Step{Conn: conn, Cmds: []Command{{Args: args}}} }
	return &hearGen{
		Gen:  NewGen(seed),
		rows: formRows(notifyForms),
		lone: kills,
		begin: []Step{
			listen(0, "PSUBSCRIBE", "__key*"),
			listen(1, "PSUBSCRIBE", "__keyspace@0__:*", "__keyevent@0__:*"),
			listen(2, "SUBSCRIBE", "__keyevent@0__:del", "__keyevent@0__:expired", "__keyspace@0__:a"),
			listen(numHearing-1, "CONFIG", "SET", "notify-keyspace-events", "KEA"),
		},
		step: func(g *hearGen) Step { return g.dataStep() },
		rest: 95,
	}
}

var trackingForms = []form{
	{6, false, "CLIENT TRACKING ON"},
	{4, false, "CLIENT TRACKING ON NOLOOP"},
	{4, false, "CLIENT TRACKING ON OPTIN"},
	{4, false, "CLIENT TRACKING ON OPTOUT NOLOOP"},
	{4, false, "CLIENT TRACKING ON BCAST"},
	{4, false, "CLIENT TRACKING ON BCAST NOLOOP PREFIX TP"},
	{3, false, "CLIENT TRACKING ON BCAST PREFIX TP PREFIX TP"},
	{3, true, "CLIENT TRACKING ON REDIRECT @"},
	{2, true, "CLIENT TRACKING ON BCAST REDIRECT @ PREFIX TP"},
	{1, true, "CLIENT TRACKING ON OPTIN OPTOUT"},
	{1, true, "CLIENT TRACKING ON OPTIN BCAST"},
	{1, true, "CLIENT TRACKING ON PREFIX TP"},
	{8, false, "CLIENT TRACKING OFF"},
	{1, false, "CLIENT TRACKING foo"},
	{8, true, "CLIENT CACHING YES"},
	{6, true, "CLIENT CACHING NO"},
	{1, true, "CLIENT CACHING foo"},
	{4, false, "CLIENT TRACKINGINFO"},
	{3, false, "CLIENT GETREDIR"},
	{3, false, "CLIENT INFO"},
	{3, true, "SUBSCRIBE __redis__:invalidate"},
	{2, true, "UNSUBSCRIBE"},
	{1, true, "RESET"},
	{2, true, "HELLO 2"},
	{2, true, "HELLO 3"},
	{2, true, "CLIENT KILL ID @"},
	{20, false, "GET TK"},
	{10, false, "MGET TK TK TK"},
	{6, false, "TYPE TK"},
	{4, false, "EXISTS TK k"},
	{6, false, "HGETALL h"},
	{6, false, "LRANGE l 0 -1"},
	{4, false, "SINTER s s"},
	{3, false, "XRANGE x - +"},
	{20, false, "SET TK v"},
	{6, false, "MSET TK v TK v TK v"},
	{8, false, "DEL TK TK"},
	{6, false, "APPEND TK suffix"},
	{4, false, "EXPIRE TK 1000"},
	{3, false, "PERSIST TK"},
	{4, false, "RENAME TK TK"},
	{4, false, "COPY TK TK REPLACE"},
	{1, true, "FLUSHALL"},
}

// newTrackingGen returns a generator, with seventh without what 7.2 has changed: 7.0 tracks the keys that a script declares
// instead of those that it reads, and puts what a client is redirected amid the reply of its EXEC.
func newTrackingGen(seed uint64, seventh bool) *hearGen {
	g := &hearGen{Gen: NewGen(seed), rows: formRows(trackingForms), rest: 100, apart: unqueued(false), lone: turnsTracking}
	flushes := func(c Command) bool { return strings.HasPrefix(c.Name(), "FLUSH") }
	changed := func(c Command) bool {
		return strings.HasPrefix(c.Name(), "EVAL") || strings.HasPrefix(c.Name(), "FCALL") || c.Name() == "EXEC"
	}
	g.step = func(g *hearGen) Step {
		for {
			s := g.byRows()
			if g.chance(35) {
				s = g.dataStep()
			}
			if !slices.ContainsFunc(s.Cmds, func(c Command) bool {
				return seventh && changed(c) || unevenRead(c) || aboutGroups(c) || flushes(c) && len(s.Cmds) > 1
			}) {
				return s
			}
		}
	}
	return g
}

// unevenRead reports whether a command is an XREAD of keys and IDs that are not equally many: which of them count as
// read tells Redis's COMMAND GETKEYS otherwise than its tracking.
func unevenRead(c Command) bool {
	return c.Name() == "XREAD" && (len(c.Args)-1-slices.Index(c.Args, "STREAMS"))%2 != 0
}

// aboutGroups reports whether a command changes of a stream only its consumer groups or last ID, which Redis does not tell of.
func aboutGroups(c Command) bool {
	return slices.Contains([]string{"XGROUP", "XREADGROUP", "XACK", "XCLAIM", "XAUTOCLAIM", "XSETID"}, c.Name())
}

// plain is a server without data, notifications and users, for a stream to begin with.
func plain(c *wire.Conn) error {
	for _, line := range []string{"FLUSHALL", "FUNCTION FLUSH", "SCRIPT FLUSH"} {
		if _, err := c.Must(strings.Fields(line)...); err != nil {
			return err
		}
	}
	_, err := c.Must("CONFIG", "SET", "notify-keyspace-events", "")
	return err
}

// plainTracking makes one client track for good: when the last one ends tracking kevy forgets what others have read.
func plainTracking(c *wire.Conn) error {
	if err := plain(c); err != nil {
		return err
	}
	_, err := c.Must("CLIENT", "TRACKING", "ON")
	return err
}
