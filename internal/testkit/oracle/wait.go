package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// Streams in which clients wait for keys: some connections send commands that block, one writes. After every step
// both servers must have the same clients waiting, and have served the same ones with the same replies.
const (
	numWaiters = 5
	writerConn = numWaiters
	numWaiting = numWaiters + 1
)

// The words that begin steps about a waiting client, told by the number of its connection.
const (
	wordUnblock = "UNBLOCK" // UNBLOCK conn [TIMEOUT|ERROR]
	wordKill    = "KILL"    // KILL conn
)

// settleTime bounds how long a step may take until every client has its replies or waits.
const settleTime = 10 * time.Second

var blockForms = []form{
	{10, true, "BLPOP l l 0"},
	{5, true, "BLPOP l 0"},
	{8, true, "BRPOP l l 0"},
	{8, true, "BLMOVE l l W W 0"},
	{3, true, "BRPOPLPUSH l l 0"},
	{5, true, "BLMPOP 0 2 l l W"},
	{3, true, "BLMPOP 0 1 l W COUNT n"},
	{8, true, "BZPOPMIN z z 0"},
	{6, true, "BZPOPMAX z 0"},
	{5, true, "BZMPOP 0 2 z z M"},
	{3, true, "BZMPOP 0 1 z M COUNT n"},
	{6, true, "XREAD BLOCK 0 STREAMS x $"},
	{3, true, "XREAD BLOCK 0 COUNT n STREAMS x x I $"},
	{6, true, "XREADGROUP GROUP grp alice BLOCK 0 STREAMS x >"},
	{4, true, "XREADGROUP GROUP grp bob COUNT 1 BLOCK 0 STREAMS x x > >"},
	{2, true, "LLEN l"},
	{1, true, "BLPOP k 0"},
	{1, true, "BLPOP l x"},
}

var serveForms = []form{
	{14, true, "RPUSH l e"},
	{8, true, "LPUSH l e e e"},
	{3, true, "RPUSHX l e e"},
	{2, true, "LINSERT l O e e"},
	{4, true, "LMOVE l l W W"},
	{3, true, "LPOP l"},
	{2, true, "RPOP l n"},
	{2, true, "LREM l 0 e"},
	{2, true, "LTRIM l r r"},
	{10, true, "ZADD z S m S m"},
	{4, true, "ZINCRBY z 1 m"},
	{3, true, "ZREM z m m"},
	{3, true, "ZUNIONSTORE z 2 z s"},
	{3, true, "ZRANGESTORE z z 0 1"},
	{2, true, "ZPOPMIN z"},
	{10, true, "XADD x ID f v"},
	{3, true, "XACK x grp I I"},
	{2, true, "XDEL x I"},
	{3, true, "XGROUP SETID x grp I"},
	{2, true, "XREADGROUP GROUP grp carol COUNT 1 STREAMS x >"},
	{3, true, "SADD s m m"},
	{3, true, "SORT s ALPHA STORE l"},
	{3, true, "SET l v"},
	{8, true, "DEL l"},
	{3, true, "DEL z"},
	{5, true, "RENAME l l"},
	{4, true, "COPY l l REPLACE"},
	{3, true, "RENAME z z"},
	{3, true, "COPY z z REPLACE"},
	{3, true, "RESTORE l 0 payload REPLACE"},
	{1, true, "EXPIRE l -1"},
	{1, true, "FLUSHALL"},
}

// serveScripts write several times; clients are served after the whole of it.
var serveScripts = []string{
	"redis.call('RPUSH', KEYS[1], 'a', 'b') redis.call('LPUSH', KEYS[1], 'c') return redis.call('LPOP', KEYS[1])",
	"redis.call('RPUSH', KEYS[1], 'a') return redis.call('DEL', KEYS[1])",
	"redis.call('DEL', KEYS[1], KEYS[2]) redis.call('RPUSH', KEYS[2], 'x', 'y') return redis.call('RPOPLPUSH', KEYS[2], KEYS[1])",
}

// waitGen makes such streams. It has the pools of Gen and tables of its own.
type waitGen struct {
	*Gen
	block, serve []row
}

// newIn72 begin the forms whose outcome 7.2 has changed: errors of XREADGROUP when its key goes, the order in which
// clients are served that wait for several keys, or for one of several types.
var newIn72 = []string{"XREADGROUP", "SET ", "BLPOP l l", "BRPOP l l", "BLMPOP 0 2", "BZPOPMIN z z", "BZMPOP 0 2", "XREAD BLOCK 0 COUNT"}

// newWaitGen returns a generator, with seventh without the forms of newIn72.
func newWaitGen(seed uint64, seventh bool) *waitGen {
	rows := func(forms []form) []row {
		if seventh {
			forms = slices.DeleteFunc(slices.Clone(forms), func(f form) bool {
				return slices.ContainsFunc(newIn72, func(begin string) bool { return strings.HasPrefix(f.text, begin) })
			})
		}
		return formRows(forms)
	}
	return &waitGen{Gen: NewGen(seed), block: rows(blockForms), serve: rows(serveForms)}
}

func (g *Gen) from(rows []row) Command {
	total := 0
	for _, r := range rows {
		total += r.weight
	}
	p := g.rng.IntN(total)
	for _, r := range rows {
		if p -= r.weight; p < 0 {
			return Command{Args: r.make(g)}
		}
	}
	panic("oracle: weights do not add up")
}

// stream returns n steps, the first of which makes the groups.
func (g *waitGen) stream(n int) []Step {
	groups := Step{Conn: writerConn}
	for _, k := range typedKeys["x"] {
		groups.Cmds = append(groups.Cmds, Command{Args: []string{"XGROUP", "CREATE", k, "grp", "$", "MKSTREAM"}})
		for _, who := range []string{"alice", "bob", "carol"} {
			groups.Cmds = append(groups.Cmds, Command{Args: []string{"XGROUP", "CREATECONSUMER", k, "grp", who}})
		}
	}
	steps := []Step{groups}
	for range n {
		steps = append(steps, g.step())
	}
	for conn := range numWaiters {
		steps = append(steps, Step{Conn: writerConn, Cmds: []Command{{Args: []string{wordUnblock, strconv.Itoa(conn)}}}})
	}
	for _, kind := range []string{"l", "z", "x", "s"} {
		for _, k := range typedKeys[kind] {
			steps = append(steps, Step{Conn: writerConn, Cmds: append(look(k), Command{Args: []string{"TYPE", k}})})
		}
	}
	return steps
}

func (g *waitGen) step() Step {
	switch p := g.rng.IntN(100); {
	case p < 45:
		s := Step{Conn: g.rng.IntN(numWaiters), Cmds: []Command{g.from(g.block)}}
		switch {
		case g.chance(15):
			s.Cmds = append(s.Cmds, Command{Args: []string{"ECHO", g.value()}})
		case g.chance(5): // blocks nowhere
			s.Cmds = []Command{{Args: []string{"MULTI"}}, s.Cmds[0], {Args: []string{"EXEC"}}}
		}
		return s
	case p < 50:
		who := strconv.Itoa(g.rng.IntN(numWaiters))
		how := g.pick([]string{"TIMEOUT", "ERROR"})
		return Step{Conn: writerConn, Cmds: []Command{{Args: []string{wordUnblock, who, how}}}}
	case p < 52:
		return Step{Conn: writerConn, Cmds: []Command{{Args: []string{wordKill, strconv.Itoa(g.rng.IntN(numWaiters))}}}}
	case p < 60:
		s := Step{Conn: writerConn, Cmds: []Command{{Args: []string{"MULTI"}}}}
		for range 1 + g.rng.IntN(4) {
			s.Cmds = append(s.Cmds, g.write()...)
		}
		return Step{Conn: writerConn, Cmds: append(s.Cmds, Command{Args: []string{"EXEC"}})}
	case p < 64:
		return Step{Conn: writerConn, Cmds: []Command{{Args: []string{"EVAL", g.pick(serveScripts), "2", g.typed("l"), g.typed("l")}}}}
	case p < 72:
		s := Step{Conn: writerConn}
		for range 2 + g.rng.IntN(4) {
			s.Cmds = append(s.Cmds, g.write()...)
		}
		return s
	}
	return Step{Conn: writerConn, Cmds: g.write()}
}

// write makes a command of the writer. What stores a result finds no key there: Redis does not serve the clients that
// wait for a key of another type which a command replaces.
func (g *waitGen) write() []Command {
	c := g.from(g.serve)
	switch c.Name() {
	case "SORT":
		return []Command{{Args: []string{"DEL", c.Args[len(c.Args)-1]}}, c}
	case "ZUNIONSTORE", "ZRANGESTORE":
		return []Command{{Args: []string{"DEL", c.Args[1]}}, c}
	}
	return []Command{c}
}

// waiterTarget is a server with the connections of such a stream.
type waiterTarget struct {
	addr    string
	control *wire.Conn
	conns   [numWaiting]*waiterConn
}

type waiterConn struct {
	*wire.Conn
	id      string
	pending int // replies to come
	replies chan wire.Reply
	gone    chan struct{} // closed when the server has closed the connection
}

func openWaiters(addr string) (_ sessions, err error) {
	t := &waiterTarget{addr: addr}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.control, err = wire.Dial(addr); err != nil {
		return t, err
	}
	if _, err := t.control.Must("FLUSHALL"); err != nil {
		return t, err
	}
	for i := range t.conns {
		if err := t.open(i); err != nil {
			return t, err
		}
	}
	return t, nil
}

func (t *waiterTarget) close() {
	for _, c := range t.conns {
		if c != nil {
			c.Close()
			<-c.gone
		}
	}
	if t.control != nil {
		t.control.Close()
	}
}

// open makes connection i.
func (t *waiterTarget) open(i int) error {
	c, id, err := connect(t.addr, i, (*wire.Conn).Must)
	if err != nil {
		return err
	}
	c.Timeout = time.Hour
	w := &waiterConn{Conn: c, id: id, replies: make(chan wire.Reply, 1024), gone: make(chan struct{})}
	go func() {
		defer close(w.gone)
		for {
			r, err := c.Read()
			if err != nil {
				return
			}
			w.replies <- r
		}
	}()
	t.conns[i] = w
	return nil
}

// play returns the replies that came until every client has its own or waits: a reply may leave after the server has
// counted its client off. A step of a client that waits already is left out.
func (t *waiterTarget) play(s Step, like replies) (replies, error) {
	out := make(replies, numWaiting)
	c := t.conns[s.Conn]
	if c.pending > 0 {
		return out, nil
	}
	if who := s.Cmds[0].Args; who[0] == wordUnblock || who[0] == wordKill {
		return out, t.about(who, out, like)
	}
	for _, cmd := range s.Cmds {
		c.QueueRaw(cmd.appendTo(nil))
	}
	c.pending = len(s.Cmds)
	if err := c.Flush(); err != nil {
		return out, err
	}
	return out, t.settle(out, like)
}

// about runs a step that ends another client's waiting.
func (t *waiterTarget) about(words []string, out, like replies) error {
	i, _ := strconv.Atoi(words[1])
	who := t.conns[i]
	if words[0] == wordUnblock {
		r, err := t.control.Do(append([]string{"CLIENT", "UNBLOCK", who.id}, words[2:]...)...)
		if err != nil {
			return err
		}
		out[writerConn] = append(out[writerConn], r)
		return t.settle(out, like)
	}
	if _, err := t.control.Must("CLIENT", "KILL", "ID", who.id); err != nil {
		return err
	}
	select {
	case <-who.gone:
	case <-time.After(settleTime):
		return errors.New("a killed client is still connected")
	}
	who.Close()
	if err := t.open(i); err != nil {
		return err
	}
	return t.settle(out, like)
}

// settle reads replies until as many clients are without theirs as the server says are blocked.
func (t *waiterTarget) settle(out, like replies) error {
	begin := time.Now()
	for {
		without := 0 // counted before blocked: a client that has its reply blocks no more
		for i, c := range t.conns {
			for more := true; more && c.pending > 0; {
				select {
				case r := <-c.replies:
					out[i] = append(out[i], r)
					c.pending--
				default:
					more = false
				}
			}
			if c.pending > 0 {
				without++
			}
		}
		info, err := t.control.Must("INFO", "clients")
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(info.Text(), "blocked_clients:")
		text, _, _ := strings.Cut(rest, "\r\n")
		blocked, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		took := time.Since(begin)
		if blocked == without && (like == nil || took > settleTime/10 || sameCounts(out, like)) {
			return nil
		}
		if took > settleTime {
			return fmt.Errorf("%d clients have no reply, %d are blocked", without, blocked)
		}
	}
}

// diffWaiting compares what a step brought each client.
func diffWaiting(s Step, want, got replies) *Difference {
	for conn := range want {
		cmd := func(j int) Command {
			if conn == s.Conn {
				return s.Cmds[min(j, len(s.Cmds)-1)]
			}
			return foreign
		}
		if d := diffReplies(conn, want[conn], got[conn], cmd, same); d != nil {
			return d
		}
	}
	return nil
}
