package command

import (
	"bytes"

	"github.com/kevydb/kevy/state"
)

// sharedRefCount is what Redis shows for the small integers all of its keys share.
const sharedRefCount = 1<<31 - 1

// object looks up the key of an OBJECT request and replies null without one.
func object(c *Ctx) (state.Entry, bool) {
	e, ok := c.Peek(c.Args[2])
	if !ok {
		c.W.Null()
	}
	return e, ok
}

func encoding(c *Ctx, e state.Entry) string {
	return c.Shards[c.ShardOf(c.Args[2])].Encoding(e)
}

func planObjectEncoding(c *Ctx) {
	if e, ok := object(c); ok {
		c.W.BulkString(encoding(c, e))
	}
}

func planObjectIdleTime(c *Ctx) {
	e, ok := object(c)
	switch {
	case !ok:
	case c.LFU:
		c.W.Error(msgIdleLFU)
	case e.Access() == 0: // not accessed since it was loaded
		c.W.Int(0)
	default:
		c.W.Int(max(0, c.Now/1000-int64(e.Access())))
	}
}

func planObjectFreq(c *Ctx) {
	e, ok := object(c)
	switch {
	case !ok:
	case !c.LFU:
		c.W.Error(msgFreqNotLFU)
	default:
		c.W.Int(int64(c.Shards[c.ShardOf(c.Args[2])].Freq(e, uint32(c.Now/1000))))
	}
}

func planObjectRefCount(c *Ctx) {
	e, ok := object(c)
	if !ok {
		return
	}
	if e.Type() == state.TypeString && len(e.Value()) <= 4 && encoding(c, e) == "int" {
		if n, ok := parseInt(e.Value()); ok && n >= 0 {
			c.W.Int(sharedRefCount)
			return
		}
	}
	c.W.Int(1)
}

var objectHelp = []string{
	"ENCODING <key>",
	"    Return the kind of internal representation used in order to store the value",
	"    associated with a <key>.",
	"FREQ <key>",
	"    Return the access frequency index of the <key>. The returned integer is",
	"    proportional to the logarithm of the recent access frequency of the key.",
	"IDLETIME <key>",
	"    Return the idle time of the <key>, that is the approximated number of",
	"    seconds elapsed since the last access to the key.",
	"REFCOUNT <key>",
	"    Return the number of references of the value associated with the specified",
	"    <key>.",
}

func planObjectHelp(c *Ctx) { ReplyHelp(c.W, c.Args[0], objectHelp) }

// recordOverhead is what the memory of a key is counted to cost beyond its bytes: the record's
// header and its places in the index and the tree.
const recordOverhead = 48

// planMemoryUsage plans MEMORY USAGE key [SAMPLES n].
func planMemoryUsage(c *Ctx) {
	for i := 3; i < len(c.Args); i += 2 {
		if !isWord(c.Args[i], "samples") || i+1 >= len(c.Args) {
			c.W.Error(msgSyntax)
			return
		}
		n, bad := intArg(c.Args[i+1])
		if bad == "" && n < 0 {
			bad = msgSyntax
		}
		if bad != "" {
			c.W.Error(bad)
			return
		}
	}
	e, ok := object(c)
	switch {
	case !ok:
	case e.Type() == state.TypeString:
		c.W.Int(int64(recordOverhead + len(e.Key()) + len(e.Value())))
	default:
		c.W.Int(int64(recordOverhead + c.Shards[c.ShardOf(c.Args[2])].Size(e)))
	}
}

// upper returns a command's name as HELP and syntax errors show it.
func upper(name []byte) string { return string(bytes.ToUpper(name)) }
