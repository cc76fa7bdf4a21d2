package command

import (
	"bytes"
	"strconv"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// Ctx is what a planner sees and what it produces: arguments, the keyspaces it may read, one
// clock; planned effects and a reply. The engine reuses one Ctx for many commands; nothing in it
// may be kept beyond the call.
//
// The engine holds the locks of every shard the command may touch while the planner runs.
type Ctx struct {
	// Args is the request, Args[0] being the command's name as the client spelled it.
	Args [][]byte
	// Cmd is the table row being run (the subcommand's row for container commands).
	Cmd *Command
	// Now is the group's clock in unix ms: one for a whole MULTI/EXEC or script.
	Now int64
	// Turn is a clock shared by the commands of an event loop's turn, in unix ms; 0: every command
	// reads the clock.
	Turn int64
	// W takes the reply.
	W *resp.Writer
	// Shards are the keyspaces, by shard number.
	Shards []*state.Keyspace
	// Seed is the directory's hash seed.
	Seed uint64
	// NoTouch leaves access clocks alone (CLIENT NO-TOUCH).
	NoTouch bool
	// KeepExpired makes Lookup return keys whose deadline has passed, and nothing deletes them (replay tools, a primary's
	// commands, DEBUG).
	KeepExpired bool
	// Rand is a random number fixed for this command (RANDOMKEY).
	Rand uint64
	// LFU says that maxmemory-policy is one of the LFU policies (OBJECT FREQ, OBJECT IDLETIME).
	LFU bool
	// MaxBulk is proto-max-bulk-len in bytes: the longest string a command may build. 0 means
	// state.MaxValue.
	MaxBulk int64

	// CanBlock says that the client may wait (Block); Waited that this command has waited and is
	// planned again.
	CanBlock, Waited bool

	// Hits and Misses count the keys that Lookup found and did not find. Their reader resets them.
	Hits, Misses uint64
	// NoteMisses has the keys that Lookup does not find remembered, see Missed.
	NoteMisses bool
	// Before, if set, is called before each command of a group; script says that a script runs it.
	Before func(cmd *Command, args [][]byte, script bool)

	// Permit, inside a transaction, is asked before each command; what it returns is the reply of one that must not run.
	Permit func(*Command, [][]byte) string

	// Took, inside a transaction, is told how many nanoseconds each command with a planner has taken.
	Took func(cmd *Command, args [][]byte, ns int64)

	// Pending tells, inside a transaction, how many frames its earlier commands have planned for
	// a shard: they count for FEED.TAIL. nil outside.
	Pending func(shard int) uint64
	// Flushed says that an earlier command of the transaction was a FLUSHALL: what follows it is in a generation that
	// begins with the transaction's end.
	Flushed bool

	// Nested, inside a group, runs row Cmd with Args as a part of the group and appends the reply to W;
	// local runs rows without a planner. The effects are a script's unless local is nil. nil outside.
	Nested func(c *Ctx, local func(*Ctx) error) error
	// InScript says that a script calls the command: it must not wait for anything.
	InScript bool

	planned []Planned
	args    [][]byte // backing of the planned effects' Args
	open    int      // where the arguments of the effect being built start in args
	homes   []int    // scratch: shard of each key of a command with many keys
	scratch []byte   // backing of formatted numbers and copies; replaced, never moved, when full
	wait    Wait     // what the planner asked to wait for, if waits
	waits   bool
	missed  [][]byte // see Missed
	past    [][]byte // see Past
}

// Planned is one effect and the shard it belongs to. Shard is AllShards for an effect that every
// shard logs (FLUSHALL).
type Planned struct {
	Shard  int
	Effect effect.Effect
	// Expired marks the removal of a key whose deadline had passed when the command met it: the
	// cause of its frame is expiry, not the client.
	Expired bool
	// Cmd is the command, nil for what no client asked for. Event is what keyspace notifications call the effect, where
	// Cmd does not say it.
	Cmd   *Command
	Event string
	// Whole is the request whose keys are spread over effects of several shards, nil for all others: notifications follow
	// the order of its keys.
	Whole [][]byte
	// Script marks an effect of a command that a script called.
	Script bool
	// Marks are to be set once the effect is folded.
	Marks []Mark
}

// Mark is what a keyspace keeps beside a value and what is no state, such as a time of access: no frame has it.
type Mark interface {
	// Set puts the mark into the keyspace that has folded the effect.
	Set(ks *state.Keyspace, e *effect.Effect)
}

// Access is a record's access clock, in unix seconds, and access counter.
type Access struct {
	Seconds uint32
	Freq    uint8
}

// Set implements Mark for the effect's first key.
func (a *Access) Set(ks *state.Keyspace, e *effect.Effect) {
	if entry, ok := ks.Lookup(e.Args[e.Op.KeyAt()]); ok {
		ks.SetAccess(entry, a.Seconds, a.Freq)
	}
}

// AllShards is the shard number of an effect that concerns every shard.
const AllShards = -1

// Reset prepares c for the next command, keeping its buffers.
func (c *Ctx) Reset() {
	c.planned = c.planned[:0]
	c.args = c.args[:0]
	c.scratch = c.scratch[:0]
	c.waits = false
	c.missed, c.past = c.missed[:0], c.past[:0]
}

// Past returns keys that the command has come across past their deadline and that it does not name. Valid until Reset.
func (c *Ctx) Past() [][]byte { return c.past }

// Missed returns the keys that were looked for in vain since Reset, if NoteMisses is set. Valid until Reset.
func (c *Ctx) Missed() [][]byte { return c.missed }

// Planned returns the effects planned since Reset, in order. Owned by c, valid until Reset.
func (c *Ctx) Planned() []Planned { return c.planned }

// DropPlanned forgets the planned effects, and that the client is to wait.
func (c *Ctx) DropPlanned() { c.planned, c.waits = c.planned[:0], false }

// ShardOf returns the shard a key lives on.
func (c *Ctx) ShardOf(key []byte) int {
	if len(c.Shards) == 1 {
		return 0
	}
	return ShardOfHash(state.Hash(c.Seed, key), len(c.Shards))
}

// ShardOfHash returns the shard of a key with keyed hash h among n shards.
func ShardOfHash(h uint64, n int) int { return int(h&0xffff) % n }

// Lookup returns the live entry of key. A key whose deadline has passed is not live.
func (c *Ctx) Lookup(key []byte) (state.Entry, bool) { return c.read(key, !c.NoTouch) }

// Glance is Lookup without touching the access clock.
func (c *Ctx) Glance(key []byte) (state.Entry, bool) { return c.read(key, false) }

// read finds a live entry for a command that reads it: hits and misses are counted.
func (c *Ctx) read(key []byte, touch bool) (state.Entry, bool) {
	ks, e, ok := c.find(key)
	if !ok || c.due(e) {
		c.Misses++
		if c.NoteMisses {
			c.missed = append(c.missed, key)
		}
		return state.Entry{}, false
	}
	c.Hits++
	if touch {
		ks.Touch(e, uint32(c.Now/1000))
	}
	return e, true
}

// Peek is Glance for a command that does not read the value: nothing is counted.
func (c *Ctx) Peek(key []byte) (state.Entry, bool) {
	_, e, ok := c.find(key)
	if !ok || c.due(e) {
		return state.Entry{}, false
	}
	return e, true
}

// find looks at the keyspace as it is, deadlines aside.
func (c *Ctx) find(key []byte) (*state.Keyspace, state.Entry, bool) {
	h := state.Hash(c.Seed, key)
	ks := c.Shards[ShardOfHash(h, len(c.Shards))]
	e, ok := ks.LookupHash(h, key)
	return ks, e, ok
}

// due reports whether the entry's deadline has passed.
func (c *Ctx) due(e state.Entry) bool {
	ms, has := e.Deadline()
	return has && ms <= c.Now && !c.KeepExpired
}

// dueMet is due for a key that the command does not name: it is to be deleted.
func (c *Ctx) dueMet(e state.Entry) bool {
	if !c.due(e) {
		return false
	}
	c.past = append(c.past, bytes.Clone(e.Key()))
	return true
}

// maxBulk is the longest string a command may build.
func (c *Ctx) maxBulk() int64 {
	if c.MaxBulk > 0 {
		return c.MaxBulk
	}
	return state.MaxValue
}

// Emit plans an effect on the shard of its first key. The arguments are kept by reference until
// the command ends; they may alias the request, c.Int's results, or an Entry's bytes (the engine
// logs, then folds, effect by effect, so an effect must not alias bytes of a record that an EARLIER
// effect of the same command changes or deletes: copy those).
func (c *Ctx) Emit(op effect.Op, args ...[]byte) {
	shard := AllShards
	if op.Keys() != effect.NoKeys {
		shard = c.ShardOf(args[op.KeyAt()])
	}
	c.EmitOn(shard, op, args...)
}

// EmitOn is Emit with the shard given: for effects with several keys, all on that shard.
func (c *Ctx) EmitOn(shard int, op effect.Op, args ...[]byte) {
	c.open = len(c.args)
	c.args = append(c.args, args...)
	c.emitOpen(shard, op)
}

// DropExpired plans the removal of key if its record is still there though its deadline has passed.
// A planner calls it before an effect that works on what the record holds (APPEND, SETRANGE):
// folding has no clock and would work on the dead value.
func (c *Ctx) DropExpired(key []byte) {
	if _, e, ok := c.find(key); ok && c.due(e) {
		c.Emit(effect.Del, key)
		c.planned[len(c.planned)-1].Expired = true
	}
}

// beginEffect starts an effect whose arguments are added one by one with addArg; emitOpen ends it.
// Nothing else may be emitted between.
func (c *Ctx) beginEffect() { c.open = len(c.args) }

func (c *Ctx) addArg(b []byte) { c.args = append(c.args, b) }

// emitOpen plans the effect begun last, unless no argument was added.
func (c *Ctx) emitOpen(shard int, op effect.Op) {
	end := len(c.args)
	if end == c.open && op.Keys() != effect.NoKeys {
		return
	}
	c.planned = append(c.planned, Planned{
		Shard:  shard,
		Effect: effect.Effect{Op: op, Args: c.args[c.open:end:end]},
		Cmd:    c.Cmd,
	})
}

// mark gives the last planned effect a mark.
func (c *Ctx) mark(m Mark) {
	p := &c.planned[len(c.planned)-1]
	p.Marks = append(p.Marks, m)
}

// Int formats n into memory that lives as long as the planned effects.
func (c *Ctx) Int(n int64) []byte {
	if cap(c.scratch)-len(c.scratch) < 20 {
		c.scratch = make([]byte, 0, max(256, 2*cap(c.scratch)))
	}
	start := len(c.scratch)
	c.scratch = strconv.AppendInt(c.scratch, n, 10)
	return c.scratch[start:len(c.scratch):len(c.scratch)]
}

// Copy copies b into memory that lives as long as the planned effects.
func (c *Ctx) Copy(b []byte) []byte {
	const most = 1 << 10
	if len(b) > most {
		return append([]byte(nil), b...)
	}
	if cap(c.scratch)-len(c.scratch) < len(b) {
		c.scratch = make([]byte, 0, max(256, 2*cap(c.scratch), len(b)))
	}
	start := len(c.scratch)
	c.scratch = append(c.scratch, b...)
	return c.scratch[start:len(c.scratch):len(c.scratch)]
}
