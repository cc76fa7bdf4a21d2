package command

import (
	"fmt"
	"slices"

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

// sparseMax is the setting hll-sparse-max-bytes.
func (c *Ctx) sparseMax() int { return c.Shards[0].Limits.SparseBytes }

func planPFAdd(c *Ctx) {
	h, exists, ok := hllOf(c, c.Args[1])
	if !ok {
		return
	}
	if exists && !h.Sparse() {
		addDense(c, h)
		return
	}
	changed := !exists
	if exists {
		h = h.Clone()
	} else {
		h = state.NewHLL()
	}
	h = h.Limit(c.sparseMax())
	for _, element := range c.Args[2:] {
		raised, valid := h.Add(element)
		if !valid {
			c.W.Error(msgCorruptHLL)
			return
		}
		changed = changed || raised
	}
	switch {
	case !changed:
		c.W.Int(0)
		return
	case c.sparseMax() != state.HLLSparseMax: // folding knows only the default
		setKeepingDeadline(c, c.Args[1], h.Bytes())
	default:
		if !exists {
			c.DropExpired(c.Args[1])
		}
		c.Emit(effect.PFAdd, c.Args[1:]...)
	}
	c.W.Int(1)
}

// addDense plans PFADD to dense registers, without a copy of them.
func addDense(c *Ctx, h state.HLL) {
	if slices.ContainsFunc(c.Args[2:], h.Raises) {
		c.Emit(effect.PFAdd, c.Args[1:]...)
		c.W.Int(1)
		return
	}
	c.W.Int(0)
}

// union merges the HyperLogLogs of keys; dense says that one of them is. ok is false when it has replied an error.
func union(c *Ctx, keys [][]byte, r *state.Registers) (dense, ok bool) {
	for _, key := range keys {
		h, exists, ok := hllOf(c, key)
		switch {
		case !ok:
			return dense, false
		case !exists:
			continue
		case !r.Merge(h):
			c.W.Error(msgCorruptHLL)
			return dense, false
		}
		dense = dense || !h.Sparse()
	}
	return dense, true
}

func planPFCount(c *Ctx) {
	if len(c.Args) > 2 {
		var r state.Registers
		if _, ok := union(c, c.Args[1:], &r); ok {
			c.W.Uint(r.Count())
		}
		return
	}
	h, exists, ok := hllOf(c, c.Args[1])
	switch {
	case !ok:
		return
	case !exists:
		c.W.Int(0)
		return
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
	var r state.Registers
	dense, ok := union(c, c.Args[1:], &r)
	if !ok {
		return
	}
	missed := c.missed // dst among them, if it is not there
	h, exists, _ := hllOf(c, dst)
	c.missed = missed
	if exists {
		h = h.Clone()
	} else {
		h = state.NewHLL()
	}
	h = h.Limit(c.sparseMax())
	toDense := dense && h.Sparse()
	if toDense && !h.ToDense() {
		c.W.Error(msgCorruptHLL)
		return
	}
	raised, valid := h.Raise(&r)
	if !valid {
		c.W.Error(msgCorruptHLL)
		return
	}
	if raised || toDense || !exists {
		setKeepingDeadline(c, dst, h.Bytes())
	}
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
