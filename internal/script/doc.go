// Package script runs Lua scripts and functions: EVAL, SCRIPT, FUNCTION, FCALL and the libraries that
// Redis gives to scripts.
//
// # One path
//
// A script changes nothing itself: redis.call runs a row of the command table through Ctx.Nested, inside the one
// group that the engine has opened for the script. So whatever a script does is one group of effects.
//
// Libraries of functions are state: effects FUNCTION LOAD REPLACE, DELETE and FLUSH on shard 0, kept as code by package
// state. What this package holds of them (compiled functions) is derived: it is made again whenever the
// state's set is another one than that it was made from. The cache of EVAL's scripts is not state, as in Redis.
//
// # Ownership
//
// The Lua states belong to whoever holds the locks of all shards: only then a script runs. The script cache has a mutex
// of its own. What other goroutines may ask about the running script (Busy, Kill, Stats) is atomic.
//
// # Sandbox
//
// Scripts see the globals through read-only tables (protect.go): Lua here has no flag for that, so a protected table is
// an empty one whose metatable forwards reads and refuses writes. Time is limited by a hook that the interpreter
// calls at every instruction (hook.go).
package script
