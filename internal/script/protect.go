package script

import lua "github.com/yuin/gopher-lua"

const msgReadonly = "Attempt to modify a readonly table"

// protect returns a read-only table that shows t, and remembers it. What t holds may still be changed through t itself.
func (ip *interp) protect(t *lua.LTable) *lua.LTable {
	p := ip.L.NewTable()
	m := ip.L.NewTable()
	m.RawSetString("__index", t)
	m.RawSetString("__newindex", ip.readonly)
	m.RawSetString("__metatable", ip.metaShown)
	p.Metatable = m
	ip.shown[p] = m
	return p
}

// behind returns the table that a protected one shows, or t itself.
func (ip *interp) behind(t *lua.LTable) *lua.LTable {
	if t.Metatable == lua.LNil {
		return t
	}
	if m, ok := ip.shown[t]; ok {
		if inner, ok := m.RawGetString("__index").(*lua.LTable); ok {
			return inner
		}
	}
	return t
}

func (ip *interp) isProtected(t *lua.LTable) bool {
	if t.Metatable == lua.LNil {
		return false
	}
	_, ok := ip.shown[t]
	return ok
}

// initProtection makes what all protected tables share. The metatable that getmetatable shows of them is an empty protected
// table.
func (ip *interp) initProtection() {
	L := ip.L
	ip.shown = make(map[*lua.LTable]*lua.LTable)
	ip.readonly = L.NewFunction(func(L *lua.LState) int {
		L.RaiseError(msgReadonly)
		return 0
	})
	ip.metaShown = L.NewTable()
	m := L.NewTable()
	m.RawSetString("__newindex", ip.readonly)
	m.RawSetString("__metatable", ip.metaShown)
	ip.metaShown.Metatable = m
	ip.shown[ip.metaShown] = m
}

// noGlobal is a metatable that makes reading what a table does not have an error.
func (ip *interp) noGlobal() *lua.LTable {
	m := ip.L.NewTable()
	m.RawSetString("__index", ip.L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", lua.LVAsString(L.Get(2)))
		return 0
	}))
	return m
}

// wrapTableFunctions makes the basic functions on tables know protected ones.
func (ip *interp) wrapTableFunctions() {
	next := ip.base("next")
	ip.set("next", func(L *lua.LState) int {
		ip.lookBehind(L)
		return next(L)
	})
	pairs := ip.globals.RawGetString("pairs").(*lua.LFunction)
	ip.set("pairs", func(L *lua.LState) int {
		ip.lookBehind(L)
		t := L.CheckTable(1)
		L.Push(pairs.Upvalues[0].Value())
		L.Push(t)
		L.Push(lua.LNil)
		return 3
	})
	rawget := ip.base("rawget")
	ip.set("rawget", func(L *lua.LState) int {
		ip.lookBehind(L)
		return rawget(L)
	})
	for _, name := range []string{"rawset", "setmetatable"} {
		fn := ip.base(name)
		ip.set(name, func(L *lua.LState) int {
			if t, ok := L.Get(1).(*lua.LTable); ok && ip.isProtected(t) {
				L.Error(lua.LString(msgReadonly), 0)
			}
			return fn(L)
		})
	}
}

// lookBehind replaces a protected table in the first argument by what it shows.
func (ip *interp) lookBehind(L *lua.LState) {
	if t, ok := L.Get(1).(*lua.LTable); ok && t.Metatable != lua.LNil {
		if inner := ip.behind(t); inner != t {
			L.Replace(1, inner)
		}
	}
}
