package script

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// initErrors makes the handler that turns an error into a table with err, source and line.
func (ip *interp) initErrors() {
	ip.initText()
	ip.onLoadError = ip.L.NewFunction(ip.loadError)
	ip.onError = ip.L.NewFunction(func(L *lua.LState) int {
		t, ok := L.Get(1).(*lua.LTable)
		switch {
		case ip.hook.stop.Load():
			t = ip.errorTable(msgKilled)
		case !ok:
			t = L.CreateTable(0, errorFields)
			t.RawSetString("err", lua.LString("ERR "+ip.reword(L, textOf(L, L.Get(1)))))
		}
		if source, line, ok := position(L); ok && !ip.isProtected(t) {
			t.RawSetString("source", lua.LString("@"+source))
			t.RawSetString("line", lua.LNumber(line))
		}
		L.Push(t)
		return 1
	})
}

// loadError is the handler while a library is loaded: it keeps the error, unless it was the time limit.
func (ip *interp) loadError(L *lua.LState) int {
	if ip.hook.overdue() {
		L.Push(ip.errorTable("FUNCTION LOAD timeout"))
	}
	return 1
}

// errorFields are those of an error: err, source, line, ignore_error_stats_update.
const errorFields = 4

const msgKilled = "Script killed by user with SCRIPT KILL..."

func textOf(L *lua.LState, v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return numberText(n)
	}
	return L.ToStringMeta(v).String()
}

// position finds the Lua function that raised the error which the handler is running for.
func position(L *lua.LState) (source string, line int, ok bool) {
	for level := 1; level <= 2; level++ {
		d, found := L.GetStack(level)
		if !found {
			return "", 0, false
		}
		if _, err := L.GetInfo("Sl", d, lua.LNil); err != nil {
			return "", 0, false
		}
		if d.What != "G" && d.What != "C" {
			return d.Source, d.CurrentLine, true
		}
	}
	return "[C]", -1, true
}

// errorTable makes what redis.call raises for text, in one of two forms: "-CODE message" or a message of code ERR.
func (ip *interp) errorTable(text string) *lua.LTable {
	code, msg := "ERR", text
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		msg = rest
		if head, tail, ok := strings.Cut(rest, " "); ok {
			code, msg = head, tail
		}
	}
	t := ip.L.CreateTable(0, errorFields)
	t.RawSetString("err", lua.LString(code+" "+strings.Trim(msg, "\r\n")))
	return t
}

// raise raises an error as redis.call does.
func (ip *interp) raise(L *lua.LState, text string) int {
	L.Error(ip.errorTable(text), 0)
	return 0
}

// failure is what an error of a script says to its client; name is that of the script. counted says that the
// command that failed has been counted as failed already.
func failure(name string, err error) (text string, counted bool) {
	obj := lua.LValue(lua.LString(err.Error()))
	if e, ok := err.(*lua.ApiError); ok { //nolint:errorlint // PCall returns nothing else
		obj = e.Object
	}
	t, ok := obj.(*lua.LTable)
	if !ok {
		text := obj.String()
		return "ERR Error running script " + name + ", " + text[:min(len(text), 100)], false
	}
	text, counted = errorOf(t)
	source, line := t.RawGetString("source"), t.RawGetString("line")
	if lua.LVCanConvToString(source) && lua.LVCanConvToString(line) {
		n, _ := line.(lua.LNumber)
		text += " script: " + name + ", on " + source.String() + ":" + strconv.Itoa(int(n)) + "."
	}
	return text, counted
}

func errorOf(t *lua.LTable) (text string, counted bool) {
	if v := t.RawGetString("err"); lua.LVCanConvToString(v) {
		text = v.String()
	}
	return text, t.RawGetString("ignore_error_stats_update") == lua.LTrue
}
