package command

import (
	"bytes"
	"strings"
)

// Resolve finds the row that serves a request: the subcommand's row for container commands. When
// there is none, or the argument count does not fit, it returns the error reply instead.
// REQUIRES: len(args) > 0.
func Resolve(args [][]byte) (*Command, string) {
	c := Lookup(args[0])
	if c == nil {
		return nil, UnknownCommandError(args)
	}
	if len(c.Sub) > 0 && len(args) > 1 {
		sub := c.Subcommand(args[1])
		if sub == nil {
			return nil, UnknownSubcommandError(args)
		}
		c = sub
	}
	if !c.ArityOK(len(args)) {
		return nil, ArityError(c)
	}
	return c, ""
}

// ArityError is the reply to a request with too few or too many arguments.
func ArityError(c *Command) string {
	return "ERR wrong number of arguments for '" + c.Name + "' command"
}

// UnknownCommandError is the reply to a request whose command does not exist.
func UnknownCommandError(args [][]byte) string {
	const most = 128 // bytes of the name, and of all arguments shown
	var b strings.Builder
	b.WriteString("ERR unknown command '")
	b.Write(clip(args[0], most))
	b.WriteString("', with args beginning with: ")
	for i, n := 1, 0; i < len(args) && n < most; i++ {
		start := b.Len()
		b.WriteByte('\'')
		b.Write(clip(args[i], most-n))
		b.WriteString("' ")
		n += b.Len() - start
	}
	return b.String()
}

// UnknownSubcommandError is the reply to a request whose container has no such subcommand.
func UnknownSubcommandError(args [][]byte) string {
	return "ERR unknown subcommand '" + string(clip(args[1], 128)) + "'. Try " +
		upper(args[0]) + " HELP."
}

// SubcommandArgsError is the reply to a request whose subcommand cannot have that many arguments.
func SubcommandArgsError(args [][]byte) string {
	return "ERR unknown subcommand or wrong number of arguments for '" + string(clip(args[1], 128)) + "'. Try " +
		upper(args[0]) + " HELP."
}

// clip returns b's first n bytes, up to a NUL: what C's "%.*s" prints.
func clip(b []byte, n int) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return b[:min(n, len(b))]
}
