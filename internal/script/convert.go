package script

import (
	"bytes"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/kevydb/kevy/resp"
)

// replyDepth bounds the nesting of a script's reply.
const replyDepth = 7990

// reader makes Lua values of a reply. The reply is well-formed: the server has just made it.
type reader struct {
	ip *interp
	b  []byte
}

// line returns the rest of the current line and skips it.
func (r *reader) line() []byte {
	end := bytes.IndexByte(r.b, '\r')
	l := r.b[:end]
	r.b = r.b[end+2:]
	return l
}

func (r *reader) int() int64 {
	l := r.line()
	neg, n := false, int64(0)
	for i, c := range l {
		if i == 0 && c == '-' {
			neg = true
			continue
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		return -n
	}
	return n
}

// bulk returns n bytes and skips the line end.
func (r *reader) bulk(n int64) []byte {
	s := r.b[:n]
	r.b = r.b[n+2:]
	return s
}

func (r *reader) value() lua.LValue { //nolint:gocyclo // one case per type
	kind := r.b[0]
	r.b = r.b[1:]
	switch kind {
	case ':':
		return lua.LNumber(r.int())
	case '$':
		if n := r.int(); n >= 0 {
			return lua.LString(r.bulk(n))
		}
		return lua.LFalse
	case '+':
		return r.field("ok", lua.LString(r.line()))
	case '-':
		t := r.ip.errorTable("-" + string(r.line()))
		t.RawSetString("ignore_error_stats_update", lua.LTrue)
		return t
	case '*', '>':
		n := r.int()
		if n < 0 {
			return lua.LFalse
		}
		t := r.ip.L.CreateTable(int(min(n, 1<<16)), 0)
		for i := 1; i <= int(n); i++ {
			t.RawSetInt(i, r.value())
		}
		return t
	case '_':
		r.line()
		return lua.LNil
	case '#':
		return lua.LBool(r.line()[0] == 't')
	case ',':
		f, _ := strconv.ParseFloat(string(r.line()), 64)
		return r.field("double", lua.LNumber(f))
	case '(':
		return r.field("big_number", lua.LString(r.line()))
	case '=':
		s := r.bulk(r.int())
		t := r.ip.L.CreateTable(0, 2)
		t.RawSetString("format", lua.LString(s[:3]))
		t.RawSetString("string", lua.LString(s[4:]))
		return r.field("verbatim_string", t)
	}
	return r.aggregate(kind)
}

// aggregate makes a map or a set, or skips an attribute.
func (r *reader) aggregate(kind byte) lua.LValue {
	n := r.int()
	t := r.ip.L.CreateTable(0, int(min(n, 1<<16)))
	for range n {
		k := r.value()
		v := lua.LValue(lua.LTrue)
		if kind != '~' {
			v = r.value()
		}
		if k != lua.LNil {
			t.RawSet(k, v)
		}
	}
	switch kind {
	case '|':
		return r.value()
	case '~':
		return r.field("set", t)
	}
	return r.field("map", t)
}

func (r *reader) field(name string, v lua.LValue) *lua.LTable {
	t := r.ip.L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

// replier appends a script's result to its client's replies. proto is the one the script has chosen.
type replier struct {
	ip    *interp
	w     *resp.Writer
	proto int
}

func (r *replier) reply(v lua.LValue, depth int) {
	if depth > replyDepth {
		r.w.Error("ERR reached lua stack limit")
		return
	}
	switch v := v.(type) {
	case lua.LString:
		r.w.BulkString(string(v))
	case lua.LNumber:
		r.w.Int(truncate(float64(v)))
	case lua.LBool:
		switch {
		case r.proto == 3:
			r.w.Bool(bool(v))
		case bool(v):
			r.w.Int(1)
		default:
			r.w.Null()
		}
	case *lua.LTable:
		r.table(r.ip.behind(v), depth)
	default:
		r.w.Null()
	}
}

// truncate converts as C does on the machines of today.
func truncate(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return -1 << 63
}

func (r *replier) table(t *lua.LTable, depth int) {
	if text, ok := stringField(t, "err"); ok {
		r.w.Error(text)
		return
	}
	if text, ok := stringField(t, "ok"); ok {
		r.w.Simple(oneLine(text))
		return
	}
	if !r.tagged(t, depth) {
		r.array(t, depth)
	}
}

// stringField returns a field that is a string; numbers are none.
func stringField(t *lua.LTable, name string) (string, bool) {
	s, ok := t.RawGetString(name).(lua.LString)
	return string(s), ok
}

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

func oneLine(s string) string { return lineEnds.Replace(s) }

// tagged replies a table that stands for a type of RESP3; false if it is a plain one.
func (r *replier) tagged(t *lua.LTable, depth int) bool {
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		r.w.Double(float64(f))
		return true
	}
	if s, ok := stringField(t, "big_number"); ok {
		s = oneLine(s)
		if r.w.RESP3() {
			r.w.Raw([]byte("(" + s + "\r\n"))
		} else {
			r.w.BulkString(s)
		}
		return true
	}
	if v, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		format, ok1 := stringField(v, "format")
		text, ok2 := stringField(v, "string")
		if ok1 && ok2 {
			r.w.Verbatim((format + "   ")[:3], text)
			return true
		}
	}
	if m, ok := t.RawGetString("map").(*lua.LTable); ok {
		r.w.Map(count(m))
		each(m, func(k, v lua.LValue) {
			r.reply(k, depth+1)
			r.reply(v, depth+1)
		})
		return true
	}
	if m, ok := t.RawGetString("set").(*lua.LTable); ok {
		r.w.Set(count(m))
		each(m, func(k, _ lua.LValue) { r.reply(k, depth+1) })
		return true
	}
	return false
}

func count(t *lua.LTable) (n int) {
	each(t, func(_, _ lua.LValue) { n++ })
	return n
}

// array replies the elements from 1 on, up to the first nil.
func (r *replier) array(t *lua.LTable, depth int) {
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	r.w.Array(n)
	for i := 1; i <= n; i++ {
		r.reply(t.RawGetInt(i), depth+1)
	}
}
