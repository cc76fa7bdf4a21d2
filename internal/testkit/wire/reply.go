package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Reply is one node of a reply. Raw holds its bytes as they came, headers and children included.
type Reply struct {
	Kind  byte    // '+', '-', ':', '$', '*', '_', ',', '#', '!', '=', '(', '%', '~', '>'
	Str   []byte  // text of scalars; of '=' without its format
	Null  bool    // $-1, *-1 and _
	Elems []Reply // of '*', '~', '>'; '%' has keys and values in turn
	Raw   []byte
}

// IsError reports whether the reply is an error.
func (r *Reply) IsError() bool { return r.Kind == '-' || r.Kind == '!' }

// Err returns the reply as a Go error if it is one.
func (r *Reply) Err() error {
	if r.IsError() {
		return fmt.Errorf("wire: %s", r.Str)
	}
	return nil
}

// IsAggregate reports whether the reply has elements.
func (r *Reply) IsAggregate() bool {
	switch r.Kind {
	case '*', '%', '~', '>':
		return !r.Null
	}
	return false
}

// Int returns the value of an integer reply, or of a string that spells one.
func (r *Reply) Int() (int64, bool) {
	n, err := strconv.ParseInt(string(r.Str), 10, 64)
	return n, err == nil
}

// Text returns the scalar's text.
func (r *Reply) Text() string { return string(r.Str) }

// Field returns the value that follows the text name in a map or a flat array of pairs.
func (r *Reply) Field(name string) (*Reply, bool) {
	for i := 0; i+1 < len(r.Elems); i += 2 {
		if strings.EqualFold(string(r.Elems[i].Str), name) {
			return &r.Elems[i+1], true
		}
	}
	return nil, false
}

// String shows the reply over several lines: one a scalar, children indented.
func (r *Reply) String() string {
	var b strings.Builder
	r.show(&b, "")
	return strings.TrimSuffix(b.String(), "\n")
}

func (r *Reply) show(b *strings.Builder, indent string) {
	switch {
	case r.Null:
		fmt.Fprintf(b, "%s%cnil\n", indent, r.Kind)
	case r.IsAggregate():
		n := len(r.Elems)
		if r.Kind == '%' {
			n /= 2
		}
		fmt.Fprintf(b, "%s%c%d\n", indent, r.Kind, n)
		for i := range r.Elems {
			r.Elems[i].show(b, indent+"  ")
		}
	case r.Kind == '$' || r.Kind == '=' || r.Kind == '!':
		fmt.Fprintf(b, "%s%c%s\n", indent, r.Kind, Quote(r.Str))
	default:
		fmt.Fprintf(b, "%s%c%s\n", indent, r.Kind, r.Str)
	}
}

// Quote spells a string as redis-cli reads it: plain if it can be, else in double quotes.
func Quote(s []byte) string {
	if len(s) > 0 && bytes.IndexFunc(s, needsQuote) < 0 {
		return string(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		quoteByte(&b, c)
	}
	b.WriteByte('"')
	return b.String()
}

func needsQuote(r rune) bool {
	return r <= ' ' || r > '~' || r == '"' || r == '\'' || r == '\\' || r == '#'
}

func quoteByte(b *strings.Builder, c byte) {
	switch {
	case c == '"' || c == '\\':
		b.WriteByte('\\')
		b.WriteByte(c)
	case c == '\n':
		b.WriteString(`\n`)
	case c == '\r':
		b.WriteString(`\r`)
	case c == '\t':
		b.WriteString(`\t`)
	case c < ' ' || c > '~':
		fmt.Fprintf(b, `\x%02x`, c)
	default:
		b.WriteByte(c)
	}
}

// QuoteArgs spells a whole command as one redis-cli line.
func QuoteArgs(args [][]byte) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = Quote(a)
	}
	return strings.Join(parts, " ")
}
