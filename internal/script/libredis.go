package script

import (
	"crypto/sha1" //nolint:gosec // names of scripts are SHA1 digests
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// Levels of redis.log.
const (
	LogDebug = iota
	LogVerbose
	LogNotice
	LogWarning
)

// version is the version of Redis that scripts see.
const (
	version    = "7.2.4"
	versionNum = 0x00070204
)

func sha1Hex(s string) string {
	sum := sha1.Sum([]byte(s)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// openRedis makes the table redis; functions do not get what is for scripts only.
func (ip *interp) openRedis(forFunctions bool) *lua.LTable {
	t := ip.L.NewTable()
	fns := map[string]lua.LGFunction{
		"call":          func(L *lua.LState) int { return ip.redisCall(L, true) },
		"pcall":         func(L *lua.LState) int { return ip.redisCall(L, false) },
		"setresp":       ip.setResp,
		"sha1hex":       ip.sha1hex,
		"error_reply":   ip.errorReply,
		"status_reply":  ip.statusReply,
		"set_repl":      ip.setRepl,
		"acl_check_cmd": ip.aclCheck,
	}
	if !forFunctions {
		yes := func(L *lua.LState) int { L.Push(lua.LTrue); return 1 }
		no := func(L *lua.LState) int { L.Push(lua.LFalse); return 1 }
		fns["replicate_commands"], fns["breakpoint"] = yes, no
		fns["debug"] = func(*lua.LState) int { return 0 }
	}
	ip.L.SetFuncs(t, fns)
	ip.addLog(t)
	for name, n := range map[string]int{"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3} {
		t.RawSetString(name, lua.LNumber(n))
	}
	return t
}

// addLog adds redis.log and the version.
func (ip *interp) addLog(t *lua.LTable) {
	t.RawSetString("log", ip.L.NewFunction(ip.log))
	for i, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		t.RawSetString(name, lua.LNumber(i))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(version))
	t.RawSetString("REDIS_VERSION_NUM", lua.LNumber(versionNum))
}

const (
	msgNoArgument = "Please specify at least one argument for this redis lib call"
	msgBadArgs    = "Lua redis lib command arguments must be strings or integers"
	msgReadOnly   = "Write commands are not allowed from read-only scripts."
	msgOOM        = "-OOM command not allowed when used memory > 'maxmemory'."
)

// collect makes the request of a call's arguments, in memory that lives until the next one. bad is an error, or "".
func (c *call) collect(L *lua.LState) (args [][]byte, bad string) {
	n := L.GetTop()
	if n == 0 {
		return nil, msgNoArgument
	}
	c.args, c.ends, c.buf = c.args[:0], c.ends[:0], c.buf[:0]
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			c.buf = append(c.buf, v...)
		case lua.LNumber:
			if k := int64(v); lua.LNumber(k) == v && k > -1<<53 && k < 1<<53 {
				c.buf = strconv.AppendInt(c.buf, k, 10)
			} else {
				c.buf = resp.AppendDouble(c.buf, float64(v))
			}
		default:
			return nil, msgBadArgs
		}
		c.ends = append(c.ends, len(c.buf))
	}
	from := 0
	for _, end := range c.ends {
		c.args = append(c.args, c.buf[from:end:end])
		from = end
	}
	return c.args, ""
}

// redisCall is redis.call and, without raise, redis.pcall.
func (ip *interp) redisCall(L *lua.LState, raise bool) int {
	c := ip.call
	if c == nil {
		return ip.raise(L, "redis.call can only be used inside a script")
	}
	args, bad := c.collect(L)
	if bad != "" {
		if raise {
			return ip.raise(L, bad)
		}
		L.Push(ip.errorTable(bad))
		return 1
	}
	cmd, bad := c.admit(args)
	if bad != "" {
		if c.host.Refused != nil {
			c.host.Refused(cmd, bad)
		}
		t := ip.errorTable(bad)
		t.RawSetString("ignore_error_stats_update", lua.LTrue)
		if raise {
			L.Error(t, 0)
		}
		L.Push(t)
		return 1
	}
	ip.hook.left -= hookCall
	reply := c.run(cmd, args)
	r := reader{ip: ip, b: reply}
	v := r.value()
	if raise && reply[0] == '-' {
		L.Error(v, 0)
	}
	L.Push(v)
	return 1
}

// admit finds the row that serves a call and checks that the script may run it. bad is an error, or "".
func (c *call) admit(args [][]byte) (cmd *command.Command, bad string) {
	cmd = command.Lookup(args[0])
	if cmd != nil && len(cmd.Sub) > 0 && len(args) > 1 {
		cmd = cmd.Subcommand(args[1])
	}
	write := command.Write
	switch {
	case cmd == nil:
		return nil, "Unknown Redis command called from script"
	case !cmd.ArityOK(len(args)):
		return cmd, "Wrong number of args calling Redis command from script"
	case cmd.Flags&command.NoScript != 0 && !c.anything:
		return cmd, "This Redis command is not allowed from script"
	case c.readOnly && cmd.Flags&(write|command.MayReplicate) != 0:
		return cmd, msgReadOnly
	case c.host.OutOfMemory && !c.allowOOM && !c.run0.dirty.Load() && cmd.Flags&command.DenyOOM != 0:
		return cmd, msgOOM
	case c.host.NoWrites != "" && !c.run0.dirty.Load() && cmd.Flags&write != 0:
		return cmd, "-" + c.host.NoWrites
	}
	if c.host.Allowed != nil {
		if bad := c.host.Allowed(cmd, args); bad != "" {
			return cmd, bad
		}
	}
	if cmd.Flags&write != 0 {
		c.run0.dirty.Store(true)
	}
	return cmd, ""
}

// run runs a command as a part of the script's group and returns its reply, valid until the next run.
func (c *call) run(cmd *command.Command, args [][]byte) []byte {
	x := c.ctx
	c.w.Buf, c.w.Proto = c.w.Buf[:0], c.proto
	x.Cmd, x.Args, x.W = cmd, args, &c.w
	began := time.Since(c.host.Began)
	if err := x.Nested(x, c.host.Local); err != nil {
		c.w.Buf = c.w.Buf[:0]
		c.w.Error(engine.Misconf(err))
	}
	if len(c.w.Buf) == 0 {
		c.w.Error("ERR command is not allowed from script: it has no reply")
	}
	if c.host.Called != nil {
		c.host.Called(cmd, args, c.w.Buf, time.Since(c.host.Began)-began)
	}
	return c.w.Buf
}

func (ip *interp) sha1hex(L *lua.LState) int {
	if L.GetTop() != 1 {
		return ip.raise(L, "wrong number of arguments")
	}
	L.Push(lua.LString(sha1Hex(lua.LVAsString(L.Get(1)))))
	return 1
}

// oneString returns the only argument of a call, if it is a string.
func oneString(L *lua.LState) (string, bool) {
	s, ok := L.Get(1).(lua.LString)
	return string(s), ok && L.GetTop() == 1
}

func (ip *interp) errorReply(L *lua.LState) int {
	s, ok := oneString(L)
	switch {
	case !ok:
		s = "wrong number or type of arguments"
	case !strings.HasPrefix(s, "-"):
		s = "-" + s
	}
	L.Push(ip.errorTable(s))
	return 1
}

func (ip *interp) statusReply(L *lua.LState) int {
	s, ok := oneString(L)
	if !ok {
		L.Push(ip.errorTable("wrong number or type of arguments"))
		return 1
	}
	t := L.CreateTable(0, 1)
	t.RawSetString("ok", lua.LString(s))
	L.Push(t)
	return 1
}

func (ip *interp) setResp(L *lua.LState) int {
	if L.GetTop() != 1 {
		return ip.raise(L, "redis.setresp() requires one argument.")
	}
	n := int(lua.LVAsNumber(L.Get(1)))
	if n != 2 && n != 3 {
		return ip.raise(L, "RESP version must be 2 or 3.")
	}
	if ip.call != nil {
		ip.call.proto = n
	}
	return 0
}

// setRepl is redis.set_repl: what a script does is always logged, as effects.
func (ip *interp) setRepl(L *lua.LState) int {
	if L.GetTop() != 1 {
		return ip.raise(L, "redis.set_repl() requires one argument.")
	}
	if n := int(lua.LVAsNumber(L.Get(1))); n&^3 != 0 {
		return ip.raise(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

func (ip *interp) aclCheck(L *lua.LState) int {
	c := ip.call
	if c == nil {
		return ip.raise(L, "redis.acl_check_cmd can only be used inside a script")
	}
	args, bad := c.collect(L)
	if bad != "" {
		return ip.raise(L, bad)
	}
	cmd := command.Lookup(args[0])
	if cmd != nil && len(cmd.Sub) > 0 && len(args) > 1 {
		cmd = cmd.Subcommand(args[1])
	}
	if cmd == nil {
		return ip.raise(L, "Invalid command passed to redis.acl_check_cmd()")
	}
	L.Push(lua.LBool(c.host.May == nil || c.host.May(cmd, args)))
	return 1
}

func (ip *interp) log(L *lua.LState) int {
	n := L.GetTop()
	if n < 2 {
		return ip.raise(L, "redis.log() requires two arguments or more.")
	}
	if _, ok := L.Get(1).(lua.LNumber); !ok {
		return ip.raise(L, "First argument must be a number (log level).")
	}
	level := int(lua.LVAsNumber(L.Get(1)))
	if level < LogDebug || level > LogWarning {
		return ip.raise(L, "Invalid debug level.")
	}
	var words []string
	for i := 2; i <= n; i++ {
		if v := L.Get(i); lua.LVCanConvToString(v) {
			words = append(words, textOf(L, v))
		}
	}
	if ip.rt.Log != nil {
		ip.rt.Log(level, strings.Join(words, " "))
	}
	return 0
}
