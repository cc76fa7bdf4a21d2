package oracle

import (
	"fmt"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// replies are what a step brings, by connection.
type replies [][]wire.Reply

// sessions are the connections to one server of a stream in which a step of one may bring something to others.
type sessions interface {
	// play sends a step and returns what it brings. like, if set, is what it brought at the other server: what is
	// less is given time to come.
	play(s Step, like replies) (replies, error)
	close()
}

// contest is how a kind of such streams is played on two servers.
type contest struct {
	open func(addr string) (sessions, error) // with the server as every stream finds it
	fit  func(steps []Step) bool             // whether steps can be played; nil: any can
	diff func(s Step, want, got replies) *Difference
}

// run plays the steps on both servers up to the first difference. Steps that do not fit have none.
func (c contest) run(want, got string, steps []Step) (*Difference, error) {
	if c.fit != nil && !c.fit(steps) {
		return nil, nil
	}
	w, err := c.open(want)
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	defer w.close()
	g, err := c.open(got)
	if err != nil {
		return nil, fmt.Errorf("kevy: %w", err)
	}
	defer g.close()
	for i, s := range steps {
		wr, err := w.play(s, nil)
		if err != nil {
			return nil, fmt.Errorf("redis-server: %s: %w", Format(steps[i:i+1]), err)
		}
		gr, gotErr := g.play(s, wr)
		if d := c.diff(s, wr, gr); d != nil || gotErr != nil {
			if d == nil {
				d = &Difference{Command: s.Cmds[0]}
			}
			d.Step, d.GotE = i, gotErr
			return d.unlessOf72(), nil
		}
	}
	return nil, nil
}

// connect makes connection i of a stream and returns it with its id. do sends the first commands.
func connect(addr string, i int, do func(c *wire.Conn, args ...string) (wire.Reply, error)) (c *wire.Conn, id string, err error) {
	if c, err = wire.Dial(addr); err != nil {
		return nil, "", err
	}
	var r wire.Reply
	if connProto(i) == 3 {
		_, err = do(c, "HELLO", "3")
	}
	if err == nil {
		r, err = do(c, "CLIENT", "ID")
	}
	if err != nil {
		c.Close()
		return nil, "", err
	}
	return c, r.Text(), nil
}

// foreign stands for the command of another connection.
var foreign = Command{Args: []string{"reply"}}

// diffReplies finds the first two replies of a connection that are not the same. cmd tells whose the j-th is.
func diffReplies(conn int, want, got []wire.Reply, cmd func(j int) Command, same func(Command, *wire.Reply, *wire.Reply) bool) *Difference {
	for j := range max(len(want), len(got)) {
		w, g := wire.Reply{Kind: '_', Null: true, Str: []byte("(nothing)")}, wire.Reply{Kind: '_', Null: true, Str: []byte("(nothing)")}
		if j < len(want) {
			w = want[j]
		}
		if j < len(got) {
			g = got[j]
		}
		if by := cmd(j); !same(by, &w, &g) {
			return &Difference{Conn: conn, Command: by, Want: w, Got: g}
		}
	}
	return nil
}

// sameCounts reports whether both have as many replies on each connection.
func sameCounts(a, b replies) bool {
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return false
		}
	}
	return true
}
