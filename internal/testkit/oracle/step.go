package oracle

import (
	"fmt"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// Command is one request. Inline sends it as a text line instead of an array.
type Command struct {
	Args   []string
	Inline bool
}

// Name returns the command's name in upper case.
func (c Command) Name() string {
	if len(c.Args) == 0 {
		return ""
	}
	return strings.ToUpper(c.Args[0])
}

// Sub returns the first argument in upper case: the subcommand of container commands.
func (c Command) Sub() string {
	if len(c.Args) < 2 {
		return ""
	}
	return strings.ToUpper(c.Args[1])
}

// String spells the command as redis-cli reads it.
func (c Command) String() string { return wire.QuoteArgs(wire.Bytes(c.Args...)) }

func (c Command) appendTo(dst []byte) []byte {
	if c.Inline {
		return append(dst, c.String()+"\r\n"...)
	}
	return wire.AppendCommand(dst, wire.Bytes(c.Args...))
}

// Step is what one connection sends in one write, then a pause.
type Step struct {
	Conn  int
	Cmds  []Command
	Sleep time.Duration // after the replies, so that short deadlines pass on both servers
}

// Format prints steps as redis-cli lines with comments.
func Format(steps []Step) string {
	var b strings.Builder
	conn := -1
	for _, s := range steps {
		if s.Conn != conn {
			conn = s.Conn
			fmt.Fprintf(&b, "# connection %d (RESP%d)\n", conn, connProto(conn))
		}
		if len(s.Cmds) > 1 {
			fmt.Fprintf(&b, "# pipeline of %d\n", len(s.Cmds))
		}
		for _, c := range s.Cmds {
			if c.Inline {
				b.WriteString("# inline\n")
			}
			fmt.Fprintf(&b, "%s\n", c)
		}
		if s.Sleep > 0 {
			fmt.Fprintf(&b, "# sleep %s\n", s.Sleep)
		}
	}
	return b.String()
}

// Connections of a stream, of which every other one speaks RESP3.
const numConns = 3

func connProto(conn int) int {
	if conn%2 == 1 {
		return 3
	}
	return 2
}
