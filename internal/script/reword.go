package script

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// rewordings turn the texts of this interpreter into those of C Lua.
var rewordings = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`^attempt to index a non-table object\((\w+)\) with key '.*'$`), "attempt to index a $1 value"},
	{regexp.MustCompile(`^cannot perform \w+ operation between (nil|boolean|table|function|userdata|thread) and .*$`), "attempt to perform arithmetic on a $1 value"},
	{regexp.MustCompile(`^cannot perform \w+ operation between \w+ and (\w+)$`), "attempt to perform arithmetic on a $1 value"},
	{regexp.MustCompile(`^attempt to compare nil with nil$`), "attempt to compare two nil values"},
	{regexp.MustCompile(`^attempt to compare table with table$`), "attempt to compare two table values"},
	{regexp.MustCompile(`^attempt to compare boolean with boolean$`), "attempt to compare two boolean values"},
	{regexp.MustCompile(`^attempt to compare function with function$`), "attempt to compare two function values"},
	{regexp.MustCompile(`^attempt to compare (nil|boolean|table|function|userdata) with (nil|boolean|table|function|userdata)$`), "attempt to compare $1 with $2"},
	{regexp.MustCompile(`^(invalid value \(\w+\) at index \d+ in table for) concat$`), "$1 'concat'"},
	{regexp.MustCompile(`^__unm undefined$`), "attempt to perform arithmetic on a nil value"},
	{regexp.MustCompile(`^__len undefined$`), "attempt to get length of a nil value"},
}

// badArgument splits what a function says about an argument.
var badArgument = regexp.MustCompile(`^bad argument #(\d+) to (\w+) (\(.*\))$`)

const msgNoFunction = "attempt to call a non-function object"

// reword words an error as C Lua does. text begins with where it was raised. The interpreter does not say what a failed
// call has called; the names of the calls of that line tell, if they are one.
func (ip *interp) reword(L *lua.LState, text string) string {
	head, msg, ok := cutPosition(text)
	if !ok {
		return text
	}
	if msg == msgNoFunction {
		return head + "attempt to call " + ip.called(L)
	}
	if m := badArgument.FindStringSubmatch(msg); m != nil {
		why := m[3]
		n, _ := strconv.Atoi(m[1])
		if d, ok := L.GetStack(1); ok {
			// Behind the arguments there is the error itself.
			if name, v := L.GetLocal(d, n); name == "" || v == lua.LString(text) {
				why = strings.Replace(why, "got nil", "got no value", 1)
			}
		}
		return head + "bad argument #" + m[1] + " to '" + m[2] + "' " + why
	}
	for _, r := range rewordings {
		if r.from.MatchString(msg) {
			return head + r.from.ReplaceAllString(msg, r.to)
		}
	}
	return text
}

// cutPosition splits "user_script:1: text".
func cutPosition(text string) (head, msg string, ok bool) {
	i := strings.Index(text, ": ")
	if i < 0 {
		return "", text, false
	}
	return text[:i+2], text[i+2:], true
}

// called describes what the line that failed has tried to call.
func (ip *interp) called(L *lua.LState) string {
	const unknown = "a nil value"
	d, ok := L.GetStack(1)
	if !ok {
		return unknown
	}
	v, err := L.GetInfo("lf", d, lua.LNil)
	fn, ok := v.(*lua.LFunction)
	if err != nil || !ok || fn.Proto == nil {
		return unknown
	}
	p, name := fn.Proto, ""
	for _, c := range p.DbgCalls {
		if c.Pc >= len(p.DbgSourcePositions) || p.DbgSourcePositions[c.Pc] != d.CurrentLine || c.Name == textName {
			continue
		}
		if name != "" && name != c.Name {
			return unknown
		}
		name = c.Name
	}
	kind := "field"
	switch {
	case name == "" || strings.ContainsAny(name, "(<? "):
		return unknown
	case slices.ContainsFunc(p.DbgLocals, func(l *lua.DbgLocalInfo) bool { return l.Name == name }):
		kind = "local"
	case slices.Contains(p.DbgUpvalues, name):
		kind = "upvalue"
	}
	return kind + " '" + name + "' (a nil value)"
}
