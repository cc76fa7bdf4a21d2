package command

import (
	"fmt"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const (
	msgNotHLL     = "WRONGTYPE Key is not a valid HyperLogLog string value."
	msgCorruptHLL = "INVALIDOBJ Corrupted HLL object detected"
	msgNoSuchKey  = "ERR The specified key does not exist"
)

// hllOf returns the HyperLogLog of a key; ok is false when it has replied an error.
func hllOf(c *Ctx, key []byte) (h state.HLL, exists, ok bool) {
	b, exists, ok := stringOf(c, key)
	if !ok || !exists {
		return h, exists, ok
	}
	if h, ok = state.ParseHLL(b); !ok {
		c.W.Error(msgNotHLL)
	}
	return h, true, ok
}

func planPFAdd(c *Ctx) {
	h, exists, ok := hllOf(c, c.Args[1])
	if !ok {
		return
	}
	changed := !exists
	if exists {
		h = h.Clone()
	} else {
		h = state.NewHLL()
	}
	for _, element := range c.Args[2:] {
		raised, valid := h.Add(element)
		if !valid {
			c.W.Error(msgCorruptHLL)
			return
		}
		changed = changed || raised
	}
	if !changed {
		c.W.Int(0)
		return
	}
	if !exists {
		c.DropExpired(c.Args[1])
	}
	c.Emit(effect.PFAdd, c.Args[1:]...)
	c.W.Int(1)
}

// union merges the HyperLogLogs of keys into one; it is dense if one of them is.
func union(c *Ctx, keys [][]byte, h state.HLL) (state.HLL, bool) {
	var all []state.HLL
	for _, key := range keys {
		x, exists, ok := hllOf(c, key)
		if !ok {
			return h, false
		}
		if exists {
			all = append(all, x)
			if !x.Sparse() && !h.ToDense() {
				c.W.Error(msgCorruptHLL)
				return h, false
			}
		}
	}
	for _, x := range all {
		if !h.Merge(x) {
			c.W.Error(msgCorruptHLL)
			return h, false
		}
	}
	return h, true
}

func planPFCount(c *Ctx) {
	var h state.HLL
	var ok bool
	if len(c.Args) > 2 {
		if h, ok = union(c, c.Args[1:], state.NewHLL()); !ok {
			return
		}
	} else {
		var exists bool
		if h, exists, ok = hllOf(c, c.Args[1]); !ok {
			return
		}
		if !exists {
			c.W.Int(0)
			return
		}
	}
	n, ok := h.Count()
	if !ok {
		c.W.Error(msgCorruptHLL)
		return
	}
	c.W.Uint(n)
}

func planPFMerge(c *Ctx) {
	dst := c.Args[1]
	h, exists, ok := hllOf(c, dst)
	if !ok {
		return
	}
	if exists {
		h = h.Clone()
	} else {
		h = state.NewHLL()
	}
	if h, ok = union(c, c.Args[2:], h); !ok {
		return
	}
	setKeepingDeadline(c, dst, h.Bytes())
	c.W.OK()
}

// setKeepingDeadline plans a SET that leaves the key's deadline as it is.
func setKeepingDeadline(c *Ctx, key, value []byte) {
	if e, ok := c.Peek(key); ok {
		if ms, has := e.Deadline(); has {
			c.Emit(effect.Set, key, value, []byte("PXAT"), c.Int(ms))
			return
		}
	}
	c.Emit(effect.Set, key, value)
}

func planPFSelfTest(c *Ctx) { c.W.OK() }

func planPFDebug(c *Ctx) {
	h, exists, ok := hllOf(c, c.Args[2])
	switch {
	case !ok:
		return
	case !exists:
		c.W.Error(msgNoSuchKey)
		return
	case len(c.Args) != 3:
		c.W.Error("ERR Wrong number of arguments for the given subcommand")
		return
	}
	switch sub := c.Args[1]; {
	case isWord(sub, "getreg"):
		pfRegisters(c, h)
	case isWord(sub, "encoding"):
		if h.Sparse() {
			c.W.Simple("sparse")
		} else {
			c.W.Simple("dense")
		}
	case isWord(sub, "decode"):
		pfDecode(c, h)
	case isWord(sub, "todense"):
		pfToDense(c, h)
	default:
		c.W.Error(fmt.Sprintf("ERR Unknown PFDEBUG subcommand '%s'", sub))
	}
}

func pfRegisters(c *Ctx, h state.HLL) {
	const registers = 16384
	var reg [registers]byte
	if !h.Each(func(i int, v byte) { reg[i] = v }) {
		c.W.Error(msgCorruptHLL)
		return
	}
	c.W.Array(registers)
	for _, v := range reg {
		c.W.Int(int64(v))
	}
}

func pfDecode(c *Ctx, h state.HLL) {
	if !h.Sparse() {
		c.W.Error("ERR HLL encoding is not sparse")
		return
	}
	text, ok := h.Decode()
	if !ok {
		c.W.Error(msgCorruptHLL)
		return
	}
	c.W.BulkString(text)
}

func pfToDense(c *Ctx, h state.HLL) {
	if !h.Sparse() {
		c.W.Int(0)
		return
	}
	h = h.Clone()
	if !h.ToDense() {
		c.W.Error(msgCorruptHLL)
		return
	}
	setKeepingDeadline(c, c.Args[2], h.Bytes())
	c.W.Int(1)
}
