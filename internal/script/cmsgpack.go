package script

import (
	"encoding/binary"
	"math"

	lua "github.com/yuin/gopher-lua"
)

const packNesting = 16

// openCMsgpack makes the library cmsgpack.
func (ip *interp) openCMsgpack() *lua.LTable {
	t := ip.L.SetFuncs(ip.L.NewTable(), map[string]lua.LGFunction{
		"pack":   ip.msgPack,
		"unpack": func(L *lua.LState) int { return unpackMsg(L, 0, 0) },
		"unpack_one": func(L *lua.LState) int {
			return unpackMsg(L, 1, L.OptInt(2, 0))
		},
		"unpack_limit": func(L *lua.LState) int {
			return unpackMsg(L, L.CheckInt(2), L.OptInt(3, 0))
		},
	})
	t.RawSetString("_NAME", lua.LString("cmsgpack"))
	t.RawSetString("_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	t.RawSetString("_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	t.RawSetString("_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
	return t
}

func (ip *interp) msgPack(L *lua.LState) int {
	n := L.GetTop()
	if n == 0 {
		L.ArgError(0, "MessagePack pack needs input.")
	}
	var out []byte
	for i := 1; i <= n; i++ {
		out = ip.packValue(out, L.Get(i), 0)
	}
	L.Push(lua.LString(out))
	return 1
}

func (ip *interp) packValue(out []byte, v lua.LValue, level int) []byte {
	switch v := v.(type) {
	case lua.LString:
		return packString(out, string(v))
	case lua.LBool:
		if v {
			return append(out, 0xc3)
		}
		return append(out, 0xc2)
	case lua.LNumber:
		return packNumber(out, float64(v))
	case *lua.LTable:
		if level < packNesting {
			return ip.packTable(out, ip.behind(v), level)
		}
	}
	return append(out, 0xc0)
}

func packString(out []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		out = append(out, 0xa0|byte(n))
	case n <= math.MaxUint8:
		out = append(out, 0xd9, byte(n))
	case n <= math.MaxUint16:
		out = binary.BigEndian.AppendUint16(append(out, 0xda), uint16(n)) //nolint:gosec // checked
	default:
		out = binary.BigEndian.AppendUint32(append(out, 0xdb), uint32(n)) //nolint:gosec // a string has less than 4 GiB
	}
	return append(out, s...)
}

func packNumber(out []byte, f float64) []byte {
	if n := int64(f); float64(n) == f && f < 1<<63 {
		return packInt(out, n)
	}
	if f32 := float32(f); float64(f32) == f {
		return binary.BigEndian.AppendUint32(append(out, 0xca), math.Float32bits(f32))
	}
	return binary.BigEndian.AppendUint64(append(out, 0xcb), math.Float64bits(f))
}

func packInt(out []byte, n int64) []byte { //nolint:gosec // every conversion is checked
	be := binary.BigEndian
	switch {
	case n >= 0 && n <= 127, n < 0 && n >= -32:
		return append(out, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		return append(out, 0xcc, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		return be.AppendUint16(append(out, 0xcd), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		return be.AppendUint32(append(out, 0xce), uint32(n))
	case n >= 0:
		return be.AppendUint64(append(out, 0xcf), uint64(n))
	case n >= math.MinInt8:
		return append(out, 0xd0, byte(n))
	case n >= math.MinInt16:
		return be.AppendUint16(append(out, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return be.AppendUint32(append(out, 0xd2), uint32(n))
	}
	return be.AppendUint64(append(out, 0xd3), uint64(n))
}

func packHead(out []byte, n int, fix, wide byte) []byte {
	switch {
	case n <= 15:
		return append(out, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(out, wide), uint16(n)) //nolint:gosec // checked
	}
	return binary.BigEndian.AppendUint32(append(out, wide+1), uint32(n)) //nolint:gosec // a table has less entries
}

// packTable packs a table with keys 1..n as an array, any other as a map.
func (ip *interp) packTable(out []byte, t *lua.LTable, level int) []byte {
	count, largest, array := 0, 0.0, true
	each(t, func(k, _ lua.LValue) {
		count++
		n, ok := k.(lua.LNumber)
		if !ok || n <= 0 || float64(n) != math.Trunc(float64(n)) {
			array = false
			return
		}
		largest = max(largest, float64(n))
	})
	if array && largest == float64(count) {
		out = packHead(out, count, 0x90, 0xdc)
		for i := 1; i <= count; i++ {
			out = ip.packValue(out, t.RawGetInt(i), level+1)
		}
		return out
	}
	out = packHead(out, count, 0x80, 0xde)
	each(t, func(k, v lua.LValue) {
		out = ip.packValue(out, k, level+1)
		out = ip.packValue(out, v, level+1)
	})
	return out
}

// unpacker reads a stream of values. bad is the error, or "".
type unpacker struct {
	L   *lua.LState
	b   string
	bad string
}

func unpackMsg(L *lua.LState, limit, offset int) int {
	s := L.CheckString(1)
	switch {
	case offset < 0 || limit < 0:
		L.RaiseError("Invalid request to unpack with offset of %d and limit of %d.", offset, len(s))
	case offset > len(s):
		L.RaiseError("Start offset %d greater than input length %d.", offset, len(s))
	}
	all := limit == 0 && offset == 0
	u := unpacker{L: L, b: s[offset:]}
	var values []lua.LValue
	for u.b != "" && (all || len(values) < limit) {
		v := u.value(0)
		if u.bad != "" {
			L.RaiseError("%s", u.bad)
		}
		values = append(values, v)
	}
	n := len(values)
	if !all {
		next := len(s) - len(u.b)
		if u.b == "" {
			next = -1
		}
		L.Push(lua.LNumber(next))
		n++
	}
	for _, v := range values {
		L.Push(v)
	}
	return n
}

const (
	msgMissing = "Missing bytes in input."
	msgFormat  = "Bad data format in input."
	// unpackDepth bounds nested input: the reader is recursive.
	unpackDepth = 1 << 14
)

// take returns the next n bytes.
func (u *unpacker) take(n uint64) string {
	if u.bad != "" || n > uint64(len(u.b)) {
		u.fail(msgMissing)
		return ""
	}
	s := u.b[:n]
	u.b = u.b[n:]
	return s
}

func (u *unpacker) fail(text string) {
	if u.bad == "" {
		u.bad = text
	}
}

// uint reads a big-endian number of n bytes.
func (u *unpacker) uint(n uint64) (v uint64) {
	for _, c := range []byte(u.take(n)) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (u *unpacker) value(depth int) lua.LValue { //nolint:gocyclo // one case per format byte
	if depth > unpackDepth {
		u.fail(msgFormat)
		return lua.LNil
	}
	c := byte(u.uint(1))
	switch {
	case c <= 0x7f:
		return lua.LNumber(c)
	case c >= 0xe0:
		return lua.LNumber(int8(c)) //nolint:gosec // a negative number
	case c <= 0x8f:
		return u.table(uint64(c&0x0f), true, depth)
	case c <= 0x9f:
		return u.table(uint64(c&0x0f), false, depth)
	case c <= 0xbf:
		return lua.LString(u.take(uint64(c & 0x1f)))
	}
	switch c {
	case 0xc0:
		return lua.LNil
	case 0xc2, 0xc3:
		return lua.LBool(c == 0xc3)
	case 0xca:
		return lua.LNumber(math.Float32frombits(uint32(u.uint(4)))) //nolint:gosec // four bytes
	case 0xcb:
		return lua.LNumber(math.Float64frombits(u.uint(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return lua.LNumber(u.uint(1 << (c - 0xcc)))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		n := uint64(1) << (c - 0xd0)
		return lua.LNumber(int64(u.uint(n)<<(64-8*n)) >> (64 - 8*n)) //nolint:gosec // sign extension
	case 0xd9, 0xda, 0xdb:
		return lua.LString(u.take(u.uint(1 << (c - 0xd9))))
	case 0xdc, 0xdd:
		return u.table(u.uint(2<<(c-0xdc)), false, depth)
	case 0xde, 0xdf:
		return u.table(u.uint(2<<(c-0xde)), true, depth)
	}
	u.fail(msgFormat)
	return lua.LNil
}

func (u *unpacker) table(n uint64, isMap bool, depth int) lua.LValue {
	items, fields := int(min(n, fewItems)), 0 //nolint:gosec // few
	if isMap {
		items, fields = fields, items
	}
	t := u.L.CreateTable(items, fields)
	for i := uint64(1); i <= n && u.bad == ""; i++ {
		if !isMap {
			t.RawSetInt(int(i), u.value(depth+1)) //nolint:gosec // bounded by the input
			continue
		}
		k := u.value(depth + 1)
		v := u.value(depth + 1)
		if u.bad != "" {
			break
		}
		if f, ok := k.(lua.LNumber); k == lua.LNil || ok && math.IsNaN(float64(f)) {
			u.L.RaiseError("table index is nil")
		}
		t.RawSet(k, v)
	}
	return t
}
