package oracle

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// Streams in which clients hear of what others do: messages of channels, keyspace notifications, keys to drop from
// client-side caches, the end of a connection. After each step every connection is asked for a PONG, so that all is
// there that the step has brought.
const numHearing = 6

// barrier is what the PING behind each step carries.
const barrier = "barrier-5e1f"

// hearTime bounds how long what one server has told may take at the other one.
const hearTime = 2 * time.Second

// hearers are the connections to one server of such a stream.
type hearers struct {
	addr    string
	control *wire.Conn
	conns   [numHearing]*wire.Conn
	ids     [numHearing]string
}

// openHearers connects to a server; ready, given the connection of whoever controls it, puts the server into the state
// in which every stream finds it.
func openHearers(addr string, ready func(*wire.Conn) error) (_ sessions, err error) {
	h := &hearers{addr: addr}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.control, err = wire.Dial(addr); err != nil {
		return nil, err
	}
	if err := ready(h.control); err != nil {
		return nil, err
	}
	for i := range h.conns {
		if err := h.open(i); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *hearers) close() {
	for _, c := range append(h.conns[:], h.control) {
		if c != nil {
			c.Close()
		}
	}
}

// open makes connection i. That the server refuses its first commands, when nobody may do without a password, is no
// error.
func (h *hearers) open(i int) error {
	if h.conns[i] != nil {
		h.conns[i].Close()
	}
	var err error
	h.conns[i], h.ids[i], err = connect(h.addr, i, (*wire.Conn).Do)
	return err
}

// play implements sessions. After a step with a pause the key of its last command is looked at: a server may take until
// then to find that the key has expired.
func (h *hearers) play(s Step, like replies) (replies, error) {
	out := make(replies, numHearing)
	for _, cmd := range s.Cmds {
		h.conns[s.Conn].QueueRaw(h.named(cmd).appendTo(nil))
	}
	if err := h.collect([]int{s.Conn}, len(s.Cmds), out); err != nil {
		return out, err
	}
	h.anonymize(s.Cmds, out[s.Conn])
	if s.Sleep > 0 {
		time.Sleep(s.Sleep)
		if _, err := h.control.Must("EXISTS", s.Cmds[len(s.Cmds)-1].Args[1]); err != nil {
			return out, err
		}
	}
	all := make([]int, numHearing)
	for i := range all {
		all[i] = i
	}
	for begin := time.Now(); ; {
		if err := h.collect(all, 0, out); err != nil {
			return out, err
		}
		if like == nil || !lacks(out, like) || time.Since(begin) > hearTime {
			return out, nil
		}
	}
}

func lacks(got, like replies) bool {
	for i := range like {
		if len(got[i]) < len(like[i]) {
			return true
		}
	}
	return false
}

// named puts the identity of a connection in the place of "@" and its number.
func (h *hearers) named(c Command) Command {
	c.Args = slices.Clone(c.Args)
	for i, a := range c.Args {
		if len(a) == 2 && a[0] == '@' {
			if n, err := strconv.Atoi(a[1:]); err == nil && n < numHearing {
				c.Args[i] = h.ids[n]
			}
		}
	}
	return c
}

// collect sends what is queued and a PING on each of the connections, and reads all that comes before the PONG. commands
// is how many are queued.
func (h *hearers) collect(conns []int, commands int, out replies) error {
	for _, i := range conns {
		h.conns[i].Queue(wire.Bytes("PING", barrier))
		_ = h.conns[i].Flush() // the server may have closed it: reading tells
	}
	for _, i := range conns {
		for ordinary := 0; ; {
			r, err := h.conns[i].Read()
			if err != nil {
				if !wire.IsConnError(err) {
					return err
				}
				out[i] = append(out[i], wire.Reply{Kind: '-', Str: []byte("(closed)"), Raw: []byte("(closed)")})
				if err := h.open(i); err != nil {
					return fmt.Errorf("a new connection: %w", err)
				}
				break
			}
			if word := told(&r); word == "" {
				ordinary++
			}
			if isBarrier(&r) || ordinary > commands {
				break
			}
			out[i] = append(out[i], r)
		}
	}
	return nil
}

func isBarrier(r *wire.Reply) bool {
	return r.Text() == barrier || len(r.Elems) == 2 && r.Elems[1].Text() == barrier || r.IsError() && strings.Contains(r.Text(), "no permissions to run the 'ping' command")
}

// anonymize replaces the identities of connections, which are each server's own, where CLIENT replies with one.
func (h *hearers) anonymize(cmds []Command, all []wire.Reply) {
	_, rest := split(all)
	owner, j := owners(cmds, rest), 0
	for i := range all {
		r := &all[i]
		if slices.Contains(messageWords, told(r)) {
			continue
		}
		if c := owner(j); c.Name() == "CLIENT" && slices.Contains([]string{"GETREDIR", "TRACKINGINFO"}, c.Sub()) {
			h.rename(r)
		}
		j++
	}
}

func (h *hearers) rename(r *wire.Reply) {
	if i := slices.Index(h.ids[:], r.Text()); i >= 0 && r.Kind == ':' {
		r.Raw = fmt.Appendf(nil, ":@%d\r\n", i)
	}
	if redirect, ok := r.Field("redirect"); ok {
		h.rename(redirect)
		r.Raw = nil
		for i := range r.Elems {
			r.Raw = append(r.Raw, r.Elems[i].Raw...)
		}
	}
}

// The first words of what a server sends without being asked, and of its replies to changes of subscriptions.
var (
	messageWords = []string{"message", "pmessage", "smessage", "invalidate", "tracking-redir-broken"}
	changeWords  = []string{"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"}
)

// told returns the first word of such a reply, "" of any other.
func told(r *wire.Reply) string {
	if r.Kind != '>' && r.Kind != '*' || len(r.Elems) < 2 {
		return ""
	}
	word := r.Elems[0].Text()
	if slices.Contains(messageWords, word) || slices.Contains(changeWords, word) {
		return word
	}
	return ""
}

// hearContest plays such streams. same compares replies to commands.
func hearContest(ready func(*wire.Conn) error, same func(Command, *wire.Reply, *wire.Reply) bool) contest {
	return contest{
		open: func(addr string) (sessions, error) { return openHearers(addr, ready) },
		fit:  wholeTransactions,
		diff: func(s Step, want, got replies) *Difference { return diffHeard(s, want, got, same) },
	}
}

// wholeTransactions reports whether no step leaves a transaction open, which would queue the PING behind it.
func wholeTransactions(steps []Step) bool {
	for _, s := range steps {
		var tr tracker
		for _, c := range s.Cmds {
			tr.follow(c, &wire.Reply{Kind: '+'})
		}
		if tr.multi {
			return false
		}
	}
	return true
}

// diffHeard compares what a step brought each connection: messages in their order, and all else in its own. How they
// mix is left open: Redis 7.0 sends a client's own message before the reply, 7.2 behind it, kevy behind the replies of
// the turn.
func diffHeard(s Step, want, got replies, same func(Command, *wire.Reply, *wire.Reply) bool) *Difference {
	unsure := slices.ContainsFunc(s.Cmds, func(c Command) bool { return strings.HasPrefix(c.Name(), "XREAD") }) || slices.ContainsFunc(want[s.Conn], func(r wire.Reply) bool {
		return r.IsError() || r.IsAggregate() && slices.ContainsFunc(r.Elems, isError)
	})
	for conn := range want {
		wm, wr := split(want[conn])
		gm, gr := split(got[conn])
		if unsure {
			wm, gm = withoutMisses(wm), withoutMisses(gm)
		}
		owner := func(int) Command { return foreign }
		tr := &tracker{compare: same}
		if conn == s.Conn {
			owner = owners(s.Cmds, wr)
			wr, gr = inOrder(wr, owner), inOrder(gr, owner)
		}
		if d := diffReplies(conn, wr, gr, owner, tr.same); d != nil {
			return d
		}
		if !sameMessages(wm, gm, true) && (conn != s.Conn && !merges(s, wm) || !sameMessages(merged(wm), merged(gm), false)) {
			message := func(int) Command { return Command{Args: []string{"message"}} }
			exact := func(_ Command, w, g *wire.Reply) bool { return bytes.Equal(w.Raw, g.Raw) }
			if d := diffReplies(conn, wm, gm, message, exact); d != nil {
				return d
			}
		}
	}
	return nil
}

func isError(r wire.Reply) bool { return r.IsError() }

// withoutMisses leaves out the notifications of keys that are not there: a command that fails may have looked for them
// before or not, and Redis's XREAD looks twice.
func withoutMisses(messages []wire.Reply) []wire.Reply {
	return slices.DeleteFunc(slices.Clone(messages), func(r wire.Reply) bool {
		return told(&r) == "pmessage" && (r.Elems[3].Text() == "keymiss" || r.Elems[2].Text() == "__keyevent@0__:keymiss")
	})
}

func split(all []wire.Reply) (messages, rest []wire.Reply) {
	for _, r := range all {
		if slices.Contains(messageWords, told(&r)) {
			if r.Elems[len(r.Elems)-1].Null { // all keys are to be dropped: spelled in the protocol of who redirects
				r.Raw = fmt.Appendf(nil, "%c%d%s_", r.Kind, len(r.Elems), r.Elems[0].Raw)
			}
			messages = append(messages, r)
		} else {
			rest = append(rest, r)
		}
	}
	return messages, rest
}

// owners tells which command each reply is of: changes of subscriptions are told one by one.
func owners(cmds []Command, rest []wire.Reply) func(int) Command {
	var by []Command
	for _, c := range cmds {
		n := 1
		for word := strings.ToLower(c.Name()); slices.Contains(changeWords, word); n++ {
			at := len(by) + n
			if at >= len(rest) || told(&rest[at-1]) != word || told(&rest[at]) != word {
				break
			}
			if len(c.Args) > 1 && n >= len(c.Args)-1 || len(c.Args) == 1 && !oneFewer(&rest[at-1], &rest[at]) {
				break // it is the next command's
			}
		}
		by = append(by, slices.Repeat([]Command{c}, n)...)
	}
	return func(j int) Command {
		if j < len(by) {
			return by[j]
		}
		return foreign
	}
}

// oneFewer reports whether two replies to changes of subscriptions can be of one UNSUBSCRIBE of all: each leaves one less
// than the one before.
func oneFewer(a, b *wire.Reply) bool {
	before, ok1 := a.Elems[2].Int()
	after, ok2 := b.Elems[2].Int()
	return ok1 && ok2 && after == before-1
}

// inOrder sorts the names in the replies to one UNSUBSCRIBE of all: they come in no order.
func inOrder(rest []wire.Reply, owner func(int) Command) []wire.Reply {
	out := slices.Clone(rest)
	for from := 0; from < len(out); from++ {
		to := from + 1
		if c := owner(from); len(c.Args) != 1 || !strings.HasSuffix(told(&out[from]), "unsubscribe") {
			continue
		}
		for to < len(out) && told(&out[to]) == told(&out[from]) {
			to++
		}
		var names []string
		for _, r := range out[from:to] {
			names = append(names, string(r.Elems[1].Raw))
		}
		slices.Sort(names)
		for i, name := range names {
			r := &out[from+i]
			r.Raw = fmt.Appendf(nil, "%c%s%s%s", r.Kind, r.Elems[0].Raw, name, r.Elems[2].Raw)
		}
		from = to - 1
	}
	return out
}

// sameMessages compares messages in their order; those of one publication to several patterns of a client come in none.
func sameMessages(want, got []wire.Reply, patterns bool) bool {
	if len(want) != len(got) {
		return false
	}
	for from := 0; from < len(want); from++ {
		to := from + 1
		for patterns && to < len(want) && samePublication(&want[from], &want[to]) {
			to++
		}
		if !slices.Equal(sortedAs(want[from:to]), sortedAs(got[from:to])) {
			return false
		}
		from = to - 1
	}
	return true
}

func samePublication(a, b *wire.Reply) bool {
	return told(a) == "pmessage" && told(b) == "pmessage" && !bytes.Equal(a.Elems[1].Raw, b.Elems[1].Raw) &&
		bytes.Equal(a.Elems[2].Raw, b.Elems[2].Raw) && bytes.Equal(a.Elems[3].Raw, b.Elems[3].Raw)
}

// merges reports whether how keys to drop are put into messages, and in which order, is the server's own affair: Redis gathers those of a
// prefix in one turn of its loop, and tells a client later of what it has changed itself, also where it redirects to.
func merges(s Step, messages []wire.Reply) bool {
	return len(s.Cmds) > 1 || len(messages) > 1 || len(messages) == 1 && len(droppedKeys(&messages[0])) > 1
}

// droppedKeys are the keys of a message that tells to drop some, in RESP3 or by a channel.
func droppedKeys(r *wire.Reply) []wire.Reply {
	switch told(r) {
	case "invalidate":
		return r.Elems[1].Elems
	case "message":
		return r.Elems[2].Elems
	}
	return nil
}

// merged puts the keys of all messages behind each other into one reply each.
func merged(messages []wire.Reply) []wire.Reply {
	var out []wire.Reply
	for from := 0; from < len(messages); from++ {
		to := from
		var keys []wire.Reply
		for to < len(messages) && len(droppedKeys(&messages[to])) > 0 {
			keys = append(keys, droppedKeys(&messages[to])...)
			to++
		}
		if to == from {
			out = append(out, messages[from])
			continue
		}
		for _, raw := range slices.Compact(sortedAs(keys)) {
			out = append(out, wire.Reply{Kind: '$', Raw: []byte(raw)})
		}
		from = to - 1
	}
	return out
}
