package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// Target is one server under comparison.
type Target struct {
	Name string
	Addr string
	Why  func() string // tells what it is doing, when it does not answer; nil: nobody knows

	conns [numConns]*wire.Conn
}

// reset empties the server and opens fresh connections.
func (t *Target) reset() error {
	t.Close()
	for i := range t.conns {
		c, err := wire.Dial(t.Addr)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		t.conns[i] = c
		if connProto(i) == 3 {
			if _, err := c.Must("HELLO", "3"); err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
		}
	}
	for _, verb := range []string{"FLUSHALL", "FUNCTION FLUSH", "SCRIPT FLUSH"} {
		if _, err := t.conns[0].Must(strings.Fields(verb)...); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

// Close closes the target's connections.
func (t *Target) Close() {
	for i, c := range t.conns {
		if c != nil {
			c.Close()
			t.conns[i] = nil
		}
	}
}

// run sends one step and returns a reply for each of its commands.
func (t *Target) run(s Step) ([]wire.Reply, error) {
	c := t.conns[s.Conn]
	if len(s.Cmds) == 1 && isFullScan(s.Cmds[0]) {
		r, err := scanAll(c, s.Cmds[0])
		return []wire.Reply{r}, err
	}
	var buf []byte
	for _, cmd := range s.Cmds {
		buf = cmd.appendTo(buf)
	}
	c.QueueRaw(buf)
	if err := c.Flush(); err != nil {
		return nil, err
	}
	var replies []wire.Reply
	for range s.Cmds {
		r, err := c.Read()
		if err != nil {
			return replies, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

func isFullScan(c Command) bool {
	at := cursorAt(c)
	return at > 0 && len(c.Args) > at && c.Args[at] == "0"
}

// cursorAt is where a SCAN or its kin has its cursor; 0 for other commands.
func cursorAt(c Command) int {
	switch c.Name() {
	case "SCAN":
		return 1
	case "HSCAN", "SSCAN", "ZSCAN":
		return 2
	}
	return 0
}

// scanAll follows a SCAN's cursor to its end and returns one sorted array of what it delivered,
// each key or
// pair once. A reply that is not a scan's (an error, QUEUED) is returned as it is.
func scanAll(c *wire.Conn, cmd Command) (wire.Reply, error) {
	args, at := slices.Clone(cmd.Args), cursorAt(cmd)
	seen := map[string]bool{}
	for range 100_000 {
		r, err := c.Do(args...)
		if err != nil || r.IsError() || len(r.Elems) != 2 {
			return r, err
		}
		size := 1
		if cmd.Name() == "HSCAN" || cmd.Name() == "ZSCAN" {
			size = 2
		}
		for item := range slices.Chunk(r.Elems[1].Elems, size) {
			var text strings.Builder
			text.WriteString(item[0].Text())
			for _, value := range item[1:] {
				text.WriteString("\x00" + value.Text())
			}
			seen[text.String()] = true
		}
		args[at] = r.Elems[0].Text()
		if args[at] == "0" {
			return sortedArray(seen), nil
		}
	}
	return wire.Reply{}, errors.New("SCAN does not end")
}

func sortedArray(set map[string]bool) wire.Reply {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	r := wire.Reply{Kind: '*', Raw: fmt.Appendf(nil, "*%d\r\n", len(keys))}
	for _, k := range keys {
		raw := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(k), k)
		r.Elems = append(r.Elems, wire.Reply{Kind: '$', Str: []byte(k), Raw: raw})
		r.Raw = append(r.Raw, raw...)
	}
	return r
}

// Difference is the first pair of replies that should have been the same.
type Difference struct {
	Step, Cmd   int // position in the stream
	Conn        int
	Command     Command
	Want, Got   wire.Reply // of the reference and of the server under test
	WantE, GotE error      // connection errors
}

// unlessOf72 returns nil for a difference from 7.0 that leaves the servers in different states, where kevy does as 7.2 (docs/compatibility.md,
// Streams) or 7.0 errs: the stream ends there.
func (d *Difference) unlessOf72() *Difference {
	const lower = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
	if bytes.Contains(d.Got.Raw, []byte(lower)) && !bytes.Contains(d.Want.Raw, []byte(lower)) {
		return nil
	}
	if d.Got.Null && d.GotE == nil && readsNothing(&d.Want) || staleRange(&d.Want) && !staleRange(&d.Got) {
		return nil
	}
	return d
}

// staleRange reports whether a reply is the error of a SORT by scores that are no numbers. Redis gives it also when they are, if a command before it, of any
// client, met a number out of range. (That kevy gives it when they are not, testdata/sort.txt shows.)
func staleRange(r *wire.Reply) bool {
	return bytes.Contains(r.Raw, []byte("ERR One or more scores can't be converted into double"))
}

// readsNothing reports whether a reply is that of an XREAD that was woken and has found nothing: a stream without entries. It comes
// only of 7.0; 7.2 goes on waiting.
func readsNothing(r *wire.Reply) bool {
	streams := r.Elems
	if r.Kind == '*' && len(streams) == 1 { // RESP2: a pair within
		streams = streams[0].Elems
	}
	return len(streams) == 2 && streams[1].Kind == '*' && !streams[1].Null && len(streams[1].Elems) == 0
}

// String describes the difference.
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "command %s (connection %d)\n", d.Command, d.Conn)
	fmt.Fprintf(&b, "want: %s\ngot:  %s", showReply(&d.Want, d.WantE), showReply(&d.Got, d.GotE))
	return b.String()
}

// Class tells kinds of differences apart, so that shrinking does not wander from one to another.
func (d *Difference) Class() string {
	return d.Command.Name() + " " + replyClass(&d.Want, d.WantE) + " " + replyClass(&d.Got, d.GotE)
}

func replyClass(r *wire.Reply, err error) string {
	switch {
	case err != nil:
		return "connection"
	case r.IsError():
		return r.Text()
	case r.Null:
		return "null"
	}
	return string(r.Kind)
}

func showReply(r *wire.Reply, err error) string {
	if err != nil {
		return "connection error: " + err.Error()
	}
	return strings.ReplaceAll(r.String(), "\n", "\n      ")
}

// Pair is a reference server and a server under test.
type Pair struct {
	Want, Got *Target
}

// Close closes all connections.
func (p *Pair) Close() {
	p.Want.Close()
	p.Got.Close()
}

// Run empties both servers and sends them the steps, up to the first difference. The error is about
// the comparison itself: a server that cannot be reached or reset.
func (p *Pair) Run(steps []Step) (*Difference, error) {
	if err := p.Want.reset(); err != nil {
		return nil, err
	}
	if err := p.Got.reset(); err != nil {
		return nil, err
	}
	var track [numConns]tracker
	for i, s := range steps {
		if d := p.runStep(i, s, &track[s.Conn]); d != nil {
			return d.unlessOf72(), nil
		}
		if s.Sleep > 0 {
			time.Sleep(s.Sleep)
		}
	}
	return nil, nil
}

func (p *Pair) runStep(i int, s Step, tr *tracker) *Difference {
	want, wantErr := p.Want.run(s)
	got, gotErr := p.Got.run(s)
	for j, cmd := range s.Cmds {
		d := &Difference{Step: i, Cmd: j, Conn: s.Conn, Command: cmd}
		if j >= len(want) || j >= len(got) {
			d.WantE, d.GotE = wantErr, gotErr
			if j < len(want) {
				d.Want, d.WantE = want[j], nil
			}
			if j < len(got) {
				d.Got, d.GotE = got[j], nil
			}
			return d
		}
		if !tr.same(cmd, &want[j], &got[j]) {
			d.Want, d.Got = want[j], got[j]
			return d
		}
	}
	return nil
}
