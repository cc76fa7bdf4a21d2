package script

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// Runtime runs scripts and functions over an engine.
type Runtime struct {
	// Log takes what scripts say with redis.log; may be nil. Set before use.
	Log func(level int, text string)

	eng *engine.Engine

	// These belong to the holder of all shard locks.
	eval *interp
	fns  *functions
	call call // reused

	mu      sync.Mutex
	cache   map[string]*program // by SHA1
	bodies  map[string]*program // the same, by their text
	memory  int64               // of the cache
	epoch   int                 // grows with SCRIPT FLUSH
	running atomic.Pointer[run]
	stopped atomic.Bool

	libraries, functions atomic.Int64 // counts, for FUNCTION STATS
	declared             declaredFlags
	rng                  rand48

	allowAll atomic.Bool // DEBUG SET-DISABLE-DENY-SCRIPTS
}

// New returns a runtime over e.
func New(e *engine.Engine) *Runtime {
	return &Runtime{eng: e, cache: make(map[string]*program), bodies: make(map[string]*program), rng: firstRandom}
}

// Host is what a runtime needs to know of who runs a script.
type Host struct {
	// Began is when the command that runs the script began: its time limit counts from then on.
	Began time.Time
	// Local runs rows without a planner.
	Local func(*command.Ctx) error
	// GiveWay, if set, is called now and then while the script runs.
	GiveWay func()
	// OutOfMemory says that maxmemory was exceeded when the script started.
	OutOfMemory bool
	// NoWrites is the error with which writes are refused, without its "-"; empty if they are not.
	NoWrites string
	// Allowed, if set, checks permissions; it returns an error, or "".
	Allowed func(cmd *command.Command, args [][]byte) string
	// May, if set, answers redis.acl_check_cmd.
	May func(cmd *command.Command, args [][]byte) bool
	// Called, if set, is told about each command that has run, and how long; args and reply are valid during the call.
	Called func(cmd *command.Command, args [][]byte, reply []byte, took time.Duration)
	// Refused, if set, is told about each call that was refused; cmd may be nil.
	Refused func(cmd *command.Command, text string)
	// Counted, if set, is told that the script fails with the error of a command that Called or Refused was told about.
	Counted func()
}

// run is the script that runs, as others may see it.
type run struct {
	name  string
	eval  bool
	args  [][]byte // of FCALL
	began time.Time
	dirty atomic.Bool // it has called a write command
	hook  *hook
}

// call is the script that runs, as its libraries see it.
type call struct {
	ctx      *command.Ctx
	host     *Host
	run0     *run
	proto    int
	readOnly bool
	allowOOM bool
	anything bool // NoScript does not count

	w    resp.Writer // the reply of the command that the script has called
	args [][]byte
	ends []int
	buf  []byte
}

// job is what to run and how.
type job struct {
	name  string
	eval  bool
	fn    *lua.LFunction
	flags flags
	ro    bool // EVAL_RO, FCALL_RO
	keys  [][]byte
	argv  [][]byte
}

// execute runs a job and appends its reply to ctx.W. REQUIRES: the locks of all shards are held, and
// ctx.Nested is set.
func (rt *Runtime) execute(ctx *command.Ctx, h *Host, ip *interp, j *job) {
	w, cmd, args := ctx.W, ctx.Cmd, ctx.Args
	if bad := j.refused(h); bad != "" {
		w.Error(bad)
		return
	}
	r := &run{name: j.name, eval: j.eval, began: h.Began, hook: &ip.hook}
	if !j.eval {
		r.args = args
	}
	c := &rt.call
	*c = call{
		args: c.args[:0], ends: c.ends[:0], buf: c.buf[:0], w: resp.Writer{Buf: c.w.Buf[:0]},
		ctx: ctx, host: h, run0: r, proto: 2,
		readOnly: j.ro || j.flags&compat == 0 && j.flags&noWrites != 0,
		allowOOM: j.flags&compat == 0 && j.flags&allowOOM != 0,
		anything: rt.allowAll.Load(),
	}
	ip.hook.stop.Store(false)
	ip.hook.left, ip.hook.giveWay = hookEvery, h.GiveWay
	ip.call = c
	rt.running.Store(r)
	defer func() {
		rt.running.Store(nil)
		ip.call = nil
		c.ctx, c.host, c.run0 = nil, nil, nil
		c.trim()
		ctx.W, ctx.Cmd, ctx.Args = w, cmd, args
	}()
	v, err := ip.invoke(j)
	if err != nil {
		text, counted := failure(j.name, err)
		w.Error(text)
		if counted && h.Counted != nil {
			h.Counted()
		}
		return
	}
	if t, ok := v.(*lua.LTable); ok && h.Counted != nil {
		if _, counted := errorOf(t); counted {
			h.Counted()
		}
	}
	(&replier{ip: ip, w: w, proto: c.proto}).reply(v, 0)
}

// trim lets go of buffers that one script has made large.
func (c *call) trim() {
	const most = 64 << 10
	if cap(c.w.Buf) > most {
		c.w.Buf = nil
	}
	if cap(c.buf) > most {
		c.buf = nil
	}
	if cap(c.args) > most/32 {
		c.args, c.ends = nil, nil
	}
}

// invoke calls the function of a job.
func (ip *interp) invoke(j *job) (lua.LValue, error) {
	L := ip.L
	L.Env = ip.env // setfenv(0) of an earlier script has changed it
	keys, argv := ip.list(j.keys), ip.list(j.argv)
	L.Push(j.fn)
	n := 2
	if j.eval {
		ip.globals.RawSetString("KEYS", keys)
		ip.globals.RawSetString("ARGV", argv)
		L.Push(ip.text)
		n = 1
	} else {
		L.Push(keys)
		L.Push(argv)
	}
	if err := L.PCall(n, 1, ip.onError); err != nil {
		return nil, err
	}
	v := L.Get(-1)
	L.Pop(1)
	return v, nil
}

func (ip *interp) list(items [][]byte) *lua.LTable {
	t := ip.L.CreateTable(len(items), 0)
	for i, b := range items {
		t.RawSetInt(i+1, lua.LString(b))
	}
	return t
}

// refused says why the job's flags forbid it to run, or "".
func (j *job) refused(h *Host) string {
	if j.flags&compat != 0 {
		return ""
	}
	switch {
	case j.ro && j.flags&noWrites == 0:
		return "ERR Can not execute a script with write flag using *_ro command."
	case h.OutOfMemory && j.flags&(allowOOM|noWrites) == 0:
		return "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
	case h.NoWrites != "" && !j.ro && j.flags&noWrites == 0:
		return h.NoWrites
	}
	return ""
}

const (
	msgBusyEval     = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	msgBusyFunction = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
)

func (r *run) busyText() string {
	if r.eval {
		return msgBusyEval
	}
	return msgBusyFunction
}

// Busy returns the error that others get because a script has been running for longer than limit, or "".
func (rt *Runtime) Busy(limit time.Duration) string {
	r := rt.running.Load()
	if r == nil || limit <= 0 || time.Since(r.began) < limit {
		return ""
	}
	return r.busyText()
}

// AllowAll lets scripts run commands that are not for scripts (DEBUG SET-DISABLE-DENY-SCRIPTS).
func (rt *Runtime) AllowAll(on bool) { rt.allowAll.Store(on) }

// Stop ends the running script, whatever it has done, and lets Run fail. For the end of the process.
func (rt *Runtime) Stop() {
	rt.stopped.Store(true)
	if r := rt.running.Load(); r != nil {
		r.hook.stop.Store(true)
	}
}

// Running returns for how long the running script has run, 0 if none runs.
func (rt *Runtime) Running() time.Duration {
	if r := rt.running.Load(); r != nil {
		return time.Since(r.began)
	}
	return 0
}

// ErrStopped is returned for a script that Stop has ended.
var ErrStopped = errors.New("ERR the server is shutting down")

// Kill is SCRIPT KILL (eval) and FUNCTION KILL. Safe at any time.
func (rt *Runtime) Kill(w *resp.Writer, eval bool) {
	r := rt.running.Load()
	switch {
	case r == nil:
		w.Error("NOTBUSY No scripts in execution right now.")
	case r.dirty.Load():
		w.Error("UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the " +
			"script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	case eval != r.eval:
		w.Error(r.busyText())
	default:
		r.hook.stop.Store(true)
		w.OK()
	}
}

// Stats is FUNCTION STATS. Safe at any time.
func (rt *Runtime) Stats(w *resp.Writer) {
	r := rt.running.Load()
	if r != nil && r.eval {
		w.Error(msgBusyEval)
		return
	}
	w.Map(2)
	w.BulkString("running_script")
	if r == nil {
		w.Null()
	} else {
		w.Map(3)
		w.BulkString("name")
		w.BulkString(r.name)
		w.BulkString("command")
		w.Array(len(r.args))
		for _, a := range r.args {
			w.Bulk(a)
		}
		w.BulkString("duration_ms")
		w.Int(time.Since(r.began).Milliseconds())
	}
	w.BulkString("engines")
	w.Map(1)
	w.BulkString("LUA")
	w.Map(2)
	w.BulkString("libraries_count")
	w.Int(rt.libraries.Load())
	w.BulkString("functions_count")
	w.Int(rt.functions.Load())
}

// Memory tells what INFO shows: the number of cached scripts, of libraries and functions, and the bytes of the
// cached scripts and of the libraries.
func (rt *Runtime) Memory() (scripts, libraries, functions, cached int64) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return int64(len(rt.cache)), rt.libraries.Load(), rt.functions.Load(), rt.memory
}
