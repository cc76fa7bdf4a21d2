package oracle

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// A script is a text file:
//
//	# a comment
//	> SET key "a value"          a command, words and double-quoted strings ("x"*1000 repeats)
//	+OK                          its reply as wire.Reply.String shows it
//
//	>> "PING\r\n" "x"*70000      raw bytes; what comes until the connection is quiet or closed
//	+PONG
//	(closed)
//
//	!conn 1                      go on with another connection (0 to 3)
//	!sleep 30ms                  wait
//	!flush                       FLUSHALL, fresh connections
//
// Where kevy differs on purpose, the reply is followed by a line "kevy: <reason>" and its reply.
type script struct {
	entries []entry
}

// entry is a comment, a directive or an input with its replies.
type entry struct {
	line  int
	text  string // the line itself
	want  []string
	why   string // of the difference, if any
	kevy  []string
	input bool
}

const differs = "kevy: "

func parseScript(src string) script {
	var s script
	var kevy bool
	for i, line := range strings.Split(src, "\n") {
		fresh := strings.HasPrefix(line, ">") || strings.HasPrefix(line, "!") || strings.HasPrefix(line, "#")
		switch {
		case strings.TrimSpace(line) == "":
		case fresh:
			s.entries = append(s.entries, entry{line: i + 1, text: line, input: line[0] == '>'})
			kevy = false
		case len(s.entries) == 0:
		default:
			e := &s.entries[len(s.entries)-1]
			why, ok := strings.CutPrefix(line, differs)
			switch {
			case ok:
				e.why, kevy = why, true
			case kevy:
				e.kevy = append(e.kevy, line)
			default:
				e.want = append(e.want, line)
			}
		}
	}
	return s
}

// String spells the script as parseScript reads it.
func (s script) String() string {
	var b strings.Builder
	for i, e := range s.entries {
		if i > 0 && (s.entries[i-1].input || e.text[0] == '#' && s.entries[i-1].text[0] != '#') {
			b.WriteByte('\n')
		}
		b.WriteString(e.text + "\n")
		for _, l := range e.want {
			b.WriteString(l + "\n")
		}
		if e.why != "" {
			b.WriteString(differs + e.why + "\n")
			for _, l := range e.kevy {
				b.WriteString(l + "\n")
			}
		}
	}
	return b.String()
}

// forKevy returns the replies expected of kevy.
func (e *entry) forKevy() []string {
	if e.why != "" {
		return e.kevy
	}
	return e.want
}

// words parses the quoted words of a line.
func words(s string) ([]string, error) {
	var out []string
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		if s[0] != '"' {
			word, rest, _ := strings.Cut(s, " ")
			out, s = append(out, word), rest
			continue
		}
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return nil, fmt.Errorf("bad quoting: %s", s)
		}
		word, err := strconv.Unquote(q)
		if err != nil {
			return nil, err
		}
		if s = s[len(q):]; strings.HasPrefix(s, "*") {
			var count string
			count, s, _ = strings.Cut(s[1:], " ")
			n, err := strconv.Atoi(count)
			if err != nil {
				return nil, err
			}
			word = strings.Repeat(word, n)
		}
		out = append(out, word)
	}
	return out, nil
}

// player runs a script against one server.
type player struct {
	addr  string
	conns [4]*wire.Conn
	cur   int
}

func (p *player) close() {
	for i, c := range p.conns {
		if c != nil {
			c.Close()
			p.conns[i] = nil
		}
	}
}

func (p *player) conn() (*wire.Conn, error) {
	if p.conns[p.cur] == nil {
		c, err := wire.Dial(p.addr)
		if err != nil {
			return nil, err
		}
		p.conns[p.cur] = c
	}
	return p.conns[p.cur], nil
}

// play runs one entry and returns its replies as lines.
func (p *player) play(e *entry) ([]string, error) {
	switch {
	case strings.HasPrefix(e.text, "#"):
		return nil, nil
	case strings.HasPrefix(e.text, "!"):
		return nil, p.directive(strings.Fields(e.text[1:]))
	}
	c, err := p.conn()
	if err != nil {
		return nil, err
	}
	if raw, ok := strings.CutPrefix(e.text, ">>"); ok {
		parts, err := words(raw)
		if err != nil {
			return nil, err
		}
		return p.raw(c, strings.Join(parts, ""))
	}
	args, err := words(e.text[1:])
	if err != nil {
		return nil, err
	}
	return p.command(c, Command{Args: args})
}

func (p *player) command(c *wire.Conn, cmd Command) ([]string, error) {
	var r wire.Reply
	var err error
	if isFullScan(cmd) {
		r, err = scanAll(c, cmd)
	} else {
		r, err = c.Do(cmd.Args...)
	}
	if err != nil {
		return nil, err
	}
	normalize(cmd, &r)
	return strings.Split(r.String(), "\n"), nil
}

// raw sends bytes and shows what comes back until the connection is quiet or closed.
func (p *player) raw(c *wire.Conn, data string) ([]string, error) {
	c.QueueRaw([]byte(data))
	_ = c.Flush() // the server may have closed it already: its replies tell
	got, closed, err := c.ReadAll(150 * time.Millisecond)
	if err != nil {
		return nil, err
	}
	var lines []string
	replies, err := wire.Parse(got)
	for i := range replies {
		shorten(&replies[i])
		lines = append(lines, strings.Split(replies[i].String(), "\n")...)
	}
	if err != nil {
		lines = append(lines, "(not a reply) "+err.Error())
	}
	if closed {
		lines = append(lines, "(closed)")
		c.Close()
		p.conns[p.cur] = nil
	}
	return lines, nil
}

func (p *player) directive(f []string) error {
	switch {
	case len(f) == 2 && f[0] == "conn":
		n, err := strconv.Atoi(f[1])
		if err != nil || n < 0 || n >= len(p.conns) {
			return fmt.Errorf("bad connection %q", f[1])
		}
		p.cur = n
		return nil
	case len(f) == 2 && f[0] == "sleep":
		d, err := time.ParseDuration(f[1])
		time.Sleep(d)
		return err
	case len(f) == 1 && f[0] == "flush":
		return p.flush()
	}
	return fmt.Errorf("unknown directive %q", f)
}

func (p *player) flush() error {
	p.close()
	p.cur = 0
	c, err := p.conn()
	if err != nil {
		return err
	}
	_, err = c.Must("FLUSHALL")
	return err
}

// normalize makes a reply that differs by its nature always the same, and long strings short.
func normalize(cmd Command, r *wire.Reply) {
	switch cmd.Name() {
	case "PTTL", "PEXPIRETIME":
		if n, ok := r.Int(); ok && n > 0 {
			r.Str = fmt.Appendf(nil, "~%d", (n+500)/1000*1000)
		}
	case "KEYS":
		slices.SortFunc(r.Elems, func(a, b wire.Reply) int { return strings.Compare(a.Text(), b.Text()) })
	case "RANDOMKEY":
		if !r.Null && !r.IsError() {
			r.Str = []byte("~")
		}
	case "TIME":
		for i := range r.Elems {
			r.Elems[i].Str = []byte("~")
		}
	case "EXEC":
		for i := range r.Elems {
			normalize(Command{Args: []string{"HELLO"}}, &r.Elems[i])
		}
	case "HELLO":
		for _, name := range []string{"server", "version", "id"} {
			if f, ok := r.Field(name); ok {
				f.Str = []byte("~")
			}
		}
	case "CLIENT":
		if slices.Contains([]string{"ID", "INFO", "LIST"}, cmd.Sub()) && !r.IsError() {
			r.Str = []byte("~")
		}
	}
	shorten(r)
}

const longest = 120

func shorten(r *wire.Reply) {
	for i := range r.Elems {
		shorten(&r.Elems[i])
	}
	if len(r.Str) <= longest || r.Kind == '-' {
		return
	}
	h := fnv.New64a()
	h.Write(r.Str)
	r.Str = fmt.Appendf(nil, "%s...(%d bytes, fnv %016x)", r.Str[:16], len(r.Str), h.Sum64())
}
