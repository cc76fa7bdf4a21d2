package script

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/resp"
)

const msgNoScript = "NOSCRIPT No matching script. Please use EVAL."

// program is a script in the cache. proto is read-only; fn belongs to the holder of all shard locks.
type program struct {
	sha   string
	flags flags
	proto *lua.FunctionProto

	fn *lua.LFunction
	of *interp // that fn was made for
}

// find returns a cached script by its digest, in any case of letters.
func (rt *Runtime) find(sha []byte) *program {
	if len(sha) != 40 {
		return nil
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if p, ok := rt.cache[string(sha)]; ok {
		return p
	}
	return rt.cache[strings.ToLower(string(sha))]
}

// add returns the script of a body, compiling it if it is new. bad is an error, or "".
func (rt *Runtime) add(body []byte) (p *program, bad string) {
	rt.mu.Lock()
	p, ok := rt.bodies[string(body)]
	rt.mu.Unlock()
	if ok {
		return p, ""
	}
	text := string(body)
	sha := sha1Hex(text)
	f, code, bad := header(text)
	if bad != "" {
		return nil, bad
	}
	proto, err := compile(code, "user_script", true)
	if err != nil {
		return nil, "ERR Error compiling script (new function): " + err.Error()
	}
	p = &program{sha: sha, flags: f, proto: proto}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.cache[sha], rt.bodies[text] = p, p
	rt.memory += int64(len(body) + len(sha))
	return p, ""
}

// Flags returns the flags of a request's row, as the script it runs declares them.
func (rt *Runtime) Flags(cmd *command.Command, args [][]byte) command.Flags {
	switch cmd.Name {
	case "eval", "eval_ro":
		if f, _, bad := header(string(args[1][:min(len(args[1]), 1<<10)])); bad == "" {
			return f.command(cmd.Flags)
		}
	case "evalsha", "evalsha_ro":
		if p := rt.find(args[1]); p != nil {
			return p.flags.command(cmd.Flags)
		}
	case "fcall", "fcall_ro":
		if f, ok := rt.declared.Load(strings.ToLower(string(args[1]))); ok {
			return f.(flags).command(cmd.Flags)
		}
	}
	return cmd.Flags
}

// runEval is EVAL, EVALSHA and their _RO forms. REQUIRES: the locks of all shards.
func (rt *Runtime) runEval(c *command.Ctx, h *Host) {
	sha := strings.HasPrefix(c.Cmd.Name, "evalsha")
	if sha && len(c.Args[1]) != 40 {
		c.W.Error(msgNoScript)
		return
	}
	keys, argv, bad := splitKeys(c.Args, "ERR value is not an integer or out of range")
	if bad != "" {
		c.W.Error(bad)
		return
	}
	var p *program
	if sha {
		if p = rt.find(c.Args[1]); p == nil {
			bad = msgNoScript
		}
	} else {
		p, bad = rt.add(c.Args[1])
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	ip := rt.evalInterp()
	if p.of != ip {
		p.fn, p.of = ip.function(p.proto), ip
	}
	rt.execute(c, h, ip, &job{
		name: p.sha, eval: true, fn: p.fn, flags: p.flags, ro: strings.HasSuffix(c.Cmd.Name, "_ro"),
		keys: keys, argv: argv,
	})
}

// evalInterp returns the state that scripts run in; SCRIPT FLUSH makes the next one a new one.
func (rt *Runtime) evalInterp() *interp {
	rt.mu.Lock()
	epoch := rt.epoch
	rt.mu.Unlock()
	if rt.eval == nil || rt.eval.epoch != epoch {
		rt.eval = newInterp(rt, false)
		rt.eval.epoch = epoch
	}
	return rt.eval
}

// splitKeys splits EVAL script numkeys key... arg... notInt is the error if numkeys is no number.
func splitKeys(args [][]byte, notInt string) (keys, argv [][]byte, bad string) {
	n, err := strconv.ParseInt(string(args[2]), 10, 64)
	switch {
	case err != nil || strconv.FormatInt(n, 10) != string(args[2]):
		return nil, nil, notInt
	case n > int64(len(args)-3):
		return nil, nil, "ERR Number of keys can't be greater than number of args"
	case n < 0:
		return nil, nil, "ERR Number of keys can't be negative"
	}
	return args[3 : 3+n], args[3+n:], ""
}

// Load is SCRIPT LOAD. Safe at any time.
func (rt *Runtime) Load(w *resp.Writer, body []byte) {
	p, bad := rt.add(body)
	if bad != "" {
		w.Error(bad)
		return
	}
	w.BulkString(p.sha)
}

// Exists is SCRIPT EXISTS. Safe at any time.
func (rt *Runtime) Exists(w *resp.Writer, shas [][]byte) {
	w.Array(len(shas))
	for _, s := range shas {
		if rt.find(s) != nil {
			w.Int(1)
		} else {
			w.Int(0)
		}
	}
}

// Flush is SCRIPT FLUSH [ASYNC|SYNC]. Safe at any time.
func (rt *Runtime) Flush(w *resp.Writer, args [][]byte) {
	if len(args) > 1 || len(args) == 1 && !isMode(args[0]) {
		w.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	rt.mu.Lock()
	rt.cache, rt.bodies, rt.memory = make(map[string]*program), make(map[string]*program), 0
	rt.epoch++
	rt.mu.Unlock()
	w.OK()
}

func isMode(b []byte) bool {
	return strings.EqualFold(string(b), "sync") || strings.EqualFold(string(b), "async")
}
