package script

import (
	"strings"
	"sync"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// changeLibraries is the row that plans an effect on the libraries: its arguments are the effect's.
var changeLibraries = &command.Command{
	Name: "function", Arity: -1, Scope: command.ScopeAll,
	Plan: func(c *command.Ctx) { c.EmitOn(0, effect.Function, c.Args...) },
}

// Run runs a row of the group scripting that needs the locks of all shards: EVAL, FCALL and what shows or changes the
// libraries. It appends the reply to c.W. REQUIRES: the locks are held and c.Nested is set: inside Engine.Script
// or Engine.Exec. An error means that the server stops: what the script has done is to be undone.
func (rt *Runtime) Run(c *command.Ctx, h *Host) error {
	if rt.stopped.Load() {
		return ErrStopped
	}
	switch name, _, _ := strings.Cut(c.Cmd.Name, "_ro"); name {
	case "eval", "evalsha":
		rt.runEval(c, h)
	case "fcall":
		rt.runFcall(c, h)
	case "function|load":
		rt.loadLibrary(c)
	case "function|delete":
		rt.deleteLibrary(c)
	case "function|flush":
		rt.flushLibraries(c)
	case "function|list":
		rt.list(c.W, c.Args[2:])
	case "function|dump":
		c.W.Bulk(dump(rt.eng.Libraries()))
	case "function|restore":
		rt.restore(c)
	default:
		c.W.Error(command.ArityError(c.Cmd))
	}
	if rt.stopped.Load() {
		return ErrStopped
	}
	return nil
}

// Sync makes the functions ready that the engine's state has. REQUIRES: as Run.
func (rt *Runtime) Sync() { rt.sync() }

// sync derives the compiled functions from the libraries that the state has. REQUIRES: the locks of all shards.
func (rt *Runtime) sync() *functions {
	libs := rt.eng.Libraries()
	if rt.fns != nil && rt.fns.of == libs {
		return rt.fns
	}
	rt.fns = rt.derive(libs, rt.fns)
	rt.libraries.Store(int64(len(rt.fns.libs)))
	rt.functions.Store(int64(len(rt.fns.byName)))
	rt.declared.Clear()
	for name, f := range rt.fns.byName {
		rt.declared.Store(name, f.flags)
	}
	return rt.fns
}

// derive compiles libraries, except those that are compiled already. One that does not compile any more is left
// out; it stays in the state.
func (rt *Runtime) derive(libs *state.Libraries, old *functions) *functions {
	fs := &functions{of: libs, libs: make(map[string]*library), byName: make(map[string]*function)}
	if old != nil {
		fs.ip = old.ip
	} else {
		fs.ip = newInterp(rt, true)
	}
	for _, l := range libs.List() {
		if old != nil && old.libs[l.Name] != nil && old.libs[l.Name].code == l.Code {
			fs.link(old.libs[l.Name])
			continue
		}
		name, body, bad := metadata(l.Code)
		var lib *library
		if bad == "" {
			lib, bad = fs.compile(name, l.Code, body, 0)
		}
		if bad != "" {
			if rt.Log != nil {
				rt.Log(LogWarning, "library "+l.Name+" can't be loaded: "+strings.TrimSpace(bad))
			}
			continue
		}
		fs.link(lib)
	}
	return fs
}

// change plans an effect on the libraries. REQUIRES: as Run.
func (rt *Runtime) change(c *command.Ctx, args ...string) error {
	w, cmd, old := c.W, c.Cmd, c.Args
	defer func() { c.W, c.Cmd, c.Args = w, cmd, old }()
	c.Cmd, c.Args, c.W = changeLibraries, nil, &resp.Writer{}
	for _, a := range args {
		c.Args = append(c.Args, []byte(a))
	}
	return c.Nested(c, nil)
}

// runFcall is FCALL and FCALL_RO.
func (rt *Runtime) runFcall(c *command.Ctx, h *Host) {
	fs := rt.sync()
	f := fs.byName[strings.ToLower(string(c.Args[1]))]
	if f == nil {
		c.W.Error("ERR Function not found")
		return
	}
	keys, argv, bad := splitKeys(c.Args, "ERR Bad number of keys provided")
	if bad != "" {
		c.W.Error(bad)
		return
	}
	rt.execute(c, h, fs.ip, &job{
		name: f.name, fn: f.fn, flags: f.flags, ro: c.Cmd.Name == "fcall_ro", keys: keys, argv: argv,
	})
}

// loadLibrary is FUNCTION LOAD [REPLACE] code.
func (rt *Runtime) loadLibrary(c *command.Ctx) {
	replace, last := false, len(c.Args)-1
	for _, a := range c.Args[2:last] {
		if !strings.EqualFold(string(a), "replace") {
			c.W.Error("ERR Unknown option given: " + string(a))
			return
		}
		replace = true
	}
	code := string(c.Args[last])
	name, body, bad := metadata(code)
	if bad != "" {
		c.W.Error("ERR " + bad)
		return
	}
	fs := rt.sync()
	if fs.libs[name] != nil && !replace {
		c.W.Error("ERR Library '" + name + "' already exists")
		return
	}
	l, bad := fs.compile(name, code, body, loadTimeout)
	if bad == "" {
		if dup := fs.clash(l, nil); dup != "" {
			bad = "Function " + dup + " already exists"
		}
	}
	if bad != "" {
		c.W.Error("ERR " + bad)
		return
	}
	rt.adopt(c, fs, []*library{l}, func(w *resp.Writer) { w.BulkString(name) })
}

// adopt puts libraries that are compiled into the state, and replies.
func (rt *Runtime) adopt(c *command.Ctx, fs *functions, libs []*library, ok func(*resp.Writer)) {
	for _, l := range libs {
		if err := rt.change(c, "LOAD", "REPLACE", l.code); err != nil {
			c.W.Error(refused(err))
			return
		}
		fs.libs[l.name] = l // found by derive
	}
	rt.sync()
	ok(c.W)
}

func (rt *Runtime) deleteLibrary(c *command.Ctx) {
	name := string(c.Args[2])
	if rt.sync().libs[name] == nil {
		c.W.Error("ERR Library not found")
		return
	}
	rt.changed(c, "DELETE", name)
}

func (rt *Runtime) flushLibraries(c *command.Ctx) {
	switch {
	case len(c.Args) > 3:
		c.W.Error("ERR unknown subcommand or wrong number of arguments for '" + string(c.Args[1]) + "'. Try FUNCTION HELP.")
		return
	case len(c.Args) == 3 && !isMode(c.Args[2]):
		c.W.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
		return
	case len(rt.eng.Libraries().List()) == 0:
		c.W.OK()
		return
	}
	rt.changed(c, "FLUSH")
}

// changed changes the libraries and replies OK.
func (rt *Runtime) changed(c *command.Ctx, args ...string) {
	if err := rt.change(c, args...); err != nil {
		c.W.Error(refused(err))
		return
	}
	rt.sync()
	c.W.OK()
}

// list is FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE].
func (rt *Runtime) list(w *resp.Writer, args [][]byte) {
	var pattern []byte
	withCode, named := false, false
	for i := 0; i < len(args); i++ {
		switch word := strings.ToLower(string(args[i])); {
		case word == "withcode" && !withCode:
			withCode = true
		case word == "libraryname" && !named:
			if i+1 == len(args) {
				w.Error("ERR library name argument was not given")
				return
			}
			i++
			pattern, named = args[i], true
		default:
			w.Error("ERR Unknown argument " + string(args[i]))
			return
		}
	}
	fs := rt.sync()
	var shown []*library
	for _, l := range rt.eng.Libraries().List() {
		if lib := fs.libs[l.Name]; lib != nil && (!named || command.MatchFold(pattern, []byte(l.Name))) {
			shown = append(shown, lib)
		}
	}
	w.Array(len(shown))
	for _, l := range shown {
		l.show(w, withCode)
	}
}

func (l *library) show(w *resp.Writer, withCode bool) {
	n := 3
	if withCode {
		n++
	}
	w.Map(n)
	w.BulkString("library_name")
	w.BulkString(l.name)
	w.BulkString("engine")
	w.BulkString("LUA")
	w.BulkString("functions")
	w.Array(len(l.funcs))
	for _, name := range l.names() {
		f := l.funcs[name]
		w.Map(3)
		w.BulkString("name")
		w.BulkString(f.name)
		w.BulkString("description")
		if f.hasDesc {
			w.BulkString(f.desc)
		} else {
			w.Null()
		}
		w.BulkString("flags")
		var names []string
		for _, x := range flagNames {
			if f.flags&x.flag != 0 {
				names = append(names, x.name)
			}
		}
		w.Set(len(names))
		for _, x := range names {
			w.Simple(x)
		}
	}
	if withCode {
		w.BulkString("library_code")
		w.BulkString(l.code)
	}
}

// declaredFlags are the flags of the functions, by name, for who does not hold the locks.
type declaredFlags = sync.Map
