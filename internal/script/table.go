package script

import lua "github.com/yuin/gopher-lua"

// each calls f with the entries of a table in the order of next, which depends on nothing but the table's history.
// f must not change the table.
func each(t *lua.LTable, f func(k, v lua.LValue)) {
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		f(k, v)
	}
}
