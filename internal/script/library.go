package script

import (
	"maps"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/kevydb/kevy/state"
)

// loadTimeout bounds what a library does when it is loaded.
const loadTimeout = 500 * time.Millisecond

const msgBadName = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"

// library is a compiled library.
type library struct {
	name  string
	code  string
	funcs map[string]*function
}

// function is a registered function.
type function struct {
	name    string
	desc    string
	hasDesc bool
	flags   flags
	fn      *lua.LFunction
}

// names returns the names of the functions in order.
func (l *library) names() []string { return slices.Sorted(maps.Keys(l.funcs)) }

// functions are compiled libraries and the state they live in.
type functions struct {
	of     *state.Libraries // what they were made from
	ip     *interp
	libs   map[string]*library
	byName map[string]*function // by name in lower case: FCALL does not tell cases apart
}

// link adds a library's functions.
func (fs *functions) link(l *library) {
	fs.libs[l.name] = l
	for name, f := range l.funcs {
		fs.byName[strings.ToLower(name)] = f
	}
}

// clash returns the name of a function of l that another library has, or "". Libraries whose names are in without do not count.
func (fs *functions) clash(l *library, without map[string]bool) string {
	for _, other := range fs.libs {
		if other.name == l.name || without[other.name] {
			continue
		}
		for name := range l.funcs {
			for theirs := range other.funcs {
				if strings.EqualFold(name, theirs) {
					return name
				}
			}
		}
	}
	return ""
}

// metadata reads a library's header line. bad is an error without its code, or "".
func metadata(code string) (name, body, bad string) {
	if !strings.HasPrefix(code, "#!") {
		return "", "", "Missing library metadata"
	}
	end := strings.IndexByte(code, '\n')
	if end < 0 {
		return "", "", "Invalid library metadata"
	}
	words, ok := state.SplitWords(code[:end])
	if !ok || len(words) == 0 {
		return "", "", "Invalid library metadata"
	}
	named := false
	for _, w := range words[1:] {
		if len(w) < 5 || !strings.EqualFold(w[:5], "name=") {
			return "", "", "Invalid metadata value given: " + w
		}
		if named {
			return "", "", "Invalid metadata value, name argument was given multiple times"
		}
		name, named = w[5:], true
	}
	switch engine := words[0][2:]; {
	case !named:
		return "", "", "Library name was not given"
	case !validName(name):
		return "", "", msgBadName
	case !strings.EqualFold(engine, "lua"):
		return "", "", "Engine '" + engine + "' not found"
	}
	return name, code[end:], ""
}

func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return s != ""
}

// CheckLibrary returns why FUNCTION LOAD would refuse a library's code, "" if it would not. Clashes with other libraries are none of its business.
func CheckLibrary(code string) (bad string) {
	name, body, bad := metadata(code)
	if bad == "" {
		_, bad = New(nil).derive(&state.Libraries{}, nil).compile(name, code, body, loadTimeout)
	}
	if bad != "" {
		bad = "ERR " + bad
	}
	return bad
}

// compile compiles and runs a library's code, so that it registers its functions. limit 0 is none. bad is an error
// without its code, or "".
func (fs *functions) compile(name, code, body string, limit time.Duration) (l *library, bad string) {
	proto, err := compile(body, "user_function", true)
	if err != nil {
		return nil, "Error compiling function: " + err.Error()
	}
	ip := fs.ip
	l = &library{name: name, code: code, funcs: make(map[string]*function)}
	ip.envMeta.RawSetString("__index", ip.loadGlobals)
	ip.load = l
	ip.hook.stop.Store(false)
	ip.hook.left = hookEvery
	if limit > 0 {
		ip.hook.limit = time.Now().Add(limit)
	}
	defer func() {
		ip.envMeta.RawSetString("__index", ip.globals)
		ip.load, ip.hook.limit = nil, time.Time{}
	}()
	ip.L.Push(ip.function(proto))
	ip.L.Push(ip.text)
	if err := ip.L.PCall(1, 0, ip.onLoadError); err != nil {
		text := err.Error()
		if e, ok := err.(*lua.ApiError); ok { //nolint:errorlint // PCall returns nothing else
			if t, ok := e.Object.(*lua.LTable); ok {
				text, _ = errorOf(t)
			} else {
				text = "ERR " + textOf(ip.L, e.Object)
			}
		}
		return nil, "Error registering functions: " + text
	}
	if len(l.funcs) == 0 {
		return nil, "No functions registered"
	}
	return l, ""
}

// openLoading makes what libraries see while they are loaded: a table redis with little in it, and nothing else.
func (ip *interp) openLoading() {
	redis := ip.L.NewTable()
	redis.RawSetString("register_function", ip.L.NewFunction(ip.register))
	ip.addLog(redis)
	redis.Metatable = ip.noGlobal()
	ip.loadGlobals = ip.L.NewTable()
	ip.loadGlobals.RawSetString("redis", ip.protect(redis))
	ip.loadGlobals.Metatable = ip.noGlobal()
}

// register is redis.register_function.
func (ip *interp) register(L *lua.LState) int {
	if ip.load == nil {
		return ip.raise(L, "redis.register_function can only be called on FUNCTION LOAD command")
	}
	var f *function
	var bad string
	switch L.GetTop() {
	case 1:
		f, bad = namedArgs(L)
	case 2:
		f, bad = positionalArgs(L)
	default:
		bad = "wrong number of arguments to redis.register_function"
	}
	switch {
	case bad != "":
	case !validName(f.name):
		bad = msgBadName
	case ip.load.funcs[f.name] != nil:
		bad = "Function already exists in the library"
	}
	if bad != "" {
		return ip.raise(L, bad)
	}
	ip.load.funcs[f.name] = f
	return 0
}

func positionalArgs(L *lua.LState) (f *function, bad string) {
	if !lua.LVCanConvToString(L.Get(1)) {
		return nil, "first argument to redis.register_function must be a string"
	}
	fn, ok := L.Get(2).(*lua.LFunction)
	if !ok {
		return nil, "second argument to redis.register_function must be a function"
	}
	return &function{name: textOf(L, L.Get(1)), fn: fn}, ""
}

func namedArgs(L *lua.LState) (f *function, bad string) {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		return nil, "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	}
	f = &function{}
	named := false
	each(t, func(k, v lua.LValue) {
		if bad != "" {
			return
		}
		if !lua.LVCanConvToString(k) {
			bad = "named argument key given to redis.register_function is not a string"
			return
		}
		switch strings.ToLower(k.String()) {
		case "function_name":
			f.name, named = textOf(L, v), true
			bad = mustBe(lua.LVCanConvToString(v), "function_name argument given to redis.register_function must be a string")
		case "description":
			f.desc, f.hasDesc = textOf(L, v), true
			bad = mustBe(lua.LVCanConvToString(v), "description argument given to redis.register_function must be a string")
		case "callback":
			f.fn, ok = v.(*lua.LFunction)
			bad = mustBe(ok, "callback argument given to redis.register_function must be a function")
		case "flags":
			f.flags, bad = readFlags(v)
		default:
			bad = "unknown argument given to redis.register_function"
		}
	})
	switch {
	case bad != "":
	case !named:
		bad = "redis.register_function must get a function name argument"
	case f.fn == nil:
		bad = "redis.register_function must get a callback argument"
	}
	return f, bad
}

func mustBe(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}

func readFlags(v lua.LValue) (f flags, bad string) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return 0, "flags argument to redis.register_function must be a table representing function flags"
	}
	for i := 1; t.RawGetInt(i) != lua.LNil; i++ {
		name := t.RawGetInt(i)
		x := flagOf(strings.ToLower(name.String()))
		if !lua.LVCanConvToString(name) || x == 0 {
			return 0, "unknown flag given"
		}
		f |= x
	}
	return f, ""
}
