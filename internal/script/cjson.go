package script

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// jsonConfig is the configuration of one cjson table.
type jsonConfig struct {
	sparseConvert           bool
	sparseRatio, sparseSafe int
	encodeDepth             int
	decodeDepth             int
	encodeInvalid           int // 0 off, 1 on, 2 null
	decodeInvalid           bool
	precision               int
	keepBuffer              bool
}

func newJSONConfig() *jsonConfig {
	return &jsonConfig{
		sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, decodeInvalid: true,
		precision: 14, keepBuffer: true,
	}
}

// openCJSON makes a cjson table with a configuration of its own.
func (ip *interp) openCJSON() *lua.LTable {
	c := newJSONConfig()
	t := ip.L.SetFuncs(ip.L.NewTable(), map[string]lua.LGFunction{
		"encode": func(L *lua.LState) int {
			if L.GetTop() != 1 {
				L.ArgError(1, "expected 1 argument")
			}
			e := jsonEncoder{ip: ip, L: L, c: c}
			e.value(L.Get(1), 0)
			L.Push(lua.LString(e.out))
			return 1
		},
		"decode": func(L *lua.LState) int {
			if L.GetTop() != 1 {
				L.ArgError(1, "expected 1 argument")
			}
			L.Push(decodeJSON(ip, L, c, L.CheckString(1)))
			return 1
		},
		"encode_sparse_array":     c.cfgSparse,
		"encode_max_depth":        func(L *lua.LState) int { return cfgInt(L, 1, &c.encodeDepth, 1, math.MaxInt32) },
		"decode_max_depth":        func(L *lua.LState) int { return cfgInt(L, 1, &c.decodeDepth, 1, math.MaxInt32) },
		"encode_number_precision": func(L *lua.LState) int { return cfgInt(L, 1, &c.precision, 1, 14) },
		"encode_keep_buffer":      func(L *lua.LState) int { return cfgBool(L, 1, &c.keepBuffer) },
		"encode_invalid_numbers":  c.cfgEncodeInvalid,
		"decode_invalid_numbers":  func(L *lua.LState) int { return cfgBool(L, 1, &c.decodeInvalid) },
		"new": func(L *lua.LState) int {
			L.Push(ip.openCJSON())
			return 1
		},
	})
	t.RawSetString("null", ip.jsonNull)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}

func cfgArgs(L *lua.LState, n int) {
	if L.GetTop() > n {
		L.ArgError(n+1, "found too many arguments")
	}
}

func cfgInt(L *lua.LState, arg int, field *int, least, most int) int {
	cfgArgs(L, arg)
	setInt(L, arg, field, least, most)
	L.Push(lua.LNumber(*field))
	return 1
}

func setInt(L *lua.LState, arg int, field *int, least, most int) {
	if L.Get(arg) == lua.LNil {
		return
	}
	n := L.CheckInt(arg)
	if n < least || n > most {
		L.ArgError(arg, "expected integer between "+strconv.Itoa(least)+" and "+strconv.Itoa(most))
	}
	*field = n
}

func cfgBool(L *lua.LState, arg int, field *bool) int {
	cfgArgs(L, arg)
	setBool(L, arg, field)
	L.Push(lua.LBool(*field))
	return 1
}

func setBool(L *lua.LState, arg int, field *bool) {
	switch v := L.Get(arg).(type) {
	case lua.LBool:
		*field = bool(v)
	case lua.LString:
		switch v {
		case "on":
			*field = true
		case "off":
			*field = false
		default:
			L.ArgError(arg, "invalid option '"+string(v)+"'")
		}
	default:
		if v != lua.LNil {
			L.TypeError(arg, lua.LTString)
		}
	}
}

func (c *jsonConfig) cfgSparse(L *lua.LState) int {
	cfgArgs(L, 3)
	setBool(L, 1, &c.sparseConvert)
	setInt(L, 2, &c.sparseRatio, 0, math.MaxInt32)
	setInt(L, 3, &c.sparseSafe, 0, math.MaxInt32)
	L.Push(lua.LBool(c.sparseConvert))
	L.Push(lua.LNumber(c.sparseRatio))
	L.Push(lua.LNumber(c.sparseSafe))
	return 3
}

func (c *jsonConfig) cfgEncodeInvalid(L *lua.LState) int {
	cfgArgs(L, 1)
	if s, ok := L.Get(1).(lua.LString); ok && s == "null" {
		c.encodeInvalid = 2
	} else if L.Get(1) != lua.LNil {
		on := c.encodeInvalid == 1
		setBool(L, 1, &on)
		c.encodeInvalid = 0
		if on {
			c.encodeInvalid = 1
		}
	}
	if c.encodeInvalid == 2 {
		L.Push(lua.LString("null"))
	} else {
		L.Push(lua.LBool(c.encodeInvalid == 1))
	}
	return 1
}

// jsonEncoder builds one JSON text.
type jsonEncoder struct {
	ip  *interp
	L   *lua.LState
	c   *jsonConfig
	out []byte
}

func (e *jsonEncoder) fail(v lua.LValue, why string) {
	e.L.RaiseError("Cannot serialise %s: %s", typeName(v), why)
}

// typeName is Lua's name of a value's type.
func typeName(v lua.LValue) string { return v.Type().String() }

func (e *jsonEncoder) value(v lua.LValue, depth int) {
	switch v := v.(type) {
	case lua.LString:
		e.string(string(v))
	case lua.LNumber:
		e.number(v)
	case lua.LBool:
		e.out = strconv.AppendBool(e.out, bool(v))
	case *lua.LTable:
		depth++
		if depth > e.c.encodeDepth {
			e.L.RaiseError("Cannot serialise, excessive nesting (%d)", depth)
		}
		e.table(e.ip.behind(v), depth)
	case *lua.LNilType:
		e.out = append(e.out, "null"...)
	default:
		if v == e.ip.jsonNull {
			e.out = append(e.out, "null"...)
			return
		}
		e.fail(v, "type not supported")
	}
}

func (e *jsonEncoder) number(n lua.LNumber) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		switch e.c.encodeInvalid {
		case 0:
			e.fail(n, "must not be NaN or Inf")
		case 2:
			e.out = append(e.out, "null"...)
			return
		}
		if math.IsNaN(f) {
			e.out = append(e.out, "nan"...)
			return
		}
	}
	e.out = appendG(e.out, f, e.c.precision)
}

const hexDigits = "0123456789abcdef"

func (e *jsonEncoder) string(s string) {
	e.out = append(e.out, '"')
	from := 0
	for i := range len(s) {
		esc := jsonEscape(s[i])
		if esc == 0 {
			continue
		}
		e.out = append(e.out, s[from:i]...)
		from = i + 1
		e.out = append(e.out, '\\', esc)
		if esc == 'u' {
			e.out = append(e.out, '0', '0', hexDigits[s[i]>>4], hexDigits[s[i]&15])
		}
	}
	e.out = append(append(e.out, s[from:]...), '"')
}

// jsonEscape returns the letter after the backslash that c is written with, 0 for c itself.
func jsonEscape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	if c < 0x20 || c == 0x7f {
		return 'u'
	}
	return 0
}

// arrayLen returns the length of a table that is an array, or -1.
func (e *jsonEncoder) arrayLen(t *lua.LTable) int {
	items, largest, array := 0, 0.0, true
	each(t, func(k, _ lua.LValue) {
		n, ok := k.(lua.LNumber)
		if !ok || n < 1 || float64(n) != math.Floor(float64(n)) {
			array = false
			return
		}
		items++
		largest = max(largest, float64(n))
	})
	if !array {
		return -1
	}
	if r := e.c.sparseRatio; r > 0 && largest > float64(items*r) && largest > float64(e.c.sparseSafe) {
		if !e.c.sparseConvert {
			e.fail(t, "excessively sparse array")
		}
		return -1
	}
	return int(largest)
}

func (e *jsonEncoder) table(t *lua.LTable, depth int) {
	if n := e.arrayLen(t); n > 0 {
		e.out = append(e.out, '[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.out = append(e.out, ',')
			}
			e.value(t.RawGetInt(i), depth)
		}
		e.out = append(e.out, ']')
		return
	}
	e.out = append(e.out, '{')
	first := true
	each(t, func(k, v lua.LValue) {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		switch k := k.(type) {
		case lua.LNumber:
			e.out = append(e.out, '"')
			e.number(k)
			e.out = append(e.out, '"')
		case lua.LString:
			e.string(string(k))
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.out = append(e.out, ':')
		e.value(v, depth)
	})
	e.out = append(e.out, '}')
}
