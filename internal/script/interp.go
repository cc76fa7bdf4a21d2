package script

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	// callDepth bounds nested calls in a script.
	callDepth = 16000
	// stackMax bounds the values on a script's stack.
	stackMax = 1 << 20
	// pcallDepth bounds nested calls of pcall and xpcall, as in Lua.
	pcallDepth = 200
	// unpackMax is the number of results from which unpack gives up.
	unpackMax = 8000
)

// interp is a Lua state as scripts see it: the sandbox and its libraries. Used by one goroutine at a time.
type interp struct {
	L       *lua.LState
	hook    hook
	globals *lua.LTable // what is really there
	env     *lua.LTable // the same, read-only: the environment of all scripts
	envMeta *lua.LTable // its metatable
	redis   *lua.LTable // behind the global redis

	shown       map[*lua.LTable]*lua.LTable // protected tables and their metatables
	readonly    *lua.LFunction
	metaShown   *lua.LTable
	jsonNull    *lua.LUserData
	text        *lua.LFunction // see concat.go
	onError     *lua.LFunction
	onLoadError *lua.LFunction
	loadGlobals *lua.LTable // while a library is loaded

	rt   *Runtime
	call *call    // of the script that runs, nil if none does
	load *library // being loaded, nil if none is

	pcalls    int    // that run
	pcallEnds func() // counts one off

	epoch int // the runtime's when the state was made
}

// newInterp makes a state. Functions get fewer members of redis than scripts.
func newInterp(rt *Runtime, forFunctions bool) *interp {
	ip := &interp{rt: rt}
	ip.L = lua.NewState(lua.Options{
		CallStackSize: callDepth, MinimizeStackMemory: true, SkipOpenLibs: true,
		RegistrySize: 4096, RegistryMaxSize: stackMax, RegistryGrowStep: 4096,
	})
	L := ip.L
	L.SetContext(&ip.hook)
	ip.hook.left = hookEvery
	ip.globals = L.G.Global
	ip.jsonNull = &lua.LUserData{Metatable: lua.LNil}
	for _, open := range []struct {
		name string
		fn   lua.LGFunction
	}{
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
		{lua.StringLibName, lua.OpenString},
		{lua.MathLibName, lua.OpenMath},
		{lua.CoroutineLibName, lua.OpenCoroutine},
	} {
		L.Push(L.NewFunction(open.fn))
		L.Push(lua.LString(open.name))
		L.Call(1, 0)
	}
	ip.pcallEnds = func() { ip.pcalls-- }
	ip.initProtection()
	ip.openBase()
	ip.openStrings()
	ip.openRandom(ip.globals.RawGetString("math").(*lua.LTable))
	ip.globals.RawSetString("cjson", ip.openCJSON())
	ip.globals.RawSetString("cmsgpack", ip.openCMsgpack())
	ip.globals.RawSetString("struct", ip.openStruct())
	ip.globals.RawSetString("bit", ip.openBit())
	ip.redis = ip.openRedis(forFunctions)
	ip.globals.RawSetString("redis", ip.redis)
	ip.initErrors()
	ip.seal()
	ip.openLoading()
	return ip
}

// base returns a basic function of the interpreter.
func (ip *interp) base(name string) lua.LGFunction {
	return ip.globals.RawGetString(name).(*lua.LFunction).GFunction
}

func (ip *interp) set(name string, fn lua.LGFunction) {
	ip.globals.RawSetString(name, ip.L.NewFunction(fn))
}

// openBase makes the basic functions those of Redis.
func (ip *interp) openBase() {
	g := ip.globals
	for _, name := range []string{
		"dofile", "loadfile", "print", "module", "require", "_printregs", "_GOPHER_LUA_VERSION", "package",
	} {
		g.RawSetString(name, lua.LNil)
	}
	ip.wrapTableFunctions()
	ip.openPcall()
	ip.openCoroutines()
	toString := ip.base("tostring")
	ip.set("tostring", func(L *lua.LState) int {
		if n, ok := L.Get(1).(lua.LNumber); ok {
			L.Push(lua.LString(numberText(n)))
			return 1
		}
		return toString(L)
	})
	ip.set("unpack", unpack)
	ip.set("tonumber", toNumber)
	raise := ip.base("error")
	ip.set("error", func(L *lua.LState) int {
		if L.GetTop() == 0 {
			L.Push(lua.LNil)
		}
		return raise(L)
	})
	ip.set("gcinfo", func(L *lua.LState) int { L.Push(lua.LNumber(64)); return 1 })
	ip.set("collectgarbage", func(L *lua.LState) int {
		n := lua.LNumber(0)
		if L.OptString(1, "collect") == "count" {
			n = 64
		}
		L.Push(n)
		return 1
	})
	ip.openLoad()
}

func unpack(L *lua.LState) int {
	t := L.CheckTable(1)
	from, to := L.OptInt64(2, 1), L.OptInt64(3, int64(t.Len()))
	if from > to {
		return 0
	}
	n := uint64(to - from) //nolint:gosec // not negative
	if n >= unpackMax {
		L.RaiseError("too many results to unpack")
	}
	for i := from; ; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
		if i == to {
			return int(n) + 1 //nolint:gosec // checked
		}
	}
}

// openPcall makes pcall return the text of an error table, as Redis's does.
func (ip *interp) openPcall() {
	pcall := ip.base("pcall")
	ip.set("pcall", func(L *lua.LState) int {
		defer ip.protectedCall(L)()
		n := pcall(L)
		if n == 2 && L.Get(-2) == lua.LFalse {
			if t, ok := L.Get(-1).(*lua.LTable); ok {
				if text, ok := L.GetField(t, "err").(lua.LString); ok {
					L.Pop(1)
					L.Push(text)
				}
			}
		}
		return n
	})
	xpcall := ip.base("xpcall")
	ip.set("xpcall", func(L *lua.LState) int {
		defer ip.protectedCall(L)()
		return xpcall(L)
	})
}

// protectedCall counts a pcall that begins, and returns what counts its end.
func (ip *interp) protectedCall(L *lua.LState) (end func()) {
	if ip.pcalls >= pcallDepth {
		L.RaiseError("C stack overflow")
	}
	ip.pcalls++
	return ip.pcallEnds
}

// openCoroutines puts the hook into coroutines.
func (ip *interp) openCoroutines() {
	t := ip.globals.RawGetString("coroutine").(*lua.LTable)
	create := t.RawGetString("create").(*lua.LFunction).GFunction
	t.RawSetString("create", ip.L.NewFunction(func(L *lua.LState) int {
		n := create(L)
		if th, ok := L.Get(-1).(*lua.LState); ok {
			th.SetContext(&ip.hook)
		}
		return n
	}))
	wrap := t.RawGetString("wrap").(*lua.LFunction).GFunction
	t.RawSetString("wrap", ip.L.NewFunction(func(L *lua.LState) int {
		n := wrap(L)
		if fn, ok := L.Get(-1).(*lua.LFunction); ok && len(fn.Upvalues) > 0 {
			if th, ok := fn.Upvalues[0].Value().(*lua.LState); ok {
				th.SetContext(&ip.hook)
			}
		}
		return n
	}))
}

// openLoad makes load and loadstring compile as scripts are.
func (ip *interp) openLoad() {
	compiled := func(L *lua.LState, code, name string) int {
		proto, err := compile(code, chunkName(name), false)
		if err != nil {
			L.Push(lua.LNil)
			L.Push(lua.LString(err.Error()))
			return 2
		}
		L.Push(ip.function(proto))
		return 1
	}
	ip.set("loadstring", func(L *lua.LState) int {
		code := L.CheckString(1)
		return compiled(L, code, L.OptString(2, code))
	})
	ip.set("load", func(L *lua.LState) int {
		read, name := L.CheckFunction(1), L.OptString(2, "=(load)")
		var code strings.Builder
		for {
			L.Push(read)
			L.Call(0, 1)
			piece := L.Get(-1)
			L.Pop(1)
			if piece == lua.LNil || piece == lua.LString("") {
				return compiled(L, code.String(), name)
			}
			if !lua.LVCanConvToString(piece) {
				L.Push(lua.LNil)
				L.Push(lua.LString("reader function must return a string"))
				return 2
			}
			code.WriteString(lua.LVAsString(piece))
		}
	})
}

// chunkName is how error texts name code that was given as a string.
func chunkName(name string) string {
	if name != "" && (name[0] == '=' || name[0] == '@') {
		return name[1:]
	}
	const most = 45
	line, _, cut := strings.Cut(name, "\n")
	if len(line) > most {
		line, cut = line[:most], true
	}
	if cut {
		line += "..."
	}
	return `[string "` + line + `"]`
}

// seal makes the globals and all tables in them read-only for scripts.
func (ip *interp) seal() {
	L := ip.L
	ip.globals.Metatable = ip.noGlobal()
	ip.env = ip.protect(ip.globals)
	ip.envMeta = ip.shown[ip.env]
	var names []string
	each(ip.globals, func(k, v lua.LValue) {
		if t, ok := v.(*lua.LTable); ok && t != ip.globals {
			names = append(names, lua.LVAsString(k))
		}
	})
	for _, name := range names {
		ip.globals.RawSetString(name, ip.protect(ip.globals.RawGetString(name).(*lua.LTable)))
	}
	ip.globals.RawSetString("_G", ip.env)
	L.G.Global, L.Env = ip.env, ip.env
	if meta, ok := L.GetMetatable(lua.LString("")).(*lua.LTable); ok {
		shown := L.NewTable()
		shown.RawSetString("__index", ip.globals.RawGetString("string"))
		meta.RawSetString("__metatable", ip.protect(shown))
	}
}

// numberText writes a number as Lua does: with 14 digits.
func numberText(n lua.LNumber) string {
	f := float64(n)
	if i := int64(f); float64(i) == f && i > -1e14 && i < 1e14 && (i != 0 || !math.Signbit(f)) {
		return lua.LNumber(i).String()
	}
	return string(appendG(nil, f, 14))
}
